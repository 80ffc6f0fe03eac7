"""Which violations in the rest of an object may come from the fields that were taken out, as nobody can decode them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import value_at

if TYPE_CHECKING:
    from kubectl_dra.admission.server.model import Violation

_OF_NAMES: Final[Mapping[str, str]] = {
    "constraint-request-unknown": "requests",
    "config-request-unknown": "requests",
    "container-claim-unknown": "resourceClaims",
}
"""Rules about names that a list gives, with the list."""
_WITHOUT_NAMES: Final = ("constraints", "config", "containers", "initContainers")
"""Lists beside these in which nothing gives such a name."""
_OF_LABELS: Final = ("workload-labels", "workload-selector")


class Undecoded:
    """The fields that were taken out of an object, and what is left."""

    def __init__(self, rest: Mapping[str, Any], violations: Sequence[Violation]) -> None:
        self._rest = rest
        self._paths = tuple(violation.path for violation in violations)
        self._holders = {path[:-1] for path in self._paths}
        self._misspelled = {violation.path[:-1] for violation in violations if violation.rule == "unknown-field"}

    def may_cause(self, violation: Violation) -> bool:
        """Whether a violation in the rest may end when a field that was taken out is corrected."""
        if violation.rule in _OF_LABELS or violation.path in self._paths:
            return True
        if violation.rule in _OF_NAMES:
            given_in = _OF_NAMES[violation.rule]
            return any(self._may_name(path, given_in) for path in self._paths)
        if violation.reason == "Required":
            return self._may_be_required(violation.path)
        if violation.reason == "Duplicate" and value_at(self._rest, (*violation.path, "name")):
            # Its name is there, whatever is wrong beside it.
            return False
        return violation.path in self._holders or violation.path[:-1] in self._misspelled

    def _may_be_required(self, path: FieldPath) -> bool:
        """Whether one of the fields may be what is missing at a path, or a part of it."""
        if any(path[: len(prefix)] == prefix for prefix in self._paths):
            return True
        there = path
        while there and value_at(self._rest, there) is None:
            there = there[:-1]
        # A known field with a wrong type is not another one misspelled.
        return there in (self._holders if there == path else self._misspelled)

    def _may_name(self, path: FieldPath, given_in: str) -> bool:
        """Whether a field may give a name in a list: anything but what stands beside a name that is there."""
        lists = ("devices", given_in) if given_in == "requests" else (given_in,)
        start = next((at for at in range(len(path)) if path[at : at + len(lists)] == lists), None)
        if start is None:
            return not any(part in _WITHOUT_NAMES for part in path)
        below = path[start + len(lists) + 1 :]
        entry = path[: len(path) - len(below)]
        if below[:1] == ("firstAvailable",) and len(below) > 1:
            entry, below = (*entry, *below[:2]), below[2:]
        elif given_in == "requests" and len(below) == 1:
            # It may be the list of alternatives, which have names, too.
            has = value_at(self._rest, entry)
            if not isinstance(has, dict) or not has.keys() & {"exactly", "firstAvailable", "deviceClassName"}:
                return True
        named = isinstance(value_at(self._rest, (*entry, "name")), str)
        return not below or not named or below == ("name",)
