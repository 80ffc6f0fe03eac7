"""What was assumed, left out of account or not seen, as far as it can matter for a question: notes of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from kubectl_dra.allocation.extended_resources import ExtendedRequests, limit_of
from kubectl_dra.api.behaviour import SORTED_POOLS
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.defects_beside_allocator import RULE_FOR_ALL
from kubectl_dra.api.fields import fields
from kubectl_dra.api.releases import RULES_UNSEEN, Release, gate_default
from kubectl_dra.api.slices import MAPPINGS, PoolID, ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cluster.claim_relation import waiting_for
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.snapshot import ABSENT, MADE_BY, NOT_SERVED, RefusedChange, Snapshot
from kubectl_dra.explain.devices.unpublished import unpublished
from kubectl_dra.explain.phrase import Phrase, Words, say
from kubectl_dra.explain.scene.prepare import Scene, Settings
from kubectl_dra.explain.unread import NotSeen
from kubectl_dra.neighbours.pointers import kinds_pointed_to
from kubectl_dra.scheduling.kinds_to_read import kinds_needed, selecting_kinds

MAX_POOLS = 3
# Most clusters or questions do without the other kinds.
_NEEDED = frozenset(("ResourceSlice", "DeviceClass", "ResourceClaim", "Pod", "Node"))


def notes_of(scene: Scene) -> Iterator[Words]:
    """All notes about a scene."""
    snapshot, settings = scene.snapshot, scene.settings
    question = scene.question
    own = ("Pod" if question.pod is not None else "ResourceClaim", question.namespace, question.name)
    yield from refused_notes([change for change in snapshot.refused if change[:3] != own])
    yield from _gaps(scene)
    yield from rules_notes(snapshot, settings)
    if not snapshot.nodes:
        yield say("no Nodes were read: their names are taken from ResourceSlices, labels and taints are unknown")
    if settings.proved_gates:
        text = "{gates}: off by default in {release}, but stored objects show that it is on"
        yield say(text, gates=sorted(settings.proved_gates), release=settings.scheduler.release)
    chooses = bool(scene.unallocated)
    if chooses and settings.scheduler.release not in SORTED_POOLS:
        yield say(
            "schedulers of {release} try pools in random order: which of several suitable devices a pod gets is not "
            "determined",
            release=settings.scheduler.release,
        )
    elif chooses and scene.view.cycle.features.stable:
        # A scheduler with neither of these feature gates uses the allocator variant that does not sort pools.
        yield say(
            "without DRADeviceBindingConditions and DRAConsumableCapacity the scheduler tries pools in random order: "
            "which of several suitable devices a pod gets is not determined"
        )
    yield from _older_slices(scene)
    yield from _about_pod(scene)
    if scene.extended is not None:
        yield from extended_notes(scene.extended)


def refused_notes(changes: Iterable[RefusedChange]) -> Iterator[Phrase]:
    """What of a manifest the API server does not take, so that it is left out of account."""
    for change in changes:
        yield say(
            "{kind} {name} exists, and nobody can change its {fields}: it stays as it is, whatever the manifest says",
            kind=change.kind,
            name=f"{change.namespace}/{change.name}" if change.namespace else change.name,
            fields=change.fields,
        )


def _gaps(scene: Scene) -> Iterator[Words]:
    gaps = [
        missing
        for missing in scene.snapshot.gaps
        if missing.reason not in (ABSENT, NOT_SERVED) or missing.kind in _NEEDED
    ]
    further = {missing.kind for missing in gaps} & SCHEDULING_KINDS.keys()
    without_effect = further - _affecting(scene) if further else frozenset()
    yield from (NotSeen(missing) for missing in gaps if missing.kind not in without_effect)
    yield from scene.snapshot.notes


def _affecting(scene: Scene) -> frozenset[str]:
    """The kinds, of those that are read only if a pod needs them, that this question needs."""
    question, outcome = scene.question, scene.outcome
    if question.pod is None:
        return frozenset(question.unread)
    lowest = min((pod.priority for pod in scene.snapshot.pods.values() if pod.node_name), default=None)
    selecting = selecting_kinds(question.pod, outcome.state.profile) if outcome is not None else ()
    layers = kinds_pointed_to(question.pod, scene.snapshot)
    return frozenset((*question.unread, *kinds_needed(question.pod, lowest), *selecting, *layers))


def rules_notes(snapshot: Snapshot, settings: Settings) -> Iterator[Phrase]:
    """How DeviceTaintRules are taken into account."""
    if not snapshot.taint_rules:
        return
    unseen = RULES_UNSEEN.affects(settings.scheduler.release, settings.scheduler.patch)
    minor = settings.scheduler.release.minor
    seeing_none = "" if unseen is False else RULES_UNSEEN.patches(minor)
    if unseen:
        yield say(
            "{count} DeviceTaintRules exist: the scheduler of {releases} does not see them (and may crash), so they "
            "are left out here",
            count=len(snapshot.taint_rules),
            releases=seeing_none,
        )
        return
    without = [rule.metadata.name for rule in snapshot.taint_rules if rule.selector is None]
    if without and RULE_FOR_ALL.affects(settings.scheduler.release, settings.scheduler.patch) is not False:
        yield say(
            "{count:DeviceTaintRule} {rules:some} {count:has|have} no deviceSelector: that selects nothing, but "
            "schedulers before {fixes:some} take it for every device ({reference})",
            count=len(without),
            rules=without,
            fixes=RULE_FOR_ALL.fixes,
            reference=RULE_FOR_ALL.reference,
        )
    if settings.taken_gates:
        yield say(
            "DeviceTaintRules exist, so their {count:feature gate|feature gates} ({gates}) {count:is|are} taken to be "
            "on",
            count=len(settings.taken_gates),
            gates=sorted(settings.taken_gates),
        )
    if unseen is None:
        yield say(
            "DeviceTaintRules are applied as from {fixed} on; {releases} do not see them, and their scheduler may "
            "crash: if this is one of them, say so with --kubernetes-version {last}",
            fixed=RULES_UNSEEN.fixed_in(minor),
            releases=seeing_none,
            last=seeing_none.rpartition(" ")[2],
        )


def _older_slices(scene: Scene) -> Iterator[Phrase]:
    slices = scene.view.cycle.index.slices
    newest = scene.view.newest
    old: dict[PoolID, int] = {}
    for entry in slices:
        # A node goes by the newest generation that it sees itself.
        if entry.generation < newest[entry.pool] and entry.name not in scene.view.slice_nodes:
            old[entry.pool] = old.get(entry.pool, 0) + len(entry.devices)
    for pool, devices in sorted(old.items())[:MAX_POOLS]:
        yield say(
            "{count:device} in older slices of pool {pool} {count:is|are} ignored: generation {newest} is its newest",
            count=devices,
            pool=pool,
            newest=newest[pool],
        )


def _about_pod(scene: Scene) -> Iterator[Phrase]:
    pod, snapshot = scene.question.pod, scene.snapshot
    if pod is None:
        claim, template = scene.question.claims[0].claim, scene.question.claims[0].template
        pending = claim if claim is not None and claim.allocation is None else None
        if snapshot.pods and pending is not None and not template and not waiting_for(pending, snapshot):
            yield NO_CONSUMER
        return
    if workload := pod.metadata.annotations.get(MADE_BY):
        yield say(
            "this is one of the pods that {workload} makes; kubectl dra fit looks at all of them", workload=workload
        )
    if not scene.settings.scheduler.schedules(pod):
        text = "the pod asks for scheduler {name}; results are those of the default one"
        yield say(text, name=pod.scheduler_name)
    if pod.phase == "Running" and not pod.metadata.deletion_timestamp:
        for one in unpublished(snapshot, scene.allocated):
            yield one.words


NO_CONSUMER = say("no pod uses this claim: devices are allocated only when a pod that names it is scheduled")


def extended_notes(extended: ExtendedRequests) -> Iterator[Phrase]:
    """Which request of the scheduler's own claim stands for which container and resource."""
    for resource in sorted(extended.amounts):
        yield say(
            "extended resource {resource} is served by DeviceClass {name} on nodes without a device plugin for it",
            resource=resource,
            name=extended.classes[resource].name,
        )
    claim = extended.claim(extended.amounts)
    for entry in claim.requests if claim else ():
        container, _ = limit_of(extended.pod, entry.name)
        yield say('request "{request}" is that of container {container}', request=entry.name, container=container)


# Feature gates that stored objects prove to be on, or make likely.
#
# If a gate is off, the API server drops its fields from new objects, so an existing field shows that the gate
# was on when the object was written.


def _gate(field: str) -> str:
    """The first gate that a field of devices needs."""
    return fields("Device")[field].gates[0]


TAINTS = _gate("taints")
PARTITIONS = _gate("consumesCounters")
CAPACITY = _gate("allowMultipleAllocations")
BINDING = _gate("bindingConditions")
GROUPS = fields("DeviceCounterConsumption")["compatibilityGroups"].gates[0]
OPERATIONS = fields("ResourceSliceSpec")["skipNodeOperations"].gates[0]
DERIVED = fields("ExactDeviceRequest")["derivedAttributes"].gates[0]
NODE_RESOURCES = _gate("nodeAllocatableResources")
RULES = (TAINTS, "DRADeviceTaintRules")
"""The gates without which a DeviceTaintRule has no effect. Up to 1.34 the first is both."""
_KNOWN = (TAINTS, PARTITIONS, CAPACITY, BINDING, GROUPS, OPERATIONS, DERIVED, NODE_RESOURCES)


def proved(
    slices: Iterable[ResourceSlice], assumed: Set[str], release: Release, claims: Iterable[ResourceClaim] = ()
) -> frozenset[str]:
    """The gates of the release proved by fields of these slices and stored claims, beyond those assumed to be on."""
    missing = {gate for gate in _KNOWN if gate not in assumed and gate_default(gate, release) is not None}
    found: set[str] = set()
    if not missing:
        return frozenset()
    for entry in slices:
        if entry.skip_node_operations:
            found.add(OPERATIONS)
        if entry.shared_counters or entry.per_device_node_selection:
            found.add(PARTITIONS)
        for device in entry.devices:
            if device.taints:
                found.add(TAINTS)
            if device.consumes_counters:
                found.add(PARTITIONS)
                if any(consumption.groups for consumption in device.consumes_counters):
                    found.add(GROUPS)
            if device.node_resources or MAPPINGS in device.unmodelled:
                found.add(NODE_RESOURCES)
            if device.allow_multiple_allocations:
                found.add(CAPACITY)
            if device.binding_conditions:
                found.add(BINDING)
    if DERIVED in missing and any(_derives(claim) for claim in claims):
        found.add(DERIVED)
    return frozenset(found & missing)


def taken_on(rules: Sequence[DeviceTaintRule], release: Release, patch: int | None) -> frozenset[str]:
    """The gates of the release that are off by default and taken to be on because rules exist.

    A rule proves nothing, for a server stores them with the gates off too; but nobody writes one where it does not
    count. The releases whose schedulers do not see rules are left out.
    """
    if not rules or RULES_UNSEEN.affects(release, patch):
        return frozenset()
    return frozenset(gate for gate in RULES if gate_default(gate, release) is False)


def _derives(claim: ResourceClaim) -> bool:
    return any(spec.derived_attributes for request in claim.requests for spec in request.alternatives())
