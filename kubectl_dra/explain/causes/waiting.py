"""The scheduler will try again: it makes room for the pod, has not tried since a change, or waits for a device."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from kubectl_dra.api.behaviour import CLAIM_EVENT_MISSED
from kubectl_dra.api.claims import DeviceResult, ResourceClaim
from kubectl_dra.api.meta import JSONObject
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.claim_relation import relation_of, waiting_for
from kubectl_dra.command import CommandEffect, kubectl
from kubectl_dra.data.messages import Speaker
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.pools_and_limits import SLOW
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.clock import Clock
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import Joined, ObjectName, Phrase, Subject, Words, by_key, named, say, subject, the_node
from kubectl_dra.explain.question.resolve import LastMessage, last_message
from kubectl_dra.scheduling.default_preemption import Candidate, Preemption, VictimsEnding
from kubectl_dra.scheduling.outcome import SCHEDULER_ERROR

MAX_CANDIDATES = 5
_PIPELINED = "Pipelined"
EVICTS = CauseKind(code="preemption-makes-room", family=Family.POD, look=Look.POD)
ENDING = CauseKind(code="victims-still-ending", family=Family.POD, look=Look.POD)


def _pipelined(analysis: Analysis) -> Iterator[Finding]:
    """KAI has evicted others for the pod, and said nothing newer."""
    if (pod := analysis.question.waiting_pod) is None:
        return
    said = analysis.snapshot.events_of(pod, _PIPELINED, "FailedScheduling", "Unschedulable", "Scheduled")
    for event in said[-1:]:
        if event.reason == _PIPELINED and event.speaker is Speaker.KAI:
            text = "{who} has chosen a node for it, and waits until pods there have ended: {said}"
            seen = Evidence(Subject("Event on Pod", named("Pod", pod)), event.reason, event.message)
            summary = say(text, who=str(event.speaker), said=event.message)
            yield Finding(ENDING, summary, (seen,), state="waits for other pods to end", normal=True)


def _making_room(analysis: Analysis) -> Iterator[Finding]:
    outcome = analysis.outcome
    preemption = outcome.preemption if outcome is not None else None
    if preemption is None:
        return
    if isinstance(preemption.ineligible, VictimsEnding):
        node, victims = preemption.ineligible.node, preemption.ineligible.victims
        text = "the scheduler evicted {victims:some} on {node} for it, and {count:that has|they have} not ended yet"
        summary = say(text, victims=victims, count=len(victims), node=node)
        facts = tuple(
            Evidence(Subject("Pod", by_key("Pod", victim)), "metadata.deletionTimestamp", "set") for victim in victims
        )
        yield Finding(ENDING, summary, facts)
        return
    if not preemption.best:
        return
    seen = (*_victims(preemption.best), *_sample(preemption))
    yield Finding(EVICTS, _eviction(preemption), seen, Remedy(EVICTS.fix))


def _eviction(preemption: Preemption) -> Words:
    """The pods that are evicted. Among several nodes without preference, the scheduler's choice is unknown."""
    best = preemption.best
    first = best[0]
    if preemption.enough:
        text = "the scheduler evicts pods on one of {count:,} nodes to make room"
        return say(text, count=len(preemption.candidates))
    if len(best) > 1:
        text = "the scheduler evicts pods on one of {nodes:some} ({count:pod} each) to make room"
        return say(text, nodes=[candidate.node for candidate in best], count=len(first.victims))
    names = [victim.key for victim in first.victims]
    return say("the scheduler evicts {victims:some} on {node} to make room", victims=names, node=first.node)


def _victims(best: Sequence[Candidate]) -> Iterator[Evidence]:
    for candidate in best[:MAX_CANDIDATES]:
        names = [named("Pod", victim) for victim in candidate.victims]
        text = "{victims:some 12}"
        if candidate.violations:
            text += "; {broken} of them against a PodDisruptionBudget"
        shown = say(text, victims=names, broken=candidate.violations)
        yield Evidence(the_node(candidate.node), "would be evicted there", shown)
    if (more := len(best) - MAX_CANDIDATES) > 0:
        yield Evidence("the scheduler", "has no preference", say("{count:more node} as good", count=more))


def _sample(preemption: Preemption) -> Iterator[Evidence]:
    """A note that the scheduler may not reach the best of all candidates."""
    if preemption.enough:
        text = "{enough:,} of {count:,} nodes where evictions help, from a random one on: it may evict on another one"
        seen = say(text, enough=preemption.enough, count=len(preemption.candidates))
        yield Evidence("the scheduler", "looks at", seen)


# The pod fits but is not placed: the scheduler's last message, and whether something has changed since.

IN_FLIGHT = CauseKind(code="claim-allocation-in-flight", family=Family.CLAIM, look=Look.EXPLAIN_POD)
CHANGED = CauseKind(code="claim-changed-meanwhile", family=Family.CLAIM, look=Look.POD)
RETRY = CauseKind(code="waiting-for-retry", family=Family.POD, look=Look.POD)
CHANGED_SINCE = CauseKind(code="changed-since-last-attempt", family=Family.POD, look=Look.POD)
BINDING_DENIED = CauseKind(code="scheduler-not-permitted", family=Family.POD, look=Look.POD, never_binds=True)
LATE: Final = timedelta(seconds=30)
"""A scheduler that has noticed a change has tried again by then."""
UNTIL_FLUSHED: Final = timedelta(minutes=6)
"""By then it tries every waiting pod again, whatever changed (unschedulable pods are flushed after 5 minutes)."""
# What kube-scheduler writes: its own words are all that tells.
_SAID: Final[tuple[tuple[re.Pattern[str], CauseKind], ...]] = (
    (re.compile(r"is in the process of being allocated"), IN_FLIGHT),
    (re.compile(r"got (?:deleted|(?:de)?allocated elsewhere) in the meantime"), CHANGED),
    (re.compile(r"timed out trying to allocate devices"), SLOW),
    (re.compile(r"changing status\.allocation or status\.reservedFor requires"), BINDING_DENIED),
)


def _waiting(analysis: Analysis) -> Iterator[Finding]:
    """At most one cause. With a hypothetical change, causes that resolve themselves do not count."""
    pod = analysis.question.waiting_pod
    if pod is None or not analysis.question.exists:
        return
    if not analysis.scheduler.schedules(pod):
        return
    word = last_message(pod, analysis.snapshot)
    if word is None or not word.message:
        return
    about = Subject("Event on Pod" if word.event else "Pod", named("Pod", pod))
    said = Evidence(about, say("said at {time}", time=word.time) if word.time else "said", word.message)
    from kubectl_dra.explain.answer_notes import changes

    since = changes(analysis, pod, word)
    supposed = bool(analysis.settings.supposed)
    for pattern, kind in _SAID:
        if pattern.search(word.message) and (kind.never_binds or not supposed):
            summary = say("the scheduler says: {message}", message=word.message)
            yield Finding(kind, summary, (said, *since, *_other_consumers(analysis, pod)), contrary=not since)
            return
    if supposed:
        return
    if since:
        summary = say("{object} changed after the scheduler's last attempt", object=since[0].object)
        yield Finding(CHANGED_SINCE, summary, (said, *since, *_missed(analysis, word)))
        return
    unseen = Evidence("what changed since", "not seen", "a deletion, or an update: objects do not tell when")
    text = "the scheduler{when} said otherwise, and nothing that can be seen has changed since: {message}"
    when = say(" at {time}", time=word.time) if word.time else ""
    facts = (said, unseen, *_missed(analysis, word))
    # A DeviceClass is the only thing that wakes pods by any change of it.
    classes = [spec.device_class for claim in analysis.claims for spec in claim.alternatives()]
    wake = (
        kubectl("annotate", kind="deviceclass", name=name, more=_AGAIN, effect=CommandEffect.WRITES)
        for name in classes[:1]
    )
    remedy = Remedy(RETRY.fix, commands=tuple(wake))
    yield Finding(RETRY, say(text, when=when, message=word.message), facts, remedy, contrary=True)


_AGAIN = ("kubectl-dra/retry=now", "--overwrite")


def _missed(analysis: Analysis, word: LastMessage) -> Iterator[Evidence]:
    """Evidence that the scheduler may have missed a change of a claim, where it has had the time to react."""
    scheduler, defect = analysis.scheduler, CLAIM_EVENT_MISSED
    if not (analysis.allocated or analysis.claims) or not defect.affects(scheduler.release, scheduler.patch):
        return
    if LATE <= Clock(analysis.snapshot).age(word.time) < UNTIL_FLUSHED:
        text = "a change of a claim, and the pod waits up to 5 minutes ({reference}, fixed in {fixes:some})"
        yield Evidence("the scheduler", "may have missed", say(text, reference=defect.reference, fixes=defect.fixes))


def _other_consumers(analysis: Analysis, asking: Pod) -> Iterator[Evidence]:
    """Other pods that use the claims to be allocated."""
    for claim in analysis.claims:
        states: list[Phrase] = []
        for pod in waiting_for(claim, analysis.snapshot):
            if pod.key != asking.key:
                where = say("on {node}", node=ObjectName("Node", pod.node_name)) if pod.node_name else pod.phase or "?"
                states.append(say("{pod} ({where})", pod=named("Pod", pod), where=where))
        if states:
            shown = say("{states:some}", states=states)
            yield Evidence(subject("ResourceClaim", claim), "other pods that use it", shown)


# The pod is placed, and not bound yet: a device that it is to get has conditions for that.

BINDING_PENDING = CauseKind(
    code="binding-condition-pending",
    state="has its devices, but is not bound to its node yet",
    family=Family.CLAIM,
    look=Look.CLAIM,
)
BINDING_FAILED = CauseKind(code="binding-failed", family=Family.CLAIM, look=Look.CLAIM)
ATTACHED = timedelta(minutes=1)
"""Time to attach a device before somebody should look after it."""


def _before_binding(analysis: Analysis) -> Iterator[Finding]:
    pod = analysis.pod
    if pod is not None and not pod.node_name and not pod.finished:
        yield from _not_ready(analysis)


def _of_claim(analysis: Analysis) -> Iterator[Finding]:
    if analysis.pod is None:
        yield from _not_ready(analysis)


def _not_ready(analysis: Analysis) -> Iterator[Finding]:
    if not analysis.view.cycle.features.binding_conditions:
        return
    for claim in analysis.allocated:
        for result in claim.results:
            conditions = claim.reported(result)
            true = {name for name, condition in conditions.items() if condition.get("status") == "True"}
            for name in result.binding_failure_conditions:
                if name in true:
                    yield _failed(claim, result, name, _said(conditions[name]))
                    return
            missing = [name for name in result.binding_conditions if name not in true]
            if missing:
                yield _pending(analysis, claim, result, missing, conditions)
                return


def _said(condition: JSONObject) -> tuple[str, ...]:
    return tuple(part for name in ("reason", "message") if (part := condition.get(name)))


def _field(result: DeviceResult, name: str) -> Words:
    return say("status.devices[{device}] {name}", device=result.device, name=name)


def _failed(claim: ResourceClaim, result: DeviceResult, name: str, parts: tuple[str, ...]) -> Finding:
    said = Joined(parts, ": ")
    text = "device {device} of claim {claim} failed to get ready: {name} is True"
    summary = say(text + (" ({said})" if parts else ""), device=result.device, claim=claim.key, name=name, said=said)
    fact = Evidence(subject("ResourceClaim", claim), _field(result, name), say("True, {said}", said=said))
    return Finding(BINDING_FAILED, summary, (fact,), claim=claim.key, request=result.request)


def _pending(
    analysis: Analysis,
    claim: ResourceClaim,
    result: DeviceResult,
    missing: Sequence[str],
    conditions: Mapping[str, JSONObject],
) -> Finding:
    pod, snapshot = analysis.pod, analysis.snapshot
    own = subject("ResourceClaim", claim)
    evidence = [Evidence(own, _field(result, name), _state(conditions.get(name))) for name in missing]
    if claim.allocation is not None and claim.allocation.timestamp:
        evidence.append(Evidence(own, "status.allocation.allocationTimestamp", claim.allocation.timestamp))
    text = "device {device} of claim {claim} is not ready: the scheduler waits for {missing}"
    since = claim.allocation.timestamp if claim.allocation is not None else ""
    remedy = None
    if pod is not None and _given_up(pod, claim):
        text = (
            "device {device} of claim {claim} was not ready in time: the scheduler has given up waiting for {missing}, "
            "takes the device back and tries again"
        )
    elif since and Clock(snapshot).age(since) < ATTACHED:
        change = (
            "Wait: the device was allocated at {since}, and is attached to its node within minutes. If it takes "
            "longer, look at the driver or fabric controller that sets the condition."
        )
        remedy = Remedy(say(change, since=since))
    summary = say(text, device=result.device, claim=claim.key, missing=tuple(missing))
    return Finding(
        BINDING_PENDING, summary, tuple(evidence), remedy, claim=claim.key, request=result.request, normal=bool(remedy)
    )


def _given_up(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether the scheduler has waited until its bindingTimeout: it then gives the reservation back, and reports."""
    condition = pod.condition("PodScheduled")
    return condition.reason == SCHEDULER_ERROR and not relation_of(claim, pod).listed


def _state(condition: JSONObject | None) -> Words:
    """A condition that is not True."""
    if condition is None:
        return "not set"
    said, status = _said(condition), condition.get("status") or "no status"
    return say("{state}, {said}" if said else "{state}", state=status, said=Joined(said, ": "))


FINDERS = (
    Finder(When.SCENE, _pipelined, 3),
    Finder(When.FAILS, _making_room, 5),
    Finder(When.FITS, _waiting, 60),
    Finder(When.SCENE, _before_binding, 20),
    Finder(When.PLACED, _of_claim),
)
