"""A diagnosis as blocks: the answer first, the evidence under it, the next command last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, TextIO

from msgspec.structs import replace

from kubectl_dra.data.messages import Speaker
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.assumptions import RequestOfContainer
from kubectl_dra.explain.cause_kinds import NextStep
from kubectl_dra.explain.diagnosis import Diagnosis, Finding, NodeGroup, Remedy, RemedyPlan, SecondOpinion, Trace
from kubectl_dra.explain.next_step import OUR_PAGE
from kubectl_dra.explain.outcomes import AutoscalerView, NewNodesNoMatter
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.question.what_if_flag import WITH_NODE, WhatIfChange
from kubectl_dra.explain.remedies.change import DropConstraint, RequestChange
from kubectl_dra.explain.remedies.proof_result import Proof
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.report.blocks import (
    IN_JSON,
    MAX_FOLDED,
    PROVED,
    SAID,
    TONES,
    Answer,
    Block,
    Brief,
    Fact,
    Facts,
    FixOffer,
    Fold,
    Items,
    Marked,
    Para,
    Section,
    ShellCommand,
    Tone,
    Tree,
    WordMark,
    order_of,
    prose,
    shell,
)
from kubectl_dra.report.explain_commands import (
    Invocation,
    by_price,
    changes_of,
    command,
    first_with_fix,
    fixes,
    is_joint,
    making,
    supposing,
    why_not_made,
)
from kubectl_dra.report.explain_words import (
    about,
    changes,
    changes_told,
    choice,
    claim_named,
    fix,
    node_groups,
    parts,
    placed,
    proof,
)
from kubectl_dra.report.funnel_blocks import claim_section
from kubectl_dra.report.phrases import MAX_VIEW, assumed, commands_of, sentences, written
from kubectl_dra.text import amount, some

MAX_PLACEMENTS: Final = 3
MAX_GROUPS: Final = 12
MAX_NAMES: Final = 6
MAX_NOTE: Final = 600
_BRIEF_FACTS: Final = (1, 7)
_BRIEF_NOTES: Final = (6, 11)
_BRIEF_ASSUMED: Final = 10
_BRIEF_MESSAGE: Final = 9
"""The ranks of the facts of the first cause, of the notes, of what is assumed of every answer, and of Kubernetes'
message, that brief text has room for.
"""
_OUTCOMES: Final = {"allocated": Tone.GOOD, "error": Tone.BAD, "rejected": Tone.WARNING}


def write_text(
    diagnoses: Sequence[Diagnosis],
    color: str = "auto",
    stream: TextIO | None = None,
    *,
    invocation: Invocation,
    full: bool = False,
) -> None:
    """Writes diagnoses, an empty line between two; ``full``: with all that supports them."""
    from kubectl_dra.report.blocks_text import write_blocks, write_brief
    from kubectl_dra.report.color import Painter

    out = Painter(stream, color)
    for index, diagnosis in enumerate(diagnoses):
        if index:
            out.write("")
        (write_blocks if full else write_brief)(out, blocks_of(diagnosis, invocation.about(diagnosis)))


def blocks_of(diagnosis: Diagnosis, invocation: Invocation, more_notes: Sequence[Words] = ()) -> list[Block]:
    """The answer from its first sentence to the next command."""
    tone = TONES[Verdict.UNSCHEDULABLE if diagnosis.troubled else diagnosis.verdict]
    return [
        Answer(*parts(diagnosis), tone),
        *_causes(diagnosis, invocation),
        *_fixes(diagnosis, invocation),
        *_way_so_far(diagnosis),
        *map(claim_section, diagnosis.claims),
        *map(_trace, diagnosis.traces),
        *_second_opinion(diagnosis.second_opinion),
        *_nodes(diagnosis),
        *_said(diagnosis),
        _notes(diagnosis, more_notes, invocation),
        *_next(diagnosis, invocation),
    ]


def _causes(diagnosis: Diagnosis, invocation: Invocation) -> Iterator[Section]:
    findings = diagnosis.findings
    if not findings:
        return
    quoted = _quoted(diagnosis)
    several, listed = _several(diagnosis), [id(solution) for solution in fixes(diagnosis)]
    # The answer counts them: brief text names each, whatever else it has room for.
    items = Items(
        tuple(
            (*_cause(finding, at, quoted), *(() if id(finding) in listed else (_fix(finding, several, invocation),)))
            for at, finding in enumerate(findings)
        ),
        "1. ",
    )
    codes = ", ".join(dict.fromkeys(finding.kind.code for finding in findings[2:]))
    more = Para((f"and {len(findings) - 2} more: {codes}",), brief=Brief(), full=False)
    yield Section("Why", (items, more) if findings[2:] else (items,), beside=True, name="causes")


def _several(diagnosis: Diagnosis) -> bool:
    """Whether there are several requests, so that a fix says of which it is."""
    return sum(len(claim.funnels) for claim in diagnosis.claims) > 1


def _quoted(diagnosis: Diagnosis) -> str:
    """What was said of the pod last. It has a place of its own, so no cause has it as a fact.

    Where nothing is wrong with a pod that has its devices, what was said is over.
    """
    if diagnosis.verdict is Verdict.ALLOCATED and not diagnosis.findings:
        return ""
    return diagnosis.scheduler[0].message if diagnosis.scheduler else ""


def _cause(cause: Finding, number: int, quoted: str) -> Iterator[Block]:
    kind, code = cause.kind, Marked(cause.kind.code, WordMark.CAUSE)
    request = f'request "{cause.request}"' if cause.request else ""
    claim = claim_named(cause.claim) if cause.claim else ""
    where = written(cause.place) or (f"{request} of {claim}" if request and claim else request or claim)
    short = where if not number else written(cause.summary)
    brief = Brief(0, (code, f": {short}") if short else (code,)) if number < 2 else None
    yield Para((code, ": ", Marked(kind.title, WordMark.LABEL)), brief=brief)
    if place := ", ".join(filter(None, (claim, request))):
        yield Para((place,), Tone.QUIET, brief=SAID)
    if number:
        # The answer is the first cause's summary.
        yield Para((written(cause.summary),), brief=SAID if brief else None)
    facts = [fact for fact in cause.evidence if fact.value not in (quoted or None, cause.summary)]
    briefs = [] if number else [Brief(rank) for rank in _BRIEF_FACTS]
    pairs = zip_longest(facts, briefs[: len(facts)])
    if facts:
        yield Facts(tuple(Fact(about(fact), written(fact.value), fact.is_cel, brief) for fact, brief in pairs))
    why = prose(kind.why)
    seen = Para((Marked("Kubernetes shows: ", WordMark.LABEL), kind.seen_as))
    yield Fold(f"What {kind.code} means", (why, seen) if kind.seen_as else (why,))


def _fixes(diagnosis: Diagnosis, invocation: Invocation) -> Iterator[Section]:
    """What helps, in one order, whichever cause it ends."""
    several, findings = _several(diagnosis), diagnosis.findings
    turns = {id(solution): turn for turn, solution in enumerate(by_price(diagnosis))}
    offers = [
        replace(
            _way(solution, invocation)
            if isinstance(solution, RemedyPlan)
            else _fix(
                solution, several, invocation, f"Cause {findings.index(solution) + 1}: " if findings[1:] else "", 0
            ),
            turn=turns[id(solution)],
            own=solution is first_with_fix(diagnosis),
        )
        for solution in fixes(diagnosis)
    ]
    if offers:
        order, proved = order_of(offers) if offers[1:] else "", PROVED if all(offer.proved for offer in offers) else ""
        yield Section(f"Fixes{order}{proved}", (Items(tuple((offer,) for offer in offers)),), beside=True)


def _fix(cause: Finding, several: bool, invocation: Invocation, label: str = "Fix: ", hang: int = 5) -> FixOffer:
    """What ends a cause. With several requests, brief text says of which it is."""
    remedy, text = cause.remedy, fix(cause)
    changes = changes_of(cause)
    copied = _copied(changes, cause.place_of_fix, remedy.what_if if remedy else ())
    whole = f"{text} Write that into {copied}: what exists cannot be changed." if copied else text
    spans = (Marked(label, WordMark.LABEL), whole) if label else (whole,)
    blocks: list[Para | ShellCommand] = [Para(spans, Tone.GOOD, hang)]
    if remedy and remedy.proof:
        shown = f"{proof(remedy.proof)}."
        blocks.append(Para((Marked("Proved: ", WordMark.LABEL), shown), Tone.GOOD, hang and len("Proved: ")))
    blocks += _commands(remedy, changes, invocation, cause.place_of_fix)
    if several and changes and isinstance(changes[0], RequestChange) and (where := written(changes[0].where)):
        text = f"{where.strip()}: {text[:1].lower()}{text[1:]}"
    title = "" if remedy and remedy.not_alone else _told(text, cause.proof, copied)
    proved, joint = cause.proof is not None, is_joint(cause.proof)
    return FixOffer(tuple(blocks), title, proved, changes, joint, cause.kind.instead)


def _commands(
    what: Remedy | RemedyPlan | None, changes: Sequence[Change], invocation: Invocation, place: NextStep | None
) -> Iterator[Para | ShellCommand]:
    """Commands that make the changes, else that try them as suppositions; then those of the remedy itself.

    Where there are none, what to look at.
    """
    given = making(changes)
    tried = None if given or what is None else supposing(what.what_if, invocation)
    own = what.commands if isinstance(what, Remedy) else ()
    if given:
        yield shell(given, invocation.where)
    elif tried:
        if why := why_not_made(changes):
            yield Para((why,), brief=Brief())
        yield shell((tried,), invocation.where)
    yield from (shell((command_line,), invocation.where) for command_line in own)
    if not (given or tried or own) and (shown := command(place, invocation)):
        told = shell((shown,), invocation.where)
        yield replace(told, shows_place=True) if isinstance(told, ShellCommand) else told


def _copied(changes: Sequence[Change], place: NextStep | None, what_if: Sequence[WhatIfChange] = ()) -> str:
    """What a change has to be written into, where that is a claim or template: those that exist cannot be changed."""
    of_claim = any(change.request for change in what_if)
    # Where nodes or other pods change as well, it would be read as said of those.
    written_there = (isinstance(change, RequestChange | DropConstraint) for change in changes)
    of_claim = of_claim or (bool(changes) and all(written_there))
    return _COPIES.get(place.kind, "") if of_claim and place is not None else ""


_COPIES: Final = {"resourceclaim": "a new claim", "resourceclaimtemplate": "a new template"}


def _told(text: str, proved: Proof | None, copied: str = "") -> str:
    text = text.removesuffix(".") + (f" (in {copied})" if copied else "")
    there = f"; {proof(proved, short=True)}" if proved else ""
    return f"{text[:1].upper()}{text[1:]}{there}."


def _way(way: RemedyPlan, invocation: Invocation) -> FixOffer:
    copied = _copied(way.changes, way.place)
    there = f" (in {copied})" if copied else ""
    told = changes(way)
    text = prose(f"{told[:1].upper()}{told[1:]}{there}: {proof(way.proof, short=True)}.", Tone.GOOD, 0)
    title, commands = _told(changes_told(way), way.proof, copied), _commands(way, way.changes, invocation, way.place)
    return FixOffer((text, *commands), title, True, way.changes, is_joint(way.proof))


def _way_so_far(diagnosis: Diagnosis) -> Iterator[Section]:
    steps = [prose(f"{step.time}  {step.station}: {written(step.what)}", hang=2) for step in diagnosis.way]
    if steps or diagnosis.elsewhere:
        elsewhere = (prose(f"{written(diagnosis.elsewhere)}"),) if diagnosis.elsewhere else ()
        yield Section("Timeline", (*steps, *elsewhere), beside=True, name="way")


def _trace(trace: Trace) -> Section:
    where = f"of {trace.selector_of} on {trace.device}"
    return Section("Trace", (Tree(f"Trace {where}", trace.expression, trace.steps),), f" {where}: {trace.result}")


def _second_opinion(opinion: SecondOpinion | None) -> Iterator[Section]:
    if opinion is None:
        return
    numbers = f"{opinion.agree:,} evaluations agree, {len(opinion.differ):,} differ"
    lines = [prose(f"{numbers}, {opinion.not_comparable:,} could not be compared")]
    lines += [prose(f"differs: {line}", Tone.BAD) for line in opinion.differ[:10]]
    lines += [prose(f"{count:,} not compared: {reason}") for reason, count in opinion.reasons]
    yield Section("Second opinion (cel-python)", tuple(lines))


def _nodes(diagnosis: Diagnosis) -> Iterator[Section]:
    if not diagnosis.nodes:
        return
    groups = node_groups(diagnosis)
    fitting = tuple(_group(group) for group in groups if group.outcome == "allocated")
    others = tuple(_group(group) for group in groups if group.outcome != "allocated")
    yield Section("Nodes", (Items(fitting, ""), *_landing(diagnosis), Items(others, "", MAX_GROUPS)))


def _landing(diagnosis: Diagnosis) -> Iterator[Items]:
    """What the claims get on each node, and which one the scheduler takes.

    Brief text has that node, or one that fits where it is not known.
    """
    fits = diagnosis.verdict in (Verdict.SCHEDULABLE, Verdict.NOT_STARTING) and bool(diagnosis.placements)
    winner = choice(diagnosis)
    winners = diagnosis.choice.nodes if winner and diagnosis.choice is not None else ()
    idle = {trouble.node for trouble in (*diagnosis.not_starting, *diagnosis.refused)}
    shown = (
        next(
            (node_devices for node_devices in diagnosis.placements if node_devices.node in winners),
            next((node for node in diagnosis.placements if node.node not in idle), diagnosis.placements[0]),
        )
        if fits
        else None
    )
    if winner:
        spans = (f"{winner[:1].upper()}{winner[1:]}.",)
        yield Items(((Para((winner,), hang=4, brief=Brief(0, spans, 0) if fits else None),),), "  ")
    listed = diagnosis.placements[:MAX_FOLDED]
    items = [
        (Para((f"on {node.node}: {text}",), hang=4, brief=Brief(0, hang=0) if node is shown else None),)
        for node in (listed if shown is None or shown in listed else (*listed, shown))
        if (text := placed(node))
    ]
    hidden = len(diagnosis.placements) - MAX_PLACEMENTS
    yield Items(tuple(items), "  ", MAX_PLACEMENTS, f"… and {hidden:,} more nodes{IN_JSON}")


def _group(group: NodeGroup) -> tuple[Block, ...]:
    count, names = amount(len(group.nodes), "node"), some(group.nodes, MAX_NAMES)
    fits = "fits" if len(group.nodes) == 1 else "fit"
    words = {"allocated": fits, "not-eligible": "not eligible", "error": "with an error"}
    outcome, tone = words.get(group.outcome, group.outcome), _OUTCOMES.get(group.outcome, Tone.QUIET)
    text = prose(f"{count} {outcome} ({names}): {written(group.reason)}", tone, 4)
    if len(group.nodes) <= MAX_NAMES:
        return (text,)
    return text, Fold(f"All {count}", (prose(some(group.nodes, MAX_FOLDED)),))


def _said(diagnosis: Diagnosis) -> Iterator[Section]:
    """What was said of the pod last, and by whom, and what the scheduler would say now where that is something else."""
    quoted = _quoted(diagnosis)
    facts = {fact.value for cause in diagnosis.findings for fact in cause.evidence}
    shown = diagnosis.findings[0].evidence if diagnosis.findings else ()
    # Where nothing else shows the first cause, the words are its evidence.
    rank = _BRIEF_FACTS[0] if shown and all(fact.value == quoted for fact in shown) else _BRIEF_MESSAGE
    said: list[Para] = []
    who = {word.speaker for word in diagnosis.scheduler}
    real = " without the change" if diagnosis.supposed else ""
    for word in diagnosis.scheduler:
        when, label = f" at {word.time}" if word.time else "", Marked(f"{word.speaker} says{real}", WordMark.STRONG)
        brief = Brief(rank, (label, f": {quoted}")) if quoted and not said else None
        if not said or word.message not in facts:
            source = f"{word.source} {word.reason}{f' of {word.speaker}' if len(who) > 1 else ''}"
            spans = (Marked(source, WordMark.LABEL), f"{when}: {word.message}")
            said.append(Para(spans, hang=2, brief=brief))
    if said:
        title = f"{next(iter(who))} says{real}" if len(who) == 1 else f"Events and conditions{real}"
        yield Section(title, tuple(said), foot=True)
    now = _reasons(diagnosis.message)
    by_it = bool(quoted) and diagnosis.scheduler[0].speaker is Speaker.KUBE_SCHEDULER
    if diagnosis.message and all(_reasons(word.message) != now for word in diagnosis.scheduler):
        label = Marked("It would now say" if by_it else "kube-scheduler would say", WordMark.STRONG)
        brief = Brief(_BRIEF_MESSAGE, (label, f": {diagnosis.message}"))
        yield Section("kube-scheduler would say", (Para((diagnosis.message,), hang=2, brief=brief),), foot=True)


def _reasons(message: str) -> list[str]:
    """The parts of a scheduler's message in one order: which reason comes first says nothing."""
    return sorted(re.split(r", |: |\. ", message.strip().rstrip(".")))


def _notes(diagnosis: Diagnosis, more: Sequence[Words], invocation: Invocation) -> Section:
    """What is only supposed first, what is assumed of every answer last.

    Why the answer is undetermined stands in its first sentence, and brief text does not repeat it.
    """
    # The command that was typed, and the next one, say which new nodes are meant.
    typed = {f"supposed: {written(each.words)}" for each in diagnosis.supposed if each.kind == WITH_NODE}
    ranks = iter((*[0] * (len(diagnosis.supposed) - len(typed)), *_BRIEF_NOTES))
    items: list[tuple[Block, ...]] = []
    everywhere, beside = assumed(diagnosis), commands_of((*diagnosis.notes, *more))
    first = diagnosis.unclear[:1]
    said = tuple(map(written, first))
    # What keeps a pod has a name of its own in brief text.
    named = diagnosis.verdict is Verdict.UNSCHEDULABLE
    names = {written(note) for note in diagnosis.notes if isinstance(note, RequestOfContainer)} if named else set()
    answering = {written(note) for note in diagnosis.notes if isinstance(note, NewNodesNoMatter)}
    names |= typed | {
        text for note in diagnosis.notes if isinstance(note, AutoscalerView) and len(text := written(note)) > MAX_VIEW
    }
    for text in (*sentences(diagnosis.notes, alone=first), *map(written, more), everywhere):
        brief = SAID
        if len(text) > MAX_NOTE:
            # What was typed is repeated; nothing else is as long.
            text = f"{text[:MAX_NOTE]}… (all of it with -o json)"
        if text not in said:
            rank = 0 if text in answering else None if text in names else next(ranks, None)
            if text is everywhere and rank:
                rank = max(rank, _BRIEF_ASSUMED)
            brief = Brief(rank, spans=(Marked("Note", WordMark.STRONG), f": {text}"), is_note=True)
        shown: tuple[Block, ...] = ()
        if text in beside:
            full = shell(beside[text], invocation.where)
            shown = (full,)
            if isinstance(full, ShellCommand):
                shown = (full, replace(full, label="To see it", full=False, brief=Brief(brief.rank)))
        items.append((Para((text,), brief=brief), *shown))
    return Section("Notes", (Items(tuple(items)),), foot=True)


def _next(diagnosis: Diagnosis, invocation: Invocation) -> Iterator[ShellCommand | Para]:
    """What to do next; brief text names its full page first."""
    step = diagnosis.next
    following = command(step, invocation)
    elsewhere = following is not None and step is not None and step.look not in OUR_PAGE
    if invocation.argv:
        # Of several pods, what fit says of all of them is the next thing.
        label = "Full report" if elsewhere or invocation.counted else "Next"
        yield ShellCommand((invocation.refined("--full"),), label, has_rest=True, brief=Brief(), full=False)
    if following is not None:
        yield replace(shell((following,), invocation.where, "Next"), brief=Brief() if elsewhere else None)
