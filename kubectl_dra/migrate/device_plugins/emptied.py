"""A deletion that would leave an empty mapping or list deletes that as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_dra.manifests.changes import Change, Delete, Path, Set, value_at

# Only these may go when they are empty: an empty one of any other kind can mean something.
_GOES: Final = frozenset(("limits", "requests", "resources", "nodeSelector", "env", "annotations", "metadata"))


def tidied(raw: Mapping[str, Any], changes: Iterable[Change]) -> tuple[Change, ...]:
    """The changes without repeats, which also delete what they leave empty. Paths lead from ``raw``."""
    at: dict[Path, list[Change]] = {}
    found: list[Change] = []
    for change in changes:
        known = at.setdefault(change.path, [])
        if change not in known:
            known.append(change)
            found.append(change)
    gone = {change.path for change in found if isinstance(change, Delete)}
    kept = {
        change.path[:length] for change in found if isinstance(change, Set) for length in range(len(change.path) + 1)
    }
    parents = list(dict.fromkeys(change.path[:-1] for change in found if isinstance(change, Delete)))
    for path in parents:
        if path not in kept and path not in gone and _emptied(raw, path, gone):
            gone.add(path)
            found.append(Delete(path))
            parents.append(path[:-1])
    return tuple(change for change in found if not _inside(change, gone))


def _emptied(raw: Mapping[str, Any], path: Path, gone: set[Path]) -> bool:
    if not path or path[-1] not in _GOES:
        return False
    value = value_at(raw, path)
    keys: Iterable[str | int] = value if isinstance(value, Mapping) else range(len(value or ()))
    return bool(value) and all((*path, key) in gone for key in keys)


def _inside(change: Change, gone: set[Path]) -> bool:
    """Whether something above the change goes as a whole."""
    return any(change.path[:length] in gone for length in range(1, len(change.path)))
