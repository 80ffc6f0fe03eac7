"""Where Kueue runs, and what its pod and its configuration say of it: its release, and whether it counts claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from msgspec import Struct, convert

from kubectl_dra.api.claims import ALL, DeviceRequest, ResourceClaim
from kubectl_dra.api.pods import Pod, PodSpec, owner_of, version_of
from kubectl_dra.api.releases import parse_release
from kubectl_dra.cluster.kueue_settings import CLAIM_GATES, KueueConfiguration, configuration_of
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.data.driver_releases import numbers
from kubectl_dra.data.drivers import table

DEFAULT_SETTINGS: Final = ("kueue-system", "kueue-manager-config")
"""Where Kueue's manifests, and its chart if nothing else is said, put the configuration."""
_CONTROLLER: Final = "-controller-manager"
_SETTINGS: Final = "-manager-config"


class KueueController(NamedTuple):
    """A pod in which Kueue runs, and where its configuration is; ``release`` is empty where its image says none."""

    pod: Pod
    release: str
    settings: Key


def controller_in(pods: Iterable[Pod]) -> KueueController | None:
    """Kueue's controller, by the labels and names that its manifests and its chart give it; None if it is not there."""
    for pod in pods:
        labels = pod.metadata.labels
        owner = owner_of(pod) if labels.get("control-plane") == "controller-manager" else None
        if owner is None or pod.finished or not owner.name.endswith(_CONTROLLER):
            continue
        name = owner.name.removesuffix(_CONTROLLER)
        if "kueue" in (name, labels.get("app.kubernetes.io/name")):
            release = next((version_of(one.image) for one in pod.spec.containers if one.name == "manager"), "")
            return KueueController(pod, release, (pod.metadata.namespace, f"{name}{_SETTINGS}"))
    return None


def controller(snapshot: Snapshot) -> KueueController | None:
    """Kueue's controller, if it is among the pods."""
    return snapshot.derived(_controller)


def _controller(snapshot: Snapshot) -> KueueController | None:
    return controller_in(snapshot.pods.values())


def settings_of(running: KueueController | None) -> Key:
    """The ConfigMap with Kueue's configuration: beside its controller."""
    return DEFAULT_SETTINGS if running is None else running.settings


def configuration(snapshot: Snapshot) -> tuple[Key, KueueConfiguration] | None:
    """Kueue's configuration and the ConfigMap that has it; None if it was not read, wherever Kueue has it."""
    for key, settings in snapshot.others.get("ConfigMap", {}).items():
        if (read := configuration_of(settings)) is not None:
            return key, read
    return None


class ClaimGate(NamedTuple):
    """The feature gate without which Kueue counts no claims: what it is called, and whether it is on.

    ``settings`` is the ConfigMap that sets it; None where it has the default of Kueue's release.
    """

    name: str
    on: bool
    settings: Key | None


def claim_gate(snapshot: Snapshot) -> ClaimGate | None:
    """That gate; None where it is not known: nothing here reads Kueue's command line, which may set it as well."""
    known, running = configuration(snapshot), controller(snapshot)
    if known is None or not known[1].feature_gates:
        return None
    key, gates = known[0], known[1].feature_gates
    for name in CLAIM_GATES:
        if name in gates:
            return ClaimGate(name, gates[name], key)
    # Kueue refuses to start with gates in both places (pkg/config/validation.go).
    try:
        newer = running is not None and parse_release(running.release) >= (0, 18)
    except ValueError:
        return None
    if running is None:
        return None
    return ClaimGate(CLAIM_GATES[not newer], newer, None)


# Kueue's treatment of each shape of claim, by its release: what it refuses, and how it counts the rest.

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
