"""A selector does not compile, or matches too few devices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kubectl_dra.allocation.errors import AllocationCheck
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.cel import CompileError
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes import devices_published as driver_publishes_nothing
from kubectl_dra.explain.causes.devices_held import TOO_FEW
from kubectl_dra.explain.causes.registry import FailedAttempt, Finder, When
from kubectl_dra.explain.causes.selector_error import class_of, expression_of, field_of
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.funnel.blocked import Blocked, proved
from kubectl_dra.explain.funnel.device_view import distinct
from kubectl_dra.explain.funnel.selector_terms import plain
from kubectl_dra.explain.funnel.shown import Observation, StageName
from kubectl_dra.explain.phrase import Joined, Phrase, Subject, Words, by_name, named, say
from kubectl_dra.explain.remedies.candidates import fitting_classes
from kubectl_dra.explain.remedies.change import ReplaceTerm, UseClass
from kubectl_dra.explain.remedies.proof_result import Tried
from kubectl_dra.explain.remedies.selector_values import MAX_TEXTS, loosened_term, names_single, slots

_CONTAINER = " (in container '')"
"""An addition of the compiler that means nothing here."""
SELECTOR_COMPILE = CauseKind(code="selector-does-not-compile", family=Family.REQUEST, look=Look.AS_WRITTEN)


def _compile(failed: FailedAttempt) -> Iterator[Finding]:
    message, remedy = _why_not(failed.error.detail.problem)
    yield Finding(
        SELECTOR_COMPILE,
        say(_NOT_COMPILING, field=field_of(failed.error), subject=failed.error.subject, message=message),
        (expression_of(failed.error),),
        remedy,
        object=failed.error.detail.claim,
        device_class=class_of(failed.error),
    )


_NOT_COMPILING: Final = "{field} of {subject} does not compile: {message}"


def _why_not(problem: object) -> tuple[Words, Remedy | None]:
    """Why an expression does not compile, and what may be meant."""
    if not isinstance(problem, CompileError):
        return "", None
    issue = problem.issues[0] if problem.issues else None
    if issue is None:
        return str(problem).partition("\n")[0], None
    text = "{text} (line {line}, column {column})" if issue.line > 1 else "{text} (column {column})"
    words = (issue.plain or issue.message).removesuffix(_CONTAINER)
    message = say(text, text=words, line=issue.line, column=issue.column)
    if not issue.undeclared.isidentifier():
        return message, None
    meant = 'Write "{name}" with quotes if the text is meant; there is no such name.'
    return message, Remedy(say(meant, name=issue.undeclared))


def not_compiling(program: object, field: Words, owner: Subject, expression: str) -> Finding | None:
    """The finding that a selector does not compile, where an attempt did not come so far; None if it does."""
    if not isinstance(program, CompileError):
        return None
    message, remedy = _why_not(program)
    summary = say(_NOT_COMPILING, field=field, subject=owner, message=message)
    return Finding(SELECTOR_COMPILE, summary, (Evidence(owner, "selector", expression, is_cel=True),), remedy)


# A selector, of the class or of the request, refuses the devices.

_DRIVER = re.compile(r"\bdevice\.driver\b")
_MAX_NAMES = 2
_MAX_VALUES = 4
CLASS_MATCHES_NOTHING = CauseKind(code="class-matches-nothing", family=Family.REQUEST, look=Look.SELECTORS)
SELECTOR_MATCHES_NOTHING = CauseKind(code="selector-matches-nothing", family=Family.REQUEST, look=Look.SELECTORS)


def _class_selector(blocked: Blocked) -> Iterator[Finding]:
    name = blocked.funnel.device_class.name
    subject = by_name("DeviceClass", name)
    what = say("class {name}", name=name)
    finding = _compiles_not(blocked, subject, blocked.funnel.device_class.selectors)
    finding = finding or driver_publishes_nothing.of_class(blocked)
    yield replace(finding or _selector(blocked, CLASS_MATCHES_NOTHING, subject, what, what), device_class=name)


def _request_selector(blocked: Blocked) -> Iterator[Finding]:
    what = say("{label} of {where}", label=blocked.stage.label, where=blocked.where)
    claim = Subject("claim", named("ResourceClaim", blocked.located.claim))
    compiles_not = _compiles_not(blocked, claim, blocked.spec.selectors)
    yield compiles_not or _selector(blocked, SELECTOR_MATCHES_NOTHING, claim, what, blocked.where)


def _compiles_not(blocked: Blocked, owner: Subject, selectors: Sequence[str | None]) -> Finding | None:
    expression = blocked.stage.program
    field = say("selectors[{index}]", index=selectors.index(expression))
    return not_compiling(blocked.view.cycle.selectors.program(expression), field, owner, blocked.stage.expression)


def _selector(blocked: Blocked, kind: CauseKind, owner: Subject, what: Phrase, who: Phrase) -> Finding:
    stage, term = blocked.stage, blocked.term
    wanted = plain(term) if term is not None else None
    evidence = (Evidence(owner, "selector term", stage.expression, is_cel=True),)
    if blocked.left:
        best = blocked.most_on_one_node
        text = (
            "{where} needs {needed} on one node, each with {asked}; {left} of {tested:device} {left:has|have} that, at "
            "most {best} on one node"
        )
        if wanted is None:
            text = (
                "{what} is true on {left} of {tested} devices, but {where} needs {needed} on one node and no node has "
                "more than {best}"
            )
        summary = say(
            text,
            what=what,
            asked=wanted,
            left=blocked.left,
            tested=blocked.tested,
            where=blocked.where,
            needed=blocked.located.needed,
            best=best,
        )
        return Finding(TOO_FEW, summary, evidence, blocked.lower_count(best))
    seen = blocked.observed(term) if term is not None and blocked.lost else ()
    have = _have(seen[:_MAX_NAMES])
    # Nobody asks for what is absent or not known.
    there = _have(
        [own for own in seen[:_MAX_NAMES] if any(value is not None and not _is_none(value) for value, _ in own.values)]
    )
    remedy = _remedy(blocked, there, unknown=bool(seen) and not there)
    if wanted is not None and not stage.errors and (instead := _instead(blocked, seen)):
        text = "{who} wants {asked}; {instead}"
        if term is not None and any(names_single(slot.comparison) for slot in slots(term)):
            text = "{who} wants the device with {asked}, which is not published; {instead}"
        summary = say(text, who=who, asked=wanted, instead=instead)
        if also := tuple(_also_false(blocked)):
            summary = say("{summary}; it also wants {also}", summary=summary, also=Joined(also, ", and "))
        return Finding(kind, summary, evidence, remedy)
    summary = say(
        "{what} is {fails} on {every}{nodes}: {expression}{have}",
        what=what,
        fails=say("false or an error ({error})", error=stage.errors[0][1]) if stage.errors else "false",
        every="the only device" if blocked.tested == 1 else say("all {count:device}", count=blocked.tested),
        nodes=_where(blocked),
        expression=stage.expression,
        have=say(" ({have})", have=have) if have else "",
    )
    return Finding(kind, summary, evidence, remedy)


def _where(blocked: Blocked) -> Words:
    """Which devices the selector was asked about, where there are others."""
    if blocked.nodes and blocked.stage.passed:
        return say(" of {nodes:some}", nodes=blocked.nodes)
    return " where the pod may run" if blocked.funnel.lost_at(StageName.NODE) else ""


def _have(seen: Sequence[Observation]) -> Words:
    """What devices have of several things."""
    parts = tuple(say("{name}: {values}", name=observation.name, values=_listed(observation)) for observation in seen)
    return Joined(parts) if parts else ""


def _remedy(blocked: Blocked, have: Words, *, unknown: bool) -> Remedy | None:
    """Another class, another value in place of one that the term asks for, or the request without the term.

    ``unknown``: no device has anything to ask for in place of it.
    """
    if blocked.stage.name is not StageName.REQUEST_SELECTOR:
        return _other_class(blocked)
    place = blocked.located.place
    if _DRIVER.search(blocked.stage.expression):
        text = "The selector asks for devices of another driver than the class: {what}."
        for name in fitting_classes(blocked.view, blocked.spec):
            if remedy := proved(blocked.what_if, UseClass(place, name), text):
                return remedy
    stage, term = blocked.stage, blocked.term
    if term is None:
        # It does not compile.
        return None
    single = any(names_single(slot.comparison) for slot in slots(term))
    index = blocked.spec.selectors.index(stage.program)
    for offer in loosened_term(blocked.view, place, index, blocked.spec, stage.term, blocked.lost):
        if remedy := proved(blocked.what_if, offer, "Ask for a value that devices have: {what}."):
            return remedy
    drop = ReplaceTerm(place, blocked.view.cycle.selectors, index, stage.term, term.expression)
    proof = blocked.what_if.proof_with(drop)
    if proof is None and single:
        return _bring_back(blocked)
    if proof is None:
        text = "Ask for a value that devices have ({have}), or add nodes with such devices."
        return Remedy(say(text, have=have)) if have else None
    without = replace(proof, tried=Tried.WITHOUT_TERM)
    if single:
        return replace(_bring_back(blocked), proof=without, offers=(drop,))
    text = "Ask for a value that devices have ({have}), or drop the term." if have else "Relax or drop the term."
    if unknown:
        text = "Drop the term: the devices that it refuses do not say what it asks for."
    return Remedy(say(text, have=have), without, offers=(drop,))


def _other_class(blocked: Blocked) -> Remedy | None:
    """A class that admits devices of the kind that this one asks for, by its terms before the one that none meets."""
    stage = blocked.stage
    first = stage.term == 0 and stage.program == blocked.funnel.device_class.selectors[0]
    # Nobody writes a class for an extended resource.
    if first or blocked.located.place.extended or _DRIVER.search(stage.expression):
        return None
    for name in fitting_classes(blocked.view, blocked.spec, blocked.lost):
        text = "Ask for a class whose devices are there: {what}."
        if remedy := proved(blocked.what_if, UseClass(blocked.located.place, name), text):
            return remedy
    return None


def _bring_back(blocked: Blocked) -> Remedy:
    """Advice for a single device that is not published."""
    drivers = sorted({item.id.driver for item in blocked.lost})
    text = (
        "Bring that device back: driver {drivers:some} does not publish it (any more). Check its node, and the "
        "driver's log there. If any device will do, ask for what its kind has in common, or drop the term."
    )
    return Remedy(say(text, drivers=drivers))


def _instead(blocked: Blocked, seen: Sequence[Observation]) -> Words:
    """What the devices that the term refuses have of the one thing that it reads; nothing where it reads more."""
    if len(seen) != 1:
        return ""
    term, values, nodes = blocked.term, seen[0].values, _where(blocked)
    if len(values) > 1:
        return _of_each(seen[0], blocked.tested, nodes)
    every: Words = {1: "the only device", 2: "both devices"}.get(blocked.tested) or say(
        "all {count:device}", count=blocked.tested
    )
    (value, _) = values[0]
    if value is None:
        return say("nothing of that name is published for {every}{nodes}", every=every, nodes=nodes)
    verb = "has" if blocked.tested == 1 else "have"
    if _is_none(value) and term is not None and next(iter(term.columns or ())).kind == "capacity":
        verb = "reports" if blocked.tested == 1 else "report"
        return say(
            "{every}{nodes} {verb} no {name} ({value})",
            every=every,
            nodes=nodes,
            verb=verb,
            name=seen[0].name,
            value=value,
        )
    return say("{every}{nodes} {verb} {value}", every=every, nodes=nodes, verb=verb, value=value)


def _is_none(value: str) -> bool:
    """Whether a quantity says that the driver does not know it."""
    try:
        return not Quantity.parse(value).sign()
    except QuantityError:
        return False


def _of_each(seen: Observation, total: int, nodes: Words) -> Phrase:
    """Number of devices with each value; of very many different ones an example."""
    if len(seen.values) > MAX_TEXTS and seen.values[0][1] == 1:
        return say("the {count:device}{nodes} have {have}", count=total, nodes=nodes, have=_listed(seen))
    parts = [
        say("{count:,} {count:has|have} {value}", count=count, value="none" if value is None else value)
        for value, count in seen.values[:_MAX_VALUES]
    ]
    more = len(seen.values) - _MAX_VALUES
    rest = say(" and {more:other value}", more=more) if more > 0 else ""
    return say("of the {total:device}{nodes} {parts}{rest}", total=total, nodes=nodes, parts=parts, rest=rest)


def _also_false(blocked: Blocked) -> Iterator[Words]:
    """What later terms of the request ask for that none of the refused devices has either, with what they have."""
    if blocked.stage.name is not StageName.REQUEST_SELECTOR:
        return
    selectors, lost = blocked.view.cycle.selectors, [item.device for item in distinct(blocked.lost)]
    here = (blocked.spec.selectors.index(blocked.stage.program), blocked.stage.term)
    table = selectors.table(lost)
    for index, expression in enumerate(blocked.spec.selectors):
        for number, term in enumerate(selectors.terms(expression or "")):
            wanted = plain(term) if (index, number) > here else None
            if wanted is None or any(verdict is not False for verdict in term.evaluate_devices(table)):
                continue
            seen = blocked.observed(term)
            if len(seen) == 1:
                ((value, _), *others) = seen[0].values
                have = _listed(seen[0]) if others or value is None else say("all have {value}", value=value)
                yield say("{asked} ({have})", asked=wanted, have=have)


def _listed(seen: Observation) -> Phrase:
    """The most frequent values with the number of devices; of very many different ones an example."""
    if len(seen.values) > MAX_TEXTS and seen.values[0][1] == 1:
        return say("{count:,} different values, such as {first}", count=len(seen.values), first=seen.values[0][0] or "")
    shown = [
        say("{value} on {count:,}", value="none" if value is None else value, count=count)
        for value, count in seen.values[:_MAX_VALUES]
    ]
    more = len(seen.values) - _MAX_VALUES
    return say("{shown}" + (", {more:other value}" if more > 0 else ""), shown=shown, more=more)


FINDERS = (
    Finder(When.ERROR, _compile, of=AllocationCheck.CEL_COMPILE),
    Finder(When.STAGE, _class_selector, of=StageName.CLASS_SELECTOR),
    Finder(When.STAGE, _request_selector, of=StageName.REQUEST_SELECTOR),
)
