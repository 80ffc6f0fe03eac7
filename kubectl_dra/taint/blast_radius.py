"""The blast radius: what tainting devices affects, computed before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.capacity import ZERO
from kubectl_dra.api.behaviour import TOLERATIONS_IN_RESULT
from kubectl_dra.api.claims import ALL, Consumer, DeviceResult, ResourceClaim
from kubectl_dra.api.pods import Pod, owner_of
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import BLOCKING_EFFECTS, DeviceTaint, seconds_tolerated
from kubectl_dra.cluster.claim_relation import ListedConsumer, consumers_of
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import ABSENT, Gap, Snapshot
from kubectl_dra.explain.devices.alike_devices import capacity_left
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow, take_inventory
from kubectl_dra.explain.devices.wanted import Wanted
from kubectl_dra.explain.settings import Settings
from kubectl_dra.taint import times
from kubectl_dra.taint.device_taint_rules import DesiredRule, rules_unseen
from kubectl_dra.taint.pending_affected import Lost, ReplacementPod, lost_matches, replacements, selected, taint_of
from kubectl_dra.taint.targets import RuleStep, Target

EXTENDED_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"

STAYS: Final = "stays"
NOW: Final = "deleted now"
LATER: Final = "deleted later"
ENDED: Final = "has ended"
UNKNOWN: Final = "unknown"
GOING: Final = "being deleted already"


class PodHit(Struct, frozen=True):
    """A pod that uses a device. ``fate`` is one of the words above, ``at`` the time of a later deletion.

    ``tolerates`` says whether its request tolerates the taint; None if it is unknown whether the taint
    matters. ``priority`` is None if the pod was not found. ``why`` explains an unusual fate. ``drained``: it is deleted
    then only if it has not ended by itself.
    """

    namespace: str
    name: str
    uid: str
    owner: str = ""
    created: str = ""
    priority: int | None = None
    phase: str = ""
    node: str = ""
    tolerates: bool = False
    fate: str = STAYS
    at: str = ""
    why: str = ""
    drained: bool = False

    @property
    def identity(self) -> tuple[str, str, str]:
        """Namespace, name and UID; pods that were saved without a UID are told apart by their names."""
        return self.namespace, self.name, self.uid


class ClaimHit(Struct, frozen=True):
    """A claim that holds a device, or uses it with admin access; ``others`` are consumers that are not pods."""

    device: DeviceID
    claim: ResourceClaim
    admin_access: bool
    pods: tuple[PodHit, ...]
    others: tuple[Consumer, ...] = ()


class AllRequest(Struct, frozen=True):
    """A request for all devices that includes this one: impossible on its node while it is tainted."""

    device: DeviceID
    kind: str
    namespace: str
    name: str
    request: str


class CapacityAfter(NamedTuple):
    """What is left of a capacity of devices that can be shared: now, and with the taints; and how much there is."""

    name: str
    total: Quantity
    now: Quantity
    after: Quantity


class ClassLeft(Struct, frozen=True):
    """What a DeviceClass has: all devices, those free now, and those free with the taints. None means unknown.

    ``free_after`` and ``capacities`` count with what the pods give back that the taints delete. ``capacities`` are
    those of its devices that can be shared, the scarcest first.
    """

    name: str
    devices: int
    free: int | None
    free_after: int | None
    capacities: tuple[CapacityAfter, ...] = ()


class Radius(Struct, frozen=True):
    """Everything that the taints change.

    ``gaps`` are the objects that matter and were not seen, ``notes`` say what else is not known or was not
    tried. ``unread`` is the gap because of which ``claims`` may be incomplete; None if all claims are known.
    ``replacements`` are what comes in place of the pods that are deleted.
    """

    claims: tuple[ClaimHit, ...] = ()
    lost: tuple[Lost, ...] = ()
    all_requests: tuple[AllRequest, ...] = ()
    classes: tuple[ClassLeft, ...] = ()
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()
    unread: Gap | None = None
    replacements: tuple[ReplacementPod, ...] = ()

    @property
    def open(self) -> bool:
        """Whether it is unknown whom the taints hit: not all claims were read, or not the pods that use them."""
        hidden = any(gap.kind == "Pod" for gap in self.gaps)
        return self.unread is not None or (hidden and any(pod.fate == UNKNOWN for pod in self.pods().values()))

    def pods(self) -> dict[tuple[str, str, str], PodHit]:
        """Every pod once, by namespace, name and UID; with the worst fate if it uses several devices."""
        out: dict[tuple[str, str, str], PodHit] = {}
        for claim in self.claims:
            for pod in claim.pods:
                known = out.get(pod.identity)
                out[pod.identity] = pod if known is None else worse(known, pod)
        return out

    def deleted(self, device: DeviceID | None = None) -> int:
        """The number of pods that the taints are known to delete, now or later, for one device or all."""
        pods = {
            pod.identity
            for claim in self.claims
            for pod in claim.pods
            if pod.fate in (NOW, LATER) and device in (None, claim.device)
        }
        return len(pods)


_RANK: Final = {ENDED: 0, GOING: 0, STAYS: 1, UNKNOWN: 2, LATER: 3, NOW: 4}


def worse(hit: PodHit, other: PodHit) -> PodHit:
    """The worse fate for a pod, of two taints or devices: the one that ends it, or ends it sooner."""
    if _RANK[hit.fate] != _RANK[other.fate]:
        return max(hit, other, key=lambda pod: _RANK[pod.fate])
    if hit.fate == LATER:
        return min(hit, other, key=lambda pod: pod.at)
    return other if hit.tolerates and not other.tolerates else hit


def blast_radius(
    steps: Sequence[RuleStep],
    rows: Sequence[DeviceRow],
    snapshot: Snapshot,
    settings: Settings,
    at: datetime,
    progress: Callable[[str], None] | None = None,
) -> Radius:
    """What the steps affect when they are taken at a time."""
    notes: list[str] = []
    desired_rules = [step.desired for step in steps]
    targets = {step.target.id: step.target for step in steps}
    cycle = settings.scheduler.cycle(snapshot)
    release = settings.scheduler.release
    tolerations_kept = release in TOLERATIONS_IN_RESULT
    if not tolerations_kept and any(desired.taint.effect == "NoExecute" for desired in desired_rules):
        notes.append(f"Kubernetes {release} does not keep tolerations with an allocation: tolerating pods go too")
    holders = _holders(snapshot)
    gaps = tuple(_not_seen(snapshot))
    unread = next((gap for gap in gaps if gap.kind == "ResourceClaim"), None)
    # A drain of devices that nobody holds is over at once. Then those with admin access go at once, too.
    held = unread is not None or any(_holds(claim, id) for id in targets for claim in holders.get(id, ()))
    by_device: dict[DeviceID, list[_Evicting]] = {}
    for step in steps:
        by_device.setdefault(step.desired.device, []).append(_evicting(step, at, held=held))
    claims = tuple(
        _together([_claim_hit(taint, claim, snapshot, at, tolerations_kept) for taint in taints])
        for device, taints in by_device.items()
        for claim in holders.get(device, ())
    )
    blocking = [desired for desired in desired_rules if desired.taint.effect in BLOCKING_EFFECTS]
    # A scheduler that does not see rules goes on placing pods; the caller warns of it.
    blind = rules_unseen(snapshot) is True
    devices = [row.device for desired in blocking if (target := targets.get(desired.device)) and (row := target.row)]
    lost = lost_matches(blocking, devices, cycle, snapshot, settings, notes, progress) if blocking and not blind else ()
    all_requests = tuple(_all_requests(blocking, targets, snapshot, cycle))
    radius = Radius(claims, tuple(lost), all_requests, (), gaps, tuple(notes), unread)
    ends = {pod.identity for pod in radius.pods().values() if pod.fate in (NOW, LATER)}
    deleted = [pod for pod in snapshot.pods.values() if (*key_of(pod), pod.metadata.uid) in ends]
    # Of a cluster without slices there are no rows, and no list of its devices can be made.
    emptied = Cluster(snapshot).ending(deleted).snapshot if deleted and rows else None
    later = take_inventory(emptied, settings.scheduler.cycle(emptied), Wanted()).rows if emptied else rows
    radius = replace(radius, classes=tuple(_classes(blocking, rows, later)))
    if not deleted or blind:
        return radius
    taints = [(desired.device, taint_of(desired, at)) for desired in desired_rules]
    names = frozenset(desired.name for desired in desired_rules)
    return replace(radius, replacements=replacements(deleted, taints, names, snapshot, settings, at))


class _Evicting(NamedTuple):
    """A taint, and when it evicts pods without a toleration (None: never). ``drained``: it only says NoSchedule yet."""

    device: DeviceID
    taint: DeviceTaint
    since: datetime | None
    drained: bool


def _evicting(step: RuleStep, at: datetime, *, held: bool) -> _Evicting:
    draining = bool(step.stage(at).next_effect)
    since = at if draining and not held else step.evicts(at)
    return _Evicting(step.desired.device, taint_of(step.desired, at), since, draining and held)


def _holds(claim: ResourceClaim, device: DeviceID) -> bool:
    return any(result.device == device and not result.admin_access for result in claim.results)


_MATTERS: Final = ("ResourceClaim", "ResourceClaimTemplate", "Pod", "DeviceClass", "DeviceTaintRule", "Node")
_DECISIVE: Final = ("ResourceClaim", "Pod")
"""Without these kinds, saved objects do not show who is affected; a cluster may well have no objects of the others."""


def _not_seen(snapshot: Snapshot) -> Iterator[Gap]:
    for gap in snapshot.unread(_MATTERS):
        if gap.reason != ABSENT or gap.kind in _DECISIVE:
            yield gap


def _holders(snapshot: Snapshot) -> dict[DeviceID, list[ResourceClaim]]:
    """The claims to which each device is allocated, each once."""
    out: dict[DeviceID, list[ResourceClaim]] = {}
    for claim in snapshot.claims.values():
        for id in dict.fromkeys(claim.devices):
            out.setdefault(id, []).append(claim)
    return out


def _claim_hit(
    evicting: _Evicting, claim: ResourceClaim, snapshot: Snapshot, at: datetime, tolerations_kept: bool
) -> ClaimHit:
    results = [r for r in claim.results if r.device == evicting.device]
    pods: list[PodHit] = []
    others: list[Consumer] = []
    # A pod that was not read may be younger than the list of pods, so it is never taken to be gone.
    for use in consumers_of(claim, snapshot.pods).entries:
        users = [use]
        if not use.relation.of_pod:
            users = [ListedConsumer(use.entry, pod, use.relation) for pod in members(claim, use.entry, snapshot)]
        if not users:
            others.append(use.entry)
        pods += [_pod_hit(claim, user, results, evicting, at, tolerations_kept) for user in users]
    return ClaimHit(evicting.device, claim, all(r.admin_access for r in results), tuple(pods), tuple(others))


def _together(hits: Sequence[ClaimHit]) -> ClaimHit:
    """The combined effect of several taints of one device on the pods of one claim. All hits list the pods in
    one order.
    """
    pods = [reduce(worse, verdicts) for verdicts in zip(*(hit.pods for hit in hits), strict=True)]
    return replace(hits[0], pods=tuple(pods))


def members(claim: ResourceClaim, consumer: Consumer, snapshot: Snapshot) -> list[Pod]:
    """The pods of a PodGroup for which a claim is reserved (KEP-5729); the server evicts these."""
    if consumer.resource != "podgroups":
        return []
    return [
        pod
        for (space, _), pod in snapshot.pods.items()
        if space == claim.metadata.namespace and pod.pod_group == consumer.name and pod.node_name
    ]


def _pod_hit(
    claim: ResourceClaim,
    use: ListedConsumer,
    results: Sequence[DeviceResult],
    evicting: _Evicting,
    at: datetime,
    tolerations_kept: bool,
) -> PodHit:
    space, pod, taint = claim.metadata.namespace, use.pod, evicting.taint
    tolerates = all(any(toleration.tolerates(taint) for toleration in result.tolerations) for result in results)
    if pod is None:
        name, uid = use.entry.name, use.entry.uid
        if use.relation.stale:
            return PodHit(space, name, uid, tolerates=tolerates, fate=ENDED, why="an earlier pod of that name")
        fate = UNKNOWN if taint.effect == "NoExecute" else STAYS
        return PodHit(space, name, uid, tolerates=tolerates, fate=fate, why="the pod was not found")
    owner = owner_of(pod)
    hit = PodHit(
        namespace=space,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        owner=f"{owner.kind}/{owner.name}" if owner else "",
        created=pod.metadata.creation_timestamp,
        priority=pod.priority,
        phase=pod.phase,
        node=pod.node_name,
        tolerates=tolerates,
    )
    if pod.finished:
        return replace(hit, fate=ENDED)
    if pod.metadata.deletion_timestamp:
        return replace(hit, fate=GOING)
    if evicting.since is None:
        return hit
    if _extended(claim, pod):
        return replace(hit, why="the claim is for extended resources, which the eviction controller ignores")
    if not pod.node_name:
        return replace(hit, why="it is on no node yet")
    limits = [seconds_tolerated(taint, result.tolerations if tolerations_kept else ()) for result in results]
    when = min((limit for limit in limits if limit is not None), default=None)
    if when is None:
        return replace(hit, why="it tolerates the taint")
    why = "its toleration has no effect: that lets it be placed, not stay" if tolerates and tolerations_kept else ""
    if when > 0:
        why = "tolerationSeconds"
    due = times.later(evicting.since, when)
    if due <= at:
        return replace(hit, fate=NOW, why=why)
    return replace(hit, fate=LATER, at=times.stamp(due), why=why, drained=evicting.drained)


def _extended(claim: ResourceClaim, pod: Pod) -> bool:
    named = pod.extended_resource_claim == claim.metadata.name
    return named or claim.metadata.annotations.get(EXTENDED_CLAIM) == "true"


def _all_requests(
    desired_rules: Sequence[DesiredRule], targets: Mapping[DeviceID, Target], snapshot: Snapshot, cycle: Cycle
) -> Iterator[AllRequest]:
    """Requests for all devices that select one of these and do not tolerate its taint: of claims that are still to be
    allocated, and of templates.
    """
    claims = snapshot.claims.values()
    waiting = (claim for claim in claims if claim.allocation is None and not claim.metadata.deletion_timestamp)
    listed = [("ResourceClaim", claim.metadata, claim.requests) for claim in waiting]
    listed += [
        ("ResourceClaimTemplate", template.metadata, template.claim("any", space).requests)
        for (space, _), template in snapshot.templates.items()
    ]
    published = [desired for desired in desired_rules if (target := targets.get(desired.device)) and target.row]
    devices = [row.device for desired in published if (row := targets[desired.device].row)]
    asking = [
        (kind, metadata, request.result_name(spec), spec, selected(spec, devices, cycle))
        for kind, metadata, requests in listed
        for request in requests
        for spec in request.alternatives()
        if spec.allocation_mode == ALL
    ]
    for desired, device in zip(published, devices, strict=True):
        taint = DeviceTaint(desired.taint.key, desired.taint.value, desired.taint.effect)
        for kind, metadata, name, spec, hit in asking:
            if id(device) in hit and not any(toleration.tolerates(taint) for toleration in spec.tolerations):
                yield AllRequest(desired.device, kind, metadata.namespace, metadata.name, name)


def _classes(
    desired_rules: Sequence[DesiredRule], rows: Sequence[DeviceRow], later: Sequence[DeviceRow]
) -> Iterator[ClassLeft]:
    """What is left of each class that has one of the devices: now, and ``later`` when the pods have gone."""
    hit = {desired.device for desired in desired_rules}
    names = sorted({name for row in rows if row.id in hit for name in row.classes})
    for name in names:
        members = [row for row in rows if name in row.classes]
        if any(row.state is DeviceState.UNKNOWN for row in members):
            yield ClassLeft(name, len(members), None, None)
            continue
        spared = [row for row in later if name in row.classes and row.id not in hit]
        free, after = (len([row for row in group if row.state is DeviceState.FREE]) for group in (members, spared))
        yield ClassLeft(name, len(members), free, after, tuple(_capacities(members, spared)))


def _capacities(members: Sequence[DeviceRow], spared: Sequence[DeviceRow]) -> Iterator[CapacityAfter]:
    """What is left of the capacities of those that can be shared: of all now, and of the spared ones later."""
    afterwards = {room.name: room.left for room in capacity_left(spared)}
    for room in capacity_left(members):
        yield CapacityAfter(room.name, room.total, room.left, afterwards.get(room.name, ZERO))
