"""A diagnosis as one HTML file to attach to a ticket: the answer, why, what would help, and the fleet beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.explain.devices.inventory import Inventory
from kubectl_dra.explain.diagnosis import (
    ClaimReport,
    Diagnosis,
    Finding,
    NodeDevices,
    NodeGroup,
    SecondOpinion,
    Trace,
    Verdict,
    Way,
)
from kubectl_dra.explain.overview import Alike, Overview
from kubectl_dra.report.assumed import assumed
from kubectl_dra.report.devices_text import summary
from kubectl_dra.report.explain_words import (
    Invocation,
    answer,
    changes,
    choice,
    command,
    fits_there,
    fix,
    node_groups,
    notes,
    overview_answer,
    placed,
    proof,
)
from kubectl_dra.report.html.fleet import fleet_html
from kubectl_dra.report.html.funnel import funnels_html
from kubectl_dra.report.html.lines import fleet_of
from kubectl_dra.report.html.marks import funnels_of, marks_of
from kubectl_dra.report.html.markup import Markup, code, join, tag
from kubectl_dra.report.html.origin import PageOrigin
from kubectl_dra.report.html.page import cause_link, notes_html, page, scrolled
from kubectl_dra.report.html.shares import bars_html, spaces_html
from kubectl_dra.report.phrases import written
from kubectl_dra.wording import amount, some

WORDS = {
    Verdict.ALLOCATED: "allocated",
    Verdict.ALLOCATABLE: "fits",
    Verdict.NOT_ALLOCATABLE: "does not fit",
    Verdict.UNDETERMINED: "undetermined",
}
_UNKNOWN = Invocation()
MAX_FLEETS = 8
MAX_NAMES = 200
MAX_PLACEMENTS = 20
MAX_NODE_ROWS = 12
MAX_ROWS = 12
"""Rows of the picture shown at once."""


def to_html(
    answers: Sequence[tuple[Diagnosis, Inventory | None]], origin: PageOrigin, invocation: Invocation = _UNKNOWN
) -> str:
    """The page: each diagnosis with the devices of its cluster, for the first ``MAX_FLEETS`` of them.

    The devices are marked by what the funnels say of them, so these are to have their devices.
    """
    if len(answers) == 1:
        diagnosis, inventory = answers[0]
        return page(_title(diagnosis), [join(_sections(diagnosis, inventory, "d0", 1, invocation), "\n")], origin)
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
        parts.append(_article(diagnosis, drawn, f"d{number}", invocation, shared))
    if shared is not None:
        parts.append(spaces_html(shared.rows))
    return page(f"{amount(len(answers), 'question')} explained", parts, origin)


def overview_html(
    overview: Overview, inventory: Inventory | None, origin: PageOrigin, invocation: Invocation = _UNKNOWN
) -> str:
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
        parts.append(_contents([(alike.diagnosis, _waiting(alike)) for alike in ranked]))
    if inventory is not None:
        parts.append(spaces_html(inventory.rows))
    parts += [_article(alike.diagnosis, None, f"d{number}", invocation) for number, alike in enumerate(ranked)]
    return page("Pending claims", parts, origin)


def _waiting(alike: Alike) -> str:
    return f"{alike.diagnosis.namespace}: {some(alike.names, 1)}"


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


def _title(diagnosis: Diagnosis) -> str:
    return f"{_name(diagnosis)}: {WORDS[diagnosis.verdict]}"


def _badge(diagnosis: Diagnosis) -> Markup:
    return tag("span", WORDS[diagnosis.verdict], class_="badge", data_v=diagnosis.verdict.value)


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
    heading, below = f"h{level}", f"h{level + 1}"
    yield tag(
        "header",
        tag(heading, _name(diagnosis), " ", _badge(diagnosis)),
        tag("p", answer(diagnosis), class_="answer"),
    )
    text = list(_explained(diagnosis, below))
    picture = _picture(diagnosis, inventory, key, below, alone=inventory is not shared)
    if picture:
        # On a phone the picture comes first, and what follows is some way down.
        where = "Why, and what would help" if diagnosis.findings else "The claims"
        yield tag("p", tag("a", where, href=f"#why-{key}"), class_="jump")
        yield tag("div", picture, tag("div", *text, id=f"why-{key}"), class_="beside")
    else:
        yield from text
    if diagnosis.nodes:
        yield _nodes(node_groups(diagnosis), below)
    if diagnosis.placements and any(placement.devices for placement in diagnosis.placements):
        yield _placements(diagnosis.placements, below)
    if chosen := choice(diagnosis):
        yield tag("p", chosen[0].upper() + chosen[1:] + ".")
    for trace in diagnosis.traces:
        yield _trace(trace, below)
    if inventory is not None and inventory is not shared and picture:
        yield spaces_html(inventory.rows, below)
    if diagnosis.second_opinion is not None:
        yield _second_opinion(diagnosis.second_opinion, below)
    if diagnosis.scheduler:
        yield _scheduler(diagnosis, below)
    noted = [assumed(diagnosis), *notes(diagnosis)]
    if inventory is not None and picture:
        noted += [written(note) for note in inventory.notes if note not in diagnosis.notes]
    yield notes_html(noted, below)
    if following := command(diagnosis.next, invocation):
        yield tag("section", tag(below, "Next"), tag("pre", code(following), tabindex="0"))


def _explained(diagnosis: Diagnosis, below: str) -> Iterator[Markup]:
    """Why, what would help, and the claims with their funnels."""
    if diagnosis.findings:
        causes = tag("ol", *(tag("li", _finding(found, number)) for number, found in enumerate(diagnosis.findings)))
        yield tag("section", tag(below, "Why"), causes, class_="causes")
    if diagnosis.ways:
        proof = tag("p", "Each one is proved by running the allocation with it.")
        ways = tag("ul", *(tag("li", _way(way)) for way in diagnosis.ways))
        yield tag("section", tag(below, "What would help"), proof, ways)
    if diagnosis.claims:
        yield tag("section", tag(below, "Claims"), *(_claim(claim) for claim in diagnosis.claims), class_="claims")


def _scheduler(diagnosis: Diagnosis, below: str) -> Markup:
    said = [
        tag("li", tag("b", f"{word.source} {word.reason}"), f" {word.time}" if word.time else "", f": {word.message}")
        for word in diagnosis.scheduler
    ]
    return tag("section", tag(below, "Kubernetes says"), tag("ul", *said))


def _picture(
    diagnosis: Diagnosis, inventory: Inventory | None, key: str, heading: str, *, alone: bool
) -> Markup | None:
    if inventory is None or not inventory.rows or not diagnosis.claims:
        return None
    fleet = fleet_of(inventory.rows, marks_of(diagnosis))
    requests = [funnel.request for funnel in funnels_of(diagnosis)]
    top = _headline(inventory) if alone else ""
    return tag("section", tag(heading, "Fleet"), fleet_html(fleet, key, top, requests, MAX_ROWS))


def _finding(cause: Finding, number: int) -> Markup:
    where = [f"claim {cause.claim}"] if cause.claim else []
    where += [f'request "{cause.request}"'] if cause.request else []
    parts: list[Markup] = [tag("p", cause_link(cause.kind.code), " ", tag("b", cause.kind.title))]
    if where:
        parts.append(tag("p", ", ".join(where), class_="quiet"))
    if number:
        # The answer is the first cause's summary.
        parts.append(tag("p", written(cause.summary)))
    if cause.evidence:
        parts.append(
            tag(
                "ul",
                *(_evidence(written(fact.object), written(fact.field), written(fact.value)) for fact in cause.evidence),
            )
        )
    parts.append(tag("p", tag("b", "Fix: "), fix(cause), class_="fix"))
    if cause.proof:
        parts.append(tag("p", tag("b", "Proved: "), f"{proof(cause.proof)}.", class_="fix"))
    more = [tag("p", cause.kind.why)]
    if cause.kind.seen_as:
        more.append(tag("p", tag("b", "Kubernetes shows: "), cause.kind.seen_as))
    parts.append(tag("details", tag("summary", f"What {cause.kind.code} means"), *more))
    return join(parts)


def _evidence(about: str, field: str, value: str) -> Markup:
    return tag("li", about, " · ", code(field), ": ", tag("span", value, class_="value"))


def _way(way: Way) -> Markup:
    sentence = f"{', and '.join(changes(way))}: {fits_there(way.proof)}."
    if not way.what_if:
        return join([sentence])
    return join([sentence, " ", *(code(f"--what-if {change}") for change in way.what_if)])


def _claim(claim: ClaimReport) -> Markup:
    origin = f", from template {claim.template}" if claim.template else ""
    name = claim.claim or f'entry "{claim.entry}"'
    parts: list[Markup] = [tag("p", tag("b", name), f" ({written(claim.state)}{origin})")]
    if claim.devices:
        parts.append(tag("ul", *(tag("li", f"{request}: {device}") for request, device in claim.devices)))
    if claim.nodes:
        parts.append(tag("p", f"usable on: {claim.nodes}"))
    parts += funnels_html(claim.funnels)
    return tag("div", *parts, class_="claim")


def _nodes(groups: Sequence[NodeGroup], heading: str) -> Markup:
    parts = [_node_table(groups[:MAX_NODE_ROWS], "Nodes by outcome")]
    if len(groups) > MAX_NODE_ROWS:
        rest = _node_table(groups[MAX_NODE_ROWS:], "Nodes by outcome, continued")
        count = sum(len(group.nodes) for group in groups[MAX_NODE_ROWS:])
        parts.append(tag("details", tag("summary", amount(count, "more node")), rest))
    return tag("section", tag(heading, "Nodes"), *parts)


def _node_table(groups: Sequence[NodeGroup], title: str) -> Markup:
    head = tag("tr", *(tag("th", word, scope="col") for word in ("Nodes", "Outcome", "Reason")))
    words = {"allocated": "fit", "not-eligible": "not eligible", "error": "error"}
    rows = [
        tag(
            "tr",
            tag("td", _names(group.nodes)),
            tag("td", words.get(group.outcome, group.outcome)),
            tag("td", written(group.reason)),
        )
        for group in groups
    ]
    return scrolled(tag("table", tag("caption", title), tag("thead", head), tag("tbody", *rows)), title)


def _names(names: Sequence[str]) -> Markup:
    if len(names) <= 6:
        return join([", ".join(names)])
    return tag("details", tag("summary", amount(len(names), "node")), tag("span", some(names, MAX_NAMES)))


def _placements(placements: Sequence[NodeDevices], heading: str) -> Markup:
    items: list[Markup] = []
    for placement in placements[:MAX_PLACEMENTS]:
        items.append(tag("li", tag("b", placement.node), f": {placed(placement)}"))
    if len(placements) > MAX_PLACEMENTS:
        items.append(tag("li", f"{len(placements) - MAX_PLACEMENTS:,} more nodes (all of them with -o json)"))
    return tag("section", tag(heading, "What the claims would get, on each node"), tag("ul", *items))


def _trace(trace: Trace, heading: str) -> Markup:
    title = f"Trace of {trace.owner} on {trace.device}"
    rows = [
        tag(
            "tr",
            tag("td", code(step.text), data_depth=min(step.depth, 8)),
            tag("td", step.value, class_="error" if step.error else None),
        )
        for step in trace.steps
    ]
    head = tag("tr", tag("th", "Expression", scope="col"), tag("th", "Value", scope="col"))
    table = tag("table", tag("caption", title), tag("thead", head), tag("tbody", *rows), class_="trace")
    result = tag("p", code(trace.expression), f" is {trace.result}")
    return tag("section", tag(heading, "Trace"), result, scrolled(table, title))


def _second_opinion(opinion: SecondOpinion, heading: str) -> Markup:
    numbers = (
        f"cel-python: {opinion.agree:,} evaluations agree, {len(opinion.differ):,} differ, "
        f"{opinion.not_comparable:,} could not be compared."
    )
    lines = [tag("li", f"differs: {line}") for line in opinion.differ[:10]]
    lines += [tag("li", f"{count:,} not compared: {reason}") for reason, count in opinion.reasons]
    return tag("section", tag(heading, "Second opinion"), tag("p", numbers), tag("ul", *lines) if lines else "")
