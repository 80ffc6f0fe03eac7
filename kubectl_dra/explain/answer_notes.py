"""Notes of an answer besides its causes: what may still go wrong, what was not tried, and who acts next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import ClassVar, Final

from kubectl_dra.allocation.budgets import PROOF_NODES
from kubectl_dra.allocation.extended_resources import amount_of, resources_of
from kubectl_dra.allocation.search_context import PickedDevice
from kubectl_dra.api.behaviour import SCORING_FAILS
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.claim_relation import claims_of, relation_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import kubectl
from kubectl_dra.explain.analysis import Analysis, Outlook
from kubectl_dra.explain.assumptions import NO_CONSUMER, notes_of
from kubectl_dra.explain.causes import claim_references as no_consumer
from kubectl_dra.explain.causes import devices_held
from kubectl_dra.explain.causes import ending as evicted_at_once
from kubectl_dra.explain.causes import extended_resources as claim_and_device_plugin
from kubectl_dra.explain.causes import pools_and_limits as pool_name_shared
from kubectl_dra.explain.causes.driver_unhealthy import awaited
from kubectl_dra.explain.causes.known_defects import devices_halved, kubelet_notes
from kubectl_dra.explain.causes.kueue import kueue_notes
from kubectl_dra.explain.causes.on_node import ANSWER, drivers_of, names_given, started
from kubectl_dra.explain.causes.other_schedulers_groups import gang_notes
from kubectl_dra.explain.causes.pod_group import domain_notes
from kubectl_dra.explain.diagnosis import Evidence, Finding, NodeGroup, RemedyPlan
from kubectl_dra.explain.eviction import DeviceTaints
from kubectl_dra.explain.outcomes import AutoscalerView, no_help
from kubectl_dra.explain.phrase import ObjectName, Phrase, Statement, Subject, Words, named, say, subject
from kubectl_dra.explain.question.resolve import LastMessage, last_message
from kubectl_dra.explain.question.what_if_flag import WhatIfChange, in_use, made_again, to_make
from kubectl_dra.explain.remedies.candidates import marks_broken
from kubectl_dra.explain.scheduler_profile import scheduler_notes
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.unread_kind import NotSeen, Unread
from kubectl_dra.scheduling.default_preemption import ending_victims
from kubectl_dra.text import whole_number

MAX_NOTED_NODES = 5


class SearchLimit(Statement, frozen=True):
    """Where the search for changes that help has ended early: there may be more of them."""

    CODE: ClassVar[str]


class NotAllInTime(SearchLimit, frozen=True):
    """There are too many combinations of devices."""

    CODE = "too-many-combinations"
    TEXT = "not every change was tried: there are too many combinations of devices to try them all"


class NotOnAllNodes(SearchLimit, frozen=True):
    """Of many different nodes, only the nearest were tried."""

    CODE = "nearest-nodes"
    TEXT = "changes were tried on the {tried} nodes that come closest to what is asked for, of {nodes:,}"
    tried: int
    nodes: int


def answer_notes(
    analysis: Analysis,
    findings: Sequence[Finding],
    unclear: Sequence[Words],
    ways: Sequence[RemedyPlan],
    groups: Sequence[NodeGroup],
) -> tuple[Words, ...]:
    """All notes, each once. ``groups`` are the nodes by what comes of them."""
    supposed = analysis.settings.supposed
    kinds = {finding.kind for finding in findings}
    said = {reason.gap for reason in unclear if isinstance(reason, Unread)}
    assumed = [
        note
        for note in notes_of(analysis)
        if (note is not NO_CONSUMER or no_consumer.NOBODY_CONSUMES not in kinds)
        and not (isinstance(note, NotSeen) and note.gap in said)
    ]
    return tuple(
        dict.fromkeys(
            (
                *_tolerated_faults(analysis),
                *no_help(analysis, groups),
                *(_supposed(change, analysis.settings) for change in supposed),
                *in_use(analysis.settings.freed),
                *made_again(analysis.settings.ended),
                *to_make(analysis.question, supposed),
                *_of_new_nodes(analysis),
                *unclear,
                *(() if findings else placed_notes(analysis)),
                *awaited(analysis, findings),
                *kueue_notes(analysis.pod, analysis.snapshot),
                *gang_notes(analysis),
                *domain_notes(analysis),
                *scheduler_notes(analysis),
                *assumed,
                *_about_causes(analysis, findings),
                *_cut(analysis, findings, ways),
            )
        )
    )


def _supposed(change: WhatIfChange, settings: Settings) -> Phrase:
    text = "supposed: {change}, which is asked for already" if change in settings.idle else "supposed: {change}"
    return say(text, change=change.words)


def _of_new_nodes(analysis: Analysis) -> Iterator[Words]:
    """What an autoscaler makes of nodes that are only supposed, and what is assumed of them."""
    settings = analysis.settings
    if settings.new_nodes:
        from kubectl_dra.explain.autoscaler_limits import autoscaler_notes, taints_left_out
        from kubectl_dra.explain.question.with_node_flag import assumed_of, filled_in

        # The scheduler may take a node that was there.
        yield from evicted_at_once.eviction_notes(analysis)
        if analysis.outlook is not Outlook.PLACED:
            yield from taints_left_out([analysis.question], settings.new_nodes, analysis.snapshot, settings)
        yield from assumed_of(settings.new_nodes)
        yield from filled_in(settings.new_nodes)
        # Nobody looks for a node for a pod that has its devices.
        if analysis.outlook is not Outlook.PLACED:
            views = autoscaler_notes([analysis.question], settings.new_nodes, analysis.snapshot, settings)
            yield from map(AutoscalerView, views)


def _about_causes(analysis: Analysis, findings: Sequence[Finding]) -> Iterator[Phrase]:
    pod, view = analysis.pod, analysis.view
    if (
        pod is not None
        and pod.priority > 0
        and any(finding.kind.held and finding.kind not in devices_held.SAYING_PRIORITY for finding in findings)
    ):
        text = "the pod's priority ({priority}) does not help: no pod is evicted to free a device"
        yield say(text, priority=pod.priority)
    if view.cycle.defects.counters_keyed_by_pool_name:
        for name, drivers in pool_name_shared.shared_pool_names(view).items():
            yield say(
                "not determined: drivers {drivers} use one pool name ({name}), and the scheduler of this release mixes "
                "up their shared counters; the node that it looks at first decides",
                drivers=drivers,
                name=name,
            )
    yield from _handed_out_twice(analysis)
    yield from kubelet_notes(analysis)
    yield from devices_halved(analysis)
    yield from _unseen_of_drivers(analysis)
    if not any(finding.kind is evicted_at_once.AT_ONCE for finding in findings):
        yield from evicted_at_once.eviction_notes(analysis)
    yield from _bound_later(analysis)
    yield from _not_looked_at(analysis, findings)
    yield from _not_scored(analysis)
    never = claim_and_device_plugin.never_bound(analysis)
    if never and not any(finding.kind is claim_and_device_plugin.MIXED for finding in findings):
        text = "on {nodes:some} the pod would fit, but never be bound: {why}"
        yield say(text, nodes=sorted(never), why=claim_and_device_plugin.MIXED.why)


def _given(analysis: Analysis) -> Iterator[tuple[str, PickedDevice]]:
    """The devices that the pod would get, each with the node."""
    for name in analysis.takers:
        attempt = analysis.attempts.get(name)
        for placed in attempt.placements if attempt is not None else ():
            yield from ((name, picked) for picked in placed)


def _bound_later(analysis: Analysis) -> Iterator[Phrase]:
    """A device that the pod would get and for which the scheduler waits before it binds the pod."""
    text = "on {node} the pod is bound only when the driver has set {conditions:some} of {device}"
    for name, picked in _given(analysis) if analysis.view.cycle.features.binding_conditions else ():
        if conditions := picked.candidate.device.binding_conditions:
            yield say(text, node=name, device=picked.candidate.id, conditions=list(conditions))
            return


def _tolerated_faults(analysis: Analysis) -> Iterator[Phrase]:
    """A device that the pod would get though its driver's taint says that it does not work."""
    text = "on {node} the claim tolerates taint {taint}, by which the driver says that {device} does not work"
    for name, picked in _given(analysis):
        for taint in picked.candidate.device.taints:
            if not taint.rule and marks_broken(taint):
                yield say(text, node=name, taint=str(taint), device=picked.candidate.id)
                return


def _handed_out_twice(analysis: Analysis) -> Iterator[Phrase]:
    """Nodes whose devices a device plugin and a driver both offer, judging by names."""
    for name in sorted(analysis.fitting)[:MAX_NOTED_NODES]:
        drivers = sorted({item.id.driver for item in analysis.view.on_node(name)})
        for resource, value in analysis.view.node_by_name[name].allocatable.items():
            domain, slash, _ = resource.partition("/")
            for driver in drivers:
                if slash and driver.endswith(domain) and amount_of(value):
                    yield say(
                        "{node} offers {resource} by a device plugin and devices of {driver} by DRA: the same device "
                        "may be handed out twice",
                        node=name,
                        resource=resource,
                        driver=driver,
                    )


def _unseen_of_drivers(analysis: Analysis) -> Iterator[Phrase]:
    """What defeats a driver on the pod's node though no object says so."""
    pod = analysis.pod
    if pod is None or not pod.node_name or pod.finished:
        return
    from kubectl_dra.data.drivers import catalogue

    for name in drivers_of(analysis.allocated):
        driver = catalogue().driver(name)
        if driver is not None and driver.unseen:
            words = driver.unseen_command.format(node=pod.node_name).split()
            yield say(driver.unseen, node=pod.node_name, command=kubectl(*words, others=(pod.node_name,)))


def _not_looked_at(analysis: Analysis, findings: Sequence[Finding]) -> Iterator[Phrase]:
    """The pod fits, but no scheduler has reacted to it: normal for a moment, otherwise it will not run."""
    pod = analysis.pod
    if pod is None or not analysis.fitting or findings or not analysis.question.exists or pod.node_name or pod.finished:
        return
    word = last_message(pod, analysis.snapshot)
    if not pod.condition("PodScheduled").type and (word is None or not word.message):
        yield say(
            "no scheduler has reported on the pod yet (no condition PodScheduled): if nothing changes, see whether "
            "{name} runs",
            name=pod.scheduler_name,
        )


def _not_scored(analysis: Analysis) -> Iterator[Phrase]:
    """The scheduler fails when it compares nodes: a pod with allocated and pending claims, several nodes."""
    scheduler = analysis.scheduler
    if len(analysis.fitting) < 2 or not analysis.allocated or not analysis.claims:
        return
    if not SCORING_FAILS.affects(scheduler.release, scheduler.patch):
        return
    yield say(
        "the pod may still stay pending: the scheduler of {release}.{patch} fails at scoring nodes for a pod of "
        "which some claims are allocated and others are not, where several nodes fit ({reference}, "
        "fixed in {fixed})",
        release=scheduler.release,
        patch=scheduler.patch,
        reference=SCORING_FAILS.reference,
        fixed=SCORING_FAILS.fixed_in(scheduler.release.minor),
    )


def _cut(analysis: Analysis, findings: Sequence[Finding], ways: Sequence[RemedyPlan]) -> Iterator[SearchLimit]:
    """Changes were not tried on all the different nodes."""
    if not analysis.budget.left:
        yield NotAllInTime()
    if not ways and not any(finding.proof for finding in findings):
        return
    nodes = len(analysis.view.different_nodes)
    if nodes > PROOF_NODES:
        yield NotOnAllNodes(PROOF_NODES, nodes)


# What changed after the scheduler's last message about a pod, as far as objects show it; deletions leave no trace.

MAX_SHOWN: Final = 3
_SECONDS: Final = len("2006-01-02T15:04:05")
_TOTAL: Final = re.compile(r"^0/([0-9]{1,9}) nodes are available")
"""The beginning of kube-scheduler's message: its count of nodes."""


def changes(analysis: Analysis, pod: Pod, word: LastMessage) -> tuple[Evidence, ...]:
    """The first few changes, each with the object that shows it."""
    evidence = (
        *_of_spec(pod),
        *_of_nodes(analysis, word),
        *_victims_gone(analysis, pod),
        *_newer(analysis, pod, word),
        *_ended(analysis, pod),
    )
    return tuple(islice(evidence, MAX_SHOWN))


def _of_spec(pod: Pod) -> Iterator[Evidence]:
    """The scheduler examined an earlier spec of the pod."""
    seen = pod.condition("PodScheduled").observed_generation
    if 0 < seen < pod.metadata.generation:
        text = "{generation}, and the scheduler looked at {seen}"
        shown = say(text, generation=pod.metadata.generation, seen=seen)
        yield Evidence(subject("Pod", pod), "metadata.generation", shown)


def _of_nodes(analysis: Analysis, word: LastMessage) -> Iterator[Evidence]:
    """Nodes were added or removed."""
    match = _TOTAL.match(word.message)
    snapshot = analysis.snapshot
    if match is not None and snapshot.nodes and not snapshot.is_gap("Node") and int(match[1]) != len(snapshot.nodes):
        shown = say("{count:,} now, and the scheduler counted {told:,}", count=len(snapshot.nodes), told=int(match[1]))
        yield Evidence("Nodes", "how many there are", shown)


def _victims_gone(analysis: Analysis, pod: Pod) -> Iterator[Evidence]:
    """The pods that were evicted for this one have ended."""
    outcome, name = analysis.pod_outcome, pod.status.nominated_node_name
    node = outcome.state.nodes.get(name) if outcome is not None and name else None
    if node is not None and not ending_victims(pod, node):
        yield Evidence(
            subject("Pod", pod),
            "status.nominatedNodeName",
            say("{name}: nothing evicted for it is left there", name=ObjectName("Node", name)),
        )


def _newer(analysis: Analysis, pod: Pod, word: LastMessage) -> Iterator[Evidence]:
    """Objects created since, newest first; of the same second, those that were written after the pod."""
    if not word.time:
        return
    snapshot = analysis.snapshot
    known: list[tuple[str, ObjectMeta]] = []
    known += [("DeviceClass", device_class.metadata) for device_class in analysis.view.cycle.classes.values()]
    known += [("Node", node.metadata) for node in snapshot.nodes.values()]
    known += [("DeviceTaintRule", rule.metadata) for rule in snapshot.taint_rules]
    known += [("ResourceClaim", entry.metadata) for entry in (*analysis.allocated, *analysis.claims)]
    known += [(kind, item.metadata) for kind, objects in snapshot.others.items() for item in objects.values()]
    written = _number(pod.metadata.resource_version)

    said = word.time[:_SECONDS]

    def newer(creation_time: str, version: str) -> bool:
        # RFC 3339 in UTC, so text compares; creation has no fractions of a second, which those of events may have.
        at = creation_time[:_SECONDS]
        return at > said or (at == said and 0 < written < _number(version))

    created = [
        (meta.creation_timestamp, kind, meta.namespace, meta.name)
        for kind, meta in known
        if newer(meta.creation_timestamp, meta.resource_version)
    ]
    created += [
        (slice_.creation_timestamp, "ResourceSlice", "", slice_.name)
        for slice_ in analysis.view.cycle.index.slices
        if newer(slice_.creation_timestamp, slice_.resource_version)
    ]
    for at, kind, space, name in sorted(created, reverse=True):
        yield Evidence(Subject(kind, ObjectName(kind, name, space)), "metadata.creationTimestamp", at)


def _ended(analysis: Analysis, pod: Pod) -> Iterator[Evidence]:
    """Pods that have ended and were written after this one."""
    written = _number(pod.metadata.resource_version)
    for other in analysis.snapshot.pods.values():
        if other.finished and other.node_name and 0 < written < _number(other.metadata.resource_version):
            yield Evidence(subject("Pod", other), "status.phase", other.phase)


def _number(version: str) -> int:
    """A resource version, which counts the writes of the whole cluster; 0 if unknown."""
    return whole_number(version, 20) or 0


def placed_notes(analysis: Analysis) -> Iterator[Phrase]:
    """What is to be known of a pod that has a node and its devices; nothing of another."""
    pod = analysis.pod
    if pod is None or not pod.node_name or pod.finished or pod.metadata.deletion_timestamp:
        return
    snapshot, claims = analysis.snapshot, analysis.allocated
    held = [device for claim in claims if relation_of(claim, pod).listed for device in claim.devices]
    yield from _of_plugins(pod, snapshot)
    yield from _starting(pod, drivers_of(claims))
    if started(pod):
        cycle = analysis.view.cycle
        yield from _tainted(held, DeviceTaints(snapshot, cycle.features, cycle.rules))
        yield from _given_twice(pod, held, snapshot)


def _of_plugins(pod: Pod, snapshot: Snapshot) -> Iterator[Phrase]:
    """Extended resources that a device plugin of the node serves."""
    node = snapshot.nodes.get(pod.node_name)
    served = [name for name in resources_of(pod) if node is not None and amount_of(node.allocatable.get(name))]
    if served and not pod.extended_resource_claim:
        text = "a device plugin of node {node} serves {resources:some 3}; the API does not say with which devices"
        yield say(text, node=ObjectName("Node", pod.node_name), resources=served)


def _starting(pod: Pod, drivers: tuple[str, ...]) -> Iterator[Phrase]:
    """Notes on controllers that act on a pod that was just placed."""
    since = pod.status.start_time
    if pod.phase not in ("", "Pending") or not since or not drivers:
        return
    words = {"node": ObjectName("Node", pod.node_name), "since": since, "drivers": drivers}
    if pod.condition("PodReadyToStartContainers").status == "True":
        yield say("its devices are prepared, and the kubelet of node {node} starts its containers", **words)
        return
    text = (
        "the kubelet of node {node} has had it since {since} and waits for driver {drivers:some} to prepare the "
        "devices; after {seconds:second} it would say so"
    )
    yield say(text, seconds=int(ANSWER.total_seconds()), **words)


def _tainted(held: list[DeviceID], taints: DeviceTaints) -> Iterator[Phrase]:
    """A taint without NoExecute lets the pod run on; of one with it a cause says that the pod is evicted."""
    for device in held:
        for taint in taints.of(device):
            if taint.effect == "NoSchedule":
                text = "device {device} is tainted: {taint}{by}{since}; the pod keeps it, and no other pod gets it"
                by = say(" by DeviceTaintRule {rule}", rule=taint.rule) if taint.rule else " by its driver"
                since = say(" since {time}", time=taint.time_added) if taint.time_added else ""
                yield say(text, device=device, taint=str(taint), by=by, since=since)
                break


def _given_twice(pod: Pod, held: list[DeviceID], snapshot: Snapshot) -> Iterator[Phrase]:
    """Another pod of the node was started with a device of this name, and no claim of it has that device any more."""
    names = {device.device: device for device in held}
    for other in snapshot.pods.values():
        if other is pod or other.node_name != pod.node_name or not started(other):
            continue
        shared = names_given(other) & names.keys()
        if not shared:
            continue
        own = {device.device for claim in claims_of(other, snapshot) for device in claim.devices}
        for name in sorted(shared - own):
            text = (
                "pod {other} runs on node {node} with {device}, too, and has lost its claim: both use it until that "
                "pod is deleted"
            )
            node = ObjectName("Node", pod.node_name)
            yield say(text, other=named("Pod", other), device=names[name], node=node)
