"""Changes of charts with which they render claims, for all their renderings, and the notes about them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kubectl_dra.api.schema import FieldPath, path_text
from kubectl_dra.command import CommandLine
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.charts import rendering as rendering_command
from kubectl_dra.manifests.charts import source_of, template_of
from kubectl_dra.manifests.documents import Document, each_document
from kubectl_dra.manifests.files import Rewritten, hunks
from kubectl_dra.manifests.objects import ObjectKey, is_object, object_key
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.migrate import codes
from kubectl_dra.migrate.charts.search import ChartSearch, lacking, solved
from kubectl_dra.migrate.charts.templates import CLAIMS_FILE
from kubectl_dra.migrate.charts.values import differing
from kubectl_dra.migrate.charts.workshop import ChartWorkshop, Rendering, Texts, chain, objects_of
from kubectl_dra.migrate.kustomize.build_differences import BuildDifference
from kubectl_dra.migrate.kustomize.outcome import shown
from kubectl_dra.migrate.model import MigratedFile, MigrationSettings, Remark
from kubectl_dra.text import some


class MigratedRendering(NamedTuple):
    """A rendering of a chart, and what migrate says of it."""

    rendering: Rendering
    file: MigratedFile


class ChartChanges(NamedTuple):
    """What becomes of a chart: its files that change, and the renderings with what is refused of them.

    ``solved``: the names of the renderings that the files change.
    """

    files: tuple[MigratedFile, ...]
    renderings: tuple[MigratedFile, ...]
    solved: frozenset[str]


def chart_changes(renderings: Sequence[MigratedRendering], settings: MigrationSettings) -> ChartChanges:
    """The changes of a chart for the renderings in which migrate changes something."""
    changed = [rendering for rendering in renderings if rendering.file.changed]
    if not changed:
        return ChartChanges((), tuple(rendering.file for rendering in renderings), frozenset())
    chart = changed[0].rendering.chart
    texts: Texts = {}
    left: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="kubectl-dra-") as folder:
        try:
            workshop = ChartWorkshop(chart, settings.release, folder)
        except (OSError, ValueError) as error:
            return _unsolved(
                renderings, {rendering.file.name: f"it cannot be copied: {error}" for rendering in changed}
            )
        searches = {rendering.file.name: _search(rendering, workshop) for rendering in changed}
        for name, search in searches.items():
            try:
                made, open_ones = solved(search, texts)
            except FileError as error:
                left[name] = error.problem
                continue
            if open_ones:
                left[name] = _lacking(open_ones[0])
            else:
                texts = made
        for name, search in searches.items():
            if name not in left and texts:
                # A later rendering may have changed what an earlier one relied on.
                found = search.workshop.objects(search.rendering, texts)
                still = lacking(search, found)
                if still:
                    left[name] = _lacking(still[0])
    if len(left) == len(changed):
        return _unsolved(renderings, left)
    out = _unsolved(renderings, left)
    files = tuple(_file(name, text, changed[0].rendering) for name, text in sorted(texts.items()))
    return out._replace(files=files, solved=frozenset(name for name in searches if name not in left))


def _search(migrated: MigratedRendering, workshop: ChartWorkshop) -> ChartSearch:
    rendering = migrated.rendering
    text = migrated.file.text.after if migrated.file.text is not None else rendering.text
    templates: dict[ObjectKey, str] = {}
    for document in each_document(Source("<chart>", rendering.text)):
        if isinstance(document, Document) and is_object(document.object):
            templates[object_key(document.object)] = source_of(rendering.chart, rendering.text, document.line)
    return ChartSearch(rendering, objects_of(rendering.text), objects_of(text), workshop, templates)


def _lacking(difference: BuildDifference) -> str:
    kind, namespace, name = difference.object
    key = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
    return f"{key} would still lack its change at {shown(_text(difference.path))}" if difference.path else key


def _text(path: FieldPath) -> str:
    return path_text(path)


def _unsolved(renderings: Sequence[MigratedRendering], left: Mapping[str, str]) -> ChartChanges:
    """Renderings with a refusal for each that no change of the chart was found for."""
    files = []
    for rendering, file in renderings:
        why = left.get(file.name)
        change = file.main_change
        if why is not None and change is not None:
            wanted = CommandLine(("kubectl", "dra", "migrate", rendering.chart, "-o", "yaml"))
            way_out = (
                f"change the chart by hand until it renders what {wanted} prints, or migrate what it renders "
                f"({rendering_command(rendering.chart)} | kubectl dra migrate -)"
            )
            message = f"no change of the chart was found with which it renders this: {why}"
            refusal = change._replace(sort="refusal", code=codes.CHART, message=message, way_out=way_out, safety="safe")
            file = file._replace(items=(*file.items, refusal))
        files.append(with_origins(file, rendering))
    return ChartChanges((), tuple(files), frozenset())


def with_origins(file: MigratedFile, rendering: Rendering) -> MigratedFile:
    """A rendering whose remarks say from which template each line is."""
    items = [
        item._replace(origin=template_of(rendering.chart, rendering.text, item.line, _named(item)))
        for item in file.items
    ]
    return file._replace(items=tuple(items))


def _named(item: Remark) -> str:
    """The resource that a remark is about, by the last part of its field."""
    return item.field[item.field.rindex("[") + 1 : -1] if item.field.endswith("]") else ""


def _file(name: str, after: str, rendering: Rendering) -> MigratedFile:
    """A file of a chart before and after, with what to know of the change."""
    path = Path(name)
    source = decode(path.read_bytes(), name) if path.exists() else Source(name, "")
    before = source.text
    line = next((hunk.start + 1 for hunk in hunks(before.splitlines(), after.splitlines())), 1)
    if path.name == CLAIMS_FILE and not path.exists():
        code, message = codes.CHART_TEMPLATE, "a new template: it makes the claims that values list by name"
    elif name in chain(rendering) or "templates" not in path.parts:
        paths = some([_text(difference) for difference in differing(before, after)])
        code, message = codes.CHART_VALUES, f"{paths}: so the chart renders the claims"
    else:
        code, message = codes.CHART_TEMPLATE, "the template writes the claims, or takes them from values"
    remark = Remark("change", code, name, line, 1, "", "", message)
    return MigratedFile(name, Rewritten(name, before, after, source), (remark,))
