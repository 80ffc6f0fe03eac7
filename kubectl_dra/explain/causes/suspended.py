"""The workload is suspended, so it has no pod: who holds it back, and what would come of its pods."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.neighbour_kinds import kind_here
from kubectl_dra.command import CommandEffect, kubectl
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.kueue import of_workload, without_workload
from kubectl_dra.explain.causes.registry import Finder, QuestionContext, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.neighbours.kueue import WORKLOAD, queue_name, standing, workload_of
from kubectl_dra.neighbours.no_pod import is_suspended, maker_of

SUSPENDED = CauseKind(
    code="workload-suspended",
    family=Family.POD,
    look=Look.AS_WRITTEN,
    passes=True,
    queued="once resumed",
    state="is not created",
)


def _suspended(context: QuestionContext) -> Iterator[Finding]:
    pod, snapshot = context.question.pod, context.snapshot
    maker = maker_of(pod, snapshot) if pod is not None else None
    owner = pod.metadata.controller() if pod is not None else None
    if pod is None or maker is None or owner is None or not is_suspended(maker):
        return
    workload = workload_of(pod, snapshot)
    if workload is not None:
        yield of_workload(workload, standing(workload), pod, snapshot)
        return
    kind = kind_here(owner.kind, owner.api_version)
    seen = Evidence(Subject(owner.kind, named(kind, maker)), "spec.suspend", "true")
    above = next((above_owner for above_owner in pod.metadata.owners if not above_owner.controller), None)
    if above is not None:
        text = "{kind} {name} is suspended by {above} {of}, which made it"
        summary = say(text, kind=owner.kind, name=owner.name, above=above.kind, of=above.name)
        show = kubectl("describe", kind=above.kind.lower(), name=above.name, namespace=pod.metadata.namespace)
        yield Finding(SUSPENDED, summary, (seen,), Remedy("See why in its conditions.", commands=(show,)))
        return
    queue = queue_name(pod, snapshot)
    if queue and snapshot.missing(WORKLOAD, pod.metadata.namespace) is None:
        # Kueue suspends such a job again at once: whoever resumes it only hides what is wrong.
        label = Evidence(Subject(owner.kind, named(kind, maker)), "label kueue.x-k8s.io/queue-name", queue)
        yield without_workload(label, pod, snapshot)
        return
    gap = next(iter(snapshot.unread((WORKLOAD,), pod.metadata.namespace)), None)
    more = Evidence("Workload", "of Kueue for it", say("not read ({why})", why=gap.reason) if gap else "none")
    text = "{kind} {name} is suspended, and has no pods"
    resume = kubectl(
        "patch",
        kind=owner.kind.lower(),
        name=owner.name,
        namespace=pod.metadata.namespace,
        more=("--type", "merge", "-p", '{"spec":{"suspend":false}}'),
        effect=CommandEffect.WRITES,
    )
    # Where a queue may hold it, nobody is told to go round the queue.
    remedy = Remedy(SUSPENDED.fix, commands=() if gap else (resume,))
    yield Finding(SUSPENDED, say(text, kind=owner.kind, name=owner.name), (seen, more), remedy)


FINDERS = (Finder(When.QUESTION, _suspended, 3),)
