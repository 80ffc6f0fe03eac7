"""Pods that fit, and are not placed: what the scheduler said last, and whether it has to try again only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes import claim as claim_causes
from kubectl_dra.explain.causes import devices as device_causes
from kubectl_dra.explain.causes import pod as causes
from kubectl_dra.explain.diagnosis import Cause, CauseKind, Evidence
from kubectl_dra.explain.scene.prepare import Case
from kubectl_dra.explain.unscheduled import consumers
from kubectl_dra.wording import some

MAX_CONFIGS: Final = 64
_SCALERS: Final = ("cluster-autoscaler", "karpenter")
_ABOUT_DEVICES: Final = re.compile(
    r"cannot allocate all claims|allocate devices|[Rr]esource ?[Cc]laim|device class|\bclaim\b"
)
_SAID: Final[tuple[tuple[re.Pattern[str], CauseKind], ...]] = (
    (re.compile(r"is in the process of being allocated"), claim_causes.IN_FLIGHT),
    (re.compile(r"got (?:deleted|(?:de)?allocated elsewhere) in the meantime"), claim_causes.CHANGED),
    (re.compile(r"timed out trying to allocate devices"), device_causes.SLOW),
    (re.compile(r"changing status\.allocation or status\.reservedFor requires"), causes.BINDING_DENIED),
)
PERMANENT: Final = frozenset((causes.BINDING_DENIED,))
"""What does not pass by itself, although the devices are there."""


def last_word(pod: Pod, snapshot: Snapshot) -> tuple[str, str, str]:
    """Source, message and time of what the scheduler said last of a pod that waits; empty where it said nothing."""
    condition = pod.condition("PodScheduled")
    events = [
        event
        for event in snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
        if event.reason == "FailedScheduling"
        and event.component not in _SCALERS
        and (not event.uid or not pod.metadata.uid or event.uid == pod.metadata.uid)
    ]
    if events and not (condition and condition.last_transition_time > events[-1].last):
        return f"Event on Pod {pod.key}", events[-1].message, events[-1].last
    if condition is not None and condition.status == "False":
        return f"Pod {pod.key}", condition.message, condition.last_transition_time
    return "", "", ""


def waiting(case: Case) -> Iterator[Cause]:
    """Why a pod whose claims fit is not placed: at most one cause.

    With a change that is only supposed, the scheduler does not try again to any end: what passes is no cause.
    """
    pod = case.question.pod
    if pod is None or not case.question.exists or pod.node_name or pod.finished:
        return
    source, message, time = last_word(pod, case.snapshot)
    if not message or not _ABOUT_DEVICES.search(message):
        return
    supposed = bool(case.settings.supposed)
    said = Evidence(source, f"said at {time}" if time else "said", message)
    for pattern, kind in _SAID:
        if pattern.search(message) and (kind in PERMANENT or not supposed):
            yield Cause(kind, f"the scheduler says: {message}", (said, *_other_consumers(case, pod)), kind.fix)
            return
    if supposed:
        return
    newer = _newer(case, time)
    if newer:
        kind = causes.CHANGED_SINCE
        yield Cause(kind, f"{newer[0].object} is newer than the scheduler's last attempt", (said, *newer), kind.fix)
        return
    kind = causes.RETRY
    unseen = Evidence("what changed since", "not seen", "a deletion, or an update: objects do not tell when")
    when = f" at {time}" if time else ""
    yield Cause(
        kind, f"the scheduler's last attempt{when} failed, and it has not tried again", (said, unseen), kind.fix
    )


def not_looked_at(case: Case, causes: Sequence[Cause]) -> str:
    """A note where no scheduler has left a word on a pod that fits: normal for a moment, else it does not run."""
    pod = case.question.pod
    if pod is None or causes or not case.question.exists or pod.node_name or pod.finished:
        return ""
    if pod.condition("PodScheduled") is not None or last_word(pod, case.snapshot)[1]:
        return ""
    return (
        "no scheduler has reported on the pod yet (no condition PodScheduled): if that stays so, see whether "
        f"{pod.scheduler_name} runs"
    )


def _other_consumers(case: Case, asking: Pod) -> Iterator[Evidence]:
    """Other pods that use the claims which are to be allocated."""
    for claim in case.unallocated:
        others = [pod for pod in consumers(claim, case.snapshot) if pod.key != asking.key]
        if others:
            states = [f"{pod.key} ({'on ' + pod.node_name if pod.node_name else pod.phase or '?'})" for pod in others]
            yield Evidence(f"ResourceClaim {claim.key}", "other pods that use it", some(states))


def _newer(case: Case, time: str) -> list[Evidence]:
    """Objects made after the scheduler's last word, the newest first. Times are RFC 3339 in UTC, so text compares."""
    if not time:
        return []
    found = [
        (entry.creation_timestamp, f"ResourceSlice {entry.name}")
        for entry in case.view.cycle.index.slices
        if entry.creation_timestamp > time
    ]
    found += [
        (entry.metadata.creation_timestamp, f"DeviceClass {entry.name}")
        for entry in case.view.cycle.classes.values()
        if entry.metadata.creation_timestamp > time
    ]
    return [Evidence(name, "metadata.creationTimestamp", at) for at, name in sorted(found, reverse=True)[:3]]


def not_scaled(case: Case) -> Iterator[Cause]:
    """What a cluster autoscaler said of the pod, and to which nodes the devices are bound."""
    pod = case.question.pod
    if pod is None or pod.node_name:
        return
    events = [
        event
        for event in case.snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
        if event.reason == "NotTriggerScaleUp"
        or (event.component == "karpenter" and event.reason == "FailedScheduling")
    ]
    if not events:
        return
    event = events[-1]
    slices = case.view.cycle.index.slices
    bound = sum(1 for entry in slices if entry.scope.node_name)
    scope = f"{bound} of {len(slices)} name an existing node" if slices else "there are none"
    kind = causes.NO_SCALE_UP
    yield Cause(
        kind,
        f"{event.component or 'the autoscaler'} adds no node for the pod: {event.message}",
        (Evidence(f"Event on Pod {pod.key}", event.reason, event.message), Evidence("ResourceSlices", "nodes", scope)),
        kind.fix,
    )
