"""A diagnosis on fifteen lines: the answer, what it rests on, the best fixes, the scheduler's words, what to do next.

The whole page (``--full``) is in ``report/explain_text.py``.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kubectl_dra.addresses import page_of_cause
from kubectl_dra.explain.diagnosis import Diagnosis, Evidence, Finding, Look, Verdict
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.question.what_if_flag import Supposition
from kubectl_dra.explain.remedies.change import RequestChange
from kubectl_dra.explain.remedies.proof import Proof
from kubectl_dra.explain.remedies.step import Price
from kubectl_dra.report.assumed import assumed
from kubectl_dra.report.cel_text import folded
from kubectl_dra.report.explain_making import making, shell, supposing
from kubectl_dra.report.explain_words import (
    Invocation,
    about,
    changes_told,
    choice,
    command,
    fits_there,
    fix,
    parts,
    placed,
    style,
)
from kubectl_dra.report.paint import Painter, linked, wrap
from kubectl_dra.report.phrases import written
from kubectl_dra.wording import amount

LINES: Final = 15
"""Of the whole answer where the terminal has 100 columns; the least that is said is always said."""
MAX_CAUSES = 2
MAX_FACTS = 2
MAX_NOTES = 2
LONGEST_FIX = 7
"""Lines of the first fix, or of those that only help together."""
_OUR_PAGE: Final = (Look.DEVICES, Look.SELECTORS, Look.ONE_DEVICE)
"""Where what to look at next stands on the full page, or behind it."""

Line = tuple[str | tuple[str, str], ...]


class ShownFix(NamedTuple):
    """A fix in words, its proof where it was tried, and the changes as objects and for ``--what-if``."""

    text: str
    proof: Proof | None
    price: Price = Price.WAIT
    made: Sequence[Words] = ()
    what_if: Sequence[Supposition] = ()


def brief(out: Painter, diagnosis: Diagnosis, invocation: Invocation) -> None:
    """Writes the answer: what has to be said, then as much more as there is room for."""
    lead, reason = parts(diagnosis)
    head = _wrapped(out, f"{lead}: {reason}." if reason else f"{lead}.")
    coloured = head[0][: len(lead)]
    first, facts, causes = _causes(out, diagnosis)
    landing = _landing(out, diagnosis)
    fix, *fixes = _offers(out, diagnosis, invocation) or [[]]
    said, *more_said = _said(out, diagnosis) or [[]]
    remarks = _remarks(diagnosis)
    following = _following(diagnosis, invocation, len(remarks))
    # What is only supposed is said first, and always.
    supposed = [_labelled(out, "Note", note) for note in remarks[: len(diagnosis.supposed)]]
    notes = [[_labelled(out, "Note", note)] for note in remarks[len(supposed) :][:MAX_NOTES]]
    blocks = [block for block in (first, landing, fix, [*said, *supposed, *following]) if block]
    room = LINES - len(head) - sum(len(block) for block in blocks) - min(len(blocks), 3)
    kept: list[list[Line]] = []
    for wanted in (
        *causes[:1],
        *fixes[:1],
        *facts[:1],
        *causes[1:],
        *more_said,
        *notes[:1],
        *facts[1:],
        *fixes[1:],
        *notes[1:],
    ):
        if len(wanted) <= room:
            kept.append(wanted)
            room -= len(wanted)
    notes = [note for note in notes if note in kept]
    following = _following(diagnosis, invocation, len(remarks) - len(supposed) - len(notes))
    body = [first, *(block for block in (*facts, *causes) if block in kept), landing]
    foot = [said, supposed, *(block for block in (*more_said, *notes) if block in kept), following]
    out.write((coloured, style(diagnosis)), head[0].removeprefix(coloured))
    for row in head[1:]:
        out.write(row)
    for part in (body, [fix, *(block for block in fixes if block in kept)], foot):
        lines = [line for block in part for line in block]
        if lines:
            out.write("")
        for line in lines:
            out.write(*line)


def _wrapped(out: Painter, text: str, indent: str = "") -> list[str]:
    return [indent + line for line in wrap(text, min(out.width, 120) - len(indent))]


def _causes(out: Painter, diagnosis: Diagnosis) -> tuple[list[Line], list[list[Line]], list[list[Line]]]:
    """The first cause by its code, with its place; what shows it; then the second in one line, and how many more."""
    if not diagnosis.findings:
        return [], [], []
    first, *others = diagnosis.findings
    place = f" of claim {first.claim}" if first.claim else ""
    where = f'request "{first.request}"{place}' if first.request else place.removeprefix(" of ")
    where = written(first.place) or where
    head = [_cause(out, first, where)[0]]
    facts = [_fact(out, evidence) for evidence in _untold(diagnosis, first)[:MAX_FACTS]]
    more = [_cause(out, one, written(one.summary)) for one in others[: MAX_CAUSES - 1]]
    if len(others) >= MAX_CAUSES:
        more.append([(f"  and {len(others) - MAX_CAUSES + 1} more",)])
    return head, facts, more


def _untold(diagnosis: Diagnosis, first: Finding) -> list[Evidence]:
    """The facts of the first cause but the event that the answer quotes and that stands below once more."""
    said = diagnosis.scheduler[0].message if diagnosis.scheduler else ""
    return [fact for fact in first.evidence if not said or fact.value != said] or list(first.evidence)


def _cause(out: Painter, finding: Finding, text: str) -> list[Line]:
    """A cause by its code, on two lines at most."""
    code = finding.kind.code
    first, *rest = _on_two(out, f"{code}: {text}" if text else code, "  ", "    ")
    return [
        ("  ", (code, linked("cyan", page_of_cause(code))), first.removeprefix(f"  {code}")),
        *((row,) for row in rest),
    ]


def _fact(out: Painter, evidence: Evidence) -> list[Line]:
    """A fact, on two lines at most."""
    value = " ".join(written(evidence.value).split())
    if evidence.is_cel:
        first, *rest = folded(value, out.width - 6)
        return [("    ", first + (" ..." if rest else ""))]
    what = about(evidence)
    text = f"{what} {value}" if value else what.removesuffix(":")
    return [(row,) for row in _on_two(out, text, "    ", "      ")]


def _on_two(out: Painter, text: str, indent: str, further: str) -> list[str]:
    """A text on one line or two, cut between words where it is longer."""
    width = min(out.width, 120)
    first, *rest = wrap(text, width - len(further))
    if not rest:
        return [indent + first]
    second = rest[0] if len(rest) == 1 else textwrap.shorten(" ".join(rest), width - len(further), placeholder=" ...")
    return [indent + first, further + second]


def _landing(out: Painter, diagnosis: Diagnosis) -> list[Line]:
    """One node that fits, the one that the scheduler takes where that is known, with the devices there."""
    if diagnosis.verdict is not Verdict.ALLOCATABLE or not diagnosis.placements:
        return []
    taken = choice(diagnosis)
    winners = diagnosis.choice.nodes if taken and diagnosis.choice is not None else ()
    shown = next((one for one in diagnosis.placements if one.node in winners), diagnosis.placements[0])
    lines = _wrapped(out, f"{taken[:1].upper()}{taken[1:]}.", "  ")[:2] if taken else []
    if text := placed(shown):
        lines += _wrapped(out, f"on {shown.node}: {text}", "  ")[:3]
    return [(line,) for line in lines]


def _offers(out: Painter, diagnosis: Diagnosis, asked: Invocation) -> list[list[Line]]:
    """The fixes, the first with a heading: what ends the first cause, and whatever is proved."""
    offers = list(_all_offers(diagnosis))
    chosen = [offer for number, offer in enumerate(offers) if offer.proof is not None or not number]
    # Where one change is the fix of several requests, the last proof has it for all of them.
    last = {tuple(offer.made): offer for offer in chosen if offer.made}
    chosen = [offer for offer in chosen if not offer.made or last[tuple(offer.made)] is offer]
    if not chosen:
        return []
    head = "Fixes"
    if all(offer.proof is not None for offer in chosen):
        head = "Fixes, proved by running the scheduler's steps with them"
    # Where several requests fail, the fix of one is none without those of the others.
    own, *rest = _together(chosen)
    parts = sorted((own, *rest), key=_price)
    if own in parts[2:]:
        # What ends the first cause is not left out for what costs less.
        parts.remove(own)
        parts.insert(1, own)
    blocks = [[line for offer in part for line in _offer(out, offer, asked)] for part in parts]
    # A fix is told whole or not at all: half of one would not help.
    short = [block for block in blocks if len(block) <= LONGEST_FIX]
    first, *others = short or [[("  - It is too long for this page: see the full one.",)]]
    return [[((head, "bold"),), *first], *others]


def _together(offers: Sequence[ShownFix]) -> list[list[ShownFix]]:
    """The fixes one by one, but those of several requests that all fail as one, where the first of them is."""
    out: list[list[ShownFix]] = []
    joint: list[ShownFix] = []
    for offer in offers:
        part = [offer]
        beside = offer.proof.beside if offer.proof is not None else None
        if beside is not None and (beside.changed or beside.aside):
            joint.append(offer)
            if len(joint) > 1:
                continue
            part = joint
        out.append(part)
    return out


def _price(part: Sequence[ShownFix]) -> Price:
    return max(offer.price for offer in part)


def _all_offers(diagnosis: Diagnosis) -> Iterator[ShownFix]:
    """What ends each cause, and what else would help."""
    several = sum(len(claim.funnels) for claim in diagnosis.claims) > 1
    for finding in diagnosis.findings:
        remedy = finding.remedy
        if remedy is None:
            yield ShownFix(fix(finding), None)
        elif not remedy.not_alone:
            text, made = fix(finding), remedy.offers[:1]
            if several and made and isinstance(made[0], RequestChange) and (where := written(made[0].where)):
                text = f"{where.strip()}: {text[:1].lower()}{text[1:]}"
            yield ShownFix(text, remedy.proof, remedy.price, made, remedy.what_if)
    for way in diagnosis.ways:
        yield ShownFix(", and ".join(changes_told(way)), way.proof, way.price, way.changes, way.what_if)


def _offer(out: Painter, offer: ShownFix, asked: Invocation) -> Iterator[Line]:
    text = offer.text.removesuffix(".")
    if offer.proof is not None:
        text += f"; {fits_there(offer.proof)}"
    first, *rest = wrap(f"{text[:1].upper()}{text[1:]}.", min(out.width, 120) - 4)
    yield "  - ", first
    yield from ((f"    {line}",) for line in rest)
    if commands := making(offer.made, asked):
        yield "    $ ", (shell(commands), "cyan")
    elif supposed := supposing(offer.what_if, asked):
        yield "    $ ", (shlex.join(supposed), "cyan")


def _said(out: Painter, diagnosis: Diagnosis) -> list[list[Line]]:
    """What the scheduler says, then what it would say now where that is something else."""
    said = diagnosis.scheduler[0].message if diagnosis.scheduler else ""
    lines = [[_labelled(out, "Kubernetes says", said)]] if said else []
    if diagnosis.message and diagnosis.message != said:
        label = "It would now say" if said else "Kubernetes would say"
        lines.append([_labelled(out, label, diagnosis.message)])
    return lines


def _remarks(diagnosis: Diagnosis) -> list[str]:
    """What was assumed and not seen; why the answer is undetermined stands in its first sentence."""
    return [*(written(note) for note in diagnosis.notes if note not in diagnosis.unclear[:1]), assumed(diagnosis)]


def _following(diagnosis: Diagnosis, asked: Invocation, unsaid: int) -> list[Line]:
    """What to do next, and how many notes the full page has besides."""
    lines: list[Line] = []
    step = diagnosis.next
    if step is not None and step.look not in _OUR_PAGE and (text := command(step, asked)):
        lines.append((("Next: ", "bold"), text))
    if asked.command:
        more = f" ({amount(unsaid, 'more note')})" if unsaid else ""
        lines.insert(0, (("All of it: " if lines else "Next: ", "bold"), f"{asked.command} --full{more}"))
    return lines


def _labelled(out: Painter, label: str, text: str, indent: str = "", style: str = "bold") -> Line:
    """One line, cut between two words where it is too long."""
    line = f"{label}: {text}" if text else label
    room = min(out.width, 120) - len(indent)
    shown = line if len(line) <= room else textwrap.shorten(line, room, placeholder=" ...")
    return indent, (shown[: len(label)], style), shown[len(label) :]
