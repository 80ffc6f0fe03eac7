"""Sentences of a diagnosis: the answer, what Kubernetes wrote, what was not seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubectl_dra.allocation.attempt import Attempt
from kubectl_dra.allocation.attempt import Verdict as Outcome
from kubectl_dra.api.events import DEVICE_EVENTS
from kubectl_dra.cluster.snapshot import ABSENT, NOT_SERVED, Gap, Snapshot
from kubectl_dra.explain.causes import claim as claim_causes
from kubectl_dra.explain.causes import node as node_causes
from kubectl_dra.explain.causes import pod as pod_causes
from kubectl_dra.explain.diagnosis import Cause, SchedulerWord, Verdict
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.wording import amount, some

# Nothing is scheduled any more: their summary, "the pod …", is the answer.
_ABOUT_THE_POD = (node_causes.EVICTED, pod_causes.FINISHED)


def has_ended(causes: Sequence[Cause]) -> bool:
    """Whether the first cause is that the pod has ended or is evicted: it never gets devices any more."""
    return bool(causes) and causes[0].kind in _ABOUT_THE_POD


def answer(
    question: Question,
    verdict: Verdict,
    causes: Sequence[Cause],
    undetermined: Sequence[str],
    attempts: Mapping[str, Attempt],
    supposed: int = 0,
) -> str:
    """The answer in one sentence; ``supposed`` is the number of changes with which it holds, and not without."""
    subject = f"{'Pod' if question.kind == 'pod' else 'Claim'} {question.namespace}/{question.name}"
    changed = f" with {'this change' if supposed == 1 else 'these changes'}" if supposed else ""
    if verdict is Verdict.UNDETERMINED:
        return f"{subject}: undetermined: {undetermined[0] if undetermined else 'the search did not end in time'}."
    if verdict is Verdict.ALLOCATED:
        return _allocated(subject, question, causes)
    if verdict is Verdict.ALLOCATABLE:
        nodes = [name for name, attempt in attempts.items() if attempt.verdict is Outcome.ALLOCATED]
        can, fits, fit = ("could", "would fit", "would fit") if supposed else ("can", "fits", "fit")
        if question.kind == "claim":
            unused = f", but it is pending: {causes[0].summary}" if causes else ""
            where = f"{amount(len(nodes), 'node')} ({some(nodes)})"
            return f"{subject} {can} be allocated{changed}: it {fits} on {where}{unused}."
        if not question.claims:
            return f"{subject} uses no resource claims: devices do not keep it pending."
        still = f"; it still waits: {causes[0].summary}".removesuffix(".") if causes else ""
        if not nodes:
            return f"{subject} {can} be scheduled{changed}: its claims are allocated already{still}."
        where = f"{amount(len(nodes), 'node')} ({some(nodes)})"
        return f"{subject} {can} be scheduled{changed}: its claims {fit} on {where}{still}."
    more = f" (and {amount(len(causes) - 1, 'further cause')})" if len(causes) > 1 else ""
    if has_ended(causes):
        return f"{subject} {causes[0].summary.removeprefix('the pod ')}{more}."
    verb = f"cannot be {'scheduled' if question.kind == 'pod' else 'allocated'}{changed}{' either' if supposed else ''}"
    if causes and causes[0].kind is claim_causes.BINDING_PENDING:
        verb = "has its devices, but is not bound to its node yet"
    return f"{subject} {verb}: {causes[0].summary if causes else 'no reason found'}{more}."


def _allocated(subject: str, question: Question, causes: Sequence[Cause]) -> str:
    held = [
        str(result.device)
        for state in question.claims
        if state.claim is not None and state.claim.allocation is not None
        for result in state.claim.allocation.results
    ]
    where = f" on node {question.pod.node_name}" if question.pod is not None and question.pod.node_name else ""
    problem = f"; but {causes[0].summary}" if causes else ""
    return f"{subject} is allocated{where}: {some(held) or 'no devices needed'}{problem}."


def scheduler_words(question: Question, snapshot: Snapshot) -> Iterator[SchedulerWord]:
    """What the pod's conditions and events say."""
    if question.pod is None:
        return
    condition = question.pod.condition("PodScheduled")
    if condition is not None and condition.status == "False":
        yield SchedulerWord(
            "condition PodScheduled", condition.reason, condition.message, condition.last_transition_time
        )
    for event in snapshot.events_about("Pod", question.namespace, question.pod.metadata.name):
        if event.reason in DEVICE_EVENTS and not (condition and event.message == condition.message):
            yield SchedulerWord("event", event.reason, event.message, event.last)


# Kinds whose absence from a saved snapshot says nothing: most clusters or questions do without them.
_OPTIONAL = frozenset(("ResourceClaimTemplate", "DeviceTaintRule", "Namespace", "ResourceQuota", "Event"))


def gap(missing: Gap) -> str:
    """What could not be read, and why."""
    where = f" in namespace {missing.namespace}" if missing.namespace else ""
    if missing.reason == ABSENT:
        return f"no {missing.kind} in the snapshot"
    detail = f": {missing.detail}" if missing.detail else ""
    return f"{missing.kind}{where}: {missing.reason}{detail}"


def gap_notes(snapshot: Snapshot) -> Iterator[str]:
    """What was not seen and may matter."""
    for missing in snapshot.gaps:
        if missing.reason == ABSENT and missing.kind in _OPTIONAL:
            continue
        if missing.reason == NOT_SERVED and missing.kind == "DeviceTaintRule":
            continue
        yield f"not seen: {gap(missing)}"
    yield from snapshot.notes
