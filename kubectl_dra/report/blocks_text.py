"""Blocks as text: all of them, or in brief, which is what has to be said and as much more as there is room for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final, NamedTuple

from kubectl_dra.command import LIVE
from kubectl_dra.report import blocks
from kubectl_dra.report.color import PROSE_WIDTH, Painter, linked, wrap
from kubectl_dra.report.phrases import folded
from kubectl_dra.safe_output import lines
from kubectl_dra.text import page_of_cause

LINES: Final = 15
"""Of an answer in brief where the terminal has 100 columns; what has to be said is always said."""
LONGEST_FIX: Final = 7
"""Lines of the first fix in brief, or of those that only help together."""
MAX_COLOURED: Final = 2_000
"""Rows of a table that have colours: they cost a tenth of a millisecond a line."""
_STYLES: Final = {
    blocks.Tone.PLAIN: "",
    blocks.Tone.GOOD: "green",
    blocks.Tone.WARNING: "yellow",
    blocks.Tone.BAD: "red",
    blocks.Tone.QUIET: "dim",
}
_OTHER_WAY: Final = 1
_NEXT_FIX: Final = 2
_MORE_FIXES: Final = 8
"""Ranks of the fixes after the first; of two that help each by itself the second counts more than facts."""

Line = tuple[str | tuple[str, str], ...]


def write_blocks(out: Painter, parts: Iterable[blocks.Block], indent: int = 0, lead: str | None = None) -> None:
    """Write all blocks; ``lead`` starts the first line instead of the indent."""
    for block in parts:
        _write(out, block, indent, " " * indent if lead is None else lead)
        lead = None


def _write(out: Painter, block: blocks.Block, indent: int, lead: str) -> None:
    if isinstance(block, blocks.Answer):
        out.paragraph(block.text, style=f"bold {_STYLES[block.tone]}")
    elif isinstance(block, blocks.Section):
        out.write("")
        out.heading(block.title, block.note)
        write_blocks(out, block.blocks, 2)
    elif isinstance(block, blocks.Para) and block.full:
        label, rest, style = _labelled(block.spans)
        margin = " " * (indent + block.hang)
        if style:
            out.heading(label, rest, margin, lead, style)
        else:
            out.paragraph(label + rest, margin, lead, _STYLES[block.tone])
    elif isinstance(block, blocks.Facts):
        for fact in block.facts:
            _fact(out, fact, indent)
    elif isinstance(block, blocks.ShellCommand) and block.full:
        if block.label:
            out.write("")
            write_command(out, block)
        else:
            out.write(lead, *_prompted(block))
    elif isinstance(block, blocks.FixOffer):
        write_blocks(out, block.blocks, indent, lead)
    elif isinstance(block, blocks.Items):
        _items(out, block, indent)
    elif isinstance(block, blocks.Steps):
        _steps(out, block, indent)
    elif isinstance(block, blocks.Checks):
        _checks(out, block, indent + 4)
    elif isinstance(block, blocks.TableBlock):
        _table(out, block)
    elif isinstance(block, blocks.Tree):
        _tree(out, block)


def write_command(out: Painter, command: blocks.ShellCommand | blocks.Para, rest: str = "") -> None:
    """Write a command after its label and what of the ``rest`` it shows, or why there is none."""
    if isinstance(command, blocks.ShellCommand):
        out.write(*_headed(command, rest))
    else:
        _write(out, command, 0, "")


def _headed(block: blocks.ShellCommand, rest: str = "") -> Line:
    """A command after its label: what is said beside it stands before it, so that the line's end can be pasted."""
    live = ((f" ({LIVE})", "bold"),) if block.reads_live else ()
    return (f"{block.heading}{f' ({rest})' if rest else ''}", "bold"), *live, (": ", "bold"), block.text


def _prompted(block: blocks.ShellCommand) -> Line:
    """A command after a prompt, and what is to be known before it is run."""
    style = "bold red" if block.warning else "bold"
    return *(((f"{block.caution}: ", style),) if block.caution else ()), "$ ", (block.text, "cyan")


def _labelled(spans: blocks.Spans) -> tuple[str, str, str]:
    """The first words and the others, and the style of the first; empty where they have none of their own."""
    first = spans[0] if spans else ""
    if not isinstance(first, blocks.Marked) or first.mark is blocks.WordMark.LABEL:
        return "", blocks.plain(spans), ""
    style = linked("cyan", page_of_cause(first.text)) if first.mark is blocks.WordMark.CAUSE else "bold"
    return first.text, blocks.plain(spans[1:]), style


def _fact(out: Painter, fact: blocks.Fact, indent: int) -> None:
    lead, margin = " " * indent, " " * (indent + 2)
    whole = f"{fact.about} {fact.value}"
    if not fact.is_cel:
        out.paragraph(whole, margin, lead)
    elif "\n" not in whole and len(whole) + indent <= out.width:
        out.write(lead, whole)
    else:
        out.paragraph(fact.about, margin, lead)
        for line in folded(fact.value, out.width - len(margin)):
            out.write(margin, line)


def _items(out: Painter, block: blocks.Items, indent: int) -> None:
    shown = block.shown if block.rest is not None else None
    for number, item in enumerate(block.items[:shown], 1):
        marker = block.marker.replace("1", str(number))
        write_blocks(out, item, indent + len(marker), " " * indent + marker)
    if block.rest and shown is not None and len(block.items) > shown:
        tone = getattr(block.items[0][0], "tone", blocks.Tone.PLAIN)
        out.write(" " * (indent + len(block.marker)), (block.rest, _STYLES[tone]))


def _steps(out: Painter, block: blocks.Steps, indent: int) -> None:
    out.heading(block.label, block.title, " " * (indent + 2), " " * indent)
    width = len(f"{max((step.left for step in block.steps), default=0):,}")
    for step in block.steps:
        _step(out, step, width, indent + 2)
    if block.note:
        out.write(" " * (indent + 2), block.note)


def _step(out: Painter, step: blocks.FunnelStep, width: int, margin: int) -> None:
    style = "red" if not step.left else ("yellow" if step.lost else "")
    mark = ("✗ ", "red") if not step.left and step.lost else "  "
    head = (" " * margin, mark, (f"{step.left:,}".rjust(width), style))
    indent = " " * (margin + 2 + width)
    lost = f"  (-{step.lost:,})" if step.lost else ""
    whole = f"  {step.label}" + (f": {step.expression}" if step.expression else "") + lost
    if "\n" not in whole and len(indent) + len(whole) <= out.width:
        out.write(*head, whole)
    else:
        label = f"{step.label}{':' if step.expression else ''}{lost}"
        for row, text in enumerate(wrap(label, out.width - len(indent) - 2)):
            out.write(*(head if not row else (indent,)), f"  {text}")
        for text in folded(step.expression, out.width - len(indent) - 4) if step.expression else ():
            out.write(indent, "    ", text)
    write_blocks(out, step.remarks, len(indent) + 4)


def _checks(out: Painter, block: blocks.Checks, indent: int) -> None:
    margin = " " * indent
    for passes, place, why in block.checks:
        mark = ("✓", "green") if passes else ("✗", "red")
        beside = out.limit is None or len(place) + len(why) + indent + 4 <= out.limit
        out.write(margin, mark, f" {place}", f"  {why}" if why and beside else "")
        if why and not beside:
            out.paragraph(why, indent=f"{margin}      ", first=f"{margin}    ")
    if block.rest:
        out.write(margin, block.rest)


def _table(out: Painter, block: blocks.TableBlock) -> None:
    from kubectl_dra.report.table import fitted

    below = [name for name in block.below if name in block.rows[0]]
    (header,), *rows = fitted(block.rows, out.width if block.amid else out.limit, below, prose=block.prose)
    if out.bare:
        lines((line for row in rows for line in row), out.stream)
        return
    out.write((header, "bold"))
    column = header.index(block.column)
    if not block.marks or len(rows) > MAX_COLOURED:
        lines((line for row in rows for line in row), out.stream)
    else:
        for (line, *under), (word, style) in zip(rows, block.marks, strict=True):
            start = line.index(word, column)
            end = start + len(word) if word else len(line)
            out.write(line[:start], (line[start:end], style), line[end:])
            for more in under:
                out.write((more, "" if word else style))
    if block.left:
        out.write(f"and {block.left:,} more: {block.how}")
    if block.omitted:
        wider = f" ({block.wider})" if block.wider else ""
        out.sentence(f"Left out for want of room: {', '.join(block.omitted)}{wider}", style="dim")


def _tree(out: Painter, block: blocks.Tree) -> None:
    for line in folded(block.expression, out.width - 2):
        out.write("  ", line)
    width = min(40, out.width // 4, max((len(step.value) for step in block.steps), default=0))
    for step in block.steps:
        style = "red" if step.raised else ""
        indent = "  " * step.depth
        whole = step.text.strip() == block.expression.strip()
        room = max(20, out.width - width - 6 - len(indent))
        first, *rest = ["the whole expression"] if whole else folded(step.text, room)
        if len(step.value) <= width:
            out.write("    ", (step.value.ljust(width), style), f"  {indent}{first}")
        else:
            out.paragraph(step.value, indent="    ", style=style)
            out.write("    ", " " * width, f"  {indent}{first}")
        for line in rest:
            out.write("    ", " " * width, f"  {indent}{line}")


class _Piece(NamedTuple):
    """Lines that are said together or not at all, in which part of the text, and the blocks that they tell.

    ``several`` is said instead if there are several fixes. Of one rank the first by ``turn`` is chosen first.
    """

    part: int
    rank: int | None
    lines: Sequence[Line]
    told: Sequence[blocks.Block | blocks.Fact] = ()
    several: Sequence[Line] = ()
    turn: int = 0


_BODY, _FIXES, _FOOT = range(3)


def write_brief(out: Painter, parts: Sequence[blocks.Block], lines: int = LINES) -> None:
    """Write the answer, the first of the blocks; then what it rests on, the fixes, and what is said at the foot."""
    answer = parts[0]
    assert isinstance(answer, blocks.Answer)
    head = wrap(answer.text, _width(out))
    leaves = [(leaf, _FOOT if _is_foot(block) else _BODY) for block in parts for leaf in _leaves((block,))]
    # What a fix is made in is shown where no other fix has to stay out for it.
    tries = [list(_pieces(out, leaves, places=places)) for places in (True, False)]
    selections = [_chosen(pieces, lines - len(head)) for pieces in tries]
    told_fixes = [
        sum(pieces[at].part == _FIXES for at in chosen) for pieces, chosen in zip(tries, selections, strict=True)
    ]
    at_best = 0 if told_fixes[0] >= told_fixes[1] else 1
    pieces, chosen = tries[at_best], selections[at_best]
    rest = _rest([leaf for leaf, _ in leaves], {id(leaf) for at in chosen for leaf in pieces[at].told})
    lead = head[0][: len(answer.lead)]
    out.write((lead, f"bold {_STYLES[answer.tone]}"), head[0].removeprefix(lead))
    for row in head[1:]:
        out.write(row)
    part = None
    in_order = [pieces[at] for at in sorted(chosen, key=lambda at: (pieces[at].part, at))]
    several = sum(piece.part == _FIXES and bool(piece.told) for piece in in_order) > 1
    for piece in in_order:
        if piece.part != part:
            out.write("")
            part = piece.part
        for line in piece.several if piece.several and several else piece.lines:
            block = piece.told[0] if piece.told else None
            has_rest = isinstance(block, blocks.ShellCommand) and block.has_rest
            out.write(*(_headed(block, rest) if isinstance(block, blocks.ShellCommand) and has_rest else line))


def _chosen(pieces: Sequence[_Piece], lines: int) -> set[int]:
    """Which are said: all that have to be, and of the others the first by rank that there is room for."""
    chosen = {at for at, piece in enumerate(pieces) if piece.rank == 0}
    room = lines - sum(len(pieces[at].lines) for at in chosen) - len({pieces[at].part for at in chosen})
    fixes_end = False
    for at in sorted(
        range(len(pieces)), key=lambda at: (pieces[at].rank or 0, pieces[at].part != _FIXES, pieces[at].turn)
    ):
        piece = pieces[at]
        if not piece.rank or (piece.part == _FIXES and fixes_end):
            continue
        if len(piece.lines) <= room:
            chosen.add(at)
            room -= len(piece.lines)
        elif piece.part == _FIXES:
            # No dearer fix is told because a cheaper one takes more lines.
            fixes_end = True
    return chosen


def _rest(leaves: Sequence[blocks.Block | blocks.Fact], told: Set[int]) -> str:
    """What is left out of all blocks: fixes, notes, and whatever else the answer rests on."""
    left = [leaf for leaf in leaves if id(leaf) not in told]
    fixes = [leaf for leaf in leaves if isinstance(leaf, blocks.FixOffer) and leaf.told]
    told_fixes = {fix.change or fix.told for fix in fixes if id(fix) in told}
    more = {fix.change or fix.told for fix in fixes} - told_fixes
    briefs = [
        leaf.brief for leaf in left if isinstance(leaf, blocks.Fact) or (isinstance(leaf, blocks.Para) and leaf.full)
    ]
    notes = sum(brief is not None and brief.is_note for brief in briefs)
    evidence = any(brief is None or (brief.rank is not None and not brief.is_note) for brief in briefs)
    evidence = evidence or any(isinstance(leaf, blocks.Steps | blocks.Checks | blocks.Tree) for leaf in left)
    return blocks.left_out(len(more), notes, evidence=evidence)


def _pieces(
    out: Painter, leaves: Sequence[tuple[blocks.Block | blocks.Fact, int]], *, places: bool
) -> Iterator[_Piece]:
    """What brief text may have, in the order in which it is read; ``places``: with what fixes are made in."""
    offered = [leaf for leaf, _ in leaves if isinstance(leaf, blocks.FixOffer) and leaf.turn is not None]
    own = (block for fix in offered if fix.own and places for block in fix.blocks)
    texts = {block.text for block in own if isinstance(block, blocks.ShellCommand)}
    for leaf, part in leaves:
        brief = getattr(leaf, "brief", None)
        if isinstance(leaf, blocks.ShellCommand) and brief is not None and leaf.text not in texts:
            yield _Piece(part, brief.rank, [_headed(leaf)], (leaf,))
        elif isinstance(leaf, blocks.Para | blocks.Fact) and brief is not None and brief.rank is not None:
            yield _Piece(part, brief.rank, _told(out, leaf, brief, 2 - part), (leaf,))
    yield from _fixes(out, offered, places)


def _is_foot(block: blocks.Block) -> bool:
    return isinstance(block, blocks.ShellCommand) or (isinstance(block, blocks.Section) and block.foot)


def _leaves(parts: Iterable[blocks.Block]) -> Iterator[blocks.Block | blocks.Fact]:
    """The blocks that are told or left out, one by one."""
    for block in parts:
        if isinstance(block, blocks.Section):
            yield from _leaves(block.blocks)
        elif isinstance(block, blocks.Items):
            for item in block.items:
                yield from _leaves(item)
        elif isinstance(block, blocks.Facts):
            yield from block.facts
        elif not isinstance(block, blocks.Answer | blocks.Fold):
            yield block


def _told(out: Painter, leaf: blocks.Para | blocks.Fact, brief: blocks.Brief, indent: int) -> list[Line]:
    """The lines of a block in brief."""
    if isinstance(leaf, blocks.Para):
        label, rest, style = _labelled(brief.spans or leaf.spans)
        first, *more = wrap(label + rest, _width(out) - indent - brief.hang, _width(out) - indent)
        margin = " " * indent
        # A line may end within the label.
        label = first[: len(label)]
        hanging = " " * brief.hang
        return [(margin, (label, style), first.removeprefix(label)), *((margin + hanging, row) for row in more)]
    value = " ".join(leaf.value.split())
    if leaf.is_cel:
        return [("    ", row) for row in folded(value, out.width - 6)]
    first, *more = wrap(f"{leaf.about} {value}" if value else leaf.about.removesuffix(":"), _width(out) - 6)
    return [("    ", first), *(("      ", row) for row in more)]


def _width(out: Painter) -> int:
    return min(out.width, PROSE_WIDTH)


def _fixes(out: Painter, chosen: Sequence[blocks.FixOffer], places: bool) -> Iterator[_Piece]:
    """The fixes, the first with a heading; ``places``: with what they are made in."""
    if not chosen:
        return
    proved = blocks.PROVED if all(fix.proved for fix in chosen) else ""
    heads = [((f"Fixes{order}{proved}", "bold"),) for order in ("", blocks.order_of(chosen))]
    yield _Piece(_FIXES, 0, heads[:1], several=heads[1:])
    texts = [(part, [line for fix in part for line in _fix(out, fix, places)]) for part in _together(chosen)]
    # A fix is told whole or not at all: half of one would not help.
    short = [(part, whole) for part, whole in texts if len(whole) <= LONGEST_FIX]
    if not short:
        yield _Piece(_FIXES, 0, [("  - It is too long for this page: see the full one.",)])
    turns = [max(fix.turn or 0 for fix in part) for part, _ in short]
    mildest = turns.index(min(turns)) if turns else 0

    def turn(at: int) -> tuple[bool, bool, int]:
        # What ends the first cause is not left out for what costs less, nor what helps instead of it.
        part = short[at][0]
        needed = at == mildest or any(fix.own for fix in part)
        return not needed, not needed and not part[0].instead, turns[at]

    order = sorted(range(len(short)), key=turn)
    second = _OTHER_WAY if any(short[at][0][0].instead for at in order[:2]) else _NEXT_FIX
    for at, (part, whole) in enumerate(short):
        number = order.index(at)
        yield _Piece(_FIXES, (0, second)[number] if number < 2 else _MORE_FIXES, whole, part, turn=number)


def _together(fixes: Sequence[blocks.FixOffer]) -> list[list[blocks.FixOffer]]:
    """The fixes one by one, but those that help only together as one, where the first of them is."""
    joint = [fix for fix in fixes if fix.joint]
    return [joint if fix.joint else [fix] for fix in fixes if not fix.joint or fix is joint[0]]


def _fix(out: Painter, fix: blocks.FixOffer, places: bool) -> Iterator[Line]:
    first, *rest = wrap(fix.told, _width(out) - 4)
    yield "  - ", first
    yield from ((f"    {line}",) for line in rest)
    for block in fix.blocks:
        if isinstance(block, blocks.ShellCommand):
            if places or not block.shows_place:
                yield "    ", *_prompted(block)
        elif block.brief is not None:
            yield from (("    ", row) for row in wrap(blocks.plain(block.spans), _width(out) - 4))
