"""Whether a pod that fits would start as well: no yes where its driver does not run, or refuses what it gets."""

from __future__ import annotations

from msgspec.structs import replace

from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.phrase import Words, nodes_named, say
from kubectl_dra.explain.refusal_words import each_sort, refused


def judged_by_start(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis of what can be scheduled, with the verdict that a pod does not start with it, or may not.

    It is undetermined where the scheduler may as well take a node on which it starts.
    """
    sorts = list(each_sort(diagnosis.refused))
    bad: dict[str, Words] = {node.node: node.why for node in diagnosis.not_starting}
    bad = {refusal.node: refused(sort) for sort in reversed(sorts) for refusal in sort} | bad
    chosen = diagnosis.choice
    fitting = chosen.nodes if chosen is not None and chosen.certain else diagnosis.fitting
    there = [name for name in fitting if name in bad]
    if diagnosis.verdict is not Verdict.SCHEDULABLE or not there:
        return diagnosis
    if len(there) == len(fitting):
        # The answer says the first.
        said = [refused(sort) for sort in sorts[:1]]
        notes = tuple(note for note in diagnosis.notes if note not in said)
        return replace(diagnosis, verdict=Verdict.NOT_STARTING, notes=notes)
    if diagnosis.kind != "pod":
        return diagnosis
    text = "it fits on {nodes:some 3}, and the scheduler may take {bad:some 2}, where it does not start: {why}"
    unclear = say(text, nodes=nodes_named(fitting), bad=nodes_named(there), why=bad[there[0]])
    notes = tuple(note for note in diagnosis.notes if note != bad[there[0]])
    return replace(diagnosis, verdict=Verdict.UNDETERMINED, unclear=(unclear,), notes=notes)
