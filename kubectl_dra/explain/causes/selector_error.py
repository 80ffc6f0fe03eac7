"""A selector or derived attribute fails with an error on a device, or a device has an attribute that none can read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kubectl_dra.allocation.errors import AllocationCheck, AllocationError
from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.cel import CelError, EvaluationError
from kubectl_dra.cel.columns import Column
from kubectl_dra.cel.errors import ErrorKind
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep
from kubectl_dra.explain.causes.registry import FailedAttempt, Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.funnel.device_view import DeviceView
from kubectl_dra.explain.funnel.selector_terms import value_of
from kubectl_dra.explain.phrase import ObjectName, Subject, Words, say
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.remedies.change import selector_of
from kubectl_dra.explain.remedies.prove import WhatIf
from kubectl_dra.text import nearest

if TYPE_CHECKING:
    from kubectl_dra.cel.constants import FailingConstant

_READ = r"""device\.(?:attributes|capacity)\[(?:"[^"]*"|'[^']*'|device\.driver)\]\.%s\b"""
_EXCERPT = 60
_FIXES = {
    ErrorKind.NO_OVERLOAD: "Compare each value with one of its own type.",
    ErrorKind.NOT_BOOL: "End the expression in a comparison: its result has to be true or false.",
    ErrorKind.COST: "Make the expression cheaper: fewer or shorter lists and strings to iterate over.",
}
_OTHERWISE = "Correct the expression where it fails; --trace shows the value of each part on that device."

SELECTOR_ERROR = CauseKind(code="selector-error", family=Family.REQUEST, look=Look.ONE_DEVICE)
UNCONVERTIBLE = CauseKind(code="attribute-unconvertible", family=Family.REQUEST, look=Look.SLICES)


def _runtime(failed: FailedAttempt) -> Iterator[Finding]:
    view = failed.analysis.view
    expression = failed.error.detail.expression
    device, place, problem = failed.error.detail.device, failed.error.detail.place, failed.error.detail.problem
    if not isinstance(problem, EvaluationError) or device is None:
        return
    # Equal devices of several places may be one object.
    same = (item for item in (*view.on_node(failed.node), *view.published) if item.device is device)
    published = next((item for item in same if item.id == place), None)
    name = published.id if published else ""
    about = say("device {device} on node {node}", device=name, node=ObjectName("Node", failed.node))
    evidence = [expression_of(failed.error), Evidence(about, "CEL run-time error", str(problem))]
    if published is not None and failed.node in view.node_by_name and not published.on(view.node_by_name[failed.node]):
        text = "{scope}; selectors run before a device's own node is looked at"
        evidence.append(Evidence(Subject("device", name), "is for", say(text, scope=str(device.scope))))
    if share := _share(view, expression):
        evidence.append(Evidence("devices", "on which it fails", share))
    if problem.offset is not None:
        where = say("column {column}", column=problem.offset + 1)
        evidence.append(Evidence("expression", where, excerpt(expression, problem.offset)))
    summary: Words = say(
        "{field} of {subject} fails on device {device} of node {node}: {problem}",
        field=field_of(failed.error),
        subject=failed.error.subject,
        device=name,
        node=failed.node,
        problem=str(problem),
    )
    kind, remedy = SELECTOR_ERROR, Remedy(_FIXES.get(problem.kind, _OTHERWISE))
    if problem.kind is ErrorKind.ATTRIBUTE:
        kind, remedy = UNCONVERTIBLE, Remedy(UNCONVERTIBLE.fix)
        summary = say(
            'device {device} of node {node} publishes {attribute} "{value}", which no selector can read: {why}',
            device=name,
            node=failed.node,
            attribute=problem.name,
            value=next((str(value) for value in (device.attributes.get(problem.name) or {}).values()), ""),
            why=problem.reason,
        )
    elif problem.kind is ErrorKind.OTHER and (constant := _constant(view, expression, problem)):
        text = "{field} of {subject} fails, whatever a device has: {reason}"
        # What Kubernetes writes is a regular expression.
        evidence[1] = Evidence(about, "CEL run-time error", say("in {written}", written=constant.written))
        summary = say(text, field=field_of(failed.error), subject=failed.error.subject, reason=constant.reason)
        remedy = _instead(constant, expression, failed.analysis.what_if)
    elif problem.kind is ErrorKind.NO_KEY:
        missing = _missing(view, expression, problem.name)
        if missing is None and (wrong := _wrong_domain(view, expression, problem.name)):
            text = "{summary}, as on all devices: none has anything in the domain {domain}"
            summary = say(text, summary=summary, domain=wrong[0])
            remedy = _of_domain(*wrong, expression, problem.name, failed.analysis.what_if)
        elif missing is None:
            remedy = _guard(expression, problem.name, failed.analysis.what_if)
        else:
            own = say("devices of {drivers:some}", drivers=missing.drivers)
            supposed = (change for change in failed.analysis.settings.supposed if change.value == expression)
            remedy = _other_name(missing, expression, problem.name, failed.analysis.what_if, next(supposed, None))
            have = say("{names:some 8 else nothing to read}", names=missing.names)
            evidence.append(Evidence(own, say("that have {key}", key=problem.name), "none"))
            evidence.append(Evidence(own, "have", have))
            summary = say("{summary}, as on all {own}", summary=summary, own=own)
    elif problem.kind is ErrorKind.NO_OVERLOAD:
        evidence.extend(_types(view, expression, published.exact if published else device, name))
    yield Finding(
        kind,
        summary,
        tuple(evidence),
        remedy,
        object=failed.error.detail.claim,
        device=published.id if published else None,
        device_class=class_of(failed.error),
    )


def _constant(view: DeviceView, expression: str, problem: EvaluationError) -> FailingConstant | None:
    """The part that fails whatever the device has, if that is the problem."""
    from kubectl_dra.cel.constants import failing_constants

    program = view.cycle.selectors.program(expression)
    if isinstance(program, CelError):
        return None
    return next((constant for constant in failing_constants(program) if str(constant.problem) == str(problem)), None)


def _instead(constant: FailingConstant, expression: str, what_if: WhatIf) -> Remedy:
    """What was probably meant, proved if the claims fit with it."""
    for text in constant.instead:
        changed = expression[: constant.start] + text + expression[constant.end :]
        proof = what_if.with_selector(expression, changed).proof()
        if proof is not None:
            return Remedy(constant.advice, proof)
    return Remedy(constant.advice)


class _Missing(NamedTuple):
    """A name that no device has where the expression looks: the drivers of those devices, and their names."""

    drivers: Sequence[str]
    names: Sequence[str]


def _columns(view: DeviceView, expression: str) -> set[Column]:
    """What the expression reads."""
    return {column for term in view.cycle.selectors.terms(expression) for column in term.columns or ()}


def _missing(view: DeviceView, expression: str, key: str) -> _Missing | None:
    """What exists in place of a key that no device has; None if some have it, or the place is unknown."""
    reading = [column for column in _columns(view, expression) if column.id == key]
    devices = [item.device for item in view.kinds]
    if not reading or any(value_of(device, column) is not None for device in devices for column in reading):
        return None
    column = reading[0]
    own = [device for device in devices if column.domain in (None, device.driver)]
    if not own:
        return None
    names = sorted({name for device in own for name in _names(device, column)})
    return _Missing(tuple(sorted({device.driver for device in own})), tuple(names))


def _wrong_domain(view: DeviceView, expression: str, key: str) -> tuple[str, list[str]] | None:
    """The domain in which an expression reads a name and no device has anything, and the drivers whose devices have
    the name in their own; None elsewhere.
    """
    wrong = next((column.domain for column in _columns(view, expression) if column.id == key and column.domain), None)
    names = {
        (item.device.driver, name) for item in view.kinds for name in (*item.device.attributes, *item.device.capacity)
    }
    if wrong is None or any(driver == wrong or name.startswith(f"{wrong}/") for driver, name in names):
        return None
    having = sorted({driver for driver, name in names if name == key})
    return (wrong, having) if having else None


def _of_domain(wrong: str, drivers: Sequence[str], expression: str, key: str, what_if: WhatIf) -> Remedy:
    """The domain that was probably meant, proved if the claims fit with it."""
    near = sorted(drivers, key=lambda driver: not driver.endswith(wrong))
    for driver in near if _read(expression, key) else ():
        changed = re.sub(rf"(\[[\"']){re.escape(wrong)}([\"']\])", rf"\g<1>{driver}\g<2>", expression)
        words = say("Write {driver} in place of {wrong}: it is the domain.", driver=driver, wrong=wrong)
        if remedy := _proved(words, expression, changed, what_if):
            return remedy
    return Remedy(say("Write {driver} as the domain, if that is meant.", driver=near[0]))


def _read(expression: str, key: str) -> str:
    """Where an expression reads a key of a device, as it is written; empty if nowhere."""
    read = re.search(_READ % re.escape(key), expression)
    return read[0] if read is not None else ""


def _proved(
    words: Words, expression: str, changed: str, what_if: WhatIf, typed: WhatIfChange | None = None
) -> Remedy | None:
    """Another selector in the place of one, if the claims fit with it."""
    proof = what_if.with_selector(expression, changed).proof()
    if proof is None:
        return None
    supposed = tuple(_supposed(expression, changed, what_if, typed)) if proof.enough else ()
    return Remedy(words, proof, what_if=supposed)


def _names(device: Device, column: Column) -> Iterator[str]:
    """The names that a device has where the column is looked up."""
    domain = device.driver if column.domain is None else column.domain
    for name in device.capacity if column.kind == "capacity" else device.attributes:
        of, slash, identifier = name.partition("/")
        if not slash or of == domain:
            yield identifier if slash else name


def _other_name(
    missing: _Missing, expression: str, key: str, what_if: WhatIf, typed: WhatIfChange | None = None
) -> Remedy:
    """The name that was probably meant, proved if the claims fit with it; ``typed``: the change that brought the
    expression, which is corrected then.
    """
    near, read = nearest(key, missing.names), _read(expression, key)
    corrected: list[str] = []
    if read.endswith(key):
        corrected = [expression.replace(read, read.removesuffix(key) + name) for name in near]
    for name, changed in zip(near, corrected, strict=False):
        words = say("Write {name} in place of {key}: no device has {key}.", name=name, key=key)
        if remedy := _proved(words, expression, changed, what_if, typed):
            return remedy
    if near:
        supposed = tuple(_supposed(expression, corrected[0], what_if, typed)) if typed and corrected else ()
        text = "No device has {key}; write {near} if that is meant, or guard it with has()."
        return Remedy(say(text, key=key, near=near), what_if=supposed)
    # No object of the cluster has what was typed.
    place = NextStep(Look.DEVICES_OF_CLASS) if typed else None
    text = "No device has {key}: read what they have, or upgrade the driver if it should publish {key}."
    return Remedy(say(text, key=key), place=place)


def _guard(expression: str, key: str, what_if: WhatIf) -> Remedy:
    """A test for a key that only some devices have, proved if the claims fit with it."""
    read = _read(expression, key)
    if not read.endswith(key):
        text = (
            "Guard {key} with has() before it is read, or narrow the selector so that it reads only devices with {key}."
        )
        return Remedy(say(text, key=key))
    guard = f"has({read}) &&"
    words = say("Guard it: put {guard} before the term.", guard=guard)
    return _proved(words, expression, f"{guard} ({expression})", what_if) or Remedy(words)


def _supposed(
    expression: str, changed: str, what_if: WhatIf, typed: WhatIfChange | None = None
) -> Iterator[WhatIfChange]:
    """The changed selectors of the requests that have the expression, as values of ``--what-if``; in place of the one
    that was ``typed``.
    """
    if typed is not None:
        yield typed._replace(value=changed)
        return
    requests = [
        (claim, request.result_name(spec), spec)
        for claim in what_if.claims
        for request in claim.requests
        for spec in request.alternatives()
    ]
    for claim, name, spec in requests:
        if expression in spec.selectors:
            terms = tuple(changed if text == expression else text for text in spec.selectors)
            several = sum(name == other for _, other, _ in requests) > 1
            own = f"{claim.metadata.name}/{name}" if several else name
            yield WhatIfChange(own, "selector", selector_of(replace(spec, selectors=terms)))


def _types(view: DeviceView, expression: str, device: Device, name: DeviceID | str) -> Iterator[Evidence]:
    """The types of what the expression reads from a device."""
    for column in sorted(_columns(view, expression), key=str):
        if column.id and (value := value_of(device, column)) is not None:
            kind = "quantity" if column.kind == "capacity" else _type(device, column)
            yield Evidence(Subject("device", name), column.id, say("{value}, of type {kind}", value=value, kind=kind))


def _type(device: Device, column: Column) -> str:
    domain = device.driver if column.domain is None else column.domain
    raw = device.attributes.get(f"{domain}/{column.id}") or device.attributes.get(column.id or "") or {}
    return next(iter(raw), "unknown")


def _share(view: DeviceView, expression: str) -> Words:
    """On how many devices of the same drivers the selector fails."""
    failing = [
        item for item in view.published if isinstance(view.cycle.selectors.verdict(expression, item.device), CelError)
    ]
    drivers = {item.id.driver for item in failing}
    tested = sum(1 for item in view.published if item.id.driver in drivers)
    text = "{failing} of {tested} of {drivers}"
    return say(text, failing=len(failing), tested=tested, drivers=sorted(drivers)) if failing else ""


def excerpt(expression: str, offset: int) -> str:
    """The part of an expression around an offset, with an arrow before it."""
    start = max(0, offset - _EXCERPT // 2)
    end = min(len(expression), offset + _EXCERPT // 2)
    before = ("…" if start else "") + expression[start:offset]
    after = expression[offset:end] + ("…" if end < len(expression) else "")
    return " ".join(f"{before}▸{after}".split())


def expression_of(error: AllocationError) -> Evidence:
    """The selector that an error concerns."""
    text = error.detail.expression
    field = say("selectors[{index}].cel.expression", index=error.detail.selector)
    return Evidence(error.subject, field, text, is_cel=True)


def field_of(error: AllocationError) -> Words:
    """The selector by its field in the API, counted from 0 as in the scheduler's ``selector #0``."""
    index = error.detail.selector
    return "a selector" if index is None else say("selectors[{index}]", index=index)


def class_of(error: AllocationError) -> str:
    """The class that has the selector; empty if a claim has it."""
    return error.detail.device_class


DERIVED = CauseKind(code="derived-attribute-fails", family=Family.REQUEST, look=Look.AS_WRITTEN)


def _derived_runtime(failed: FailedAttempt) -> Iterator[Finding]:
    detail = failed.error.detail
    problem = str(detail.problem)
    text = "the derived attribute {attribute} has no value on device {device}: {error}"
    fact = Evidence(Subject("device", detail.place), "CEL run-time error", problem)
    remedy = Remedy("Guard what the device lacks with has(), or select only devices that have it.")
    summary = say(text, attribute=detail.attribute, device=str(detail.place), error=problem)
    yield Finding(DERIVED, summary, (fact, _derived(failed)), remedy)


def _derived(failed: FailedAttempt) -> Evidence:
    return Evidence("derived attribute", failed.error.detail.attribute, failed.error.detail.expression)


def _derived_compile(failed: FailedAttempt) -> Iterator[Finding]:
    detail = failed.error.detail
    text = "the expression of the derived attribute {attribute} does not compile: {error}"
    summary = say(text, attribute=detail.attribute, error=str(detail.problem))
    yield Finding(
        DERIVED, summary, (_derived(failed),), Remedy("Correct the expression; lint shows where it is wrong.")
    )


FINDERS = (
    Finder(When.ERROR, _runtime, of=AllocationCheck.CEL_RUNTIME),
    Finder(When.ERROR, _derived_runtime, of=AllocationCheck.DERIVED_RUNTIME),
    Finder(When.ERROR, _derived_compile, of=AllocationCheck.DERIVED_COMPILE),
)
