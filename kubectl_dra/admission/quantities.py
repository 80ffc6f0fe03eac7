"""What LimitRanges and ResourceQuotas say of a new pod: defaults, bounds, and what it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Final

from msgspec import structs

from kubectl_dra.admission.plugins import AdmissionPlugin, Concerned, Refusal
from kubectl_dra.api.labels import requirement_matches
from kubectl_dra.api.meta import Amount
from kubectl_dra.api.pod_resources import Amounts, amounts, limited, pod_limits, pod_requests, requested
from kubectl_dra.api.pods import Container, Pod
from kubectl_dra.api.policy import LimitRange, LimitRangeItem, ResourceQuota, ScopeRequirement
from kubectl_dra.api.quantity import Quantity

# LimitRanger: the defaults and bounds that a LimitRange sets.

_ZERO: Final = Quantity.of(0)


class Side(Enum):
    """Which amount violates a bound."""

    REQUEST = "request"
    LIMIT = "limit"


class LimitExceeded(Refusal, frozen=True):
    """A container or pod requests more than ``max`` or less than ``min``. ``found`` None: no amount is written."""

    bound: str
    type: str
    resource: str
    allowed: Quantity
    side: Side
    found: Quantity | None

    plugin: ClassVar = AdmissionPlugin.LIMIT_RANGER

    @property
    def words(self) -> str:
        """The text of LimitRanger; two spaces stand before ``No``."""
        head = f"{self.bound}imum {self.resource} usage per {self.type} is {self.allowed}"
        if self.found is None:
            return f"{head}.  No {self.side.value} is specified"
        return f"{head}, but {self.side.value} is {self.found}"


class RatioExceeded(Refusal, frozen=True):
    """A limit is too many times its request. ``missing`` is the side that is absent or 0."""

    type: str
    resource: str
    allowed: Quantity
    ratio: float
    missing: Side | None = None

    plugin: ClassVar = AdmissionPlugin.LIMIT_RANGER

    @property
    def words(self) -> str:
        """The text of LimitRanger."""
        head = f"{self.resource} max limit to request ratio per {self.type} is {self.allowed}, but"
        if self.missing is not None:
            side = self.missing.value
            return f"{head} no {side} is specified or {side} is 0"
        return f"{head} provided ratio is {self.ratio:f}"


def with_defaults(pod: Pod, ranges: Sequence[LimitRange]) -> Pod:
    """The pod with the requests and limits that LimitRanges give to containers without them."""
    for limit_range in ranges:
        requests: dict[str, Amount] = {}
        limits: dict[str, Amount] = {}
        for item in limit_range.spec.limits:
            if item.type == "Container":
                defaults = {**item.max, **item.default}
                # The API server itself completes a LimitRange: max, then default, then min fill what is not written.
                requests.update({**item.min, **defaults, **item.default_request})
                limits.update(defaults)
        spec = pod.spec
        pod = structs.replace(
            pod,
            spec=structs.replace(
                spec,
                containers=tuple(_filled(container, requests, limits) for container in spec.containers),
                init_containers=tuple(_filled(container, requests, limits) for container in spec.init_containers),
            ),
        )
    return pod


def _filled(container: Any, requests: Mapping[str, Amount], limits: Mapping[str, Amount]) -> Any:
    resources = container.resources
    filled = structs.replace(
        resources,
        # A limit that is written stands in for its request before any default does.
        requests={**requests, **resources.limits, **resources.requests},
        limits={**limits, **resources.limits},
    )
    return structs.replace(container, resources=filled)


def limit_refusals(pod: Pod, ranges: Sequence[LimitRange]) -> Iterator[Refusal]:
    """The amounts of a pod, after defaults, that violate its namespace's LimitRanges."""
    for limit_range in ranges:
        concerned = Concerned("LimitRange", limit_range.metadata.name, limit_range.metadata.namespace)
        for item in limit_range.spec.limits:
            for requests, limits in _measured(pod, item.type):
                yield from _broken(concerned, item, requests, limits)


def _measured(pod: Pod, type: str) -> Iterator[tuple[Amounts, Amounts]]:
    if type == "Container":
        containers: tuple[Container, ...] = (*pod.spec.containers, *pod.spec.init_containers)
        for container in containers:
            yield amounts(requested(container)), amounts(limited(container))
    elif type == "Pod":
        bare = structs.replace(pod, spec=structs.replace(pod.spec, overhead={}))
        yield pod_requests(bare), pod_limits(bare)


def _broken(concerned: Concerned, item: LimitRangeItem, requests: Amounts, limits: Amounts) -> Iterator[Refusal]:
    for name, least in amounts(item.min).items():
        request, limit = requests.get(name), limits.get(name)
        if request is None or request < least:
            yield LimitExceeded(concerned, "min", item.type, name, least, Side.REQUEST, request)
        elif limit is not None and limit < least:
            yield LimitExceeded(concerned, "min", item.type, name, least, Side.LIMIT, limit)
    for name, most in amounts(item.max).items():
        request, limit = requests.get(name), limits.get(name)
        if limit is None or limit > most:
            yield LimitExceeded(concerned, "max", item.type, name, most, Side.LIMIT, limit)
        elif request is not None and request > most:
            yield LimitExceeded(concerned, "max", item.type, name, most, Side.REQUEST, request)
    for name, allowed in amounts(item.max_limit_request_ratio).items():
        request, limit = requests.get(name, _ZERO), limits.get(name, _ZERO)
        if not request or not limit:
            missing = Side.REQUEST if not request else Side.LIMIT
            yield RatioExceeded(concerned, item.type, name, allowed, 0.0, missing)
            continue
        ratio = limit.approximate_float() / request.approximate_float()
        if ratio > allowed.approximate_float():
            yield RatioExceeded(concerned, item.type, name, allowed, ratio)


# ResourceQuota: how a new pod counts, and which quotas it would exceed.


_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_REQUIRED: Final = frozenset(f"{side}{name}" for side in ("", "requests.", "limits.") for name in ("cpu", "memory"))
"""A quota over one of these requires amounts in every container."""
_NATIVE: Final = frozenset(
    (*_COMPUTE, *(f"{side}{name}" for side in ("requests.", "limits.") for name in _COMPUTE), "pods", "count/pods")
)
_HUGE_PAGES: Final = ("hugepages-", "requests.hugepages-")


class QuotaExceeded(Refusal, frozen=True):
    """The pod requests more than a quota has left: (resource, requested, used, limited), by resource name."""

    exceeded: tuple[tuple[str, Quantity, Quantity, Quantity], ...]

    plugin: ClassVar = AdmissionPlugin.RESOURCE_QUOTA

    @property
    def words(self) -> str:
        """The text of the plugin."""
        parts = [",".join(f"{row[0]}={row[column]}" for row in self.exceeded) for column in (1, 2, 3)]
        return f"exceeded quota: {self.concerned.name}, requested: {parts[0]}, used: {parts[1]}, limited: {parts[2]}"


class AmountsRequired(Refusal, frozen=True):
    """A quota over cpu or memory requires amounts in every container: (resource, containers without)."""

    missing: tuple[tuple[str, tuple[str, ...]], ...]

    plugin: ClassVar = AdmissionPlugin.RESOURCE_QUOTA

    @property
    def words(self) -> str:
        """The text of the plugin."""
        missing = "; ".join(f"{name} for: {','.join(containers)}" for name, containers in self.missing)
        return f"failed quota: {self.concerned.name}: must specify {missing}"


def quota_refusals(pod: Pod, quotas: Sequence[ResourceQuota]) -> Iterator[Refusal]:
    """The quotas of its namespace that refuse a new pod, by name. The API server names only one, in no fixed order."""
    usage = used_by(pod)
    for quota in sorted(quotas, key=lambda quota: quota.metadata.name):
        hard = amounts(quota.status.hard or quota.spec.hard)
        counted = [name for name in hard if _counts(name)]
        if not counted or not in_scope(pod, quota):
            continue
        concerned = Concerned("ResourceQuota", quota.metadata.name, quota.metadata.namespace)
        missing = _unsaid(pod, [name for name in counted if name in _REQUIRED])
        if missing:
            yield AmountsRequired(concerned, missing)
            continue
        used = amounts(quota.status.used)
        rows = [
            (name, usage[name], used.get(name, _ZERO), hard[name])
            for name in sorted(hard)
            if usage.get(name) and used.get(name, _ZERO) + usage[name] > hard[name]
        ]
        if rows:
            yield QuotaExceeded(concerned, tuple(rows))


def in_scope(pod: Pod, quota: ResourceQuota) -> bool:
    """Whether a quota is about pods like this one."""
    return all(_in_scope(pod, scope) for scope in _scopes(quota))


def by_priority(quota: ResourceQuota) -> bool:
    """Whether a quota is about pods of certain PriorityClasses."""
    return any(scope.scope_name == "PriorityClass" for scope in _scopes(quota))


def used_by(pod: Pod) -> Amounts:
    """The amounts that a pod counts with, by quota key."""
    single = Quantity.of(1)
    return {"count/pods": single, **_keys(pod_requests(pod), pod_limits(pod)), "pods": single}


def _keys(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> Amounts:
    out: Amounts = {}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            out[name] = out[f"requests.{name}"] = amount
        else:
            out[f"requests.{name}"] = amount
    for name, amount in limits.items():
        if name in _COMPUTE:
            out[f"limits.{name}"] = amount
    return out


def _counts(name: str) -> bool:
    """Whether a quota over this key counts pods."""
    if name in _NATIVE or name.startswith(_HUGE_PAGES):
        return True
    return name.startswith("requests.") and "/" in name


def _unsaid(pod: Pod, required: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The required amounts that containers lack; none if the pod sets them at pod level."""
    resources = pod.spec.resources
    if resources is not None and (resources.requests or resources.limits):
        return ()
    containers: tuple[Container, ...] = (*pod.spec.containers, *pod.spec.init_containers)
    out: dict[str, list[str]] = {}
    for container in containers:
        said = _keys(amounts(requested(container)), amounts(limited(container)))
        for name in required:
            if name not in said:
                out.setdefault(name, []).append(container.name)
    return tuple((name, tuple(sorted(set(names)))) for name, names in sorted(out.items()))


def _scopes(quota: ResourceQuota) -> Iterator[ScopeRequirement]:
    for name in quota.spec.scopes:
        yield ScopeRequirement(name, "Exists")
    if quota.spec.scope_selector:
        yield from quota.spec.scope_selector.match_expressions


def _in_scope(pod: Pod, scope: ScopeRequirement) -> bool:
    if scope.scope_name in ("Terminating", "NotTerminating"):
        return (pod.spec.active_deadline_seconds is not None) == (scope.scope_name == "Terminating")
    if scope.scope_name in ("BestEffort", "NotBestEffort"):
        return _best_effort(pod) == (scope.scope_name == "BestEffort")
    if scope.scope_name == "PriorityClass":
        name = pod.spec.priority_class_name
        return requirement_matches(scope.as_requirement(), {scope.scope_name: name} if name else {})
    return scope.scope_name == "CrossNamespacePodAffinity" and _reaches_out(pod)


def _best_effort(pod: Pod) -> bool:
    """Whether the pod's quality of service is BestEffort: it requests no cpu or memory."""
    everything = (*pod.spec.containers, *pod.spec.init_containers)
    resources = [container.resources for container in everything] + ([pod.spec.resources] if pod.spec.resources else [])
    return not any(
        amount
        for requirements in resources
        for side in (requirements.requests, requirements.limits)
        for name, amount in amounts(side).items()
        if name in ("cpu", "memory")
    )


def _reaches_out(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    terms = [
        term
        for side in (affinity.pod_affinity, affinity.pod_anti_affinity)
        for term in (*side.required, *(weighted.term for weighted in side.preferred))
    ]
    return any(term.namespaces or term.namespace_selector is not None for term in terms)
