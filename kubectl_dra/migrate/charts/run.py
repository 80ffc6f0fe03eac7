"""Looks for changes of a chart with which it renders what migrate makes of its rendering.

Each candidate is rendered: it is taken if the rendering then differs from what is wanted in fewer places, and in no new
one. So nothing is promised that helm did not show.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath, path_text
from kubectl_dra.command import CommandLine
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import MISSING, EditRefused, fields_at, leaves, value_at
from kubectl_dra.manifests.charts import rendering as rendering_command
from kubectl_dra.manifests.charts import source_of, template_of
from kubectl_dra.manifests.files import Rewritten, hunks
from kubectl_dra.manifests.objects import ObjectKey, is_object, object_key, readable
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.manifests.workloads import containers, pod_specs
from kubectl_dra.migrate import codes
from kubectl_dra.migrate.charts.templates import (
    CLAIM_VALUES,
    CLAIMS_FILE,
    PodChange,
    claiming,
    claims_template,
    passing,
)
from kubectl_dra.migrate.charts.workshop import (
    ChartWorkshop,
    Rendering,
    Texts,
    TooOften,
    chain,
    differing,
    effective,
    objects_of,
    places,
    with_values,
)
from kubectl_dra.migrate.kustomize.build_differences import BuildDifference, differences
from kubectl_dra.migrate.kustomize.outcome import shown
from kubectl_dra.migrate.model import MigratedFile, MigrationSettings, Remark
from kubectl_dra.text import some

_SWITCH: Final = re.compile(r"dra|claim", re.IGNORECASE)
_MODE: Final = re.compile(r"\beq\s+\.Values\.(?P<path>[\w.]+)\s+\"(?P<word>[\w-]*(?:dra|claim)[\w-]*)\"")
_OBJECTS: Final = re.compile(r"(extra|additional|raw)[A-Za-z]*(Objects|Manifests|Deploy|Resources|List)\Z")
_Wanted = Sequence[tuple[FieldPath, Any]]
_RELEASE: Final = "release"
"""The name of the release that is rendered."""


class ChartSearch(NamedTuple):
    """A rendering that is to become another one: the objects of both, and where the chart can be rendered."""

    rendering: Rendering
    before: Sequence[Mapping[str, Any]]
    wanted: Sequence[Mapping[str, Any]]
    workshop: ChartWorkshop
    templates: Mapping[ObjectKey, str]
    """The file of the template that each object is from."""


def solved(search: ChartSearch, texts: Texts) -> tuple[Texts, list[BuildDifference]]:
    """The texts with which the chart renders what is wanted, and where it still does not."""
    found = search.workshop.objects(search.rendering, texts)
    left = lacking(search, found)
    while left:
        tried: list[Texts] = [texts]
        for candidate in _candidates(search, texts, found, left):
            if candidate in tried:
                continue
            tried.append(candidate)
            try:
                then = search.workshop.objects(search.rendering, candidate)
            except TooOften:
                return texts, left
            except FileError:
                continue
            fewer = lacking(search, then)
            if _keys(fewer) < _keys(left):
                texts, found, left = candidate, then, fewer
                break
        else:
            return texts, left
    return texts, []


def lacking(search: ChartSearch, found: Sequence[Mapping[str, Any]]) -> list[BuildDifference]:
    """Where objects differ from those that are wanted, with the whole values that are wanted there."""
    wanted = {object_key(raw): raw for raw in search.wanted}
    return [
        difference
        if difference.claim is not None
        else difference._replace(wanted=value_at(wanted.get(difference.object), difference.path))
        for difference in differences(search.before, search.wanted, found)
    ]


def _keys(found: Sequence[BuildDifference]) -> set[tuple[ObjectKey, FieldPath]]:
    return {(difference.object, difference.path) for difference in found}


def _candidates(
    search: ChartSearch, texts: Texts, found: Sequence[Mapping[str, Any]], left: Sequence[BuildDifference]
) -> Iterator[Texts]:
    """Texts to try, values before templates."""
    objects = {object_key(raw): raw for raw in found}
    for wanted in _wanted_values(search, texts, objects, left):
        yield from _with_values(search, texts, wanted)
    for difference in left:
        field = str(difference.path[-1]) if difference.path else ""
        raw = objects.get(difference.object)
        if raw is None or difference.found is not None or not _is_pod_field(raw, difference.path):
            continue
        for template, text in _template_texts(search, texts, difference.object):
            if field == "resourceClaims" and _container_lacks_claims(left, difference.object):
                change = _pod_change(search, raw, left, difference)
                yield from ({**texts, template: new} for new in (claiming(text, change) if change else ()))
                continue
            for new in passing(text, field):
                patched = {**texts, template: new}
                for values in _field_values(search, patched, raw, difference):
                    yield from _with_values(search, patched, values)


def _with_values(search: ChartSearch, texts: Texts, wanted: _Wanted) -> Iterator[Texts]:
    """The texts with these values, and with the template that makes claims of them; none if they cannot be written."""
    try:
        made = with_values(search.rendering, texts, wanted)
    except (EditRefused, FileError):
        return
    if any(path[0] == CLAIM_VALUES for path, _ in wanted):
        file = Path(search.rendering.chart) / "templates" / CLAIMS_FILE
        if not file.exists():
            claims = [raw for raw in search.wanted if raw.get("kind") == "ResourceClaimTemplate"]
            namespaced = any(fields_at(raw, "metadata").get("namespace") for raw in claims)
            made = {file.as_posix(): claims_template(namespaced), **made}
    yield made


# --- values --------------------------------------------------------------------------------------


def _wanted_values(
    search: ChartSearch, texts: Texts, objects: Mapping[ObjectKey, Mapping[str, Any]], left: Sequence[BuildDifference]
) -> Iterator[_Wanted]:
    """Values to set: those that switch claims on, those that are rendered as they are, and fields beside these."""
    values = effective(search.rendering, texts)
    classes = [leaf for raw in search.wanted for path, leaf in leaves(raw) if path[-1] == "deviceClassName"]
    if any("claims" in map(str, build_difference.path) for build_difference in left):
        for switch in _switches(search, values):
            yield [switch]
            for path, value in leaves(values):
                if isinstance(value, str) and "class" in str(path[-1]).lower():
                    yield from ([switch, (path, name)] for name in dict.fromkeys(classes) if name != value)
    for difference in left:
        raw = objects.get(difference.object)
        if raw is None:
            continue
        wanted = next(
            (wanted_object for wanted_object in search.wanted if object_key(wanted_object) == difference.object), {}
        )
        for length in range(len(difference.path) - 1, max(1, len(difference.path) - 4), -1):
            part = difference.path[:length]
            have = value_at(raw, part)
            if isinstance(have, dict | list) and have:
                want = value_at(wanted, part)
                for place in places(have, values):
                    yield [(place, MISSING if want is None else want)]
        if difference.claim is not None and isinstance(difference.wanted, Mapping):
            name = _named(difference.claim[2])
            yield from ([((CLAIM_VALUES, claim_name), dict(difference.wanted))] for claim_name in name)
        elif _is_pod_field(raw, difference.path) and _knows(search, texts, str(difference.path[-1])):
            yield from _field_values(search, texts, raw, difference)
        elif difference.found is None and len(difference.path) > 2:
            # Of a group of pods, such as what Ray is started with.
            around = difference.path[:-1]
            for base in _bases(raw, values):
                yield [((*base, str(around[-1])), value_at(wanted, around))]


def _knows(search: ChartSearch, texts: Texts, field: str) -> bool:
    """Whether some template of the chart takes a field from values."""
    pattern = re.compile(rf"\.{field}\b")
    return any(pattern.search(texts.get(str(path)) or text) for path, text in _all_templates(search))


def _all_templates(search: ChartSearch) -> Iterator[tuple[Path, str]]:
    for path in sorted(Path(search.rendering.chart).glob("**/templates/**/*")):
        if path.is_file():
            yield path, path.read_text("utf-8", "replace")


def _switches(search: ChartSearch, values: Mapping[str, Any]) -> Iterator[tuple[FieldPath, Any]]:
    for path, value in leaves(values):
        if value is False and _SWITCH.search(".".join(map(str, path))):
            yield path, True
    for _, text in _all_templates(search):
        for found in _MODE.finditer(text):
            yield tuple(found["path"].split(".")), found["word"]


def _field_values(
    search: ChartSearch, texts: Texts, raw: Mapping[str, Any], difference: BuildDifference
) -> Iterator[_Wanted]:
    """A field of a pod's spec as a value beside those that the pod has, or above them; claims with their objects."""
    values = effective(search.rendering, texts)
    field = str(difference.path[-1])
    for base in _bases(raw, values, difference.path[:-1]):
        around = value_at(values, base) if base else values
        inner = [key for key in around if re.search("pod|extra", str(key), re.IGNORECASE)] if around else []
        for place in ((*base, field), *((*base, key, field) for key in inner if isinstance(around[key], dict))):
            if field != "resourceClaims":
                yield [(place, MISSING if difference.wanted is None else difference.wanted)]
                continue
            for names in zip(
                *(_named(str(reference.get("resourceClaimTemplateName"))) for reference in difference.wanted),
                strict=True,
            ):
                claims = [
                    {**reference, "resourceClaimTemplateName": name}
                    for reference, name in zip(difference.wanted, names, strict=True)
                ]
                yield from _with_objects(search, values, (place, claims), difference, names)


def _bases(raw: Mapping[str, Any], values: Mapping[str, Any], pod: FieldPath | None = None) -> list[FieldPath]:
    """Where the values of pods may be: around their resources, from inside out; of one pod, or of all."""
    specs = [spec for spec in pod_specs(raw) if pod is None or spec.path == pod]
    have = [fields_at(container.content, "resources") for spec in specs for container in containers(spec)]
    found = [place for resources in have if resources for place in places(resources, values)]
    return list(dict.fromkeys([*(place[:length] for place in found for length in range(len(place) - 1, -1, -1)), ()]))


def _with_objects(
    search: ChartSearch, values: Any, claims: tuple[FieldPath, Any], difference: BuildDifference, names: Sequence[str]
) -> Iterator[_Wanted]:
    """Values of a pod's claims together with those of the objects that they refer to."""
    objects = {object_key(raw)[2]: raw for raw in search.wanted if raw.get("kind") == "ResourceClaimTemplate"}
    mine = [objects.get(str(reference.get("resourceClaimTemplateName"))) for reference in difference.wanted or ()]
    for path, value in leaves(values):
        if _OBJECTS.fullmatch(str(path[-1])) and isinstance(value, list | dict):
            made = [
                {**raw, "metadata": {**raw["metadata"], "name": name}}
                for raw, name in zip(mine, names, strict=True)
                if raw is not None
            ]
            yield [claims, (path, made)]
    yield [claims, *(((CLAIM_VALUES, name), raw["spec"]) for raw, name in zip(mine, names, strict=True) if raw)]


def _named(name: str) -> tuple[str, str]:
    """The name of a claim with the release's as an expression, and without it."""
    rest = name.removeprefix(f"{_RELEASE}-")
    return (name if rest == name else f"{{{{ .Release.Name }}}}-{rest}"), rest


# --- templates -----------------------------------------------------------------------------------


def _template_texts(search: ChartSearch, texts: Texts, key: ObjectKey) -> Iterator[tuple[str, str]]:
    """The template of an object, then those that it may include."""
    own = search.templates.get(key)
    if own is None:
        return
    helpers = sorted(Path(own).parent.glob("**/*.tpl"))
    for path in dict.fromkeys((own, *(helper.as_posix() for helper in helpers))):
        if Path(path).is_file():
            yield path, texts.get(path) or decode(Path(path).read_bytes(), path).text


def _is_pod_field(raw: Mapping[str, Any], path: FieldPath) -> bool:
    return any(path[:-1] == spec.path for spec in pod_specs(raw))


def _container_lacks_claims(left: Sequence[BuildDifference], key: ObjectKey) -> bool:
    return any(difference.object == key and difference.path[-2:] == ("resources", "claims") for difference in left)


def _pod_change(
    search: ChartSearch, raw: Mapping[str, Any], left: Sequence[BuildDifference], claims: BuildDifference
) -> PodChange | None:
    """What a template of a pod with one claim for one request lacks; None for other pods."""
    mine = [difference for difference in left if difference.object == claims.object]
    wanted = {object_key(wanted_object): wanted_object for wanted_object in search.wanted}
    if len(claims.wanted) != 1:
        return None
    _, namespace, name = claims.object
    claim = str(claims.wanted[0].get("resourceClaimTemplateName"))
    spec = wanted.get(("ResourceClaimTemplate", namespace, claim), {}).get("spec")
    container = next((difference for difference in mine if difference.path[-2:] == ("resources", "claims")), None)
    requests = fields_at(spec, "spec", "devices").get("requests", []) if spec else []
    if container is None or len(requests) != 1 or "exactly" not in requests[0]:
        return None
    amounts = fields_at(raw, *container.path[:-1])
    resources = {**fields_at(amounts, "requests"), **fields_at(amounts, "limits")}
    kept = fields_at(wanted[claims.object], *container.path[:-1])
    gone = [
        resource
        for resource in resources
        if resource not in {**fields_at(kept, "requests"), **fields_at(kept, "limits")}
    ]
    fields = {
        str(difference.path[-1]): difference.wanted for difference in mine if difference.path[:-1] == claims.path[:-1]
    }
    if len(gone) != 1 or spec is None:
        return None
    return PodChange(
        fields, container.wanted, gone[0], spec, claim.removeprefix(name) if claim.startswith(name) else "-gpu"
    )


# Changes of charts with which they render claims, for all their renderings, and the notes about them.


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
    for document in readable(Source("<chart>", rendering.text)):
        if is_object(document.object):
            templates[object_key(document.object)] = source_of(rendering.chart, rendering.text, document.line)
    return ChartSearch(rendering, objects_of(rendering.text), objects_of(text), workshop, templates)


def _lacking(difference: BuildDifference) -> str:
    kind, namespace, name = difference.object
    key = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
    return f"{key} would still lack its change at {shown(path_text(difference.path))}" if difference.path else key


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
        item._replace(origin=template_of(rendering.chart, rendering.text, item.line, _resource_named(item)))
        for item in file.items
    ]
    return file._replace(items=tuple(items))


def _resource_named(item: Remark) -> str:
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
        paths = some([path_text(difference) for difference in differing(before, after)])
        code, message = codes.CHART_VALUES, f"{paths}: so the chart renders the claims"
    else:
        code, message = codes.CHART_TEMPLATE, "the template writes the claims, or takes them from values"
    remark = Remark("change", code, name, line, 1, "", "", message)
    return MigratedFile(name, Rewritten(name, before, after, source), (remark,))
