"""A cluster autoscaler considered the pod and adds no node."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.trial import Trial

NO_SCALE_UP = CauseKind(code="no-scale-up", family=Family.POD, look=Look.POD)


def _not_scaled(trial: Trial) -> Iterator[Finding]:
    pod = trial.question.pod
    if pod is None or pod.node_name:
        return
    events = [
        event
        for event in trial.scene.snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
        if event.reason == "NotTriggerScaleUp"
        or (event.component == "karpenter" and event.reason == "FailedScheduling")
    ]
    if not events:
        return
    event = events[-1]
    slices = trial.view.cycle.index.slices
    bound = sum(1 for entry in slices if entry.scope.node_name)
    scope = say(
        "{bound} of {total} name an existing node" if slices else "there are none", bound=bound, total=len(slices)
    )
    who = event.component or "the autoscaler"
    yield Finding(
        NO_SCALE_UP,
        say("{who} adds no node for the pod: {message}", who=who, message=event.message),
        (
            Evidence(Subject("Event on Pod", named("Pod", pod)), event.reason, event.message),
            Evidence("ResourceSlices", "nodes", scope),
        ),
    )


FINDERS = (Finder(When.FAILS_TOO, _not_scaled, 20),)
