"""The pod names another scheduler, which has not reacted to it."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.causes.registry import Finder, When, of_question
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.trial import Trial
from kubectl_dra.scheduling.profile import DEFAULT_SCHEDULER

OTHER_SCHEDULER = CauseKind(code="other-scheduler", family=Family.POD, look=Look.POD, passes=True)


def _ignored(trial: Trial) -> Iterator[Finding]:
    question, snapshot, settings = trial.question, trial.scene.snapshot, trial.scene.settings
    pod = question.pod
    if pod is None or not question.exists or pod.node_name or pod.finished or settings.schedules(pod):
        return
    name = pod.scheduler_name
    if pod.condition("PodScheduled") is not None or of_question(question, snapshot):
        return
    events = snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
    if any(event.reason == "FailedScheduling" for event in events):
        return
    text = "Check that {name} runs and supports ResourceClaims, or name {default} in a new pod."
    yield Finding(
        OTHER_SCHEDULER,
        say("the pod asks for scheduler {name}, and no scheduler has looked at it yet", name=name),
        (
            Evidence(Subject("Pod", named("Pod", pod)), "spec.schedulerName", name),
            Evidence(Subject("Pod", named("Pod", pod)), "status.conditions", "no PodScheduled"),
        ),
        Remedy(say(text, name=name, default=DEFAULT_SCHEDULER)),
    )


FINDERS = (Finder(When.SCENE, _ignored, 90),)
