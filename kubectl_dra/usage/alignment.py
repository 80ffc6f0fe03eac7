"""Where on their node the devices of a pod are, across its claims and drivers, and what would align them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.allocation.budgets import PROOF_STEPS, unlimited
from kubectl_dra.allocation.constraints import Values, values_of
from kubectl_dra.api.claims import DeviceConstraint, Request, ResourceClaim
from kubectl_dra.api.labels import LabelSelector
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.meta import JSONObject
from kubectl_dra.api.pods import Pod, PodClaim
from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.cluster.claim_relation import as_made_for, relation_of
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import FORBIDDEN, Key, Snapshot
from kubectl_dra.errors import UndeterminedError
from kubectl_dra.explain.attributes_read import complete
from kubectl_dra.explain.question.resolve import about_pod
from kubectl_dra.explain.remedies.claim_edits import in_single_requests
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.unread_kind import Stake, Unread, unread_of


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
    """Alignment of a pod's devices: how near to each other they are."""

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
        """Alignment, in one respect, of the devices that publish it."""
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
    """Pods with at least two devices, the worst aligned first; ``single`` have one, ``none`` have none.

    ``unread``: what was not read.
    """

    pods: tuple[PodAlignment, ...]
    single: int = 0
    unread: tuple[Unread, ...] = ()
    none: tuple[Pod, ...] = ()

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
    none = tuple(item.pod for item in pod_alignments if not item.places)
    return Alignments(tuple(several), single, tuple(unread_of(stakes, snapshot)), none)


def _claims_of(pod: Pod, known: Mapping[Key, ResourceClaim]) -> Iterator[ResourceClaim]:
    for name in sorted(pod.claim_names):
        claim = known.get((pod.metadata.namespace, name))
        if claim is not None and claim.allocation is not None and relation_of(claim, pod).listed:
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


MAX_REQUESTS: Final = 32
"""Requests and constraints of a claim (resource/v1)."""
_MERGED: Final = "aligned"


class NotAlignable(Struct, frozen=True):
    """Why no constraint is offered. ``claims`` are shared with other pods; else ``names`` are those of attributes of
    which no driver has the other's; else the claim would have too many requests."""

    claims: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class Aligned(Struct, frozen=True):
    """Requests in one claim with constraints, one for each of the tuples of ``requests``.

    ``merged`` are the claims whose requests come together, ``pairs``: requests are written as several of count 1.
    ``node`` and ``devices`` are where the pod fits then; where there is none, ``refused`` says whether that is sure.
    """

    topology: Topology
    attribute: str
    requests: tuple[tuple[str, ...], ...]
    merged: tuple[str, ...] = ()
    pairs: bool = False
    node: str = ""
    devices: tuple[DeviceID, ...] = ()
    refused: bool = False

    @property
    def constraints(self) -> list[JSONObject]:
        """``spec.devices.constraints`` of the claim, beside what it has."""
        return [{"requests": list(names), "matchAttribute": self.attribute} for names in self.requests]


Way = Aligned | NotAlignable


def ways_to_align(item: PodAlignment, snapshot: Snapshot, settings: Settings) -> tuple[Way, ...]:
    """What would align the pod's devices, the nearest place first; what one PCIe root aligns needs no NUMA node.

    The attempt is for a pod like this one, in the cluster without it.
    """
    if not item.split:
        return ()
    pod = item.pod
    question = about_pod(pod, snapshot, exists=True)
    read = complete(question, snapshot, settings)
    keys = dict.fromkeys(place.claim for place in item.places)
    claims = [read.claims[pod.metadata.namespace, key.rpartition("/")[2]] for key in keys]
    shared = tuple(claim.key for claim in claims if len(claim.reserved_for) > 1)
    if shared:
        return (NotAlignable(claims=shared),)
    ways: list[Way] = []
    nearer: list[DevicePlace] = []
    for topology in reversed(item.split):
        places = [place for place in item.places if place.at(topology)]
        if all(place in nearer for place in places):
            continue
        names = _common(places, topology)
        if not names:
            ways.append(
                NotAlignable(names=tuple(sorted({name for place in places for name in _names(place, topology)})))
            )
            continue
        way = _best(_candidates(claims, places, topology, names[0]), item, read, settings)
        if isinstance(way, Aligned) and way.node:
            nearer += places
        ways.append(way)
    return tuple(ways)


def _names(place: DevicePlace, topology: Topology) -> list[str]:
    return [name for name in place.attributes if topology_of(name) is topology]


def _common(places: Sequence[DevicePlace], topology: Topology) -> list[str]:
    """The names that all of the devices have, those of Kubernetes first: a constraint compares one name."""
    names = set.intersection(*({*_names(place, topology)} for place in places))
    return sorted(names, key=lambda name: (not name.startswith(STANDARD), name))


def _candidates(
    claims: Sequence[ResourceClaim], places: Sequence[DevicePlace], topology: Topology, attribute: str
) -> Iterator[tuple[ResourceClaim, Aligned]]:
    """The claim with all requests under one constraint; else, of equal numbers of devices, in pairs."""
    keys = tuple(claim.key for claim in claims) if len(claims) > 1 else ()
    merged, renamed = _merged(claims)
    covered = list(dict.fromkeys(renamed[place.claim, place.request.partition("/")[0]] for place in places))
    yield _constrained(merged, Aligned(topology, attribute, (tuple(covered),), keys))
    requests = {request.name: request for request in merged.requests}
    counts = {spec.count if (spec := requests[name].exactly) is not None else 0 for name in covered}
    count = counts.pop() if len(counts) == 1 else 0
    if len(covered) < 2 or not 1 < count <= MAX_RESULTS // len(covered):
        return
    parted = merged
    for name in covered:
        at = next(number for number, request in enumerate(parted.requests) if request.name == name)
        # None of them is a prioritized list, which has no count.
        parted = in_single_requests(parted, at) or parted
    pairs = tuple(tuple(f"{name}-{number}" for name in covered) for number in range(count))
    yield _constrained(parted, Aligned(topology, attribute, pairs, keys, pairs=True))


def _constrained(claim: ResourceClaim, way: Aligned) -> tuple[ResourceClaim, Aligned]:
    more = tuple(DeviceConstraint(names, match_attribute=way.attribute) for names in way.requests)
    return replace(claim, constraints=(*claim.constraints, *more)), way


def _merged(claims: Sequence[ResourceClaim]) -> tuple[ResourceClaim, dict[tuple[str, str], str]]:
    """The requests of several claims in one, and what each is called there, by claim and request."""
    if len(claims) == 1:
        (only,) = claims
        return only, {(only.key, request.name): request.name for request in only.requests}
    names = [request.name for claim in claims for request in claim.requests]
    renamed: dict[tuple[str, str], str] = {}
    for number, claim in enumerate(claims):
        for request in claim.requests:
            clash = names.count(request.name) > 1
            renamed[claim.key, request.name] = f"{request.name}-{number}" if clash else request.name
    requests: list[Request] = []
    constraints: list[DeviceConstraint] = []
    for claim in claims:
        own = {request.name: renamed[claim.key, request.name] for request in claim.requests}
        for request in claim.requests:
            exactly = request.exactly
            named = exactly if exactly is None else replace(exactly, name=own[request.name])
            requests.append(replace(request, name=own[request.name], exactly=named))
        for kept in claim.constraints:
            covered = tuple(_renamed(name, own) for name in kept.requests) or tuple(own.values())
            constraints.append(replace(kept, requests=covered))
    # What configures drivers decides nothing about which devices there are.
    out = replace(claims[0], requests=tuple(requests), constraints=tuple(constraints), config=())
    return out, renamed


def _renamed(name: str, own: dict[str, str]) -> str:
    request, slash, sub = name.partition("/")
    return f"{own.get(request, request)}{slash}{sub}"


def _best(
    candidates: Iterator[tuple[ResourceClaim, Aligned]], item: PodAlignment, snapshot: Snapshot, settings: Settings
) -> Way:
    """The first that fits; where none does, the first that was tried."""
    first: Way | None = None
    for claim, way in candidates:
        if len(claim.requests) > MAX_REQUESTS or len(claim.constraints) > MAX_REQUESTS:
            return first or NotAlignable()
        tried = _tried(claim, way, item, snapshot, settings)
        if tried.node:
            return tried
        first = first or tried
    assert first is not None
    return first


def _tried(claim: ResourceClaim, way: Aligned, item: PodAlignment, snapshot: Snapshot, settings: Settings) -> Aligned:
    """With where the pod fits then: on its node if it can."""
    pod = _waiting(item.pod, {*way.merged} or {claim.key})
    merged_claim = as_made_for(pod, claim.deallocated(), f"{pod.metadata.name}-{_MERGED}")
    cluster = Cluster(snapshot).with_named_nodes().unbinding(replace(item.pod, node_name="")).editing(pod, merged_claim)
    outcome = settings.scheduler.attempt(pod, cluster, unlimited(PROOF_STEPS))
    nodes = list(outcome.taking)
    if not nodes:
        sure = not outcome.undetermined and not outcome.errors
        return replace(way, refused=sure)
    node = item.pod.node_name if item.pod.node_name in nodes else nodes[0]
    attempt = outcome.devices.on(node)
    if attempt is None or attempt.verdict is not AttemptVerdict.ALLOCATED or not attempt.certain:
        return way
    return replace(way, node=node, devices=tuple(attempt.devices))


def _waiting(pod: Pod, merged: set[str]) -> Pod:
    """The pod before it had a node, with one claim in place of those that come together."""
    namespace, statuses = pod.metadata.namespace, pod.claim_statuses
    kept = [
        pod_claim
        for pod_claim in pod.claims
        if f"{namespace}/{pod_claim.claim_name or statuses.get(pod_claim.name) or ''}" not in merged
    ]
    entries = (PodClaim(_MERGED, claim_name=f"{pod.metadata.name}-{_MERGED}"), *kept)
    status = replace(pod.status, phase="Pending", nominated_node_name="")
    return replace(pod, node_name="", spec=replace(pod.spec, resource_claims=entries), status=status)
