"""What ``migrate`` says of charts: the templates that its items come from, and values that it was not rendered with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.command import kubectl
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.inputs import HELMED, Input, arguments, claim_values, render, template_of, values_files
from kubectl_dra.migrate import codes
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.model import MigratedFile, MigrationReport, Remark
from kubectl_dra.text import some


def of_charts(
    report: MigrationReport, charts: Sequence[str], inputs: Sequence[Input], job: MigrationJob, *, others: bool
) -> MigrationReport:
    """The report with the template that each item comes from, and what to know of the charts.

    ``others``: with the other values files of a chart that ask for devices, too.
    """
    notes, files = list(report.notes), list[MigratedFile]()
    for chart in charts:
        own = list(claim_values(chart))
        notes.append(
            f"{chart}: it speaks of claims itself, in {some(own)}: set its values before you change what it renders"
            if own
            else f"{chart}: it has no values for claims; migrate as a post-renderer changes what it renders"
        )
        if not any(found.name == f"{chart.rstrip('/')}/{HELMED}" for found in inputs):
            notes.append(f"{chart}: not rendered, because helm is not there: only its files were looked at")
        elif others:
            files += _with_other_values(chart, report, job, notes)
    for file in report.files:
        if file.name.endswith(HELMED) and file.text is not None:
            text = file.text.before
            items = [item._replace(origin=template_of(file.name, text, item.line, _named(item))) for item in file.items]
            file = file._replace(items=tuple(items))
        files.append(file)
    return report._replace(files=tuple(files), notes=tuple(notes))


def _with_other_values(
    chart: str, report: MigrationReport, job: MigrationJob, notes: list[str]
) -> Iterator[MigratedFile]:
    """The values files with which a chart has something to migrate that it has not with its own values."""
    known = {(item.object, item.field, item.message) for item in report.items()}
    for path in values_files(chart):
        name = f"{chart.rstrip('/')}/{HELMED}"
        try:
            rendered = Input(name, False, render(chart, job.settings.release, [path]))
        except FileError as error:
            notes.append(f"{path}: the chart was not rendered with these values: {error.problem}")
            continue
        # A chart that renders nothing is no error here.
        found = migrate([Input("<none>", False, b"{}"), rendered], job._replace(claims_file=""))
        item = next(
            (
                item
                for item in found.items()
                if item.sort != "note" and (item.object, item.field, item.message) not in known
            ),
            None,
        )
        if item is not None:
            message = f"with these values, which it was not rendered with, {item.object}: {item.message}"
            way_out = str(kubectl("dra", "migrate", more=(*arguments(chart), "--values", path)))
            refusal = Remark("refusal", codes.NOT_AN_OBJECT, path, 1, 1, "", "", message, way_out)
            yield MigratedFile(path, None, (refusal,))


def _named(item: Remark) -> str:
    """The resource that an item is about, by the last part of its field."""
    return item.field[item.field.rindex("[") + 1 : -1] if item.field.endswith("]") else ""
