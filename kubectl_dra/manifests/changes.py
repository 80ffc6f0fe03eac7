"""Changes of an object by path, and the object after them. ``edits`` applies them to a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.schema import FieldPath


class EditRefused(Exception):
    """The change cannot be made safely; the message says why."""


class Set(Struct, frozen=True):
    """Set the value at ``path``. A missing key is added; its parent must exist."""

    path: FieldPath
    value: Any


class Append(Struct, frozen=True):
    """Append an item to the list at ``path``."""

    path: FieldPath
    value: Any


class Delete(Struct, frozen=True):
    """Delete the key or list item at ``path``, with its value. ``comments`` are lines that take its place."""

    path: FieldPath
    comments: tuple[str, ...] = ()


class Clear(Struct, frozen=True):
    """Delete all items of the list at ``path``, which stays. ``comments`` are lines that stay above it."""

    path: FieldPath
    comments: tuple[str, ...] = ()


class Rename(Struct, frozen=True):
    """Rename the last key of ``path`` to ``key``; its value stays."""

    path: FieldPath
    key: str


class Wrap(Struct, frozen=True):
    """Move the ``fields`` of the mapping at ``path`` into a new mapping ``key`` inside it: flat requests to exactly."""

    path: FieldPath
    key: str
    fields: tuple[str, ...]


class Unwrap(Struct, frozen=True):
    """Move the entries of the mapping at ``path`` up beside its key, and delete the key: ``basic`` of older devices."""

    path: FieldPath


class Enclose(Struct, frozen=True):
    """Move the value at ``path`` into a new mapping in its place, under ``key``: quantities of v1alpha3."""

    path: FieldPath
    key: str


class Splice(Struct, frozen=True):
    """Replace the characters ``start`` to ``end`` (code points) of the text at ``path`` by ``text``: an edit in CEL."""

    path: FieldPath
    start: int
    end: int
    text: str


Change = Set | Append | Delete | Clear | Rename | Wrap | Unwrap | Enclose | Splice
"""A change of an object. Paths are as of before all changes."""


def value_at(raw: Any, path: FieldPath) -> Any:
    """The value at a path, or None if it does not exist."""
    for part in path:
        raw = below(raw, part)
    return raw


MISSING: Final = object()
"""What stands where there is no value; null is one."""


def found_at(raw: Any, path: FieldPath) -> Any:
    """The value at a path, which can be null; MISSING if there is none."""
    for part in path:
        if isinstance(raw, dict):
            raw = raw.get(part, MISSING)
        elif isinstance(raw, list) and isinstance(part, int) and part < len(raw):
            raw = raw[part]
        else:
            return MISSING
    return raw


def below(value: Any, part: str | int) -> Any:
    """The value of a key or the item at an index, or None if it does not exist."""
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return None


def items_at(raw: Any, *path: str | int) -> Sequence[Any]:
    """The items of the list at a path; none if there is no list."""
    value = value_at(raw, path)
    return value if isinstance(value, list) else ()


def fields_at(raw: Any, *path: str | int) -> Mapping[str, Any]:
    """The mapping at a path; an empty one if there is none."""
    value = value_at(raw, path)
    return value if isinstance(value, dict) else {}


def leaves(raw: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Every single value in a mapping or list, and where it is."""
    inner = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for key, value in inner:
        if isinstance(value, dict | list) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def changed(raw: Any, changes: Sequence[Change]) -> Any:
    """A copy of an object with the changes made. All paths refer to the object before any change.

    Raises:
        EditRefused: a path that does not exist.
    """
    out = _copy(raw)
    # Containers are looked up before anything moves.
    places = [
        (change, value_at(out, change.path if isinstance(change, Wrap | Append) else change.path[:-1]))
        for change in changes
    ]
    if not all(isinstance(container, dict | list) for _, container in places):
        raise EditRefused("there is nothing at its path")
    for change, container in places:
        _change(change, container)
    gone = [(container, change.path[-1]) for change, container in places if isinstance(change, Delete)]
    for container, key in sorted(gone, key=lambda pair: -pair[1] if isinstance(pair[1], int) else 0):
        del container[key]
    return out


def _copy(value: Any) -> Any:
    """A deep copy without sharing, so that a change to one use of an alias leaves its other uses alone."""
    if isinstance(value, dict):
        return {key: _copy(below) for key, below in value.items()}
    return [_copy(below) for below in value] if isinstance(value, list) else value


def _change(change: Change, container: Any) -> None:
    if isinstance(change, Set):
        container[change.path[-1]] = _copy(change.value)
    elif isinstance(change, Clear):
        container[change.path[-1]] = []
    elif isinstance(change, Append):
        if not isinstance(container, list):
            raise EditRefused("there is no list to add to")
        container.append(_copy(change.value))
    elif isinstance(change, Enclose):
        container[change.path[-1]] = {change.key: container[change.path[-1]]}
    elif isinstance(change, Rename):
        if change.key in container:
            raise EditRefused(f'the key "{change.key}" is there already')
        entries = [(change.key if key == change.path[-1] else key, value) for key, value in container.items()]
        container.clear()
        container.update(entries)
    elif isinstance(change, Wrap):
        inner = container.get(change.key, {})
        if not isinstance(inner, dict):
            raise EditRefused(f'the key "{change.key}" is there already')
        container[change.key] = {**inner, **{key: container.pop(key) for key in change.fields if key in container}}
    elif isinstance(change, Unwrap):
        inner = container.pop(change.path[-1])
        if not isinstance(inner, dict) or any(key in container for key in inner):
            raise EditRefused("what is in it is there already")
        container.update(inner)
    elif isinstance(change, Splice):
        value = container[change.path[-1]]
        if not isinstance(value, str):
            raise EditRefused("there is no text to change")
        container[change.path[-1]] = value[: change.start] + change.text + value[change.end :]
