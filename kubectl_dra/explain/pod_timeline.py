"""The way of a pod so far, with times: made, claims, place, kubelet, devices, end; and what else it could have got.

Each step is a fact of the API server's objects or of an event; what nobody wrote down is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from kubectl_dra.api.meta import EVICTION_REASON, FAILED_PREPARE
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.claim_relation import claims_of, relation_of
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Event, Snapshot
from kubectl_dra.cluster.time_read import parse
from kubectl_dra.data.messages import AUTOSCALERS
from kubectl_dra.drivers.refused_claims import GateNeeded, Refusal, gates_needed, refusals
from kubectl_dra.explain.clock import Clock
from kubectl_dra.explain.diagnosis import Milestone
from kubectl_dra.explain.driver_refusals import refused
from kubectl_dra.explain.not_starting import not_starting
from kubectl_dra.explain.phrase import ObjectName, Words, named, nodes_named, say
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.outcome import Outcome

_STATIONS: Final = (
    "admission",
    "claims",
    "scheduling",
    "more nodes",
    "binding",
    "node admission",
    "preparation",
    "running",
    "ending",
)
"""In the order in which a pod passes them."""
_EVENTS: Final = {
    "FailedScheduling": ("scheduling", "not placed"),
    FAILED_PREPARE: ("preparation", "devices not prepared"),
    "FailedResourceClaimCreation": ("claims", "claim not created"),
    "BindingConditionsPending": ("binding", "waits for binding conditions"),
    "TriggeredScaleUp": ("more nodes", "an autoscaler asks for a node"),
    "NotTriggerScaleUp": ("more nodes", "an autoscaler adds no node"),
    "Nominated": ("more nodes", "an autoscaler plans a node"),
}
"""Reasons of events that say what kept the pod, with the station and what it means."""


def way_of(question: Question, snapshot: Snapshot) -> tuple[Milestone, ...]:
    """The steps of a pod that exists, in the order of their times; none of a claim."""
    pod = question.pod
    if pod is None or not question.exists:
        return ()
    # Of one second and station, what is listed first came first: devices are allocated before the place is written.
    steps = [*_of_claims(question, pod), *_of_pod(pod, Clock(snapshot).now), *_of_events(pod, snapshot)]
    return tuple(sorted((step for step in steps if step.time), key=_moment))


def _moment(step: Milestone) -> tuple[str, int]:
    """When a step was: objects have whole seconds, and of the same second the station tells which came first."""
    return step.time[: len("2026-01-02T03:04:05")], _STATIONS.index(step.station)


def _of_pod(pod: Pod, now: datetime) -> Iterator[Milestone]:
    meta, node = pod.metadata, ObjectName("Node", pod.node_name)
    yield Milestone(meta.creation_timestamp, "admission", "pod created")
    yield Milestone(pod.status.start_time, "node admission", say("seen by the kubelet of node {node}", node=node))
    scheduled, prepared = pod.condition("PodScheduled"), pod.condition("PodReadyToStartContainers")
    if scheduled.status == "True":
        yield Milestone(scheduled.last_transition_time, "scheduling", say("placed on node {node}", node=node))
    if prepared.status == "True":
        yield Milestone(prepared.last_transition_time, "preparation", "devices prepared, sandbox created")
    ready, evicted = pod.condition("Ready"), pod.condition("DisruptionTarget")
    if ready.status == "True":
        yield Milestone(ready.last_transition_time, "running", "containers ready")
    if evicted.status == "True":
        why = "chosen for eviction by a device taint" if evicted.reason == EVICTION_REASON else "chosen for eviction"
        yield Milestone(evicted.last_transition_time, "ending", why)
    ending = "ending" if meta.deletion_timestamp or pod.finished else "running"
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if (ended := status.state.terminated or status.last_state.terminated) is not None:
            words = {"name": status.name, "code": str(ended.exit_code)}
            yield Milestone(ended.finished_at, ending, say("container {name} ended with exit code {code}", **words))
    if meta.deleted_at != meta.deletion_timestamp:
        yield Milestone(meta.deleted_at, "ending", "deletion requested")
    if (due := parse(meta.deletion_timestamp)) is not None and due <= now:
        yield Milestone(meta.deletion_timestamp, "ending", "grace period over")


def _of_claims(question: Question, pod: Pod) -> Iterator[Milestone]:
    for claim_entry in question.claims:
        claim = claim_entry.claim
        if claim is None or claim_entry.hypothetical:
            continue
        words = {"claim": named("ResourceClaim", claim)}
        if claim_entry.template:
            yield Milestone(claim.metadata.creation_timestamp, "claims", say("claim {claim} created", **words))
        if claim.allocation is not None and relation_of(claim, pod).listed:
            time, created = claim.allocation.timestamp, pod.metadata.creation_timestamp
            text = "claim {claim} allocated: {devices:some 3}"
            if time and time < created:
                text = "claim {claim} is allocated since {time}: {devices:some 3}"
            what = say(text, devices=claim.devices, time=time, **words)
            yield Milestone(max(time, created) if time else "", "scheduling", what)


def _of_events(pod: Pod, snapshot: Snapshot) -> Iterator[Milestone]:
    events: dict[str, list[Event]] = {}
    for event in snapshot.events_of(pod, *_EVENTS):
        # Karpenter has one reason in common with the scheduler.
        of_scaler = event.speaker in AUTOSCALERS and event.reason == "FailedScheduling"
        events.setdefault("NotTriggerScaleUp" if of_scaler else event.reason, []).append(event)
    for reason, said in events.items():
        station, what = _EVENTS[reason]
        first = min(event.first or event.last for event in said)
        last = max(event.last for event in said)
        count = sum(max(event.count, 1) for event in said)
        text = "{what}, {count:time} until {last}" if count > 1 else "{what}"
        yield Milestone(first, station, say(text, what=what, count=count, last=last))


def also_possible(question: Question, snapshot: Snapshot, settings: Settings) -> Words:
    """Where a pod that has its place and devices would fit now, if it had none yet; empty where that is not known."""
    pod = question.pod
    if pod is None or not pod.node_name or pod.finished or pod.metadata.deletion_timestamp:
        return ""
    unread = snapshot.is_gap("Node") or snapshot.is_gap("ResourceSlice")
    if unread or pod.extended_resource_claim or not settings.scheduler.schedules(pod):
        return ""
    waiting = replace(pod, node_name="")
    outcome = settings.scheduler.attempt(waiting, Cluster(snapshot).unbinding(waiting))
    fits = outcome.feasible
    if outcome.undetermined:
        return ""
    drivers = {device.driver for claim in claims_of(pod, snapshot) for device in claim.devices}
    idle = not_starting(snapshot, ((name, drivers) for name in fits if name != pod.node_name))
    where: dict[str, Words] = {node.node: node.why for node in idle}
    for name in fits:
        if name not in where and (found := list(_refusals(outcome, name, snapshot))):
            where[name] = refused(found)
    gates = [gate for claim in claims_of(pod, snapshot) for gate in gates_needed(claim, snapshot.classes)]
    others = [name for name in fits if name != pod.node_name and name not in where]
    bad = [name for name in fits if name != pod.node_name and name in where]
    words: dict[str, object] = {"others": nodes_named(others), "count": len(others), "bad": nodes_named(bad)}
    text = "Now {count} other {count:node|nodes} would suit it too: {others:some 3}{but}{unknown}."
    if not others:
        text = "Now no other node would suit it{but}."
    why = where[bad[0]] if bad else ""
    but = say("; on {bad:some 3}, where it would fit, it would not start: {why}", why=why, **words) if bad else ""
    return say(text, but=but, unknown=next(_gates_unknown(gates, others, snapshot), ""), **words)


def _refusals(outcome: Outcome, node: str, snapshot: Snapshot) -> Iterator[Refusal]:
    """Why drivers refuse what the pod's claims would get on another node."""
    state = outcome.state.nodes[node]
    outcome.try_on(state.node)
    claims = outcome.devices.given_on(state.node)
    yield from refusals(claims, node, snapshot, outcome.state.cycle.index.candidates(node), outcome.pod)


def _gates_unknown(gates: Sequence[GateNeeded], nodes: Sequence[str], snapshot: Snapshot) -> Iterator[Words]:
    """Note that nothing tells whether drivers of these nodes have the gates."""
    for need in gates:
        unseen = nodes_named(name for name in nodes if not need.known_on(name, snapshot))
        if unseen:
            text = "; whether driver {driver} has gate {gate} on {nodes:some 3} is not known"
            yield say(text, driver=need.driver, gate=need.gate.name, nodes=unseen)
