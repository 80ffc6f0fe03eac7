"""What would align the devices of a pod: its requests in one claim with a constraint, proved by an attempt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.allocation.budgets import PROOF_STEPS, unlimited
from kubectl_dra.api.claims import MAX_RESULTS, DeviceConstraint, Request, ResourceClaim
from kubectl_dra.api.meta import JSONObject
from kubectl_dra.api.pods import Pod, PodClaim
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.claim_relation import as_made_for
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.attributes_read import complete
from kubectl_dra.explain.question.resolve import about_pod
from kubectl_dra.explain.remedies.claim_edits import in_single_requests
from kubectl_dra.explain.settings import Settings
from kubectl_dra.usage.alignment import STANDARD, DevicePlace, PodAlignment, Topology, topology_of

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
