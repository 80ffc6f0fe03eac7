"""A run of migrate: reads every file, plans object by object, edits the text, and reads it again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from kubectl_dra.api.releases import GROUP
from kubectl_dra.errors import FileError
from kubectl_dra.lint.accepted import is_baseline
from kubectl_dra.manifests.changes import EditRefused, fields_at
from kubectl_dra.manifests.charts import chart_of, embedding_template, rendering
from kubectl_dra.manifests.documents import NotAnObject, TemplateError
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.manifests.kustomization import is_patch
from kubectl_dra.manifests.objects import ManifestObject, ObjectKey, object_key, title
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate import api_versions, codes, other_kinds, quotas
from kubectl_dra.migrate.codes import MIGRATE
from kubectl_dra.migrate.device_plugins import pod_rewrite as device_plugins
from kubectl_dra.migrate.make_edits import carry_out
from kubectl_dra.migrate.model import (
    MigratedFile,
    Migration,
    MigrationReport,
    MigrationSettings,
    Remark,
)
from kubectl_dra.migrate.new_objects import claims_file
from kubectl_dra.migrate.other_texts import fill_in, has_kind, is_chart_test, not_mentioned
from kubectl_dra.migrate.planned_edit import PlannedEdit
from kubectl_dra.migrate.reading import (
    File,
    check_readable,
    evidence,
    is_json_patch,
    opened,
    pointed,
    relevant,
    source_of,
)
from kubectl_dra.migrate.run_objects import RunObjects

_MOST_LINES: Final = 20
_WAY_OUT_YAML = (
    "make it valid YAML (kubectl dra lint says where it is not); no document of the file is changed before that"
)
_WAY_OUT_PART = "write what is missing; if the file is cut off, get the whole one"
_NAMED: Final = "MIG126"
_WAY_OUT_VALUES = (
    "change the tool's own input so that the object it makes asks for a claim, or migrate what it renders: "
)


MIGRATIONS: Final = (
    Migration("versions", api_versions.plan),
    Migration("device-plugins", device_plugins.plan),
    Migration("elsewhere", other_kinds.plan),
    Migration("quotas", quotas.plan),
)
"""Every migration. The one for API versions runs first, so that the others see the requested version."""


class MigrationJob(NamedTuple):
    """The job of a run. ``unsafe`` also makes unsafe changes; ``claims_file`` receives all new objects."""

    settings: MigrationSettings
    unsafe: bool = False
    claims_file: str = ""
    migrations: tuple[Migration, ...] = MIGRATIONS


def migrate(inputs: Sequence[Input], job: MigrationJob) -> MigrationReport:
    """Plan the migration of all inputs. Writes nothing.

    Raises:
        InputError: a named file or that of --claims-file cannot be read, or no input can.
    """
    run = _Run(job)
    files = [run.opened(file) for file in inputs]
    if not any(files):
        check_readable(inputs, run.notes)
    mine = [file for file in files if file is not None and file.documents]
    run.objects = RunObjects(mine, job.settings.catalogue)
    for migration in job.migrations:
        for file in mine:
            run.stage(file, migration)
    results = (*run.closed, *(result_of(file) for file in files if file is not None))
    claims = claims_file(job.claims_file, run.set_aside, results) if job.claims_file and run.set_aside else None
    if claims is not None:
        results = tuple(result for result in results if result.name != claims.name)
    run.notes += _unused(file for file in files if file is not None)
    run.defects += misread((*results, claims) if claims is not None else results)
    return MigrationReport(
        tuple(result for result in results if result.items or result.changed),
        len(inputs),
        sum(len(file.objects) for file in mine),
        job.settings,
        job.unsafe,
        tuple(run.notes),
        tuple(run.defects),
        claims,
        ignored=sum(file.ignored.count for file in files if file is not None),
        left=frozenset((file.name, key) for file in mine for key in file.left),
        set_aside=tuple(run.set_aside),
        plain=tuple(
            result
            for result in results
            if not (result.items or result.changed) and result.text is not None and GROUP in result.text.before
        ),
        own_classes=frozenset(
            str(fields_at(manifest.object, "metadata").get("name"))
            for file in mine
            for manifest in file.objects
            if manifest.kind == "DeviceClass"
        ),
    )


def result_of(file: File) -> MigratedFile:
    """What became of a file."""
    source = file.original
    text = Rewritten(file.name, source.text, file.text, source) if file.before else None
    return MigratedFile(file.name, text, tuple(sorted(file.items, key=_order)), file.rounds)


def _unused(files: Iterable[File]) -> Iterator[str]:
    for file in files:
        # Of a file that is no object, most was not looked at.
        for comment in file.ignored.unused() if file.before else ():
            codes = ", ".join(code for code in comment.codes if code.startswith(MIGRATE))
            yield f"{file.name}:{comment.at.line}: nothing to ignore here for {codes}"


def misread(results: Iterable[MigratedFile]) -> Iterator[str]:
    """The files whose new text a second parser reads differently. If there are any, the run writes nothing."""
    for result in results:
        if result.text is not None and result.changed:
            from kubectl_dra.manifests.edits import confirmed

            if not confirmed(result.text):
                yield f"{result.name}: a second YAML parser reads the changed text differently"


def _order(item: Remark) -> tuple[Any, ...]:
    """By document and object, then by place; new objects last."""
    root = tuple(part for part in item.root if isinstance(part, int))
    return item.document, root, item.sort == "object", item.line, item.column, item.code


class _Run:
    """The state of one run besides its files."""

    def __init__(self, job: MigrationJob) -> None:
        self.job = job
        self.notes: list[str] = []
        self.closed: list[MigratedFile] = []
        self.defects: list[str] = []
        self.set_aside: list[tuple[Remark, Mapping[str, Any]]] = []
        self.objects = RunObjects((), job.settings.catalogue)

    # --- reading ---------------------------------------------------------------------------------

    def opened(self, input_: Input) -> File | None:
        """A file with its documents, or with the reason why it has none; None if there is nothing to migrate."""
        source = source_of(input_, self.notes, self.closed)
        if source is None or not relevant(source.text):
            return None
        patch = input_.data is None and is_patch(input_.name)
        try:
            file = opened(source, patch)
        except FileError as error:
            return self._unreadable(source, error)
        self._tell_unfilled(file)
        source, documents = file.source, file.documents
        for document in file.non_objects:
            # A schema says what values may be, and asks for nothing.
            if is_baseline(document.object) or _is_schema(document.object):
                continue
            start = document.position().offset
            following = [other.position().offset for other in documents if other.index > document.index]
            seen = evidence(source.text[start : min(following, default=None)], *self._for_evidence)
            seen = not_mentioned(document, [(start + at, name) for at, name in seen], self.job.settings.catalogue)
            seen = _wanted(file, seen, codes.NOT_AN_OBJECT)
            if seen and is_chart_test(document.object):
                message = f"a test of a chart: it changes with the chart; {_names(source, seen)}"
                file.items.append(_of_file(source, seen[0][0], _NAMED, message)._replace(sort="note"))
            elif seen:
                message, way_out = _non_object(document.object, source.name)
                message = f"{message}; {_names(source, seen)}"
                file.items.append(_of_file(source, seen[0][0], codes.NOT_AN_OBJECT, message, way_out))
        return file

    @property
    def _for_evidence(self) -> tuple[Any, str]:
        return self.job.settings.catalogue, self.job.settings.version

    def _tell_unfilled(self, file: File) -> None:
        """Say which documents of a file are left because they are templates."""
        source = file.original
        for document in file.unfilled:
            seen = evidence(source.text[document.start : document.end], *self._for_evidence)
            seen = _wanted(file, [(document.start + at, name) for at, name in seen], codes.TEMPLATE)
            if seen:
                message = f"a template has no objects until it is filled in; {_names(source, seen)}"
                file.items.append(
                    _of_file(source, seen[0][0], codes.TEMPLATE, message, fill_in(document.placeholder, source.name))
                )
            else:
                what = f"{document.placeholder} is filled in later; the document that begins here is left as it is"
                self.notes.append(f"{source.name}:{document.line}: {what}")

    def _unreadable(self, source: Source, error: FileError) -> File | None:
        seen = evidence(source.text, *self._for_evidence)
        if not seen:
            if not isinstance(error, NotAnObject):
                self.notes.append(str(error))
            return None
        message, file = error.problem, File(source, ())
        line = _line(source, error.line)
        if isinstance(error, TemplateError) or (not isinstance(error, NotAnObject) and fill_in(line)):
            code, message = codes.TEMPLATE, "a template has no objects until it is filled in"
            way_out = fill_in(line, source.name) if has_kind(source.text) else _of_values(source.name)
        elif isinstance(error, NotAnObject) and (
            is_json_patch(source.text) or pointed(source.text, self.job.settings.catalogue)
        ):
            code, message, way_out = codes.PATCH, "a JSON patch", codes.WAY_OUT_PATCH
        elif isinstance(error, NotAnObject):
            code, way_out = codes.NOT_AN_OBJECT, _of_values(source.name)
        else:
            code, way_out = codes.UNREADABLE, _WAY_OUT_YAML
        seen = _wanted(file, seen, code)
        if not seen:
            return file
        item = _of_file(source, seen[0][0], code, f"{message}; {_names(source, seen)}", way_out)
        # Where it is a template or values, what it asks for is more to the point than where that was noticed.
        behind = error.line > item.line
        if error.column and (code == codes.UNREADABLE or (code == codes.NOT_AN_OBJECT and behind)):
            item = item._replace(line=error.line, column=error.column)
        file.items.append(item)
        return file

    # --- migrating -------------------------------------------------------------------------------

    def stage(self, file: File, migration: Migration) -> None:
        """Run one migration on all objects of a file, and apply as much of its plan as possible."""
        wants: list[PlannedEdit] = []
        for manifest in file.objects:
            want = self._wanted(file, manifest, migration)
            if want is None:
                continue
            file.items += want.told
            self.objects.offer(want.offered)
            if not want.changes and not want.objects:
                continue
            template = embedding_template(file.name)
            if template:
                why = f"{template} puts this file into a text, and its reader may want it as it is"
                way_out = "migrate what reads the text, or what it makes of it"
                file.items.append(want.refused(codes.NO_PLACE, why)._replace(way_out=way_out))
                continue
            # Before the next object is planned, so that it finds these names taken, as in a second run.
            try:
                self._resolve(file, want)
            except EditRefused as refused:
                file.items.append(want.refused(codes.NAME_TAKEN, str(refused)))
            else:
                wants.append(want)
        if wants:
            self._make(file, wants)

    def _resolve(self, file: File, want: PlannedEdit) -> None:
        """Drop new objects that already exist, and record the others."""
        new = [(item, raw) for item, raw in want.objects if self.objects.is_new(raw, want.owner, file.name)]
        want.objects = new
        for _, raw in new:
            self.objects.add(raw, want.owner, file.name)

    def _make(self, file: File, wants: Sequence[PlannedEdit]) -> None:
        separate_claims = bool(self.job.claims_file)
        good, keys = set(carry_out(file, wants, separate_claims)), set[ObjectKey]()
        if not good:
            return
        self.objects.changed(file.name, (raw for want in good for _, raw in want.objects))
        for want in wants:
            if want not in good:
                continue
            file.items += want.made
            new = [(item, raw) for item, raw in want.objects if object_key(raw) not in keys]
            keys.update(object_key(raw) for _, raw in new)
            if separate_claims:
                self.set_aside += new
            else:
                file.items += [item for item, _ in new]

    def _wanted(self, file: File, manifest: ManifestObject, migration: Migration) -> PlannedEdit | None:
        """What a migration wants for an object; None if nothing, or the migration fails."""
        raw, settings = manifest.object, self.job.settings
        with defects_recorded(self.defects, file, manifest, migration.name):
            plan = migration.plan(raw, self.objects.around(raw, file.name, file.patch), settings)
            if plan.steps or plan.objects or plan.notes or plan.refusals:
                return PlannedEdit.of(file, manifest, plan, settings, self.job.unsafe)
        return None


@contextmanager
def defects_recorded(defects: list[str], file: File, manifest: ManifestObject, way: str) -> Iterator[None]:
    """Add what fails while an object is planned to ``defects``, so that the other objects are still migrated."""
    try:
        yield
    except Exception as error:
        if os.environ.get("KUBECTL_DRA_DEBUG"):
            raise
        defects.append(f"{file.name}: {title(manifest.object)}: {way}: {type(error).__name__}: {error}")


def _line(source: Source, number: int | None) -> str:
    """A line of a text, and the one above it, where a mistake may have begun."""
    return "\n".join(source.text.splitlines()[max(0, (number or 1) - 2) : number or 1])


def _is_schema(raw: Mapping[str, Any]) -> bool:
    """Whether it is a JSON Schema, such as the values.schema.json of a chart."""
    return "$schema" in raw or (raw.get("type") == "object" and isinstance(raw.get("properties"), Mapping))


def _of_values(name: str) -> str:
    """What to do about a file that a tool makes objects of."""
    chart = chart_of(name)
    how = f"{rendering(chart)} | kubectl dra migrate -" if chart else "pipe that into kubectl dra migrate -"
    return f"{_WAY_OUT_VALUES}{how}"


def _non_object(raw: Any, name: str) -> tuple[str, str]:
    """What a document of a file is that is not an object, and what to do."""
    missing = [field for field in ("apiVersion", "kind") if not (isinstance(raw, Mapping) and raw.get(field))]
    if not missing:
        return "an item of the list has no apiVersion or kind, so that nobody knows what it is", _WAY_OUT_PART
    # Values of charts can have a kind, too, and Chart.yaml has an apiVersion.
    if len(missing) == 1 and ("metadata" in raw or "spec" in raw):
        return f"it has no {missing[0]}, so that nobody knows what it is", _WAY_OUT_PART
    return "not a Kubernetes object", _of_values(name)


def _wanted(file: File, seen: Sequence[tuple[int, str]], code: str) -> list[tuple[int, str]]:
    """The places of a text that no comment on their lines, or above them, says to leave."""
    return [place for place in seen if not file.ignored.covers_lines(code, (file.original.place(place[0])[0],))]


def _names(source: Source, seen: Sequence[tuple[int, str]]) -> str:
    """The resources that a text names, and the lines."""
    lines: dict[str, list[int]] = {}
    for at, name in seen:
        lines.setdefault(name, []).append(source.place(at)[0])
    return "it names " + ", ".join(f"{name} in {_lines(dict.fromkeys(numbers))}" for name, numbers in lines.items())


def _lines(lines: Iterable[int]) -> str:
    numbers = [str(number) for number in lines]
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    if len(numbers) > _MOST_LINES:
        return f"lines {', '.join(numbers[:_MOST_LINES])} and {len(numbers) - _MOST_LINES} more"
    return f"lines {', '.join(numbers[:-1])} and {numbers[-1]}"


def _of_file(source: Source, offset: int, code: str, message: str, way_out: str = "") -> Remark:
    line, column = source.place(offset)
    return Remark("refusal", code, source.name, line, column, "", "", message, way_out)
