"""Functions of authorization. Kubernetes declares them for all expressions, but a device selector has no authorizer.

So a call compiles only on a value whose type is not known, and fails there: these functions have types and costs, but
nothing to call.
"""

from __future__ import annotations

from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.known_sizes import (
    LIST_CREATE_COST,
    STRING_TRAVERSAL_FACTOR,
    STRUCT_CREATE_COST,
    CallEstimate,
    Cost,
    CostRange,
    Size,
    fixed,
)
from kubectl_dra.cel.library.support import NOMINAL, actual_size, declared, member
from kubectl_dra.cel.types import BOOL, STRING, CelType

_AUTHORIZER, _PATH, _GROUP, _RESOURCE, _DECISION = (
    CelType("opaque", f"kubernetes.authorization.{name}")
    for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)
_CHECK_COST = 350_000
_REQUIREMENTS_PER_CHARACTER = 0.5
_REQUIREMENT_COST = float(LIST_CREATE_COST + STRUCT_CREATE_COST)


def _parsed(length: Size) -> CostRange:
    """The cost of reading a selector of fields or labels."""
    requirements = length.scaled(_REQUIREMENTS_PER_CHARACTER).scaled(_REQUIREMENT_COST)
    return fixed(LIST_CREATE_COST).plus(length.scaled(STRING_TRAVERSAL_FACTOR)).plus(requirements)


_CHECK = Cost(lambda operands: CallEstimate(fixed(_CHECK_COST)), lambda values, result: _CHECK_COST)
_SELECTOR = Cost(
    lambda operands: CallEstimate(_parsed(operands.size(1))),
    lambda values, result: _parsed(fixed(actual_size(values[1]))).max,
)
# The function, the id of its overload, receiver, number of strings, result, cost.
_ROWS = (
    ("path", "authorizer_path", _AUTHORIZER, 1, _PATH, NOMINAL),
    ("group", "authorizer_group", _AUTHORIZER, 1, _GROUP, NOMINAL),
    ("serviceAccount", "authorizer_serviceaccount", _AUTHORIZER, 2, _AUTHORIZER, NOMINAL),
    ("resource", "groupcheck_resource", _GROUP, 1, _RESOURCE, NOMINAL),
    ("subresource", "resourcecheck_subresource", _RESOURCE, 1, _RESOURCE, NOMINAL),
    ("namespace", "resourcecheck_namespace", _RESOURCE, 1, _RESOURCE, NOMINAL),
    ("name", "resourcecheck_name", _RESOURCE, 1, _RESOURCE, NOMINAL),
    ("fieldSelector", "authorizer_fieldselector", _RESOURCE, 1, _RESOURCE, _SELECTOR),
    ("labelSelector", "authorizer_labelselector", _RESOURCE, 1, _RESOURCE, _SELECTOR),
    ("check", "pathcheck_check", _PATH, 1, _DECISION, _CHECK),
    ("check", "resourcecheck_check", _RESOURCE, 1, _DECISION, _CHECK),
    ("errored", "decision_errored", _DECISION, 0, BOOL, NOMINAL),
    ("error", "decision_error", _DECISION, 0, STRING, NOMINAL),
    ("allowed", "decision_allowed", _DECISION, 0, BOOL, NOMINAL),
    ("reason", "decision_reason", _DECISION, 0, STRING, NOMINAL),
)


def functions() -> list[Function]:
    overloads: dict[str, list[Overload]] = {}
    for name, id, receiver, strings, result, cost in _ROWS:
        overloads.setdefault(name, []).append(member(id, (receiver, *[STRING] * strings), result, None, cost))
    return declared("authorization", overloads)
