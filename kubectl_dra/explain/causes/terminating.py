"""A pod that is being deleted on its node: what keeps it, and who has to do what, the same in every answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.claim_relation import ClaimRelation, claims_of, relation_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import CommandLine, as_written, kubectl, pods_on_node
from kubectl_dra.drivers.health import NodeDriver
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep
from kubectl_dra.explain.causes.on_node import (
    ANSWER,
    by_force,
    containers_ended,
    drivers_of,
    end_by_force,
    node_away,
    unready_since,
)
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.clock import GIVEN, Clock
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, Words, say, subject

DELETING = CauseKind(code="pod-being-deleted", family=Family.POD, look=Look.POD, ends_pod=True)
ENDING: Final = "is being deleted"
LATE: Final = "is being deleted and does not end"
"""Of a pod whose grace period is over."""


class Ending(NamedTuple):
    """What keeps a pod that is being deleted: ``finding`` is the answer about the pod.

    Where a driver keeps it, ``fact`` shows that, ``until`` says it as the end of a sentence about who holds its
    devices, and ``step`` is what to do, as a part of one.
    """

    finding: Finding
    fact: Evidence | None = None
    until: Phrase | None = None
    step: Phrase | None = None


def ending_of(pod: Pod, snapshot: Snapshot, claims: Sequence[ResourceClaim] | None = None) -> Ending:
    """The one answer about a pod that is being deleted on its node; ``claims`` are its own if they are known."""
    claims = claims_of(pod, snapshot) if claims is None else claims
    held = devices_of(pod, claims)
    if (stuck := waits_for_driver(pod, claims, snapshot)) is not None:
        return _not_released(stuck, pod, snapshot, claims)
    facts = (*deletion(pod), *node_away(pod.node_name, snapshot))
    since, late = pod.metadata.deletion_timestamp, Clock(snapshot).age(pod.metadata.deletion_timestamp)
    node = ObjectName("Node", pod.node_name)
    words = {"devices": held, "node": node, "pod": pod.key, "since": since, "count": len(held)}
    text = "it has {devices:some} until the kubelet of node {node} has ended the pod"
    finding = Finding(DELETING, say(text, **words), facts, state=ENDING, normal=late < GIVEN)
    if late >= GIVEN:
        lead = "its grace period ended {ago}, and " + text
        summary = say(lead, ago=Clock(snapshot).ago(since), **words)
        finding = replace(finding, summary=summary, state=LATE)
    if any(node_away(pod.node_name, snapshot)):
        return Ending(replace(finding, remedy=end_by_force(pod, snapshot)))
    if pod.metadata.finalizers:
        return Ending(replace(finding, remedy=kept_by_finalizers(pod)))
    without = _without_driver(finding, pod, snapshot, held) if late >= ANSWER or containers_ended(pod) else None
    if without is not None and late >= ANSWER:
        return without
    if late >= GIVEN:
        return Ending(_overdue(finding, pod, snapshot, drivers_of(claims)))
    wait = "Wait: the kubelet of node {node} ends pod {pod} by {since}."
    if late:
        wait = (
            "Wait: the grace period of pod {pod} ended at {since}; the kubelet of node {node} takes a few seconds more."
        )
    look = kubectl("describe", kind="pod", name=pod.metadata.name, namespace=pod.metadata.namespace)
    told = replace(finding, remedy=Remedy(say(wait, **words), commands=(look,)))
    return Ending(told) if without is None else without._replace(finding=told)


def _not_released(stuck: Finding, pod: Pod, snapshot: Snapshot, claims: Sequence[ResourceClaim]) -> Ending:
    """A driver was asked for the devices and has not released them."""
    node, drivers = ObjectName("Node", pod.node_name), drivers_of(claims)
    finding = with_its_pod(stuck, pod, snapshot, devices_of(pod, claims))
    words = {"drivers": drivers, "node": node}
    until = say("until driver {drivers:some} on node {node} has released its devices", **words)
    step = say("read the log of driver {drivers:some} on node {node}, which does not release its devices", **words)
    return Ending(finding, stuck.evidence[-1], until, step)


def _without_driver(finding: Finding, pod: Pod, snapshot: Snapshot, held: Sequence[DeviceID]) -> Ending | None:
    """The missing driver that has to release the devices; None if all are there, or it is unknown."""
    from kubectl_dra.explain.driver_repair import repair
    from kubectl_dra.explain.driver_words import next_look
    from kubectl_dra.explain.node_driver import without_driver

    away = without_driver(pod, snapshot, held)
    if away is None:
        return None
    row, said = away
    node = ObjectName("Node", pod.node_name)
    words = {"driver": row.driver, "node": node, "said": said, "devices": held, "count": len(held)}
    ended, ago = containers_ended(pod), Clock(snapshot).ago(pod.metadata.deletion_timestamp)
    over = say("its containers ended at {ended}" if ended else "its grace period ended {ago}", ended=ended, ago=ago)
    text = "{over}, it has {devices:some} until driver {driver} has released {count:it|them}, and {said}"
    summary = say(text, over=over, **words)
    after = "the kubelet ends the pod only after the driver has released the {count:device|devices}."
    if row.pod is None:
        start = "Start driver {driver} on node {node}: " + after + " If it runs outside of pods, look at its log there."
        change, look = say(start, **words), pods_on_node(pod.node_name)
    else:
        change, look = say("{change} " + after[0].upper() + after[1:], change=repair(row), **words), _shown(row, pod)
    fact = _away(row, said, pod)
    does = "start" if row.pod is None else "repair"
    facts, remedy = (fact, *finding.evidence), forced(change, pod, look)
    told = replace(finding, summary=summary, evidence=facts, remedy=remedy, next=next_look(row))
    until = say("until driver {driver}, which is away, has released its devices", driver=row.driver)
    step = say("{does} driver {driver} on node {node}, which has to release its devices", does=does, **words)
    return Ending(told, fact, until, step)


def _overdue(finding: Finding, pod: Pod, snapshot: Snapshot, drivers: Sequence[str]) -> Finding:
    """The grace period is over, and nothing that was seen says why the pod is still there."""
    text = "Find out what keeps it on node {node}: a container that does not stop"
    if drivers:
        text += ", or driver {drivers:some}, which has not released its devices"
    change = say(f"{text}.", node=ObjectName("Node", pod.node_name), drivers=list(drivers))
    look = kubectl("describe", kind="pod", name=pod.metadata.name, namespace=pod.metadata.namespace)
    told = with_its_pod(finding, pod, snapshot, devices_of(pod, claims_of(pod, snapshot)))
    after = told.next or NextStep(Look.PODS_ON_NODE, pod.node_name)
    return replace(told, remedy=forced(change, pod, look), next=after)


def _terminating(analysis: Analysis) -> Iterator[Finding]:
    """The pod has its devices until it is gone, and its node decides when."""
    pod = analysis.pod
    if pod is not None and devices_of(pod, analysis.allocated):
        yield ending_of(pod, analysis.snapshot, analysis.allocated).finding


def devices_of(pod: Pod, claims: Sequence[ResourceClaim]) -> list[DeviceID]:
    """The devices that a pod has until it is gone."""
    return [device for claim in claims if relation_of(claim, pod) is ClaimRelation.ENDING for device in claim.devices]


def with_its_pod(finding: Finding, pod: Pod, snapshot: Snapshot, held: Sequence[DeviceID]) -> Finding:
    """The finding that a driver keeps a pod, with what is wrong with the driver's own pod, if that is known."""
    from kubectl_dra.explain.driver_repair import repair
    from kubectl_dra.explain.driver_words import next_look
    from kubectl_dra.explain.node_driver import on_node, without_driver

    away = without_driver(pod, snapshot, held)
    if away is None:
        rows = on_node(snapshot, sorted({device.driver for device in held}), pod.node_name)
        logs = next((row for row in rows if row.pod is not None), None)
        return replace(finding, next=next_look(logs)) if logs is not None else finding
    row, said = away
    told = replace(finding, evidence=(_away(row, said, pod), *finding.evidence), next=next_look(row))
    if row.pod is None or not row.state.broken:
        return told
    change = say("{change} The pod goes once the driver answers.", change=repair(row))
    return replace(told, remedy=forced(change, pod, _shown(row, pod)))


def _shown(row: NodeDriver, pod: Pod) -> CommandLine:
    """The command that shows why a driver is away: its log, or what runs beside the pod that waits for it."""
    from kubectl_dra.explain.driver_words import look_at_driver

    return look_at_driver(row).log or pods_on_node(pod.node_name)


def _away(row: NodeDriver, said: Words, pod: Pod) -> Evidence:
    """What was seen of a driver that is away from a pod's node."""
    return Evidence(Subject("driver", row.driver), say("on node {node}", node=ObjectName("Node", pod.node_name)), said)


def kept_by_finalizers(pod: Pod) -> Remedy:
    """Whoever set a finalizer has work to do before the pod goes: it is not removed by hand for that alone."""
    names = pod.metadata.finalizers
    text = (
        "See which controller has to remove {names:some}, and why it has not. Remove {count:it|them} by hand only if "
        "that controller is gone for good: then nobody does what {count:it is|they are} for."
    )
    look = as_written("pod", pod.metadata.name, pod.metadata.namespace)
    return Remedy(say(text, names=names, count=len(names)), commands=(look,))


def deletion(pod: Pod) -> Iterator[Evidence]:
    """When a pod was deleted, and the finalizers that keep it."""
    own = subject("Pod", pod)
    yield Evidence(own, "metadata.deletionTimestamp", pod.metadata.deletion_timestamp)
    if pod.metadata.finalizers:
        yield Evidence(own, "metadata.finalizers", say("{names}", names=pod.metadata.finalizers))


NOT_UNPREPARED = CauseKind(
    code="devices-not-unprepared", family=Family.NODE, look=Look.PODS_ON_NODE, state="cannot end"
)


def waits_for_driver(pod: Pod, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Finding | None:
    """Why a pod that is being deleted is still there though its time is over: the kubelet waits for a driver.

    None where something else keeps it: its node, a finalizer, or its own containers.
    """
    if pod.metadata.finalizers or unready_since(pod.node_name, snapshot) is not None:
        return None
    own = [claim for claim in claims if relation_of(claim, pod).listed]
    drivers = drivers_of(own)
    ended, due = containers_ended(pod), pod.metadata.deletion_timestamp
    quiet = _silent(drivers, pod.node_name, snapshot)
    waited = Clock(snapshot).age(ended or due) >= ANSWER
    if not drivers or not ((ended and (quiet or waited)) or (quiet and waited)):
        # It may end any moment, or a container of its own does not end.
        return None
    node = ObjectName("Node", pod.node_name)
    words = {"driver": quiet or drivers, "node": node, "since": ended or due}
    lead = "its containers ended at {since}, and " if ended else "its grace period ended at {since}, and "
    if quiet:
        text = lead + "driver {driver:some} is away from node {node}: nobody can release its devices"
        change = (
            "Start driver {driver:some} on node {node}: the kubelet asks it again, and the pod goes once it answers."
        )
    else:
        text = lead + "driver {driver:some} on node {node} has not given its devices back"
        change = (
            "Read the log of driver {driver:some} on node {node}, where the reason is (no event has it), and start the "
            "driver if it is away: the kubelet asks it again, and the pod goes once it answers."
        )
    facts = [Evidence(subject("Pod", pod), "metadata.deletionTimestamp", due)]
    for driver in drivers:
        count = sum(slice_.driver == driver and slice_.scope.node_name == pod.node_name for slice_ in snapshot.slices)
        said = say("{count:ResourceSlice}", count=count)
        facts.append(Evidence(Subject("driver", driver), say("publishes for node {node}", node=node), said))
    remedy = forced(say(change, **words), pod, pods_on_node(pod.node_name))
    return Finding(NOT_UNPREPARED, say(text, **words), tuple(facts), remedy)


def _silent(drivers: Sequence[str], node: str, snapshot: Snapshot) -> tuple[str, ...]:
    """The drivers that publish nothing for a node any more; none where slices were not read."""
    if snapshot.missing("ResourceSlice") is not None:
        return ()
    there = {slice_.driver for slice_ in snapshot.slices if slice_.scope.node_name in ("", node)}
    return tuple(driver for driver in drivers if driver not in there)


def forced(change: Words, pod: Pod, look: CommandLine) -> Remedy:
    """What to do about a pod that does not end, and the last resort with its danger: to delete it by force."""
    danger = (
        "delete the pod by force, and only once its containers have certainly ended: other pods get its devices at once"
    )
    if containers_ended(pod):
        danger = "delete the pod by force: other pods then get devices that were not released, and may fail with them"
    text = "{change} Last resort: {danger}."
    return Remedy(say(text, change=change, danger=danger), commands=(look, by_force(pod)))


FINDERS = (Finder(When.PLACED, _terminating, -10),)
