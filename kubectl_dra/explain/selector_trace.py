"""Evaluates each part of the selectors on one device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.cel import CompileError, EvaluationError, Program, TraceEntry
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.analysis import with_extended
from kubectl_dra.explain.devices.wanted import published_device
from kubectl_dra.explain.diagnosis import SecondOpinion, Trace, TraceStep
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.settings import Settings
from kubectl_dra.text import amount

VALUE_WIDTH = 40


def trace(question: Question, snapshot: Snapshot, settings: Settings, wanted: str) -> tuple[Trace, ...]:
    """Trace every class and request selector of the question's claims on one device.

    Raises:
        InputError: no device, or several, of that name.
    """
    snapshot = snapshot.exact()
    cycle = settings.scheduler.cycle(snapshot)
    identity, device = published_device(snapshot, wanted)
    out: list[Trace] = []
    seen: set[tuple[str, str]] = set()
    for state in with_extended(question, snapshot, cycle.features)[0].claims:
        for request in state.claim.requests if state.claim else ():
            for spec in request.alternatives():
                if settings.request and settings.request not in (request.name, request.result_name(spec)):
                    continue
                device_class = cycle.classes.get(spec.device_class)
                owners = [
                    (f"class {spec.device_class}, selectors[{index}]", expression)
                    for index, expression in enumerate(device_class.selectors if device_class else ())
                ]
                owners += [
                    (f'request "{request.result_name(spec)}", selectors[{index}]', expression)
                    for index, expression in enumerate(spec.selectors)
                ]
                for owner, expression in owners:
                    if expression is None or (owner, expression) in seen:
                        continue
                    seen.add((owner, expression))
                    out.append(_trace(cycle.selectors.program(expression), owner, expression, identity, device))
    return tuple(out)


def _trace(program: Program | CompileError, selector_of: str, expression: str, name: DeviceID, device: Device) -> Trace:
    text = " ".join(expression.split())
    if isinstance(program, CompileError):
        return Trace(name, selector_of, text, f"does not compile: {str(program).splitlines()[0]}", ())
    try:
        result = "true" if program.evaluate(device) else "false"
    except EvaluationError as error:
        result = f"error: {error}"
    steps = tuple(
        TraceStep(
            offset=step.start,
            text=" ".join(step.text.split()),
            value=_outcome(step),
            raised=step.error is not None,
            depth=step.depth,
        )
        for step in program.trace(device)
        if step.text != "device"
    )
    return Trace(name, selector_of, text, result, steps)


def _outcome(step: TraceEntry) -> str:
    if not step.outcomes:
        return "not evaluated"
    if step.error is not None:
        return f"error: {step.error}"
    more = f" (last of {step.evaluations})" if step.evaluations > 1 else ""
    return show(step.value, VALUE_WIDTH) + more


def show(value: object, limit: int = 60) -> str:
    """A CEL value in CEL syntax; of a map or list that has more than ``limit`` characters what it is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    elif isinstance(value, Mapping):
        text = "{" + ", ".join(f"{show(key)}: {show(item)}" for key, item in value.items()) + "}"
        return text if len(text) <= limit else f"map with {amount(len(value), 'key')}"
    elif isinstance(value, list | tuple):
        text = "[" + ", ".join(show(item) for item in value) + "]"
        return text if len(text) <= limit else f"list of {len(value):,}"
    else:
        text = str(value)
    return text


# The second opinion: evaluates every selector of a question on every device with cel-python as well.


def verify(question: Question, snapshot: Snapshot, settings: Settings) -> SecondOpinion:
    """Compare both engines on all published devices, each distinct expression once."""
    from kubectl_dra.cel.cel_python import Opinions

    cycle = settings.scheduler.cycle(snapshot.exact())
    devices = [device for slice_ in cycle.index.slices for device in slice_.devices]
    expressions: dict[str, None] = {}
    for state in with_extended(question, snapshot, cycle.features)[0].claims:
        for spec in state.claim.alternatives() if state.claim else ():
            device_class = cycle.classes.get(spec.device_class)
            selectors = (*(device_class.selectors if device_class else ()), *spec.selectors)
            expressions.update(dict.fromkeys(filter(None, selectors)))
    programs = [cycle.selectors.program(expression) for expression in expressions]
    compiled = [program for program in programs if not isinstance(program, CompileError)]
    comparison = Opinions(devices).compare_all(compiled)
    uncompiled = len(devices) * (len(programs) - len(compiled))
    reasons = Counter({**({"the expression does not compile": uncompiled} if uncompiled else {}), **comparison.reasons})
    differ = tuple(
        f"{' '.join(difference.expression.split())} on {devices[index].driver}/{devices[index].name}: "
        f"here {difference.ours}, cel-python {difference.theirs}"
        for difference in comparison.differ
        for index in difference.devices
    )
    skipped = comparison.not_comparable + uncompiled
    return SecondOpinion(comparison.agree, differ, skipped, tuple(reasons.most_common()))
