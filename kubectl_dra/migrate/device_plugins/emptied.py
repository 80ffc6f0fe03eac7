"""A deletion that would leave an empty mapping or list deletes that, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_dra.manifests.changes import Change, Delete, Path, Set, value_at

# Only these may go when they are empty: an empty one of any other kind can mean something.
_GOES: Final = frozenset(("limits", "requests", "resources", "nodeSelector", "env", "annotations", "metadata"))


def tidied(raw: Mapping[str, Any], changes: Iterable[Change]) -> tuple[Change, ...]:
    """The changes without repeats, which also delete what they leave empty. Paths lead from ``raw``."""
    found: list[Change] = []
    for change in changes:
        if change not in found:
            found.append(change)
    while True:
        gone = {change.path for change in found if isinstance(change, Delete)}
        parent = next((path[:-1] for path in gone if _emptied(raw, path[:-1], gone, found)), None)
        if parent is None:
            return tuple(change for change in found if not _inside(change, gone))
        found = [change for change in found if change.path[: len(parent)] != parent]
        found.append(Delete(parent))


def _emptied(raw: Mapping[str, Any], path: Path, gone: set[Path], changes: list[Change]) -> bool:
    if not path or path[-1] not in _GOES or path in gone:
        return False
    value = value_at(raw, path)
    keys: list[str | int] = list(value) if isinstance(value, Mapping) else list(range(len(value or ())))
    if not keys or not all((*path, key) in gone for key in keys):
        return False
    return not any(isinstance(change, Set) and change.path[: len(path)] == path for change in changes)


def _inside(change: Change, gone: set[Path]) -> bool:
    """Whether a whole parent of the change is deleted."""
    return any(change.path[:length] in gone for length in range(1, len(change.path)))
