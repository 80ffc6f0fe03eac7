"""A diagnosis on fifteen lines: the answer, what it rests on, the best fixes, the scheduler's words, what to do next.

The whole page (``--full``) is in ``report/explain_text.py``.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kubectl_dra.explain.diagnosis import Diagnosis, Evidence, Look, Verdict
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.question.what_if_flag import Supposition
from kubectl_dra.explain.remedies.change import Free
from kubectl_dra.explain.remedies.prove import Change, Proof
from kubectl_dra.report.assumed import assumed
from kubectl_dra.report.cel_text import folded
from kubectl_dra.report.explain_words import STYLES, Invocation, changes, choice, command, fix, parts, placed
from kubectl_dra.report.paint import Painter, wrap
from kubectl_dra.report.phrases import written
from kubectl_dra.wording import amount

LINES: Final = 15
"""Of the whole answer where the terminal has 100 columns; the least that is said is always said."""
MAX_CAUSES = 2
MAX_FACTS = 2
MAX_NOTES = 2
_OUR_PAGE: Final = (Look.DEVICES, Look.SELECTORS, Look.ONE_DEVICE)
"""Where what to look at next stands on the full page, or behind it."""

Line = tuple[str | tuple[str, str], ...]


class ShownFix(NamedTuple):
    """A fix in words, its proof where it was tried, and the changes as objects and for ``--what-if``."""

    text: str
    proof: Proof | None
    made: Sequence[Words] = ()
    what_if: Sequence[Supposition] = ()


def brief(out: Painter, diagnosis: Diagnosis, invocation: Invocation) -> None:
    """Writes the answer."""
    lead, reason = parts(diagnosis)
    head = _wrapped(out, f"{lead}: {reason}." if reason else f"{lead}.")
    coloured = head[0][: len(lead)]
    out.write((coloured, STYLES[diagnosis.verdict]), head[0].removeprefix(coloured))
    for row in head[1:]:
        out.write(row)
    long = len(head) > 2 or (diagnosis.scheduler and diagnosis.message != diagnosis.scheduler[0].message)
    body = [*_causes(out, diagnosis, 1 if long else MAX_FACTS), *_landing(out, diagnosis)]
    first, *others = _offers(out, diagnosis, invocation) or [[]]
    used = len(head) + sum(len(block) + 1 for block in (body, first) if block) + 1
    foot = _foot(out, diagnosis, invocation, LINES - used)
    room = LINES - used - len(foot)
    for block in others:
        room -= len(block)
        if room < 0:
            break
        first += block
    for block in (body, first, foot):
        if block:
            out.write("")
        for line in block:
            out.write(*line)


def _wrapped(out: Painter, text: str, indent: str = "") -> list[str]:
    return [indent + line for line in wrap(text, min(out.width, 120) - len(indent))]


def _causes(out: Painter, diagnosis: Diagnosis, facts: int) -> list[Line]:
    """The first causes by their codes: the first with its place and what shows it, the second in one line."""
    lines: list[Line] = []
    for number, finding in enumerate(diagnosis.findings[:MAX_CAUSES]):
        place = f" of claim {finding.claim}" if finding.claim else ""
        where = f'request "{finding.request}"{place}' if finding.request else place.removeprefix(" of ")
        lines.append(_labelled(out, finding.kind.code, written(finding.summary) if number else where, "  ", "cyan"))
        if not number:
            lines.extend(_fact(out, evidence) for evidence in finding.evidence[:facts])
    more = len(diagnosis.findings) - MAX_CAUSES
    if more > 0:
        lines.append((f"  and {more} more",))
    return lines


def _fact(out: Painter, evidence: Evidence) -> Line:
    value = " ".join(written(evidence.value).split())
    if evidence.is_cel:
        first, *rest = folded(value, out.width - 6)
        return "    ", first + (" ..." if rest else "")
    return _labelled(out, f"{written(evidence.object)} · {written(evidence.field)}", value, "    ", "")


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
    """The fixes, the first with a heading: what ends the first cause, then whatever is proved."""
    offers = list(_all_offers(diagnosis))
    if not offers:
        return []
    chosen = [offer for number, offer in enumerate(offers) if offer.proof is not None or not number]
    head = "Fixes, proved by running the scheduler's steps with them" if chosen[0].proof is not None else "Fixes"
    first, *others = [list(_offer(out, offer, asked)) for offer in chosen]
    return [[((head, "bold"),), *first], *others]


def _all_offers(diagnosis: Diagnosis) -> Iterator[ShownFix]:
    """What ends each cause, and what else would help; devices that nobody has are left to the full page."""
    for finding in diagnosis.findings:
        remedy = finding.remedy
        if remedy is None:
            yield ShownFix(fix(finding), None)
        elif not remedy.not_alone:
            yield ShownFix(fix(finding), remedy.proof, remedy.offers[:1], remedy.what_if)
    for way in diagnosis.ways:
        if all(isinstance(change, Change) for change in way.changes):
            yield ShownFix(", and ".join(changes(way)), way.proof, way.changes, way.what_if)


def _offer(out: Painter, offer: ShownFix, asked: Invocation) -> Iterator[Line]:
    text = offer.text.removesuffix(".")
    if offer.proof is not None:
        text += f": {written(offer.proof.how)} it fits on {offer.proof.node}"
    first, *rest = wrap(f"{text[:1].upper()}{text[1:]}.", min(out.width, 120) - 4)
    yield "  - ", first
    yield from ((f"    {line}",) for line in rest[:2])
    made = _making(offer.made, asked)
    if made:
        yield "    $ ", (made, "cyan")
    elif tried := _supposing(offer.what_if, asked):
        yield "    $ ", (tried, "cyan")


def _making(made: Sequence[object], asked: Invocation) -> str:
    """The command that makes a change in the cluster; empty where it takes another one, or an edit."""
    if len(made) != 1 or not isinstance(made[0], Free) or len(made[0].claims) != 1:
        return ""
    where = "" if asked.saved else asked.where
    claim = made[0].claims[0]
    namespace = claim.metadata.namespace
    if not claim.reserved_for:
        return f"kubectl delete resourceclaim -n {namespace} {claim.metadata.name}{where}"
    if all(user.resource == "pods" and not user.api_group for user in claim.reserved_for):
        names = " ".join(user.name for user in claim.reserved_for)
        return f"kubectl delete pod -n {namespace} {names}{where}"
    return ""


def _supposing(what_if: Sequence[Supposition], asked: Invocation) -> str:
    """The command that shows the answer with these changes; empty where they cannot be supposed."""
    if not what_if or not asked.command:
        return ""
    return asked.command + "".join(f" --what-if {shlex.quote(str(change))}" for change in what_if)


def _foot(out: Painter, diagnosis: Diagnosis, asked: Invocation, room: int) -> list[Line]:
    """What the scheduler says, what was assumed and not seen as far as there is room, and what to do next."""
    lines: list[Line] = []
    said = diagnosis.scheduler[0].message if diagnosis.scheduler else ""
    if said:
        lines.append(_labelled(out, "Kubernetes says", said))
    if diagnosis.message and diagnosis.message != said:
        lines.append(_labelled(out, "It would now say" if said else "Kubernetes would say", diagnosis.message))
    last: list[Line] = []
    following = diagnosis.next
    if following is not None and following.look not in _OUR_PAGE and (text := command(following, asked)):
        last.append((("Next: ", "bold"), text))
    # Why the answer is undetermined stands in its first sentence.
    remarks = [written(note) for note in diagnosis.notes if note not in diagnosis.unclear[:1]]
    remarks.append(assumed(diagnosis))
    shown = min(len(remarks), max(1, min(MAX_NOTES, room - len(lines) - len(last) - 1)))
    lines += [_labelled(out, "Note", note) for note in remarks[:shown]]
    if asked.command:
        more = f" ({amount(len(remarks) - shown, 'more note')})" if len(remarks) > shown else ""
        label = "All of it: " if last else "Next: "
        last.insert(0, ((label, "bold"), f"{asked.command} --full{more}"))
    return [*lines, *last]


def _labelled(out: Painter, label: str, text: str, indent: str = "", style: str = "bold") -> Line:
    """One line, cut between two words where it is too long."""
    line = f"{label}: {text}" if text else label
    room = min(out.width, 120) - len(indent)
    shown = line if len(line) <= room else textwrap.shorten(line, room, placeholder=" ...")
    return indent, (shown[: len(label)], style), shown[len(label) :]
