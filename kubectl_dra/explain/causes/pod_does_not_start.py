"""The pod is placed and its claims are allocated, but the node does not start it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.meta import FAILED_PREPARE
from kubectl_dra.api.pods import ContainerStatus, Pod
from kubectl_dra.cluster.claim_relation import relation_of
from kubectl_dra.cluster.cluster import key_of
from kubectl_dra.cluster.snapshot import Event, Snapshot
from kubectl_dra.drivers.health import DriverState, drivers_meant, failed_call, how_unreached
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep
from kubectl_dra.explain.causes.known_defects import left_unprepared
from kubectl_dra.explain.causes.node_filters import reserved_for
from kubectl_dra.explain.causes.on_node import (
    ANSWER,
    DOES_NOT_START,
    drivers_of,
    node_troubles,
    unready_since,
    withdrawn,
)
from kubectl_dra.explain.causes.other_schedulers_groups import placed_without_dra
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.clock import CLAIM_CONTROLLER, Clock, under_way
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.holders import STARTING
from kubectl_dra.explain.phrase import ObjectName, Subject, Words, named, say, subject
from kubectl_dra.scheduling.profile import DEFAULT_SCHEDULER

# What the kubelet writes: its own words are all that tells.
_NO_TIME = re.compile(r"code = DeadlineExceeded")
"""The driver was asked, and said nothing within the 45 s that the kubelet waits."""
_EARLIER = re.compile(r"old ResourceClaim with same name \S+ and different UID")
_OF_CLAIM = re.compile(r"NodePrepareResources failed for ResourceClaim (?P<claim>[^:\s]+)")
_NO_CLAIM_INFO = re.compile(r"unable to get claim info for ")
"""A container starts, and the kubelet has not prepared one of its claims."""
_LEAD = re.compile(r"^((Failed to )?prepare dynamic resources: )+")
"""What every such event starts with."""
NOT_REGISTERED = CauseKind(
    code="driver-not-registered", family=Family.NODE, look=Look.PODS_ON_NODE, state=DOES_NOT_START
)
NO_ANSWER = CauseKind(code="driver-not-answering", family=Family.NODE, look=Look.PODS_ON_NODE, state=DOES_NOT_START)
PREPARE_FAILED = CauseKind(code="prepare-failed", family=Family.NODE, look=Look.PODS_ON_NODE, state=DOES_NOT_START)
NO_TIME = CauseKind(code="prepare-timed-out", family=Family.NODE, look=Look.PODS_ON_NODE, state=DOES_NOT_START)
EARLIER_CLAIM = CauseKind(
    code="earlier-claim-not-unprepared", family=Family.NODE, look=Look.PODS_ON_NODE, state=DOES_NOT_START
)
NOT_RESERVED = CauseKind(code="claim-not-reserved", family=Family.NODE, look=Look.CLAIM, state=DOES_NOT_START)
DRIVER_GONE = CauseKind(code="slices-outlive-driver", family=Family.NODE, look=Look.ONE_NODE, state=DOES_NOT_START)


def _on_node(analysis: Analysis) -> Iterator[Finding]:
    pod, snapshot, claims = analysis.pod, analysis.snapshot, analysis.allocated
    if pod is None or pod.phase not in ("", "Pending"):
        return
    since = pod.condition("PodScheduled").last_transition_time
    for claim in claims:
        if not relation_of(claim, pod).listed:
            yield replace(_not_reserved(claim, pod), under_way=under_way(CLAIM_CONTROLLER, since, snapshot))
    failed = failed_call(pod, snapshot)
    node = snapshot.nodes.get(pod.node_name)
    gone = snapshot.lacks_node(pod.node_name) or (node is not None and node.ready is False)
    if pod.condition("PodReadyToStartContainers").status == "True":
        # The pod has its sandbox, so its devices are prepared: what an event says is over.
        return
    if failed is not None:
        from kubectl_dra.explain.node_driver import on_node, other_root, with_driver

        drivers = drivers_meant(failed.message, claims)
        facts = (*node_troubles(node), *_drivers(pod.node_name, drivers, snapshot))
        finding = _not_prepared(analysis, pod, failed, drivers, gone, facts)
        if not gone:
            # Of the other causes their own pages say more than the kubelet's words.
            said = failed.message if finding.kind is PREPARE_FAILED and finding.remedy is None else ""
            finding = with_driver(finding, on_node(snapshot, drivers, pod.node_name), drivers, said, snapshot)
            if finding.kind is PREPARE_FAILED and finding.remedy is None:
                from kubectl_dra.explain.driver_refusals import remedy_of

                refused = remedy_of(pod, claims, drivers, snapshot)
                # Of what the claim asks for the driver's pod says nothing.
                finding = replace(finding, remedy=refused, next=_claim_of(claims, drivers) if refused else None)
            if finding.kind in (NOT_REGISTERED, NO_ANSWER) and finding.remedy is None and not snapshot.is_gap("Pod"):
                finding = replace(finding, remedy=_away(finding.kind, drivers, pod.node_name, snapshot))
            if finding.kind is NOT_REGISTERED:
                finding = replace(finding, evidence=(*other_root(snapshot, drivers, pod.node_name), *finding.evidence))
        yield finding
    elif gone and not snapshot.events_of(pod, FAILED_PREPARE):
        facts = (*node_troubles(node), *_drivers(pod.node_name, drivers_of(claims), snapshot))
        away = unready_since(pod.node_name, snapshot)
        text = "node {node} is not ready{when}, so nobody starts the pod there"
        when = say(" since {away}", away=away) if away else ""
        from kubectl_dra.explain.node_driver import configured

        yield configured(Finding(DRIVER_GONE, say(text, node=pod.node_name, when=when), facts), pod, claims, away or "")


def _claim_of(claims: Sequence[ResourceClaim], drivers: Sequence[str]) -> NextStep:
    """The first claim with devices of these drivers, as it is written."""
    claim = next(claim for claim in claims if not {*drivers}.isdisjoint(drivers_of([claim])))
    return NextStep(Look.AS_WRITTEN, claim.metadata.name, claim.metadata.namespace, "resourceclaim")


def _not_reserved(claim: ResourceClaim, pod: Pod) -> Finding:
    remedy = None
    if pod.scheduler_name != DEFAULT_SCHEDULER:
        text = (
            "Scheduler {name} placed the pod without reserving the claim. Use a release of it that supports DRA, and "
            "turn that support on; or let the default scheduler place the pod. Then create the pod again."
        )
        remedy = placed_without_dra(pod) or Remedy(say(text, name=pod.scheduler_name))
    summary = say("claim {claim} is allocated, but not reserved for this pod", claim=claim.key)
    return Finding(NOT_RESERVED, summary, (reserved_for(claim),), remedy, claim=claim.key)


def _not_prepared(
    analysis: Analysis, pod: Pod, event: Event, drivers: Sequence[str], gone: bool, facts: Sequence[Evidence]
) -> Finding:
    claims, snapshot = analysis.allocated, analysis.snapshot
    said = _OF_CLAIM.search(event.message)
    own = [claim for claim in claims if said is not None and claim.metadata.name == said["claim"]]
    kind, text = PREPARE_FAILED, "on node {node} the driver could not prepare the devices: {message}"
    remedy: Remedy | None = None
    names = {"drivers": drivers, "node": ObjectName("Node", pod.node_name), "pod": pod.key}
    gone_devices = withdrawn(own or claims, snapshot)
    unreached = how_unreached(event.message)
    if gone and unreached is not None:
        kind, text = DRIVER_GONE, "node {node} is gone or not ready, and its ResourceSlices are left over: {message}"
    elif unreached is DriverState.NOT_ANSWERING:
        kind, text = NO_ANSWER, "the driver on node {node} does not answer the kubelet: {message}"
    elif unreached is not None:
        kind, text = NOT_REGISTERED, "the kubelet of node {node} does not know the driver: {message}"
    elif said is None and _NO_TIME.search(event.message):
        kind, text = NO_TIME, "driver {drivers:some} on node {node} was asked to prepare the devices and did not answer"
    elif _EARLIER.search(event.message):
        kind = EARLIER_CLAIM
        text = (
            "an earlier claim of the same name is still prepared on node {node}: driver {drivers:some} has not given "
            "its devices back"
        )
    elif gone_devices:
        text = (
            "driver {drivers:some} on node {node} could not prepare the devices, and does not publish {devices:some} "
            "any more: {message}"
        )
        remedy = Remedy(say("Delete pod {pod}, so that it is placed again with devices that exist.", **names))
    elif said is not None:
        text = "driver {drivers:some} on node {node} could not prepare the devices: {message}"
    return Finding(
        kind,
        say(text, node=pod.node_name, message=_LEAD.sub("", event.message), drivers=drivers, devices=gone_devices),
        (Evidence(Subject("Event on Pod", named("Pod", pod)), event.reason, event.message), *_times(event), *facts),
        remedy,
    )


def _away(kind: CauseKind, drivers: Sequence[str], node: str, snapshot: Snapshot) -> Remedy:
    """What to do about a driver that the kubelet does not reach: whether its pod runs decides."""
    from kubectl_dra.explain.driver_repair import labelling, wanted_again
    from kubectl_dra.explain.driver_words import pod_named
    from kubectl_dra.explain.node_driver import on_node

    rows = on_node(snapshot, drivers, node)
    pod = next((row.pod for row in rows if row.pod is not None), None)
    if pod is None:
        left = [slice_ for slice_ in snapshot.slices if slice_.driver in drivers and slice_.scope.node_name == node]
        gone = _GONE_WITH_SLICES if left else _GONE
        for row in rows:
            if row.left_out is not None:
                change = say("{change:capital}. {gone}", change=wanted_again(row, row.left_out), gone=gone)
                return Remedy(change, commands=labelling(row))
        text = "Start driver {drivers:some} on node {node}: no pod was recognized as the driver's there. {gone}"
        return Remedy(say(text, drivers=drivers, node=ObjectName("Node", node), gone=gone))
    if kind is NOT_REGISTERED:
        text = (
            "Read the log of pod {pod}, which runs: it registers in another directory than the kubelet's, or the "
            "kubelet refused its version. If the log says neither, restart the pod."
        )
    else:
        text = "Pod {pod} runs and its driver does not answer: restart the pod, and read its log if that does not help."
    return Remedy(say(text, pod=pod_named(pod)))


_GONE: Final = "If the driver is gone for good, delete the pod."
_GONE_WITH_SLICES: Final = (
    "If the driver is gone for good, delete the pod, and the driver's ResourceSlices for the node if they stay."
)


def _times(event: Event) -> Iterator[Evidence]:
    """Number of times an event came, and since when."""
    text = "{count:time} since {first}" if event.count > 1 else "at {first}"
    if first := event.first or event.last:
        yield Evidence("the event", "seen", say(text, count=event.count, first=first))


def _drivers(node: str, drivers: Sequence[str], snapshot: Snapshot) -> Iterator[Evidence]:
    """What drivers still publish for the node."""
    for driver in drivers:
        own = [slice_ for slice_ in snapshot.slices if slice_.driver == driver and slice_.scope.node_name == node]
        created = sorted(slice_.creation_timestamp for slice_ in own if slice_.creation_timestamp)
        text = "{count:ResourceSlice}, the newest created at {time}" if created else "{count:ResourceSlice}"
        value = say(text, count=len(own), time=created[-1] if created else "")
        field = say("publishes for node {node}", node=ObjectName("Node", node))
        yield Evidence(Subject("driver", driver), field, value)


# The pod is on its node and has its devices, the driver prepared them, and still the pod does not run.

_READY = "Ready"
_UNHEALTHY = "Unhealthy"
DEVICE_NOT_READY = CauseKind(
    code="allocated-device-not-ready", family=Family.NODE, look=Look.CLAIM, state=DOES_NOT_START
)
DEVICE_UNHEALTHY = CauseKind(
    code="allocated-device-unhealthy",
    family=Family.NODE,
    look=Look.PODS_ON_NODE,
    state="has a device that is unhealthy",
)
NOT_STARTED = CauseKind(code="pod-does-not-start", family=Family.NODE, look=Look.POD, state=DOES_NOT_START)


def _of_devices(analysis: Analysis) -> Iterator[Finding]:
    pod = analysis.pod
    if pod is None or pod.finished or not pod.node_name:
        return
    if pod.phase in ("", "Pending"):
        yield from _not_ready(analysis)
    yield from _unhealthy(pod)


def _not_ready(analysis: Analysis) -> Iterator[Finding]:
    for claim in analysis.allocated:
        for device_status in claim.device_statuses:
            for condition in device_status.conditions:
                kind, status = str(condition.get("type") or ""), condition.get("status")
                if not kind.endswith(_READY) or status != "False":
                    continue
                since = str(condition.get("lastTransitionTime") or "")
                said = [str(part) for name in ("reason", "message") if (part := condition.get(name))]
                text = "its driver reports {device} as not ready{said}"
                about = say("status.devices[{device}] {kind}", device=device_status.device, kind=kind)
                value = say("{said: else False}", said=said)
                yield Finding(
                    DEVICE_NOT_READY,
                    say(text, device=device_status.device, said=say(": {said}", said=said) if said else ""),
                    (Evidence(subject("ResourceClaim", claim), about, value),),
                    claim=claim.key,
                    under_way=under_way(str(device_status.device.driver), since, analysis.snapshot),
                )
                return


def _unhealthy(pod: Pod) -> Iterator[Finding]:
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        for status in container.allocated_resources_status:
            for resource in status.resources:
                if resource.health == _UNHEALTHY:
                    names = {"resource": resource.resource_id, "name": status.name, "container": container.name}
                    said = say(": {said}", said=resource.message) if resource.message else ""
                    text = "the kubelet reports {resource} of {name} in container {container} as unhealthy{said}"
                    about = say("status of container {container}, {name}", **names)
                    value = say("{resource}: Unhealthy{said}", said=said, **names)
                    fact = Evidence(subject("Pod", pod), about, value)
                    yield Finding(DEVICE_UNHEALTHY, say(text, said=said, **names), (fact,))
                    return


def _other(analysis: Analysis) -> Iterator[Finding]:
    """Another reason, or none that anybody wrote down."""
    pod, snapshot = analysis.pod, analysis.snapshot
    if pod is None or not pod.node_name or pod.finished or not analysis.allocated:
        return
    if pod.metadata.deletion_timestamp:
        # That it did not start matters no more.
        return
    own = subject("Pod", pod)
    containers = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    unusual = (status for status in containers if status.state.waiting and status.state.waiting.reason not in _USUAL)
    waiting = next(unusual, None)
    if waiting is not None and waiting.state.waiting is not None:
        why = waiting.state.waiting
        words = {"name": waiting.name, "reason": why.reason, "said": why.message}
        text = "container {name} waits: {reason}, {said}" if why.message else "container {name} waits: {reason}"
        fact = Evidence(own, say("container {name}", **words), say("{reason}", **words))
        from kubectl_dra.explain.node_driver import with_meaning

        claims = analysis.allocated
        finding = Finding(NOT_STARTED, say(text, **words), (fact,))
        if waiting.last_state.terminated is not None:
            finding = _crashed(pod, waiting)
        finding = with_meaning(finding, why.message, claims)
        yield left_unprepared(finding, pod, claims, snapshot) if _NO_CLAIM_INFO.search(why.message) else finding
        return
    failed = (
        status
        for status in pod.status.container_statuses
        if status.state.terminated and status.state.terminated.exit_code
    )
    ended = next(failed, None)
    if ended is not None and ended.state.terminated is not None:
        yield _crashed(pod, ended)
        return
    if pod.phase != "Pending" or _prepare_failed(analysis, pod):
        return
    clock = Clock(snapshot)
    since = pod.status.start_time or pod.metadata.creation_timestamp
    events = snapshot.events_about("Pod", *key_of(pod))
    warnings = [event for event in events if event.type == "Warning" and event.reason != "FailedScheduling"]
    node = ObjectName("Node", pod.node_name)
    if warnings:
        warning = warnings[-1]
        fact = Evidence(Subject("Event on Pod", named("Pod", pod)), warning.reason, warning.message)
        text = "on node {node} it is Pending{lasting}; last warning: {reason}, {message}"
        words = {"reason": warning.reason, "message": warning.message}
    elif _slow(pod, clock):
        yield _not_begun(analysis, pod, clock)
        return
    elif clock.age(since) >= STARTING:
        fact = Evidence(own, "status.startTime", since)
        text, words = "on node {node} it is Pending{lasting}, and no event that was seen says why", {}
    else:
        return
    yield Finding(NOT_STARTED, say(text, node=node, lasting=clock.lasting(since), **words), (fact,))


def _crashed(pod: Pod, container: ContainerStatus) -> Finding:
    """A container of the pod ended with an error: devices have nothing to do with it, its log says why."""
    now, before = container.state.terminated, container.last_state.terminated
    last = now or before
    code, at = (last.exit_code, last.finished_at) if last is not None else (0, "")
    words: dict[str, Words] = {
        "name": container.name,
        "code": str(code),
        "when": say(" at {at}", at=at) if at else "",
        "often": say(", after {count:restart}", count=container.restart_count) if container.restart_count else "",
    }
    waits = container.state.waiting
    shown = say("{reason}{often}", reason=waits.reason, **words) if waits is not None else say("ended{often}", **words)
    look = Look.LOG if now is not None else Look.LOG_BEFORE
    return Finding(
        NOT_STARTED,
        say("container {name} ended with exit code {code}{when}{often}", **words),
        (Evidence(subject("Pod", pod), say("container {name}", **words), shown),),
        Remedy(say("Read the log of container {name}, where the reason is: the devices are prepared.", **words)),
        next=NextStep(look, pod.metadata.name, pod.metadata.namespace, container.name),
    )


def _slow(pod: Pod, clock: Clock) -> bool:
    """Whether the kubelet has had the time to prepare a pod's devices, and has not."""
    ready = pod.condition("PodReadyToStartContainers")
    since = pod.status.start_time or pod.condition("PodScheduled").last_transition_time
    if pod.status.start_time and (not ready.type or ready.status == "True"):
        return False
    return clock.age(since) >= ANSWER


def _not_begun(analysis: Analysis, pod: Pod, clock: Clock) -> Finding:
    """No event says why: the kubelet has not looked at the pod, or waits for an answer."""
    node, own = ObjectName("Node", pod.node_name), subject("Pod", pod)
    since = pod.status.start_time or pod.condition("PodScheduled").last_transition_time
    words = {"node": node, "drivers": drivers_of(analysis.allocated), "since": since}
    if not pod.status.start_time:
        text = "the kubelet of node {node} has not looked at it since it was placed there at {since}"
        change = "Look at the kubelet of node {node}: it is stopped, or cannot reach the API server."
        unset = Evidence(own, "status.startTime", "not set")
        look = NextStep(Look.ONE_NODE, pod.node_name)
        return Finding(NOT_STARTED, say(text, **words), (unset,), Remedy(say(change, **words)), next=look)
    text = (
        "on node {node} its devices are not prepared since {since}, and no event says why: the kubelet waits for "
        "driver {drivers:some}, or for a volume"
    )
    change = "Read the logs of the kubelet and of driver {drivers:some} on node {node}."
    unset = Evidence(own, "condition PodReadyToStartContainers", "not True")
    facts = (Evidence(own, "status.startTime", since), unset)
    return Finding(NOT_STARTED, say(text, **words), facts, Remedy(say(change, **words)))


_USUAL = frozenset(("", "ContainerCreating", "PodInitializing"))


def _prepare_failed(analysis: Analysis, pod: Pod) -> bool:
    """Whether something that has to do with devices tells it already."""
    node = analysis.snapshot.nodes.get(pod.node_name)
    reported = bool(analysis.snapshot.events_of(pod, FAILED_PREPARE))
    barred = any(not relation_of(claim, pod).listed for claim in analysis.allocated)
    return reported or barred or (node is not None and node.ready is False) or any(True for _ in _not_ready(analysis))


FINDERS = (
    Finder(When.PLACED, _on_node),
    Finder(When.PLACED, _of_devices, 10),
    Finder(When.PLACED, _other, 20),
)
