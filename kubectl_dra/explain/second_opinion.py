"""The second opinion: evaluates every selector of a question on every device with cel-python as well."""

from __future__ import annotations

from collections import Counter

from kubectl_dra.cel import CompileError
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.diagnosis import SecondOpinion
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.scene.prepare import Settings, with_extended


def verify(question: Question, snapshot: Snapshot, settings: Settings) -> SecondOpinion:
    """Compare both engines on all published devices, each distinct expression once."""
    from kubectl_dra.cel.second_opinion import Opinions

    cycle = settings.scheduler.cycle(snapshot.exact())
    devices = [device for entry in cycle.index.slices for device in entry.devices]
    expressions: dict[str, None] = {}
    for state in with_extended(question, snapshot, cycle).claims:
        for request in state.claim.requests if state.claim else ():
            for spec in request.alternatives():
                device_class = cycle.classes.get(spec.device_class)
                for expression in (*(device_class.selectors if device_class else ()), *spec.selectors):
                    if expression:
                        expressions[expression] = None
    opinions = Opinions(devices)
    agree = skipped = 0
    differ: list[str] = []
    reasons: Counter[str] = Counter()
    for expression in expressions:
        program = cycle.selectors.program(expression)
        if isinstance(program, CompileError):
            skipped += len(devices)
            reasons["the expression does not compile"] += len(devices)
            continue
        comparison = opinions.compare(program)
        agree += comparison.agree
        skipped += comparison.not_comparable
        reasons.update(comparison.reasons)
        for difference in comparison.differ:
            text = " ".join(expression.split())
            differ.extend(
                f"{text} on {devices[index].driver}/{devices[index].name}: here {difference.ours}, "
                f"cel-python {difference.theirs}"
                for index in difference.devices
            )
    return SecondOpinion(agree, tuple(differ), skipped, tuple(reasons.most_common()))
