"""Why nodes that are only supposed do not take the pod: the question asked again of them alone."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.cause_kinds import Family
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.outcomes import NoHelp
from kubectl_dra.explain.phrase import nodes_named, say
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.settings import Settings

_OF_A_NODE: Final = frozenset((Family.REQUEST, Family.DEVICES, Family.NODE_FILTERS))
"""The families of causes that one node may have and another not."""


def with_new_nodes(diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """The diagnosis that says first why the new nodes do not help, if that is known."""
    if not settings.added or diagnosis.verdict is not Verdict.UNSCHEDULABLE or settings.node:
        return diagnosis
    first = next(iter(diagnosis.findings), None)
    alone = diagnose(question, snapshot.with_only(settings.added), settings)
    there = next(iter(alone.findings), None)
    if first is None or there is None or there.summary == first.summary:
        return diagnosis
    if there.kind.family not in _OF_A_NODE or first.kind.family not in {*_OF_A_NODE, Family.POOLS}:
        return diagnosis
    text = "on {nodes:some 2}, {why}"
    refusal = say(text, nodes=nodes_named(sorted(settings.added)), why=there.summary)
    notes = tuple(note for note in diagnosis.notes if not isinstance(note, NoHelp))
    return replace(diagnosis, on_new_nodes=refusal, notes=notes)
