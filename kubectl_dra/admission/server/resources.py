"""Resource names and amounts, in containers and pods and as keys of quotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from kubectl_dra.admission.server.classes import is_extended_resource, is_native_resource
from kubectl_dra.admission.server.metadata import check_generation, check_metadata
from kubectl_dra.admission.server.model import (
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    Key,
    ServerContext,
    Violations,
    missing,
    struct,
    text,
    violation,
)
from kubectl_dra.admission.server.names import label_key_problems, subdomain_problems
from kubectl_dra.api.pod_resources import Amounts, is_pod_level, together
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.schema import FieldPath

_COMPUTE: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
_OBJECTS: Final = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_QUOTA: Final = (
    _COMPUTE
    | _OBJECTS
    | {f"{side}.{name}" for side in ("requests", "limits") for name in _COMPUTE}
    | {"requests.storage"}
)
_STANDARD: Final = _QUOTA | {"storage"}
_HUGE_PAGES: Final = "hugepages-"
_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
NAME_RULE: Final = "ext-resource-name"


def container_amounts(container: Mapping[str, Any], side: str, requests_from_limits: bool) -> Amounts:
    """The ``limits`` or ``requests`` of a container.

    ``requests_from_limits``: whether limits stand in for missing requests, as in pods but not in templates.
    """
    resources = container.get("resources") or {}
    if side == "limits" or not requests_from_limits:
        return amounts(resources.get(side))
    return amounts(resources.get("limits")) | amounts(resources.get("requests"))


def check_amounts(limits: Amounts, requests: Amounts, at: FieldPath, for_pod: bool) -> Violations:
    """Limits and requests of a container or, ``for_pod``, of a pod."""
    name_problem = _pod_problem if for_pod else _container_problem
    for side, given in (("limits", limits), ("requests", requests)):
        for name, amount in given.items():
            where = (*at, side, Key(name))
            for reason, message in (
                *name_problem(name),
                *_amount_problems(name, amount),
                *_huge_page_problems(name, amount),
            ):
                yield violation(where, reason, _rule(name), message)
            if side == "requests":
                yield from _check_limit(name, amount, limits.get(name), at)
    names = {*limits, *requests}
    if any(map(is_huge_page, names)) and not names & {"cpu", "memory"}:
        yield violation(at, FORBIDDEN, "hugepages-alone", "huge pages need cpu or memory, too")


def quota_key_problems(name: str) -> tuple[str, ...]:
    """What is wrong with a key of a quota's ``hard``."""
    problems = [message for _, message in _name_problems(name)]
    if "/" not in name and not is_quota_resource(name):
        problems.append(f"{name!r} is not a resource that quotas know")
    return tuple(problems)


def is_quota_resource(name: str) -> bool:
    """Whether a quota key is one that Kubernetes itself defines."""
    return name in _QUOTA or _is_huge(name)


def _rule(name: str) -> str:
    if name.startswith(_IMPLICIT):
        return "implicit-ext-resource"
    return NAME_RULE if is_native_resource(name) else "ext-resource-integer"


def amounts(raw: Mapping[str, Any] | None) -> Amounts:
    """The quantities of a resource list."""
    return {name: Quantity.from_json(value) for name, value in (raw or {}).items()}


def is_huge_page(name: str) -> bool:
    """Whether a resource is huge pages of any size."""
    return name.startswith(_HUGE_PAGES)


def _is_huge(name: str) -> bool:
    return name.startswith((_HUGE_PAGES, "requests." + _HUGE_PAGES))


def _name_problems(name: str) -> list[tuple[str, str]]:
    problems = [(INVALID, f"{name!r} {problem}") for problem in label_key_problems(name)]
    if not problems and "/" not in name and name not in _STANDARD and not _is_huge(name):
        problems.append((INVALID, f"{name!r} must be a standard resource, or have a domain"))
    return problems


def _container_problem(name: str) -> list[tuple[str, str]]:
    problems = _name_problems(name)
    if "/" not in name:
        if name not in _COMPUTE and not is_huge_page(name):
            problems.append((INVALID, f"{name!r} is not a resource that containers can request"))
    elif not is_native_resource(name) and not is_extended_resource(name):
        problems.append((INVALID, f"{name!r} must not begin with 'requests.' and must be valid after it"))
    return problems


def _pod_problem(name: str) -> list[tuple[str, str]]:
    problems = _name_problems(name)
    if not problems and not is_pod_level(name):
        problems.append((NOT_SUPPORTED, f"{name!r} cannot be requested for a whole pod"))
    return problems


def _amount_problems(name: str, amount: Quantity) -> list[tuple[str, str]]:
    problems = []
    if amount.sign() < 0:
        problems.append((INVALID, f"{amount} must not be negative"))
    if (name in _OBJECTS or is_extended_resource(name)) and _milli(amount) % 1000:
        problems.append((INVALID, f"{amount} must be a whole number of at most 64 bits"))
    return problems


def _milli(amount: Quantity) -> int:
    """Thousandths, rounded up. Values beyond 64 bits overflow, as on the server."""
    thousandths = -(-amount.nanos // 10**6)
    return (thousandths + 2**63) % 2**64 - 2**63 if amount.wide else thousandths


def _huge_page_problems(name: str, amount: Quantity) -> list[tuple[str, str]]:
    if not is_huge_page(name):
        return []
    try:
        page = Quantity.parse(name.removeprefix(_HUGE_PAGES))
    except QuantityError:
        page = Quantity(0)
    if page.sign() > 0 and not page.nanos % 10**9 and not amount.value() % page.value():
        return []
    return [(INVALID, f"{amount} is not a multiple of the page size in {name}")]


def _check_limit(name: str, request: Quantity, limit: Quantity | None, at: FieldPath) -> Violations:
    exact = not is_native_resource(name) or is_huge_page(name)
    if limit is None:
        if exact:
            message = f"{name} is requested without a limit; it cannot be overcommitted"
            yield missing((*at, "limits"), "ext-resource-limit", message)
    elif exact and request != limit:
        message = f"{name}: the request {request} must be equal to the limit {limit}"
        yield violation((*at, "requests"), INVALID, "ext-resource-limit", message, below=(Key(name),))
    elif request > limit:
        message = f"{name}: the request {request} must not be more than the limit {limit}"
        yield violation((*at, "requests"), INVALID, "request-over-limit", message, below=(Key(name),))


# The resources of a whole pod: what the server derives from the containers, and how both must agree.
#
# From ``SetDefaults_Pod`` and ``validatePodResources`` of Kubernetes 1.36 (KEP-2837).


def check_pod_resources(spec: Mapping[str, Any], at: FieldPath, is_pod: bool) -> Violations:
    """``resources`` of the pod spec at ``at``; ``is_pod``: of a pod, not of a template."""
    resources = spec.get("resources") or {}
    here = (*at, "resources")
    if resources.get("claims") is not None:
        message = "cannot be set for a whole pod, only for containers"
        yield violation((*here, "claims"), FORBIDDEN, "pod-level-claims", message)
    limits, requests = amounts(resources.get("limits")), amounts(resources.get("requests"))
    of_containers, limits_of_containers = _needs(spec, "requests", is_pod), _needs(spec, "limits", is_pod)
    if is_pod:
        limits, requests = _filled(limits, requests, of_containers, limits_of_containers)
    yield from check_amounts(limits, requests, here, for_pod=True)
    yield from _check_sum(requests, of_containers, (*here, "requests"))
    huge_pages = {name: amount for name, amount in limits_of_containers.items() if is_huge_page(name)}
    yield from _check_sum(limits, huge_pages, (*here, "limits"))
    for index, container in enumerate(spec.get("containers") or ()):
        for name, amount in container_amounts(container or {}, "limits", is_pod).items():
            if name in limits and amount > limits[name]:
                message = f"{name}: the container's limit {amount} must not be more than the pod's, {limits[name]}"
                path = (*at, "containers", index, "resources", "limits", Key(name))
                # The server looks for the container inside of the pod's resources.
                field = f"{'.'.join(map(str, here))}.containers[{index}][{name}].limits"
                yield violation(path, INVALID, "pod-level-amount", message, field=field)


def _check_sum(pod: Amounts, containers: Amounts, at: FieldPath) -> Violations:
    for name, amount in containers.items():
        if name in pod and amount > pod[name]:
            message = f"{pod[name]} must be at least what the containers have together, {amount}"
            yield violation((*at, Key(name)), INVALID, "pod-level-amount", message)


def _filled(limits: Amounts, requests: Amounts, of_containers: Amounts, limits_of_containers: Amounts) -> list[Amounts]:
    """A pod's limits and requests, with those that the server adds if only some are given."""
    limits, requests = dict(limits), dict(requests)
    if limits or requests:
        for name, amount in limits_of_containers.items():
            if is_huge_page(name) and name not in requests:
                limits.setdefault(name, amount)
    if limits:
        for name, amount in of_containers.items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if is_pod_level(name):
                requests.setdefault(name, amount)
    return [limits, requests]


def _needs(spec: Mapping[str, Any], side: str, is_pod: bool) -> Amounts:
    """What the containers need at one time: init containers run one by one, sidecars keep running."""
    containers, inits = (spec.get(name) or () for name in ("containers", "initContainers"))
    return together(
        (container_amounts(container or {}, side, is_pod) for container in containers),
        ((container_amounts(init or {}, side, is_pod), text(init, "restartPolicy") == "Always") for init in inits),
    )


# ResourceQuota: its keys, some of which count devices, and the scopes that suit them.

_PODS: Final = frozenset(("pods",))
_QUOTA_COMPUTE: Final = frozenset(
    f"{side}{name}" for side in ("", "limits.", "requests.") for name in ("cpu", "memory")
)
_SCOPES: Final = {
    "BestEffort": _PODS,
    "CrossNamespacePodAffinity": _PODS | _QUOTA_COMPUTE,
    "NotBestEffort": _PODS | _QUOTA_COMPUTE,
    "NotTerminating": _PODS | _QUOTA_COMPUTE,
    "PriorityClass": _PODS | _QUOTA_COMPUTE,
    "Terminating": _PODS | _QUOTA_COMPUTE,
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
        for _, problem in _amount_problems(name, Quantity.from_json(value)):
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
        where: FieldPath = (*at, index)
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


def _check_exclusive(scopes: set[str], at: FieldPath) -> Violations:
    for pair in _EXCLUSIVE:
        if pair <= scopes:
            yield violation(at, INVALID, _RULE, f"{' and '.join(sorted(pair))} exclude each other")


def _unfit(scope: str, hard: Iterable[str]) -> list[str]:
    """The resources of a quota that do not suit a scope."""
    return [name for name in hard if is_quota_resource(name) and name not in _SCOPES.get(scope, (name,))]


def _unknown(scope: str) -> str:
    return f"{scope!r} is none of {', '.join(sorted(_SCOPES))}"
