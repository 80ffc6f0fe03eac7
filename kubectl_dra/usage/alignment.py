"""Where on their node the devices of a pod are, across its claims and drivers: NUMA node, PCIe root and the like."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kubectl_dra.allocation.constraints import Values, values_of
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.labels import LabelSelector
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.cluster.snapshot import FORBIDDEN, Key, Snapshot
from kubectl_dra.errors import UndeterminedError
from kubectl_dra.explain.unread import Stake, Unread, unread_of


class Topology(StrEnum):
    """What devices of a node can have in common, the nearest last."""

    SOCKET = "socket"
    NUMA = "NUMA node"
    L3_CACHE = "L3 cache"
    PCIE_ROOT = "PCIe root"


STANDARD: Final = "resource.kubernetes.io"
"""The domain of names that drivers share."""
_IDENTIFIERS: Final = {
    "socketid": Topology.SOCKET,
    "numanode": Topology.NUMA,
    "numanodeid": Topology.NUMA,
    "numa": Topology.NUMA,
    "cachel3id": Topology.L3_CACHE,
    "pcieroot": Topology.PCIE_ROOT,
}
"""Names of attributes without their domains, in lower case: those of Kubernetes, and what drivers call it instead."""
_UNKNOWN: Final = frozenset({("int", -1)})
"""What Linux says of a device without a NUMA node."""


class Alignment(StrEnum):
    """How near to each other the devices of a pod are."""

    APART = "not aligned"
    """Some devices of a request have none of another request near them."""
    SPREAD = "spread"
    """They are in several places, with devices of each request in each place."""
    ALIGNED = "aligned"
    """All have a place in common, of each kind that at least two of them publish."""
    UNKNOWN = "unknown"
    """No two devices publish where they are."""


class DevicePlace(Struct, frozen=True):
    """A device of a pod: the key of its claim, its request, and by full name the attributes that say where it is.

    ``published``: some slice has the device.
    """

    claim: str
    request: str
    device: DeviceID
    attributes: Mapping[str, Values]
    published: bool = True

    def at(self, topology: Topology) -> Values:
        """Where it is; empty where it does not say. What it publishes under a name of Kubernetes counts first."""
        own = [name for name in self.attributes if topology_of(name) is topology]
        first = sorted(own, key=lambda name: (not name.startswith(STANDARD), name))
        return self.attributes[first[0]] - _UNKNOWN if first else frozenset()


class PodAlignment(Struct, frozen=True):
    """A pod with the places of its devices, of all its claims; those with admin access are left out."""

    pod: Pod
    places: tuple[DevicePlace, ...]

    @property
    def topologies(self) -> list[Topology]:
        """What some device publishes."""
        return [kind for kind in Topology if any(place.at(kind) for place in self.places)]

    def state(self, topology: Topology) -> Alignment:
        """How the devices that publish it are aligned in one respect."""
        of_request: dict[tuple[str, str], set[object]] = {}
        places = [place for place in self.places if place.at(topology)]
        for place in places:
            of_request.setdefault((place.claim, place.request), set()).update(place.at(topology))
        if len(places) < 2:
            return Alignment.UNKNOWN
        if frozenset.intersection(*(place.at(topology) for place in places)):
            return Alignment.ALIGNED
        several = list(of_request.values())
        return Alignment.SPREAD if all(values == several[0] for values in several) else Alignment.APART

    @property
    def split(self) -> list[Topology]:
        """In which respects the devices are in several places."""
        return [kind for kind in Topology if self.state(kind) in (Alignment.APART, Alignment.SPREAD)]

    @property
    def alignment(self) -> Alignment:
        """The worst of all respects."""
        order = list(Alignment)
        return min((self.state(kind) for kind in Topology), key=order.index)

    @property
    def silent(self) -> list[DevicePlace]:
        """The devices that publish nothing about where they are."""
        return [place for place in self.places if not any(place.at(kind) for kind in Topology)]


class Alignments(Struct, frozen=True):
    """Pods with at least two devices, the worst aligned first; ``single`` have one. ``unread``: what was not read."""

    pods: tuple[PodAlignment, ...]
    single: int = 0
    unread: tuple[Unread, ...] = ()

    @property
    def counts(self) -> Mapping[Alignment, int]:
        """The number of pods per state, only those that occur."""
        states = [item.alignment for item in self.pods]
        return {state: states.count(state) for state in Alignment if state in states}


def topology_of(attribute: str) -> Topology | None:
    """What an attribute of this name says."""
    return _IDENTIFIERS.get(attribute.rpartition("/")[2].lower())


def alignments(
    snapshot: Snapshot, namespace: str = "", labels: LabelSelector | None = None, names: Collection[str] = ()
) -> Alignments:
    """The pods with devices, or those of a namespace, with these labels and names.

    Raises:
        UndeterminedError: claims or slices could not be read.
    """
    for kind, what in (("ResourceClaim", "which devices pods have"), ("ResourceSlice", "where devices are")):
        gap = snapshot.missing(kind, namespace if kind == "ResourceClaim" else "")
        if gap is not None and gap.reason == FORBIDDEN and not gap.read_in:
            raise UndeterminedError(f"{gap}, so {what} is unknown{gap.help}")
    places = {column for column in snapshot.individual if column.kind == "attribute" and topology_of(column.name)}
    read = snapshot.exact(places)
    wanted = {
        key: pod
        for key, pod in sorted(read.pods.items())
        if namespace in ("", key[0])
        and (not names or key[1] in names)
        and not pod.finished
        and (labels is None or labels.matches(pod.metadata.labels))
    }
    claims = {key: [*_claims_of(pod, read.claims)] for key, pod in wanted.items()}
    held = {device for own in claims.values() for claim in own for device in claim.devices}
    devices = _published(held, read)
    pod_alignments = [PodAlignment(pod, tuple(_places(claims[key], devices))) for key, pod in wanted.items()]
    several = [item for item in pod_alignments if len(item.places) > 1]
    order = list(Alignment)
    several.sort(key=lambda item: order.index(item.alignment))
    stakes = (
        Stake("ResourceClaim", namespace, "which devices pods have is unknown"),
        Stake("Pod", namespace, "which pods use the claims is unknown"),
        Stake("ResourceSlice", "", "where devices are is unknown"),
    )
    single = sum(len(item.places) == 1 for item in pod_alignments)
    return Alignments(tuple(several), single, tuple(unread_of(stakes, snapshot)))


def _claims_of(pod: Pod, known: Mapping[Key, ResourceClaim]) -> Iterator[ResourceClaim]:
    for name in sorted(pod.claim_names):
        claim = known.get((pod.metadata.namespace, name))
        if claim is not None and claim.allocation is not None:
            yield claim


def _published(wanted: Collection[DeviceID], snapshot: Snapshot) -> Mapping[DeviceID, Device]:
    """The devices as the newest slice that has them; of one generation the first."""
    pools = {device[:2] for device in wanted}
    slices = [slice_ for slice_ in reversed(snapshot.slices) if slice_.pool in pools]
    return {
        key: device
        for slice_ in sorted(slices, key=lambda slice_: slice_.generation)
        for name, device in zip(slice_.names, slice_.devices, strict=True)
        if (key := DeviceID(*slice_.pool, name)) in wanted
    }


def _places(claims: Iterable[ResourceClaim], devices: Mapping[DeviceID, Device]) -> Iterator[DevicePlace]:
    for claim in claims:
        for result in claim.results:
            if result.admin_access:
                continue
            device = devices.get(result.device)
            attributes = place_attributes(device) if device is not None else {}
            yield DevicePlace(claim.key, result.request, result.device, attributes, device is not None)


def place_attributes(device: Device) -> dict[str, Values]:
    """The attributes of a device that say where it is, by their full names."""
    full = (name if "/" in name else f"{device.driver}/{name}" for name in device.attributes)
    return {name: values_of(device, name) for name in full if topology_of(name) is not None}
