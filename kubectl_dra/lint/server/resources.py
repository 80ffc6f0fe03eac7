"""Resource names and amounts: of containers and pods, and as keys of quotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.lint.server.classes import is_extended_resource, is_native_resource
from kubectl_dra.lint.server.model import (
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    Key,
    Path,
    Violations,
    missing,
    violation,
)
from kubectl_dra.lint.server.names import label_key_problems

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


def check_requirements(resources: Mapping[str, Any], at: Path, for_pod: bool, requests_from_limits: bool) -> Violations:
    """``limits`` and ``requests`` of a container or, ``for_pod``, of a pod.

    ``requests_from_limits``: whether missing requests become the limits, as in pods but not in templates.
    """
    limits, requests = _amounts(resources.get("limits")), _amounts(resources.get("requests"))
    if requests_from_limits:
        requests = limits | requests
    name_problem = _pod_problem if for_pod else _container_problem
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
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
    huge = any(name.startswith(_HUGE_PAGES) for name in names)
    if huge and not names & {"cpu", "memory"}:
        yield violation(at, FORBIDDEN, "hugepages-alone", "huge pages need cpu or memory, too")


def quota_key_problems(name: str) -> tuple[str, ...]:
    """What is wrong with a key of a quota's ``hard``."""
    problems = [message for _, message in _name_problems(name)]
    if "/" not in name and name not in _QUOTA and not _is_huge(name):
        problems.append(f"{name!r} is no resource that quotas know")
    return tuple(problems)


def amount_problems(name: str, amount: Quantity) -> tuple[str, ...]:
    """What is wrong with an amount of a resource."""
    return tuple(message for _, message in _amount_problems(name, amount))


def _rule(name: str) -> str:
    if name.startswith(_IMPLICIT):
        return "implicit-ext-resource"
    return NAME_RULE if is_native_resource(name) else "ext-resource-integer"


def _amounts(raw: Mapping[str, Any] | None) -> dict[str, Quantity]:
    return {name: Quantity.from_json(value) for name, value in (raw or {}).items()}


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
        if name not in _COMPUTE and not name.startswith(_HUGE_PAGES):
            problems.append((INVALID, f"{name!r} is no resource that containers can request"))
    elif not is_native_resource(name) and not is_extended_resource(name):
        problems.append((INVALID, f"{name!r} must not begin with 'requests.' and must be valid after it"))
    return problems


def _pod_problem(name: str) -> list[tuple[str, str]]:
    problems = _name_problems(name)
    if not problems and name not in ("cpu", "memory") and not name.startswith(_HUGE_PAGES):
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
    """Thousandths, rounded up; what has no 64-bit form overflows, as on the server."""
    thousandths = -(-amount.nanos // 10**6)
    return (thousandths + 2**63) % 2**64 - 2**63 if amount.wide else thousandths


def _huge_page_problems(name: str, amount: Quantity) -> list[tuple[str, str]]:
    if not name.startswith(_HUGE_PAGES):
        return []
    try:
        page = Quantity.parse(name.removeprefix(_HUGE_PAGES))
    except QuantityError:
        page = Quantity(0)
    if page.sign() > 0 and not page.nanos % 10**9 and not amount.value() % page.value():
        return []
    return [(INVALID, f"{amount} is no multiple of the page size in {name}")]


def _check_limit(name: str, request: Quantity, limit: Quantity | None, at: Path) -> Violations:
    exact = not is_native_resource(name) or name.startswith(_HUGE_PAGES)
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
