"""Kueue's treatment of each shape of claim, by its release: what it refuses, and how it counts the rest.

The rules are data: ``data/kueue_claims.yaml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from msgspec import Struct, convert

from kubectl_dra.api.claims import ALL, DeviceRequest, ResourceClaim
from kubectl_dra.api.pods import Pod, PodSpec
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.driver_releases import numbers
from kubectl_dra.data.drivers import table
from kubectl_dra.neighbours.kueue_controller import claim_gate, configuration, controller

_GATE_ON: Final = "0.18"
"""From here on Kueue counts claims by default."""


class ClaimRule(Struct, frozen=True, forbid_unknown_fields=True):
    """Treatment of claims of a ``shape`` by releases of Kueue, ``since`` one and ``before`` another."""

    shape: str
    since: str = ""
    before: str = ""
    refuses: str = ""
    counts: str = ""

    def holds(self, version: str) -> bool:
        """Whether that release of Kueue has it."""
        own = numbers(version)
        return numbers(self.since) <= own and (not self.before or own < numbers(self.before))


class TakenShape(NamedTuple):
    """A shape in an object (``kind`` and ``name``) at a ``place``, which Kueue refuses, or else counts in some way."""

    kind: str
    name: str
    place: str
    refuses: str
    counts: str


@cache
def claim_rules() -> tuple[ClaimRule, ...]:
    """All rules, in their order."""
    return convert(table("kueue_claims.yaml"), tuple[ClaimRule, ...])


def taken_shapes(pods: Iterable[PodSpec], namespace: str, snapshot: Snapshot) -> tuple[TakenShape, ...]:
    """What Kueue makes of the claims of some pods.

    Nothing where its release is not known, or where it counts no claims as far as known.
    """
    running, gate = controller(snapshot), claim_gate(snapshot)
    version = running.release if running is not None else ""
    # A build of a day has that for a version.
    known = len(numbers(version)) > 1
    if not known or not (gate.on if gate is not None else numbers(version) >= numbers(_GATE_ON)):
        return ()
    rules = [rule for rule in claim_rules() if rule.holds(version)]
    return tuple(
        dict.fromkeys(
            TakenShape(kind, name, place, rule.refuses.format(template=name), rule.counts)
            for rule in rules
            for spec in pods
            for shape, kind, name, place in _shapes(spec, namespace, snapshot)
            if shape == rule.shape
        )
    )


def refusals(shapes: Sequence[TakenShape]) -> tuple[str, ...]:
    """What Kueue writes of those that it refuses; it stops at the first."""
    return tuple(dict.fromkeys(shape.refuses for shape in shapes if shape.refuses))


_OF_REQUESTS: Final[Mapping[str, Callable[[DeviceRequest], bool]]] = {
    "selectors": lambda device: bool(device.selectors),
    "adminAccess": lambda device: bool(device.admin_access),
    "allocationMode All": lambda device: device.allocation_mode == ALL,
    "capacity": lambda device: bool(device.capacity),
}


def _shapes(spec: PodSpec, namespace: str, snapshot: Snapshot) -> Iterator[tuple[str, str, str, str]]:
    """Each shape, with the kind and the name of what has it, and where."""
    pod = Pod(spec=spec)
    for entry in pod.claims:
        template = snapshot.templates.get((namespace, entry.template_name))
        if entry.claim_name:
            yield "named claim", "ResourceClaim", entry.claim_name, "resourceClaimName"
        elif template is not None:
            for shape, place in _of_claim(template.claim("", namespace), snapshot):
                yield shape, "ResourceClaimTemplate", entry.template_name, place
    names = {class_.extended_resource_name for class_ in snapshot.classes.values()} - {""}
    for container in (*spec.init_containers, *spec.containers):
        for resource in names & container.requests.keys():
            yield "extended resource", "container", container.name, resource


def _of_claim(claim: ResourceClaim, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    if claim.constraints:
        yield "constraints", "spec.devices.constraints"
    if claim.config:
        yield "config", "spec.devices.config"
    known = configuration(snapshot)
    for request in claim.requests:
        place = f"request {request.name}"
        if request.first_available:
            yield "firstAvailable", place
            continue
        for device in request.alternatives():
            yield from ((shape, place) for shape, has in _OF_REQUESTS.items() if has(device))
            entry = known[1].mapping(device.device_class) if known is not None else None
            if entry is not None and entry.sources:
                yield "mapped to sources", place
