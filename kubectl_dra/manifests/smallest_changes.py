"""Splits changes of whole mappings and lists into the smallest equivalent ones, so that the rest of the text stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kubectl_dra.manifests.changes import Append, Change, Delete, Path, Set, Unwrap, below, value_at

_NOTHING = object()


def smallest(raw: Any, changes: Sequence[Change]) -> list[Change]:
    """The same changes of ``raw``, without rewriting anything that is already there."""
    out: list[Change] = []
    for change in _moves(raw, changes):
        if isinstance(change, Set):
            out += _set(change.path, _old(raw, change.path), change.value)
        else:
            out.append(change)
    return out


def _moves(raw: Any, changes: Sequence[Change]) -> list[Change]:
    """The changes; if all entries of a mapping are set beside its key and the key is deleted, they become a move."""
    out = list(changes)
    for gone in [change for change in changes if isinstance(change, Delete)]:
        inner = value_at(raw, gone.path)
        if not isinstance(inner, dict) or not inner:
            continue
        beside = [Set((*gone.path[:-1], key), value) for key, value in inner.items()]
        if all(change in out for change in beside):
            out = [change for change in out if change != gone and change not in beside]
            out.append(Unwrap(gone.path))
    return out


def _old(raw: Any, path: Path) -> Any:
    parent = value_at(raw, path[:-1])
    if isinstance(parent, dict) and path[-1] not in parent:
        return _NOTHING
    return below(parent, path[-1])


def _set(path: Path, old: Any, new: Any) -> Iterator[Change]:
    if isinstance(old, dict) and isinstance(new, dict) and old and new:
        for key in old:
            if key not in new:
                yield Delete((*path, key))
        for key, value in new.items():
            if key not in old:
                yield Set((*path, key), value)
            else:
                yield from _set((*path, key), old[key], value)
    elif isinstance(old, list) and isinstance(new, list) and old and new:
        yield from _set_list(path, old, new)
    elif not _same(old, new):
        yield Set(path, new)


def _set_list(path: Path, old: list[Any], new: list[Any]) -> Iterator[Change]:
    if len(old) <= len(new) and all(_same(one, other) for one, other in zip(old, new, strict=False)):
        for value in new[len(old) :]:
            yield Append(path, value)
        return
    kept = _kept(old, new)
    if kept is not None:
        yield from (Delete((*path, index)) for index in range(len(old)) if index not in kept)
    elif len(old) == len(new):
        for index, value in enumerate(new):
            yield from _set((*path, index), old[index], value)
    else:
        yield Set(path, new)


def _kept(old: Sequence[Any], new: Sequence[Any]) -> set[int] | None:
    """The indices of ``old`` that remain in ``new``, if ``new`` is ``old`` without some items."""
    out: set[int] = set()
    at = 0
    for value in new:
        while at < len(old) and not _same(old[at], value):
            at += 1
        if at == len(old):
            return None
        out.add(at)
        at += 1
    return out


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same. A bool is not a number."""
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(left, right) for left, right in zip(one, other, strict=True))
    return bool(one == other)
