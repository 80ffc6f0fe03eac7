"""Effects of a KubeSchedulerConfiguration on an answer; and what the scheduler writes of the pod, or would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_dra.api.behaviour import GANGS_WITHOUT_GATE
from kubectl_dra.api.meta import DEVICE_EVENTS
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.messages import Speaker, speaker_of
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.diagnosis import SchedulerMessage
from kubectl_dra.explain.phrase import Phrase, say
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.scheduling.gang_scheduling import Placed, kept_out, message_of
from kubectl_dra.scheduling.plugin_args import FILTER_TIMEOUT
from kubectl_dra.scheduling.profile import Effect, Point, Profile, default_profile
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.scheduler import Scheduler

_NOTED = (Point.PRE_ENQUEUE, Point.PRE_FILTER, Point.FILTER, Point.POST_FILTER)
"""The extension points at which a disabled plugin affects more than the winner."""

RULES_UNKNOWN: Final = say("no fix was proved: the scheduler of the pod may refuse what the rules known here accept")


def not_configured(analysis: Analysis, verdict: Verdict) -> Iterator[Phrase]:
    """Why a configuration leaves the answer open: the pod is for another scheduler, or a plugin is not modelled."""
    pod, scheduler = analysis.pod, analysis.scheduler
    if pod is None or pod.node_name:
        return
    if scheduler.config is None:
        if verdict is Verdict.SCHEDULABLE and not scheduler.schedules(pod):
            yield say(
                "the pod asks for scheduler {name}, whose rules are not known; by those of the default one it fits on "
                "{nodes:some}",
                name=pod.scheduler_name,
                nodes=list(analysis.takers),
            )
        return
    profile = scheduler.profile_of(pod)
    if profile is None:
        text = "the pod asks for scheduler {name}, which has no profile in {source} (there: {known})"
        yield say(
            text,
            name=pod.scheduler_name,
            source=scheduler.config.source,
            known=[*scheduler.config.profiles],
        )
        return
    if verdict is not Verdict.SCHEDULABLE:
        return
    for subject in profile.unknown(Effect.FILTERS, pod):
        text = "{subject} of profile {profile} may refuse nodes, and is not modelled"
        yield say(text, subject=subject, profile=profile.scheduler)
    if analysis.question.claims and not profile.runs(PluginName.DYNAMIC_RESOURCES, Point.FILTER):
        text = "profile {profile} runs without {plugin}: it places the pod, and nobody allocates its claims"
        yield say(text, profile=profile.scheduler, plugin=PluginName.DYNAMIC_RESOURCES)


def rules_unknown(analysis: Analysis) -> bool:
    """Whether the pod's scheduler may refuse what the rules that are modelled accept: no fix is proved then."""
    return next(not_configured(analysis, Verdict.SCHEDULABLE), None) is not None


def scheduler_notes(analysis: Analysis) -> Iterator[Phrase]:
    """Differences of the pod's profile from the default one, and gates assumed because of its group."""
    pod, scheduler = analysis.pod, analysis.scheduler
    if off := [gate for gate in _group_gates(analysis) if gate not in scheduler.gates]:
        yield say("the pod is in a group: {gates} (off by default) must be on in the scheduler", gates=off)
    profile = scheduler.profile_of(pod) if pod is not None and not pod.node_name else None
    if pod is None or profile is None or scheduler.config is None:
        return
    yield say("scheduled by profile {profile} of {source}", profile=profile.scheduler, source=scheduler.config.source)
    if off := _off(profile, default_profile(scheduler.release)):
        yield say("off in profile {profile}: {off}", profile=profile.scheduler, off=off)
    for effect, what in ((Effect.EVICTS, "evict pods for this one"), (Effect.SCORES, "choose among the nodes")):
        if unknown := profile.unknown(effect, pod):
            yield say("{unknown} may {what}, and is not modelled", unknown=list(unknown), what=what)
    args = profile.args.dynamic_resources
    timeout = args.filter_timeout
    if timeout != FILTER_TIMEOUT and not args.takes_its_time:
        text = "the profile's filterTimeout is {timeout}; searches are judged by {default} here"
        yield say(text, timeout=timeout, default=FILTER_TIMEOUT)


def _group_gates(analysis: Analysis) -> Iterator[str]:
    """The gates that the scheduler needs for the pod's group, or for its topology constraints."""
    pod = analysis.pod
    if pod is None or pod.node_name or not (pod.pod_group or pod.spec.workload_ref):
        return
    yield "GenericWorkload"
    if analysis.scheduler.release not in GANGS_WITHOUT_GATE:
        yield "GangScheduling"
    if isinstance(analysis.together, Placed) and analysis.together.gang.topology:
        yield "TopologyAwareWorkloadScheduling"


def _off(profile: Profile, default: Profile) -> list[str]:
    """The default plugins that are disabled, each with its extension points unless disabled at all of them."""
    points: dict[str, list[Point]] = {}
    for point in _NOTED:
        for name in default.plugins[point]:
            if name not in profile.plugins[point]:
                points.setdefault(name, []).append(point)
    out = []
    for name, missing in points.items():
        all_points = [point for point in _NOTED if name in default.plugins[point]]
        out.append(name if missing == all_points else f"{name} ({', '.join(missing)})")
    return out


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
