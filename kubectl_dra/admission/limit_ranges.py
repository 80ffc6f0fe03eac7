"""LimitRanger: the defaults and bounds that a LimitRange sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar

from msgspec import structs

from kubectl_dra.admission.refusal import AdmissionPlugin, Concerned, Refusal
from kubectl_dra.api.meta import Amount
from kubectl_dra.api.pod_resources import Amounts, amounts, limited, pod_limits, pod_requests, requested
from kubectl_dra.api.pods import Container, Pod
from kubectl_dra.api.policy import LimitRange, LimitRangeItem
from kubectl_dra.api.quantity import Quantity

_ZERO = Quantity.of(0)


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
                containers=tuple(_filled(each, requests, limits) for each in spec.containers),
                init_containers=tuple(_filled(each, requests, limits) for each in spec.init_containers),
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


def refusals(pod: Pod, ranges: Sequence[LimitRange]) -> Iterator[Refusal]:
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
