"""Functions of authorization. Kubernetes declares them for all expressions, but a device selector has no authorizer.

So a call compiles only on a value whose type is not known, and fails there: these functions have types and costs, but
nothing to call.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.known_sizes import (
    LIST_CREATE_COST,
    STRING_TRAVERSAL_FACTOR,
    STRUCT_CREATE_COST,
    CallEstimate,
    CostNode,
    CostRange,
    Estimator,
    Size,
    fixed,
)
from kubectl_dra.cel.library.support import actual_size, function, member, nominal_actual, nominal_estimate
from kubectl_dra.cel.types import BOOL, STRING, CelType
from kubectl_dra.cel.values import Value

_LIBRARY = "authorization"
_AUTHORIZER, _PATH, _GROUP, _RESOURCE, _DECISION = (
    CelType("opaque", f"kubernetes.authorization.{name}")
    for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)
_CHECK_COST = 350_000
_REQUIREMENTS_PER_CHARACTER = 0.5
_REQUIREMENT_COST = float(LIST_CREATE_COST + STRUCT_CREATE_COST)


def _step(id: str, receiver: CelType, result: CelType, arguments: int = 1) -> Overload:
    parameters = (receiver, *[STRING] * arguments)
    return member(id, parameters, result, estimate=nominal_estimate, actual=nominal_actual)


def _check_estimate(estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]) -> CallEstimate:
    return CallEstimate(fixed(_CHECK_COST))


def _check_actual(values: Sequence[Value], result: Value) -> int:
    return _CHECK_COST


def _check(id: str, receiver: CelType) -> Overload:
    return member(id, (receiver, STRING), _DECISION, estimate=_check_estimate, actual=_check_actual)


def _parsed(length: Size) -> CostRange:
    """The cost of reading a selector of fields or labels."""
    requirements = length.scaled(_REQUIREMENTS_PER_CHARACTER).scaled(_REQUIREMENT_COST)
    return fixed(LIST_CREATE_COST).plus(length.scaled(STRING_TRAVERSAL_FACTOR)).plus(requirements)


def _selector_estimate(
    estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]
) -> CallEstimate | None:
    return CallEstimate(_parsed(estimator.size(arguments[0]))) if len(arguments) == 1 else None


def _selector_actual(values: Sequence[Value], result: Value) -> int:
    return _parsed(fixed(actual_size(values[1]))).max


def _selector(id: str) -> Overload:
    return member(id, (_RESOURCE, STRING), _RESOURCE, estimate=_selector_estimate, actual=_selector_actual)


def functions() -> list[Function]:
    declared: dict[str, list[Overload]] = {
        "path": [_step("authorizer_path", _AUTHORIZER, _PATH)],
        "group": [_step("authorizer_group", _AUTHORIZER, _GROUP)],
        "serviceAccount": [_step("authorizer_serviceaccount", _AUTHORIZER, _AUTHORIZER, arguments=2)],
        "resource": [_step("groupcheck_resource", _GROUP, _RESOURCE)],
        "subresource": [_step("resourcecheck_subresource", _RESOURCE, _RESOURCE)],
        "namespace": [_step("resourcecheck_namespace", _RESOURCE, _RESOURCE)],
        "name": [_step("resourcecheck_name", _RESOURCE, _RESOURCE)],
        "fieldSelector": [_selector("authorizer_fieldselector")],
        "labelSelector": [_selector("authorizer_labelselector")],
        "check": [_check("pathcheck_check", _PATH), _check("resourcecheck_check", _RESOURCE)],
        "errored": [_step("decision_errored", _DECISION, BOOL, arguments=0)],
        "error": [_step("decision_error", _DECISION, STRING, arguments=0)],
        "allowed": [_step("decision_allowed", _DECISION, BOOL, arguments=0)],
        "reason": [_step("decision_reason", _DECISION, STRING, arguments=0)],
    }
    return [function(name, _LIBRARY, "", (), overloads) for name, overloads in declared.items()]
