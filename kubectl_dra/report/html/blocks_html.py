"""Blocks as parts of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kubectl_dra.report import blocks
from kubectl_dra.report.html.page import Markup, cause_link, code, join, scrolled, tag

_CLASSES: Final = {blocks.Tone.GOOD: "fix", blocks.Tone.BAD: "error", blocks.Tone.QUIET: "quiet"}


def blocks_html(parts: Iterable[blocks.Block], level: int) -> Iterator[Markup]:
    """The blocks; ``level`` is that of the headings of their sections."""
    for block in parts:
        if isinstance(block, blocks.Answer):
            yield tag("p", block.text, class_="answer")
        elif isinstance(block, blocks.Section):
            note = tag("small", block.note) if block.note else ""
            heading = tag(f"h{level}", block.title, note)
            yield tag("section", heading, *blocks_html(block.blocks, level + 1), class_=block.name or None)
        elif isinstance(block, blocks.Para) and block.full:
            yield tag("p", *_spans(block), class_=_CLASSES.get(block.tone))
        elif isinstance(block, blocks.Facts):
            facts = ((fact.about, " ", tag("span", fact.value, class_="value")) for fact in block.facts)
            yield tag("ul", *(tag("li", *fact) for fact in facts))
        elif isinstance(block, blocks.ShellCommand) and block.full:
            yield from _command(block, level)
        elif isinstance(block, blocks.FixOffer):
            yield from blocks_html(block.blocks, level)
        elif isinstance(block, blocks.Items):
            yield from _items(block, level)
        elif isinstance(block, blocks.Steps):
            yield _steps(block)
        elif isinstance(block, blocks.Tree):
            yield _tree(block)
        elif isinstance(block, blocks.Fold):
            yield tag("details", tag("summary", block.title), *blocks_html(block.paras, level))


def _spans(para: blocks.Para) -> Iterator[Markup | str]:
    for span in para.spans:
        if not isinstance(span, blocks.Marked):
            yield span
        elif span.mark is blocks.WordMark.CAUSE:
            yield cause_link(span.text)
        else:
            yield tag("b", span.text)


def _command(block: blocks.ShellCommand, level: int) -> Iterator[Markup]:
    shown = [tag("pre", code(block.text), tabindex="0", data_effect=block.effect.value)]
    if block.caution:
        shown.insert(0, tag("p", f"{block.caution}:", class_="quiet"))
    if block.label:
        yield tag("section", tag(f"h{level}", block.label), *shown)
    else:
        yield from shown


def _items(block: blocks.Items, level: int) -> Iterator[Markup]:
    if not block.items:
        return
    name = "ol" if "1" in block.marker else "ul"
    shown = len(block.items) if block.shown is None else block.shown
    entries = [_item(item, level) for item in block.items[: shown + blocks.MAX_FOLDED]]
    yield tag(name, *entries[:shown])
    if len(block.items) > shown:
        more = (block.rest or "").removesuffix(blocks.IN_JSON) or f"{len(block.items) - shown:,} more"
        yield tag("details", tag("summary", more), tag(name, *entries[shown:]))


def _item(item: Sequence[blocks.Block], level: int) -> Markup:
    first, *rest = item
    if isinstance(first, blocks.Para) and not rest:
        return tag("li", *_spans(first), class_=_CLASSES.get(first.tone))
    return tag("li", *blocks_html(item, level))


def _steps(block: blocks.Steps) -> Markup:
    """A table: what is left after each step, and where the others went."""
    rows = _merged(block.steps)
    most = max((step.left + step.lost for step in rows), default=1)
    head = tag("tr", *(tag("th", word, scope="col") for word in ("Left", "Lost", "After")))
    title = join([tag("b", block.label), block.title])
    body = tag("tbody", *(_step(step, most) for step in rows))
    table = tag("table", tag("caption", title), tag("thead", head), body, class_="funnel")
    shown = join([table, tag("p", block.note) if block.note else ""])
    if not block.fold:
        return shown
    counts = dict.fromkeys(f"{step.left:,}" for step in rows)
    summary = f"{' → '.join(counts)} left" if counts else ""
    return tag("details", tag("summary", title, " ", tag("small", summary)), shown)


def _merged(steps: Sequence[blocks.FunnelStep]) -> list[blocks.FunnelStep]:
    """The steps; those in a row of which there is nothing to say are one."""
    out: list[blocks.FunnelStep] = []
    for step in steps:
        before = out[-1] if out else None
        if before is not None and _is_plain(before) and _is_plain(step):
            out[-1] = before._replace(label=f"{before.label}, {step.label}")
        else:
            out.append(step)
    return out


def _is_plain(step: blocks.FunnelStep) -> bool:
    return not (step.lost or step.expression or step.remarks)


def _step(step: blocks.FunnelStep, most: int) -> Markup:
    width = round(100 * step.left / most) if most else 0
    # A bar that can be seen for the least that is left.
    bar = tag("path", d=f"M0 0H{max(1, width) if step.left else 0}V2H0z")
    picture = tag("svg", bar, class_="bar", viewBox="0 0 100 2", preserveAspectRatio="none", aria_hidden="true")
    expression = [Markup("<br>"), code(step.expression)] if step.expression else []
    return tag(
        "tr",
        tag("td", f"{step.left:,}", picture, class_="number"),
        tag("td", f"−{step.lost:,}" if step.lost else "", class_="number"),
        tag("td", step.label, *expression, *blocks_html(step.remarks, 0)),
        class_="empty" if not step.left else ("some" if step.lost else None),
    )


def _tree(block: blocks.Tree) -> Markup:
    rows = [
        tag(
            "tr",
            tag("td", code(step.text), data_depth=min(step.depth, 8)),
            tag("td", step.value, class_="error" if step.raised else None),
        )
        for step in block.steps
    ]
    head = tag("tr", tag("th", "Expression", scope="col"), tag("th", "Value", scope="col"))
    table = tag("table", tag("caption", block.title), tag("thead", head), tag("tbody", *rows), class_="trace")
    return scrolled(table, block.title)
