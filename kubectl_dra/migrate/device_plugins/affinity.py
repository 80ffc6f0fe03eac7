"""Conditions on node labels in a pod's spec, and what remains when some are removed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.manifests.changes import Delete, Path, value_at
from kubectl_dra.migrate.device_plugins.labels import Condition, values_of

TERMS: Final[Path] = (
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)
PREFERRED: Final[Path] = ("affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")


class Stated(NamedTuple):
    """A condition and its path from the pod's spec; None if it is malformed."""

    path: Path
    key: str
    condition: Condition | None


class StatedTerm(NamedTuple):
    """A term of the required node affinity: conditions that must all hold. ``fields`` are its conditions on fields."""

    path: Path
    stated: tuple[Stated, ...]
    fields: bool


def node_selector(spec: Mapping[str, Any]) -> Iterator[Stated]:
    """The conditions of ``nodeSelector``."""
    raw = spec.get("nodeSelector")
    for key, value in raw.items() if isinstance(raw, Mapping) else ():
        made = Condition(key, "In", (value,)) if isinstance(value, str) else None
        yield Stated(("nodeSelector", key), key, made)


def required_terms(spec: Mapping[str, Any]) -> tuple[StatedTerm, ...]:
    """The terms of the required node affinity, one of which must hold."""
    return tuple(_term((*TERMS, index), raw) for index, raw in enumerate(_list(value_at(spec, TERMS))))


def preferred(spec: Mapping[str, Any]) -> Iterator[Stated]:
    """The conditions of all preferred terms of the node affinity."""
    for index, raw in enumerate(_list(value_at(spec, PREFERRED))):
        if isinstance(raw, Mapping):
            yield from _term((*PREFERRED, index, "preference"), raw.get("preference")).stated


def _term(path: Path, raw: Any) -> StatedTerm:
    if not isinstance(raw, Mapping):
        return StatedTerm(path, (), False)
    stated = []
    for index, expression in enumerate(_list(raw.get("matchExpressions"))):
        if isinstance(expression, Mapping):
            stated.append(_expression((*path, "matchExpressions", index), expression))
    return StatedTerm(path, tuple(stated), bool(raw.get("matchFields")))


def _expression(path: Path, raw: Mapping[str, Any]) -> Stated:
    key, operator = raw.get("key"), raw.get("operator")
    values = values_of(_list(raw.get("values")))
    if not isinstance(key, str) or not isinstance(operator, str) or values is None:
        return Stated(path, key if isinstance(key, str) else "", None)
    return Stated(path, key, Condition(key, operator, values))


def _list(raw: Any) -> Sequence[Any]:
    return raw if isinstance(raw, list) else ()


def emptied(spec: Mapping[str, Any], removed: Collection[Path]) -> tuple[Delete, ...]:
    """The fewest deletions that remove these parts of a pod's spec, including mappings and lists left empty."""
    tree: dict[str | int, Any] = {}
    for path in removed:
        below = tree
        for part in path:
            below = below.setdefault(part, {})
    return tuple(Delete(path) for path in _gone(spec, tree, ()))


def _gone(value: Any, tree: Mapping[str | int, Any], path: Path) -> list[Path]:
    out: list[Path] = []
    left = len(value)
    for part, below in tree.items():
        here = (*path, part)
        paths = _gone(value[part], below, here) if below else [here]
        left -= paths == [here]
        out.extend(paths)
    return [path] if path and not left else out
