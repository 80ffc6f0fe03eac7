"""Whole pages: a diagnosis with the fleet beside it, to attach to a ticket; all that is pending; devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.command import ClusterFlags
from kubectl_dra.explain.devices.inventory import Inventory
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.overview import Overview
from kubectl_dra.explain.settings import Settings
from kubectl_dra.report.blocks import FunnelStep, Section, Steps, noted
from kubectl_dra.report.devices import nothing, summary
from kubectl_dra.report.explain_blocks import blocks_of
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.report.explain_words import answer, overview_answer
from kubectl_dra.report.html.cells import funnels_of, marks_of
from kubectl_dra.report.html.fleet import bars_html, fleet_html, spaces_html
from kubectl_dra.report.html.lines import fleet_of
from kubectl_dra.report.html.page import Markup, PageOrigin, blocks_html, cause_link, join, page, scrolled, tag
from kubectl_dra.report.phrases import commands_of, sentences, written
from kubectl_dra.text import amount, some

MAX_FLEETS = 8
MAX_ROWS = 12
"""Rows of the picture shown at once."""


def to_html(answers: Sequence[tuple[Diagnosis, Inventory | None]], origin: PageOrigin, invocation: Invocation) -> str:
    """The page: each diagnosis with the devices of its cluster, for the first ``MAX_FLEETS`` of them.

    The devices are marked by what the funnels say of them, so these are to have their devices.
    """
    if len(answers) == 1:
        diagnosis, inventory = answers[0]
        title = f"{_name(diagnosis)}: {diagnosis.verdict.word}"
        return page(title, [join(_sections(diagnosis, inventory, "d0", 1, invocation), "\n")], origin)
    parts = [tag("header", tag("h1", f"{amount(len(answers), 'question')} explained"))]
    shared = next((inventory for diagnosis, inventory in answers if inventory and diagnosis.claims), None)
    if shared is not None:
        parts.append(tag("section", tag("h2", "Devices"), _headline(shared)))
    parts.append(_contents([(diagnosis, _name(diagnosis)) for diagnosis, _ in answers]))
    for number, (diagnosis, inventory) in enumerate(answers):
        if number == MAX_FLEETS:
            note = f"Devices are drawn for the first {MAX_FLEETS} only; explain one of the others alone to see them."
            parts.append(tag("p", note, class_="quiet"))
        drawn = inventory if number < MAX_FLEETS else None
        parts.append(_article(diagnosis, drawn, f"d{number}", invocation.about(diagnosis), shared))
    if shared is not None:
        parts.append(spaces_html(shared.rows))
    return page(f"{amount(len(answers), 'question')} explained", parts, origin)


def overview_html(overview: Overview, inventory: Inventory | None, origin: PageOrigin, invocation: Invocation) -> str:
    """The page of every pending claim, stuck ones first: the devices, a table, and each answer below it.

    ``inventory`` is None where the devices could not be read.
    """
    ranked = sorted(overview.found, key=lambda alike: (-alike.exit_code, -len(alike.names)))
    unseen = [tag("p", written(note), class_="quiet") for note in overview.notes]
    parts = [tag("header", tag("h1", "Pending claims"), tag("p", overview_answer(overview), class_="answer"), *unseen)]
    if inventory is not None and inventory.rows:
        picture = fleet_html(fleet_of(inventory.rows), "fleet", _headline(inventory), first=MAX_ROWS)
        parts.append(tag("section", tag("h2", "Fleet"), picture))
    if ranked:
        names = [f"{alike.diagnosis.namespace}: {some(alike.names, 1)}" for alike in ranked]
        parts.append(_contents(list(zip([alike.diagnosis for alike in ranked], names, strict=True))))
    if inventory is not None:
        parts.append(spaces_html(inventory.rows))
    parts += [_article(alike.diagnosis, None, f"d{number}", invocation) for number, alike in enumerate(ranked)]
    return page("Pending claims", parts, origin)


def _contents(listed: Sequence[tuple[Diagnosis, str]]) -> Markup:
    head = tag("tr", *(tag("th", word, scope="col") for word in ("What", "Verdict", "Cause", "Reason")))
    rows = [
        tag(
            "tr",
            tag("th", tag("a", name, href=f"#d{number}"), scope="row"),
            tag("td", _badge(diagnosis)),
            tag("td", cause_link(diagnosis.findings[0].kind.code) if diagnosis.findings else ""),
            tag("td", written(diagnosis.findings[0].summary) if diagnosis.findings else answer(diagnosis)),
        )
        for number, (diagnosis, name) in enumerate(listed)
    ]
    table = tag("table", tag("caption", "Overview"), tag("thead", head), tag("tbody", *rows))
    return tag("section", scrolled(table, "Overview"))


def _headline(inventory: Inventory) -> Markup:
    return join([tag("p", summary(inventory)), bars_html(inventory.rows)])


def _article(
    diagnosis: Diagnosis, inventory: Inventory | None, key: str, invocation: Invocation, shared: Inventory | None = None
) -> Markup:
    return tag("article", join(_sections(diagnosis, inventory, key, 2, invocation, shared), "\n"), id=key)


def _name(diagnosis: Diagnosis) -> str:
    return f"{diagnosis.kind.capitalize()} {diagnosis.namespace}/{diagnosis.name}"


def _badge(diagnosis: Diagnosis) -> Markup:
    return tag("span", diagnosis.verdict.word, class_="badge", data_v=diagnosis.verdict.value)


def _sections(
    diagnosis: Diagnosis,
    inventory: Inventory | None,
    key: str,
    level: int,
    invocation: Invocation,
    shared: Inventory | None = None,
) -> Iterator[Markup]:
    """The answer from its first sentence to the next command.

    The bars of ``shared`` and its use by namespace stand elsewhere on the page.
    """
    drawn = inventory if inventory is not None and inventory.rows and diagnosis.claims else None
    more = [note for note in drawn.notes if note not in diagnosis.notes] if drawn else []
    first, *blocks = blocks_of(diagnosis, invocation, more)
    yield tag("header", tag(f"h{level}", _name(diagnosis), " ", _badge(diagnosis)), *blocks_html([first], level))
    if drawn is not None:
        beside = [block for block in blocks if isinstance(block, Section) and block.beside]
        blocks = [block for block in blocks if block not in beside]
        # On a phone the picture comes first, and what follows is some way down.
        where = "Why, and what would help" if diagnosis.findings else "The claims"
        yield tag("p", tag("a", where, href=f"#why-{key}"), class_="jump")
        picture = _picture(diagnosis, drawn, key, f"h{level + 1}", alone=drawn is not shared)
        yield tag("div", picture, tag("div", *blocks_html(beside, level + 1), id=f"why-{key}"), class_="beside")
    yield from blocks_html(blocks, level + 1)
    if drawn is not None and drawn is not shared:
        yield spaces_html(drawn.rows, f"h{level + 1}")


def _picture(diagnosis: Diagnosis, inventory: Inventory, key: str, heading: str, *, alone: bool) -> Markup:
    fleet = fleet_of(inventory.rows, marks_of(diagnosis))
    requests = [funnel.request for funnel in funnels_of(diagnosis)]
    top = _headline(inventory) if alone else ""
    return tag("section", tag(heading, "Fleet"), fleet_html(fleet, key, top, requests, MAX_ROWS))


# Devices: the fleet as a picture.


def devices_html(inventory: Inventory, settings: Settings, origin: PageOrigin, where: ClusterFlags) -> str:
    """The page: the selection, the picture, and notes."""
    parts: list[Markup] = [tag("header", tag("h1", "Devices"))]
    if inventory.rows:
        top = join([tag("p", summary(inventory), class_="answer"), bars_html(inventory.rows)])
        parts.append(tag("section", tag("h2", "Fleet"), fleet_html(fleet_of(inventory.rows), "fleet", top)))
        parts.append(spaces_html(inventory.rows))
    else:
        parts.append(tag("section", tag("p", nothing(inventory), class_="answer")))
    if len(inventory.narrowed) > 1:
        counts = [remaining for _, remaining in inventory.narrowed]
        lost = [before - remaining for before, remaining in zip((counts[0], *counts), counts, strict=False)]
        steps = tuple(
            FunnelStep(remaining, gone, what) for (what, remaining), gone in zip(inventory.narrowed, lost, strict=True)
        )
        parts += blocks_html([Section("Selection", (Steps("What was asked for", "", steps),))], 2)
    source = f" ({settings.release_source})" if settings.release_source else ""
    notes = (*sentences(inventory.notes), f"assumed: Kubernetes {settings.scheduler.version}{source}")
    parts += blocks_html([noted(notes, commands_of(inventory.notes), where)], 2)
    return page("Devices", parts, origin)
