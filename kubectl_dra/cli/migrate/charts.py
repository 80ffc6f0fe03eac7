"""What ``migrate`` does with charts: each of their renderings, and the files of the chart to change for them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.charts import (
    BrokenTemplate,
    claim_values,
    has_values_of,
    rendered_in_part,
    rendering,
    rendering_name,
    values_files,
)
from kubectl_dra.manifests.inputs import Input, read
from kubectl_dra.manifests.objects import readable
from kubectl_dra.manifests.source import decode
from kubectl_dra.migrate import codes
from kubectl_dra.migrate.charts.run import MigratedRendering, chart_changes, with_origins
from kubectl_dra.migrate.charts.workshop import Rendering
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.model import MigratedFile, MigrationReport, Remark
from kubectl_dra.migrate.other_texts import requested
from kubectl_dra.text import some


class ChartFlags(NamedTuple):
    """Files of values and single values for the charts of a run; with ``edits`` their files are to be changed.

    ``named`` are files with other values that were named beside the chart.
    """

    values: tuple[str, ...]
    sets: tuple[str, ...]
    edits: bool
    write: bool
    broken: tuple[BrokenTemplate, ...]
    named: tuple[str, ...] = ()


def of_charts(
    report: MigrationReport, charts: Sequence[str], inputs: Sequence[Input], job: MigrationJob, flags: ChartFlags
) -> MigrationReport:
    """The report with what changes in the files of charts, for the rendering of the run and those of other values."""
    notes, read_too = list(report.notes), 0
    files = {file.name: file for file in report.files}
    for chart in charts:
        about = _about_claims(chart)
        name = rendering_name(chart)
        found = next((known for known in inputs if known.name == name), None)
        if found is None:
            notes.append(about)
            notes.append(f"{chart}: not rendered, because helm is not there: only its files were looked at")
            continue
        text = read(found).decode("utf-8", "replace")
        broken = [template for template in flags.broken if template.path.startswith(f"{chart.rstrip('/')}/")]
        files.update((template.path, _unreadable(template)) for template in broken)
        without = tuple(template.path for template in broken)
        default = Rendering(chart, flags.values, flags.sets, text, without)
        renderings = [MigratedRendering(default, files.pop(name, MigratedFile(name, None)))]
        if not flags.edits:
            notes.append(about)
            files[name] = with_origins(renderings[0].file, default)
            continue
        if not (flags.values or flags.sets):
            own = values_files(chart)
            named = [path for path in flags.named if has_values_of(path, chart)]
            renderings += _with_other_values(chart, list(dict.fromkeys((*own, *named))), job, notes)
            notes += _not_read(chart, named, job)
        read_too += len(renderings) - 1
        changes = chart_changes(renderings, job.settings)
        read_too += sum(not file.is_new for file in changes.files)
        notes += [] if changes.files else [about]
        for file in changes.renderings:
            if file.items:
                # What the files of the chart say is not shown a second time as a difference of what is rendered.
                solved = file.name in changes.solved or flags.write
                files[file.name] = file._replace(text=None) if solved else file
        files.update({file.name: file for file in changes.files})
    return report._replace(files=tuple(files.values()), notes=tuple(notes), read=report.read + read_too)


def _about_claims(chart: str) -> str:
    """What to know of a chart of which no file changes."""
    own = list(claim_values(chart))
    if own:
        return f"{chart}: it speaks of claims itself, in {some(own)}: set its values before you change what it renders"
    how = f"{rendering(chart)} | kubectl dra migrate -"
    return f"{chart}: it has no values for claims; to change what it renders: {how}"


def _not_read(chart: str, named: Sequence[str], job: MigrationJob) -> Iterator[str]:
    """What to know of files beside the chart that may be values of it: they may as well be those of another one."""
    for path in sorted(Path(chart).resolve().parent.glob("*.y*ml")):
        shown = str(path) if Path(chart).is_absolute() else os.path.relpath(path)
        if shown in named or not has_values_of(shown, chart):
            continue
        names = dict.fromkeys(name for raw in _document(path) for name in requested(raw, job.settings.catalogue))
        if names:
            again = shlex.join(("kubectl", "dra", "migrate", chart, shown))
            yield f"{shown}: it asks for {some(list(names))} and may be values of this chart: {again}"


def _document(path: Path) -> Iterator[Mapping[str, Any]]:
    yield from (document.object for document in readable(decode(path.read_bytes(), str(path))))


def _with_other_values(
    chart: str, paths: Sequence[str], job: MigrationJob, notes: list[str]
) -> Iterator[MigratedRendering]:
    """The chart with each of other files of values."""
    for path in paths:
        try:
            data, broken = rendered_in_part(chart, job.settings.release, [path])
        except FileError as error:
            notes.append(f"{path}: the chart was not rendered with these values: {error.problem}")
            continue
        name = rendering_name(chart, path)
        # A chart that renders nothing is no error here.
        report = migrate([Input("<none>", False, b"{}"), Input(name, False, data)], job._replace(claims_file=""))
        file = next(
            (migrated_file for migrated_file in report.files if migrated_file.name == name), MigratedFile(name, None)
        )
        without = tuple(template.path for template in broken)
        yield MigratedRendering(Rendering(chart, (path,), (), data.decode("utf-8", "replace"), without), file)


def _unreadable(broken: BrokenTemplate) -> MigratedFile:
    way_out = "mend the template; the others of the chart are rendered without it"
    item = Remark("refusal", codes.UNREADABLE, broken.path, 1, 1, "", "", broken.problem, way_out)
    return MigratedFile(broken.path, None, (item,))
