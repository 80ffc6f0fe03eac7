"""ResourceQuota: its keys, some of which count devices, and the scopes that suit them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.metadata import check_generation, check_metadata
from kubectl_dra.admission.server.model import INVALID, Key, Path, Violations, missing, struct, text, violation
from kubectl_dra.admission.server.names import subdomain_problems
from kubectl_dra.admission.server.resources import amount_problems, is_quota_resource, quota_key_problems
from kubectl_dra.api.quantity import Quantity

_PODS: Final = frozenset(("pods",))
_COMPUTE: Final = frozenset(f"{side}{name}" for side in ("", "limits.", "requests.") for name in ("cpu", "memory"))
_SCOPES: Final = {
    "BestEffort": _PODS,
    "CrossNamespacePodAffinity": _PODS | _COMPUTE,
    "NotBestEffort": _PODS | _COMPUTE,
    "NotTerminating": _PODS | _COMPUTE,
    "PriorityClass": _PODS | _COMPUTE,
    "Terminating": _PODS | _COMPUTE,
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
"""The scopes, and which of Kubernetes' own resources suit each."""
_WITH_VALUES: Final = frozenset(("PriorityClass", "VolumeAttributesClass"))
_EXCLUSIVE: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_RULE: Final = "quota-scope"


def check_quota(quota: Mapping[str, Any], context: ServerContext) -> Violations:
    """A ResourceQuota to be created."""
    yield from check_metadata(quota.get("metadata"), subdomain_problems, namespaced=True, context=context)
    yield from check_generation(quota.get("metadata"))
    spec = struct(quota, "spec")
    hard = spec.get("hard") or {}
    for name, value in hard.items():
        at = ("spec", "hard", Key(name))
        for problem in quota_key_problems(name):
            yield violation(at, INVALID, "quota-key", problem)
        for problem in amount_problems(name, Quantity.from_json(value)):
            yield violation(at, INVALID, "quota-amount", problem)
    yield from _check_scopes([scope or "" for scope in spec.get("scopes") or ()], hard)
    if spec.get("scopeSelector") is not None:
        yield from _check_selector(spec["scopeSelector"].get("matchExpressions") or (), hard)


def _check_scopes(scopes: list[str], hard: Iterable[str]) -> Violations:
    at = ("spec", "scopes")
    for index, scope in enumerate(scopes):
        if scope not in _SCOPES:
            yield violation(at, INVALID, _RULE, _unknown(scope), below=(index,))
        for name in _unfit(scope, hard):
            yield violation(at, INVALID, _RULE, f"{scope} cannot limit {name}", below=(index,))
    yield from _check_exclusive(set(scopes), at)


def _check_selector(expressions: Iterable[Mapping[str, Any] | None], hard: Iterable[str]) -> Violations:
    """Check the scope selector. The server reports expressions without their index."""
    at = ("spec", "scopeSelector", "matchExpressions")
    scopes = set()
    for index, expression in enumerate(expressions):
        scope, operator = text(expression, "scopeName"), text(expression, "operator")
        values = (expression or {}).get("values") or ()
        where: Path = (*at, index)
        fields = {name: f"spec.scopeSelector.matchExpressions.{name}" for name in ("scopeName", "operator", "values")}
        if scope not in _SCOPES:
            yield violation((*where, "scopeName"), INVALID, _RULE, _unknown(scope), field=fields["scopeName"])
        for name in _unfit(scope, hard):
            yield violation(at, INVALID, _RULE, f"{scope} cannot limit {name}", below=(index,))
        if scope in _SCOPES and scope not in _WITH_VALUES and operator != "Exists":
            message = f"must be Exists for the scope {scope}"
            yield violation((*where, "operator"), INVALID, _RULE, message, field=fields["operator"])
        if operator in ("In", "NotIn"):
            if not values:
                message = f"must have a value for the operator {operator}"
                yield replace(missing((*where, "values"), _RULE, message), field=fields["values"])
        elif operator not in ("Exists", "DoesNotExist"):
            message = f"{operator!r} is none of In, NotIn, Exists, DoesNotExist"
            yield violation((*where, "operator"), INVALID, _RULE, message, field=fields["operator"])
        elif values:
            message = f"must be empty for the operator {operator}"
            yield violation((*where, "values"), INVALID, _RULE, message, field=fields["values"])
        scopes.add(scope)
    yield from _check_exclusive(scopes, at)


def _check_exclusive(scopes: set[str], at: Path) -> Violations:
    for pair in _EXCLUSIVE:
        if pair <= scopes:
            yield violation(at, INVALID, _RULE, f"{' and '.join(sorted(pair))} exclude each other")


def _unfit(scope: str, hard: Iterable[str]) -> list[str]:
    """The resources of a quota that do not suit a scope."""
    return [name for name in hard if is_quota_resource(name) and name not in _SCOPES.get(scope, (name,))]


def _unknown(scope: str) -> str:
    return f"{scope!r} is none of {', '.join(sorted(_SCOPES))}"
