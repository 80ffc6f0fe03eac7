"""The pod has scheduling gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.question.resolve import Question

_KUEUE = "kueue.x-k8s.io/"

SCHEDULING_GATED = CauseKind(code="scheduling-gated", family=Family.POD, look=Look.POD, passes=True)


def _gated(question: Question, _: Snapshot, __: Sequence[Finding]) -> Iterator[Finding]:
    pod = question.pod
    if pod is None or not pod.scheduling_gates:
        return
    remedy = None
    if any(gate.startswith(_KUEUE) for gate in pod.scheduling_gates):
        text = (
            "Kueue removes the gate when it admits the workload: kubectl get workloads -n {namespace}. Check that "
            "deviceClassMappings in its configuration name the claim's class."
        )
        remedy = Remedy(say(text, namespace=pod.metadata.namespace))
    gates = say("{gates}", gates=tuple(pod.scheduling_gates))
    text = "the pod is held back by scheduling {count:gate|gates} {gates}"
    yield Finding(
        SCHEDULING_GATED,
        say(
            "the pod is held back by scheduling {count:gate|gates} {gates}",
            count=len(pod.scheduling_gates),
            gates=gates,
        ),
        (Evidence(Subject("Pod", named("Pod", pod)), "spec.schedulingGates", gates),),
        remedy,
    )


FINDERS = (Finder(When.QUESTION, _gated, 20),)
