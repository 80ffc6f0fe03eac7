"""What the scheduler writes into the condition of the pod: its own words, or those that it would write."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.meta import DEVICE_EVENTS
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.messages import Speaker, speaker_of
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.diagnosis import SchedulerMessage
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.scheduling.gang_scheduling import Placed, kept_out, message_of
from kubectl_dra.scheduling.profile import Effect
from kubectl_dra.scheduling.scheduler import Scheduler


def message_of_scheduler(analysis: Analysis, verdict: Verdict) -> str:
    """What the scheduler writes about a pod that it tries and cannot place."""
    attempted, pod, outcome = analysis.pod_outcome, analysis.pod, analysis.outcome
    # It counts the nodes, and each reason on them.
    if (
        verdict is not Verdict.UNSCHEDULABLE
        or attempted is None
        or pod is None
        or not analysis.scheduler.schedules(pod)
        or attempted.state.snapshot.unread(("Node",))
    ):
        return ""
    profile = attempted.state.profile
    if profile.unknown(Effect.FILTERS, pod) or profile.unknown(Effect.EVICTS, pod):
        return ""
    if isinstance(analysis.together, Placed):
        return message_of(attempted.pod, analysis.together, attempted.state)
    if outcome is not None:
        return outcome.message if outcome.certain else ""
    # Where something else is the answer already, the scheduler tries the pod all the same if it is in its queue.
    waits = analysis.question.exists and pod.is_queued
    if not waits or kept_out(attempted.pod, attempted.state):
        return ""
    tried = analysis.trying_nodes().outcome
    return tried.message if tried is not None and tried.certain else ""


def scheduler_words(question: Question, snapshot: Snapshot, scheduler: Scheduler) -> Iterator[SchedulerMessage]:
    """The text of the pod's conditions and events."""
    if question.pod is None:
        return
    condition, name = question.pod.condition("PodScheduled"), question.pod.scheduler_name
    known = scheduler.schedules(question.pod)
    own = Speaker.KUBE_SCHEDULER if known else speaker_of(name)
    if condition.status == "False":
        gated = condition.reason == "SchedulingGated"
        who = Speaker.KUBERNETES if gated else own
        yield SchedulerMessage(
            who, "condition PodScheduled", condition.reason, condition.message, condition.last_transition_time
        )
    for event in snapshot.events_about("Pod", question.namespace, question.pod.metadata.name):
        if event.reason in DEVICE_EVENTS and not (condition.type and event.message == condition.message):
            who = own if event.component == name else event.speaker
            yield SchedulerMessage(who, "event", event.reason, event.message, event.last)
