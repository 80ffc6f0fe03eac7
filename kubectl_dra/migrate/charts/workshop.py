"""A rendering of a chart, and a copy of the chart that is rendered with other texts of its files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kubectl_dra.api.releases import Release
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import MISSING, Change, Delete, EditRefused, Set, fields_at, found_at, value_at
from kubectl_dra.manifests.charts import rendered
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.edits import with_changes
from kubectl_dra.manifests.objects import objects, readable
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.manifests.style import Style
from kubectl_dra.migrate.new_objects import documents_of

Texts = Mapping[str, str]
"""New texts of files by their paths, of which some may be new files."""

_RENDERS = 150
"""Largest number of renderings of a chart: a tenth of a second each."""


class Rendering(NamedTuple):
    """What helm renders of a chart with some files of values over its own, and with single ones (``--set``).

    ``without`` are templates that helm cannot render.
    """

    chart: str
    files: tuple[str, ...]
    sets: tuple[str, ...]
    text: str
    without: tuple[str, ...] = ()


class TooOften(FileError):
    """The chart was rendered as often as it may be."""


class ChartWorkshop:
    """A copy of a chart below ``folder``, which the caller removes.

    Raises:
        OSError: it cannot be copied.
    """

    def __init__(self, chart: str, release: Release, folder: str) -> None:
        self._chart = Path(chart)
        self._release = release
        self._copy = Path(folder) / "chart"
        self._left = _RENDERS
        shutil.copytree(chart, self._copy)

    def objects(self, rendering: Rendering, texts: Texts) -> list[Mapping[str, Any]]:
        """The objects of a rendering with these texts.

        Raises:
            FileError: helm does not render it.
        """
        self._left -= 1
        if self._left < 0:
            raise TooOften("it was rendered too often", rendering.chart)
        before = {path: path.read_bytes() if path.exists() else None for path in map(self._place, texts)}
        try:
            for name, text in texts.items():
                self._place(name).write_text(text, encoding="utf-8", newline="")
            for name in rendering.without:
                self._place(name).unlink(missing_ok=True)
            files = [str(self._place(name)) for name in rendering.files]
            return objects_of(
                rendered(str(self._copy), self._release, files, rendering.sets).decode("utf-8", "replace")
            )
        finally:
            for path, data in before.items():
                if data is None:
                    path.unlink(missing_ok=True)
                else:
                    path.write_bytes(data)

    def _place(self, name: str) -> Path:
        """Where the copy of a file is; of one that is not the chart's, beside it."""
        path = Path(name)
        if path.is_relative_to(self._chart):
            return self._copy / path.relative_to(self._chart)
        copy = self._copy.parent / f"{abs(hash(name))}.yaml"
        if not copy.exists():
            shutil.copyfile(path, copy)
        return copy


def objects_of(text: str) -> list[Mapping[str, Any]]:
    """The objects of a rendering, without documents that are none. Claims are as the newest API writes them."""
    documents = readable(Source("<chart>", text))
    found = (document for document in documents if document.object.get("apiVersion") and document.object.get("kind"))
    return [_settled(manifest.object) for manifest in objects(found)]


def _settled(raw: dict[str, Any]) -> dict[str, Any]:
    """A claim with its requests as v1 has them, and without defaults; any other object as it is."""
    devices = fields_at(raw, "spec", "spec", "devices") or fields_at(raw, "spec", "devices")
    requests = devices.get("requests")
    if raw["kind"] not in ("ResourceClaim", "ResourceClaimTemplate") or not isinstance(requests, list):
        return raw
    settled = {**devices, "requests": [_request(request) for request in requests]}
    claim = {"devices": settled}
    return {**raw, "spec": {"spec": claim} if "spec" in raw["spec"] else claim}


def _request(request: Any) -> Any:
    if not isinstance(request, dict) or "firstAvailable" in request:
        return request
    exactly = request.get("exactly") or {key: value for key, value in request.items() if key != "name"}
    defaults = {"count": 1, "allocationMode": "ExactCount"}
    exactly = {key: value for key, value in exactly.items() if defaults.get(key) != value}
    return {"name": request.get("name"), "exactly": exactly}


def chain(rendering: Rendering) -> Sequence[str]:
    """The files of values of a rendering, of which later ones count more."""
    own = f"{rendering.chart.rstrip('/')}/values.yaml"
    return ([own] if Path(own).is_file() else []) + list(rendering.files)


# The values of a chart: what they are together, where one is written, and the texts that set others.


def effective(rendering: Rendering, texts: Texts) -> dict[str, Any]:
    """The values with which a chart is rendered: its own over those of its subcharts, and its files over them."""
    out: dict[str, Any] = {}
    for inner in sorted(Path(rendering.chart).glob("charts/*/values.yaml")):
        out[inner.parent.name] = _values(str(inner), texts)
    for name in chain(rendering):
        out = _merged(out, _values(name, texts))
    return out


def with_values(rendering: Rendering, texts: Texts, wanted: Sequence[tuple[FieldPath, Any]]) -> dict[str, str]:
    """The texts in which values are what is wanted; only what differs is written.

    Raises:
        EditRefused, FileError: a file cannot be edited.
    """
    values = effective(rendering, texts)
    changes: dict[str, list[Change]] = {}
    for path, value in wanted:
        found = [
            _whole(rendering, texts, path, value, difference)
            for difference in _differences(path, found_at(values, path), value)
        ]
        set_there = [place for place, new in found if new is not MISSING]
        for place, new in (pair for index, pair in enumerate(found) if pair not in found[:index]):
            name, change = _change(rendering, texts, place, new, set_there)
            changes.setdefault(name, []).append(change)
    return {**texts, **{name: _edited(name, texts, found) for name, found in changes.items()}}


def places(value: Any, values: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Paths among ``values`` at which ``value``, which is not empty, stands."""
    if isinstance(values, dict):
        for key, below in values.items():
            if below == value:
                yield (*path, key)
            else:
                yield from places(value, below, (*path, key))
    elif isinstance(values, list):
        for index, item in enumerate(values):
            yield from places(value, item, (*path, index))


def differing(before: str, after: str) -> list[FieldPath]:
    """Where the values of two texts of a file differ."""
    texts = {"before": before, "after": after}
    return [path for path, _ in _differences((), _values("before", texts), _values("after", texts))]


def _values(name: str, texts: Texts) -> dict[str, Any]:
    documents = _documents(name, texts)
    return documents[0].object if documents else {}


def _documents(name: str, texts: Texts) -> tuple[Document, ...]:
    text = texts.get(name)
    source = decode(Path(name).read_bytes(), name) if text is None else Source(name, text)
    try:
        return parse(source)
    except FileError:
        return ()


def _merged(below: Any, over: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(over, dict)):
        return over
    out = {key: value for key, value in below.items() if not (key in over and over[key] is None)}
    return {**out, **{key: _merged(below.get(key), value) for key, value in over.items() if value is not None}}


def _differences(path: FieldPath, old: Any, new: Any) -> Iterator[tuple[FieldPath, Any]]:
    if isinstance(old, dict) and isinstance(new, dict) and old and new:
        for key in dict.fromkeys((*old, *new)):
            yield from _differences((*path, key), old.get(key, MISSING), new.get(key, MISSING))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, value in enumerate(new):
            yield from _differences((*path, index), old[index], value)
    elif old is MISSING or new is MISSING or old != new:
        yield path, new


def _whole(
    rendering: Rendering, texts: Texts, path: FieldPath, value: Any, difference: tuple[FieldPath, Any]
) -> tuple[FieldPath, Any]:
    """A difference inside a list as one of the list, if the last file does not have it: its own replaces it."""
    place, _ = difference
    length = next((index for index, part in enumerate(place) if isinstance(part, int)), len(place))
    last = list(chain(rendering))[-1:]
    if len(path) <= length < len(place) and last and found_at(_values(last[0], texts), place[:length]) is MISSING:
        return place[:length], value_at(value, place[len(path) : length])
    return difference


def _change(
    rendering: Rendering, texts: Texts, path: FieldPath, value: Any, set_there: Sequence[FieldPath]
) -> tuple[str, Change]:
    """Change that writes a value, and its file: the last one, or the one that has the list that it is in."""
    files = {name: _values(name, texts) for name in chain(rendering)}
    if not files:
        raise EditRefused("the chart has no values.yaml")
    last = list(files)[-1]
    if value is MISSING:
        having = [name for name, found in files.items() if found_at(found, path) is not MISSING]
        # An empty value takes away what a file below says.
        return _deletion(having[0], files[having[0]], path, set_there) if len(having) == 1 else (last, Set(path, None))
    inside_list = any(isinstance(part, int) for part in path)
    name = max(files, key=lambda name: _length(files[name], path)) if inside_list else last
    length = max(1, _length(files[name], path) + 1)
    for key in reversed(path[length:]):
        value = {key: value}
    return name, Set(path[:length], value)


def _deletion(name: str, values: Any, path: FieldPath, set_there: Sequence[FieldPath]) -> tuple[str, Change]:
    """The deletion of a value, with what would be empty without it."""
    while len(path) > 1 and isinstance(around := value_at(values, path[:-1]), dict) and len(around) == 1:
        if any(place[: len(path) - 1] == path[:-1] for place in set_there):
            break
        path = path[:-1]
    return name, Set(path, None) if len(path) == 1 and len(values) == 1 else Delete(path)


def _length(values: Any, path: FieldPath) -> int:
    """Number of the first keys of a path that exist, with something to which more can be added."""
    length = 0
    while length < len(path) - 1 and isinstance(found_at(values, path[: length + 1]), dict | list):
        length += 1
    return length


def _edited(name: str, texts: Texts, changes: Sequence[Change]) -> str:
    documents = _documents(name, texts)
    if documents:
        return with_changes(documents, {documents[0].index: changes})
    before = texts.get(name, decode(Path(name).read_bytes(), name).text)
    if any(isinstance(change, Delete) or len(change.path) != 1 for change in changes):
        raise EditRefused("the file of values is empty")
    new = {str(change.path[0]): change.value for change in changes if isinstance(change, Set)}
    return before + ("\n" if before and not before.endswith("\n") else "") + documents_of([new], Style())
