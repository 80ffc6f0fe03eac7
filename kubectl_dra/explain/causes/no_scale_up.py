"""A cluster autoscaler considered the pod and adds no node."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.trial import Trial

NO_SCALE_UP = CauseKind(
    code="no-scale-up",
    title="No node is added for the pod",
    why=(
        "Devices exist only where a node and its driver publish them. The cluster's autoscaler considered the pod "
        "and found no node group that would help: many autoscalers do not know which devices a new node would "
        "publish, or ignore pods with claims."
    ),
    fix="Add a node with such devices by hand, or give the autoscaler a node group whose devices it knows.",
    seen_as="NotTriggerScaleUp: pod did not trigger scale-up …",
    normal="Where devices are fixed and no node group has them.",
    confirm=(
        confirm.Check("`NotTriggerScaleUp`, with a reason for each node group.", confirm.EVENTS),
        confirm.Check("Every slice names an existing node.", confirm.SLICES),
    ),
    family=Family.POD,
    look=Look.POD,
)


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
