"""The page around a report: embedded style and script, and a policy that forbids everything else."""

from __future__ import annotations

import base64
import hashlib
import os
import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_dra.report import blocks
from kubectl_dra.safe_output import visible
from kubectl_dra.text import DOCS, page_of_cause, some, whole_number

if TYPE_CHECKING:
    from kubectl_dra.api.releases import Release
    from kubectl_dra.cluster.snapshot import Snapshot

_VOID = frozenset(("br", "input", "link", "meta"))


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def text(value: str) -> Markup:
    r"""Text as HTML that shows it literally; invisible characters are written as ``\u202e``."""
    if isinstance(value, Markup):
        return value
    return Markup(escape(visible(value), quote=True))


def tag(name: str, /, *children: str, **attributes: str | int | bool | None) -> Markup:
    """An element. Children are escaped unless they are Markup.

    An attribute ``data_node`` is written ``data-node``, ``class_`` as ``class``. True is written without a
    value; False and None are left out.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{''.join(map(text, children))}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Markup:
    """Parts in sequence, each escaped unless it is Markup."""
    return Markup(text(between).join(map(text, parts)))


def code(value: str) -> Markup:
    """A name, an expression or a command."""
    return tag("code", value)


def _attribute(key: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(str(value))}"'


# When and from what a page was made: who finds it in a ticket years later wants to know.


class PageOrigin(NamedTuple):
    """The time (UTC), the live cluster (address and, if the kubeconfig names it, context) or else the files, and the
    release of Kubernetes that is assumed.
    """

    made: datetime
    server: str
    context: str
    files: tuple[str, ...]
    release: str

    @classmethod
    def of(cls, snapshot: Snapshot, release: Release) -> PageOrigin:
        """The origin of a page about a snapshot. Of files it has the names: folders are nobody else's business."""
        files = () if snapshot.server else tuple(PurePath(source).name for source in snapshot.sources)
        return cls(_now(), snapshot.server, snapshot.context, files, str(release))


def _now() -> datetime:
    """Now, or what SOURCE_DATE_EPOCH says, with which the same input gives the same file."""
    fixed = whole_number(os.environ.get("SOURCE_DATE_EPOCH", ""), 11)
    return datetime.now(UTC) if fixed is None else datetime.fromtimestamp(fixed, UTC)


def origin_html(origin: PageOrigin) -> Markup:
    """One line at the top of a page."""
    from kubectl_dra import __version__

    moment = tag("time", f"{origin.made:%Y-%m-%d %H:%M} UTC", datetime=f"{origin.made:%Y-%m-%dT%H:%M:%SZ}")
    parts: list[Markup | str] = ["Made ", moment]
    if origin.server:
        parts += [" from ", f"context {origin.context}, " if origin.context else "", origin.server]
    elif origin.files:
        parts += [" from ", some(origin.files)]
    parts += [f" · Kubernetes {origin.release} · kubectl-dra {__version__} · "]
    parts += [tag("a", "documentation", href=f"{DOCS}/index.md", rel="noreferrer")]
    return tag("p", join(parts), class_="quiet origin")


def page(title: str, parts: Sequence[str], origin: PageOrigin) -> str:
    """A whole HTML document in pure ASCII, so that no shell, mail or ticket system damages it.

    The content security policy allows the style and the script by their digests, and no requests.
    """
    style, script = _file("page.css"), _file("page.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        # The escaped quotes of the policy are quotes again for who reads the attribute.
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        # Without it a browser asks the server of the page for an icon.
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    main = tag("main", origin_html(origin), "\n", join(parts, "\n"), id="main")
    skip = tag("a", "Skip to the report", href="#main", class_="skip")
    body = tag("body", skip, "\n", main, "\n", _footer(), "\n", tag("script", Markup(script)))
    document = f'<!DOCTYPE html>\n<html lang="en">\n{head}\n{body}\n</html>\n'
    return document.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _footer() -> Markup:
    from kubectl_dra import __version__

    return tag("footer", f"kubectl-dra {__version__}. This file is complete: it loads nothing and sends nothing.")


def _file(name: str) -> str:
    content = pkgutil.get_data(__package__, name)
    if content is None:
        raise FileNotFoundError(name)
    # A browser reads CRLF as LF before it computes a digest.
    return content.decode("ascii").replace("\r\n", "\n")


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("ascii")).digest()).decode("ascii")


def scrolled(table: Markup, label: str) -> Markup:
    """A table that may be wider than a phone: it scrolls, also by keyboard."""
    return tag("div", table, class_="scroll", role="region", aria_label=label, tabindex="0")


def cause_link(cause: str) -> Markup:
    """The code of a cause, which leads to its page."""
    return tag("a", code(cause), href=page_of_cause(cause), rel="noreferrer")


# Blocks as parts of a page.


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
