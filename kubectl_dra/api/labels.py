"""Label requirements and label selectors, with the semantics of ``k8s.io/apimachinery/pkg/labels``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from kubectl_dra.api.meta import Wire
from kubectl_dra.text import some, whole_number

_INT64 = 1 << 63
JOB_NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
JOB_UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
"""What the API server puts on the template of a Job."""


class InvalidNodeSelector(ValueError):
    """A selector that the scheduler cannot parse. API validation normally prevents it."""


class Requirement(Wire, frozen=True):
    """One ``matchExpressions`` or ``matchFields`` entry: key, operator, values."""

    key: Annotated[str, "key"] = ""
    operator: Annotated[str, "keep"] = ""
    values: Annotated[tuple[str, ...], "value"] = ()

    def __str__(self) -> str:
        values = some(self.values)
        if self.key == "metadata.name" and self.operator == "In":
            return f"node {values}"
        return f"{self.key} {self.operator} ({values})" if values else f"{self.key} {self.operator}"


class LabelSelector(Wire, frozen=True):
    """``matchLabels`` and ``matchExpressions``, all of which must hold; an empty selector matches everything."""

    match_labels: Annotated[dict[str, str], "labels"] = {}
    match_expressions: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels match the selector. A selector that the API server would reject matches nothing."""
        for key, value in self.match_labels.items():
            if labels.get(key) != value:
                return False
        return all_match(self.match_expressions, labels)

    @property
    def empty(self) -> bool:
        """Whether the selector requires nothing."""
        return not self.match_labels and not self.match_expressions


def all_match(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether labels meet all requirements. If one cannot be parsed, nothing matches."""
    try:
        return all(requirement_matches(requirement, labels) for requirement in requirements)
    except InvalidNodeSelector:
        return False


def requirement_matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether labels meet one label requirement, with the scheduler's semantics.

    ``NotIn`` holds for an absent label. ``Gt`` and ``Lt`` compare signed 64-bit integers, and do not hold if
    the label is absent or not a number.

    Raises:
        InvalidNodeSelector: unknown operator, or a wrong number or kind of values.
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
    number = whole_number(text[1:] if text[:1] in ("+", "-") else text, 19)
    if number is None:
        return None
    value = -number if text[0] == "-" else number
    return value if -_INT64 <= value < _INT64 else None
