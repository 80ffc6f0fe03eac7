"""A change of a pod that the scheduler refuses for an unknown reason: whether the change ends it is open."""

from __future__ import annotations

from msgspec.structs import replace

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.phrase import say
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.settings import Settings


def unless_unexplained(diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """The diagnosis with what is supposed, undetermined where the scheduler's word on the pod as it is stays a riddle.

    Args:
        diagnosis: the pod would fit with what is supposed.
        question: about the pod without that.
        snapshot: the cluster without that.
        settings: of the diagnosis.
    """
    if question.pod is None or question.pod.node_name or not question.exists:
        return diagnosis
    as_it_is = replace(settings, supposed=(), new_nodes=(), added=frozenset(), ended=(), freed={}, with_ways=False)
    if settings.node in settings.added:
        as_it_is = replace(as_it_is, node="")
    now = diagnose(question, snapshot, as_it_is)
    contrary = next((finding for finding in now.findings if finding.contrary), None)
    if now.verdict is not Verdict.UNDETERMINED or contrary is None:
        return diagnosis
    text = "it would fit, but it seems to fit without the change as well, and {contrary}"
    unclear = (say(text, contrary=contrary.summary),)
    return replace(diagnosis, verdict=Verdict.UNDETERMINED, unclear=unclear, next=now.next)
