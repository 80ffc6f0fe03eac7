"""The pod is on its node and has its devices, the driver prepared them, and still the pod does not run."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Event
from kubectl_dra.explain.causes.node_does_not_start_pod import DOES_NOT_START
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import ObjectName, Subject, named, say
from kubectl_dra.explain.scene.clock import Clock, under_way
from kubectl_dra.explain.scene.holders import STARTING
from kubectl_dra.explain.trial import Trial

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


def _of_devices(trial: Trial) -> Iterator[Finding]:
    pod = trial.question.pod
    if pod is None or pod.finished or not pod.node_name:
        return
    if pod.phase in ("", "Pending"):
        yield from _not_ready(trial)
    yield from _unhealthy(pod)


def _not_ready(trial: Trial) -> Iterator[Finding]:
    for claim in trial.scene.allocated:
        for entry in claim.device_statuses:
            for condition in entry.conditions:
                kind, status = str(condition.get("type") or ""), condition.get("status")
                if not kind.endswith(_READY) or status != "False":
                    continue
                since = str(condition.get("lastTransitionTime") or "")
                said = [str(part) for name in ("reason", "message") if (part := condition.get(name))]
                text = "its driver reports {device} as not ready{said}"
                yield Finding(
                    DEVICE_NOT_READY,
                    say(text, device=entry.device, said=say(": {said}", said=said) if said else ""),
                    (
                        Evidence(
                            Subject("ResourceClaim", named("ResourceClaim", claim)),
                            say("status.devices[{device}] {kind}", device=entry.device, kind=kind),
                            say("{said: else False}", said=said),
                        ),
                    ),
                    claim=claim.key,
                    under_way=under_way(str(entry.device.driver), since, trial.scene.snapshot),
                )
                return


def _unhealthy(pod: Pod) -> Iterator[Finding]:
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        for entry in container.allocated_resources_status:
            for resource in entry.resources:
                if resource.health == _UNHEALTHY:
                    where = {"resource": resource.resource_id, "name": entry.name, "container": container.name}
                    yield Finding(
                        DEVICE_UNHEALTHY,
                        say("the kubelet reports {resource} of {name} in container {container} as unhealthy", **where),
                        (
                            Evidence(
                                Subject("Pod", named("Pod", pod)),
                                say("status of container {container}, {name}", **where),
                                say("{resource}: Unhealthy", **where),
                            ),
                        ),
                    )
                    return


def _other(trial: Trial) -> Iterator[Finding]:
    """Another reason, or none that anybody wrote down."""
    pod, snapshot = trial.question.pod, trial.scene.snapshot
    if pod is None or not pod.node_name or pod.finished or not trial.scene.allocated:
        return
    own = Subject("Pod", named("Pod", pod))
    waiting = next(
        (
            entry
            for entry in (*pod.status.init_container_statuses, *pod.status.container_statuses)
            if entry.state.waiting is not None and entry.state.waiting.reason not in _USUAL
        ),
        None,
    )
    if waiting is not None and waiting.state.waiting is not None:
        why = waiting.state.waiting
        words = {"name": waiting.name, "reason": why.reason, "said": why.message}
        text = "container {name} waits: {reason}, {said}" if why.message else "container {name} waits: {reason}"
        fact = Evidence(own, say("container {name}", **words), say("{reason}", **words))
        yield Finding(NOT_STARTED, say(text, **words), (fact,))
        return
    if pod.phase != "Pending" or _prepare_failed(trial, pod):
        return
    clock = Clock(snapshot)
    since = pod.status.start_time or pod.metadata.creation_timestamp
    warning = _last_warning(snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name))
    node = ObjectName("Node", pod.node_name)
    if warning is not None:
        fact = Evidence(Subject("Event on Pod", named("Pod", pod)), warning.reason, warning.message)
        text = "on node {node} it is Pending{lasting}; last warning: {reason}, {message}"
        words = {"reason": warning.reason, "message": warning.message}
    elif clock.age(since) >= STARTING:
        fact = Evidence(own, "status.startTime", since)
        text, words = "on node {node} it is Pending{lasting}, and no event that was seen says why", {}
    else:
        return
    yield Finding(NOT_STARTED, say(text, node=node, lasting=clock.lasting(since), **words), (fact,))


_USUAL = frozenset(("", "ContainerCreating", "PodInitializing"))


def _prepare_failed(trial: Trial, pod: Pod) -> bool:
    """Whether something that has to do with devices tells it already."""
    node = trial.scene.snapshot.nodes.get(pod.node_name)
    events = trial.scene.snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
    told = any(event.reason == "FailedPrepareDynamicResources" for event in events)
    return told or (node is not None and node.ready is False) or any(True for _ in _not_ready(trial))


def _last_warning(events: tuple[Event, ...]) -> Event | None:
    late = [event for event in events if event.type == "Warning" and event.reason != "FailedScheduling"]
    return late[-1] if late else None


FINDERS = (Finder(When.PLACED, _of_devices, 10), Finder(When.PLACED, _other, 20))
