"""Resource names and amounts, in containers and pods and as keys of quotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.admission.server.classes import is_extended_resource, is_native_resource
from kubectl_dra.admission.server.model import (
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    Key,
    Path,
    Violations,
    missing,
    violation,
)
from kubectl_dra.admission.server.names import label_key_problems
from kubectl_dra.api.quantity import Quantity, QuantityError

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
POD_RESOURCES: Final = frozenset(("cpu", "memory"))
"""What can be requested for a whole pod, besides huge pages."""

Amounts = dict[str, Quantity]
"""Quantities by the name of their resource."""


def container_amounts(container: Mapping[str, Any], side: str, requests_from_limits: bool) -> Amounts:
    """The ``limits`` or ``requests`` of a container.

    ``requests_from_limits``: whether limits stand in for missing requests, as in pods but not in templates.
    """
    resources = container.get("resources") or {}
    if side == "limits" or not requests_from_limits:
        return amounts(resources.get(side))
    return amounts(resources.get("limits")) | amounts(resources.get("requests"))


def check_amounts(limits: Amounts, requests: Amounts, at: Path, for_pod: bool) -> Violations:
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


def amount_problems(name: str, amount: Quantity) -> tuple[str, ...]:
    """What is wrong with an amount of a resource."""
    return tuple(message for _, message in _amount_problems(name, amount))


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
    if not problems and name not in POD_RESOURCES and not is_huge_page(name):
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


def _check_limit(name: str, request: Quantity, limit: Quantity | None, at: Path) -> Violations:
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
