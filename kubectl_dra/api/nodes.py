"""Nodes and node selectors (core/v1), as ResourceSlices and allocations use them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubectl_dra.api.meta import EMPTY, JSONObject

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_INT64 = 1 << 63


class InvalidNodeSelector(ValueError):
    """A node selector that the scheduler cannot parse. API validation normally prevents it."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One ``matchExpressions`` or ``matchFields`` entry: key, operator, values."""

    key: str
    operator: str
    values: tuple[str, ...]

    @classmethod
    def from_json(cls, raw: JSONObject) -> Requirement:
        return cls(
            key=raw.get("key") or "",
            operator=raw.get("operator") or "",
            values=tuple(str(value) for value in raw.get("values") or ()),
        )

    def to_json(self) -> dict[str, Any]:
        """The API form, without an empty ``values``."""
        out: dict[str, Any] = {"key": self.key, "operator": self.operator}
        if self.values:
            out["values"] = list(self.values)
        return out

    def __str__(self) -> str:
        values = ", ".join(self.values)
        if self.key == "metadata.name" and self.operator == "In":
            return f"node {values}"
        return f"{self.key} {self.operator} ({values})" if values else f"{self.key} {self.operator}"


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """Requirements that must all hold; a term without any never matches."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must match."""

    terms: tuple[NodeSelectorTerm, ...]

    @classmethod
    def from_json(cls, raw: JSONObject) -> NodeSelector:
        return cls(
            terms=tuple(
                NodeSelectorTerm(
                    expressions=tuple(Requirement.from_json(entry) for entry in term.get("matchExpressions") or ()),
                    fields=tuple(Requirement.from_json(entry) for entry in term.get("matchFields") or ()),
                )
                for term in raw.get("nodeSelectorTerms") or ()
            )
        )

    def matches(self, node: Node) -> bool:
        """Whether one term holds on the node.

        Raises:
            InvalidNodeSelector: an operator or value that the scheduler cannot parse.
        """
        return any(_term_matches(term, node) for term in self.terms)

    def __str__(self) -> str:
        return " or ".join(
            " and ".join(str(entry) for entry in (*term.expressions, *term.fields)) or "nothing" for term in self.terms
        )


@dataclass(frozen=True, slots=True)
class NodeTaint:
    """One entry of a node's ``spec.taints``."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Node:
    """A node: name, labels, and what of its spec and status decides about pods."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, Any] = field(default_factory=dict)
    unschedulable: bool = False
    ready: bool | None = None
    taints: tuple[NodeTaint, ...] = ()

    @classmethod
    def from_json(cls, raw: JSONObject) -> Node:
        """Reads a v1 Node. ``ready`` is None where the node reports no Ready condition."""
        meta = raw.get("metadata") or EMPTY
        spec = raw.get("spec") or EMPTY
        status = raw.get("status") or EMPTY
        ready: bool | None = None
        for condition in status.get("conditions") or ():
            if condition.get("type") == "Ready":
                ready = condition.get("status") == "True"
        return cls(
            name=meta.get("name") or "",
            labels=meta.get("labels") or EMPTY,
            allocatable=status.get("allocatable") or EMPTY,
            unschedulable=bool(spec.get("unschedulable")),
            ready=ready,
            taints=tuple(
                NodeTaint(taint.get("key") or "", taint.get("value") or "", taint.get("effect") or "")
                for taint in spec.get("taints") or ()
            ),
        )


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.expressions and not term.fields:
        return False
    for requirement in term.expressions:
        if not requirement_matches(requirement, node.labels):
            return False
    return all(_field_matches(requirement, node) for requirement in term.fields)


def _field_matches(requirement: Requirement, node: Node) -> bool:
    if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
        raise InvalidNodeSelector(f"invalid matchFields entry {requirement}")
    if requirement.key != "metadata.name":
        return False
    return (node.name == requirement.values[0]) == (requirement.operator == "In")


def requirement_matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether labels fulfil one label requirement, with the scheduler's semantics.

    ``NotIn`` holds for an absent label; ``Gt`` and ``Lt`` compare signed 64-bit integers and do not hold
    where the label is absent or not a number.

    Raises:
        InvalidNodeSelector: unknown operator or a wrong number or kind of values.
    """
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if operator in ("In", "NotIn"):
        if not values:
            raise InvalidNodeSelector(f"{operator} needs at least one value: {requirement}")
        if operator == "In":
            return key in labels and labels[key] in values
        return key not in labels or labels[key] not in values
    if operator in ("Exists", "DoesNotExist"):
        if values:
            raise InvalidNodeSelector(f"{operator} takes no values: {requirement}")
        return (key in labels) == (operator == "Exists")
    if operator in ("Gt", "Lt"):
        if len(values) != 1 or (wanted := _int64(values[0])) is None:
            raise InvalidNodeSelector(f"{operator} needs exactly one integer: {requirement}")
        actual = _int64(labels[key]) if key in labels else None
        if actual is None:
            return False
        return actual > wanted if operator == "Gt" else actual < wanted
    raise InvalidNodeSelector(f"{operator!r} is not a valid operator: {requirement}")


def _int64(text: str) -> int | None:
    if not _INTEGER.match(text):
        return None
    value = int(text)
    return value if -_INT64 <= value < _INT64 else None
