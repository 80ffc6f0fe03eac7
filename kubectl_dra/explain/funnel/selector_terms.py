"""Selectors on many devices: which ``&&`` term rejects a device, or raises an error on it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.api.slices import Device
from kubectl_dra.cel import CompileError, EvaluationError


class RefusingTerm(Struct, frozen=True):
    """The first term that decides against a device: its index, and its error if it raised one."""

    term: int
    error: EvaluationError | None


def term_texts(selectors: Selectors, expression: str) -> tuple[str, ...]:
    """The ``&&`` terms of an expression as written; the whole text if it does not compile."""
    return tuple(_one_line(term.expression) for term in selectors.terms(expression)) or (expression,)


def judge(selectors: Selectors, expression: str, devices: Sequence[Device]) -> list[RefusingTerm | None]:
    """For each device None if the expression holds, else the term that rejects it.

    As in the scheduler, the whole expression decides: an error in one term does not count if another term is
    false.
    """
    program = selectors.program(expression)
    if isinstance(program, CompileError):
        # Where it does not, is said once: by the cause.
        return [RefusingTerm(0, EvaluationError("it does not compile"))] * len(devices)
    if len(set(map(id, devices))) < len(devices):
        different = dict(zip(map(id, devices), devices, strict=True))
        answers = dict(zip(different, judge(selectors, expression, list(different.values())), strict=True))
        return [answers[key] for key in map(id, devices)]
    verdicts = selectors.verdicts(expression, devices)
    refused = [index for index, verdict in enumerate(verdicts) if verdict is not True]
    out: list[RefusingTerm | None] = [None] * len(devices)
    if not refused:
        return out
    terms = selectors.terms(expression)
    # Asked about all devices, the terms share what the whole expression has already read of them.
    table = selectors.table(devices)
    plain = [RefusingTerm(term, None) for term in range(max(1, len(terms)))]
    for position, term in enumerate(terms if len(terms) > 1 else ()):
        if not refused:
            break
        values = term.evaluate_devices(table)
        undecided: list[int] = []
        for index in refused:
            verdict, answer = verdicts[index], values[index]
            if verdict is False:
                if answer is False:
                    out[index] = plain[position]
                    continue
            elif isinstance(verdict, EvaluationError) and isinstance(answer, EvaluationError):
                out[index] = RefusingTerm(position, verdict)
                continue
            undecided.append(index)
        refused = undecided
    for index in refused:
        verdict = verdicts[index]
        out[index] = RefusingTerm(0, verdict) if isinstance(verdict, EvaluationError) else plain[0]
    return out


def _one_line(text: str) -> str:
    return " ".join(text.split())
