"""What fits as one HTML file: the answer, the nodes with their pods, what stops the next one, what makes room."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.fit.result import FitAnswer, WorkloadFit
from kubectl_dra.report.assumed import assumed
from kubectl_dra.report.fit_words import change, code, gain, headline, places, stop
from kubectl_dra.report.html.markup import Markup, tag
from kubectl_dra.report.html.origin import PageOrigin
from kubectl_dra.report.html.page import cause_link, notes_html, page, scrolled
from kubectl_dra.report.html.shares import divided
from kubectl_dra.report.phrases import written
from kubectl_dra.wording import amount

MAX_ROWS = 30
"""Nodes listed at once; the others are folded."""


def to_html(answer: FitAnswer, origin: PageOrigin) -> str:
    """The page."""
    parts: list[Markup] = [tag("header", tag("h1", "What fits"))]
    for found in answer.workloads:
        parts.append(tag("section", tag("h2", found.workload.title), tag("p", headline(found), class_="answer")))
        parts.append(_bar(found))
        if found.seats:
            parts.append(_places(found))
        if found.stop is not None:
            parts.append(_stop(found))
        if found.more:
            parts.append(_changes(found))
    parts.append(notes_html([assumed(answer), *map(written, answer.notes)]))
    return page("What fits", parts, origin)


def _bar(found: WorkloadFit) -> Markup:
    """The pods as a bar: those that run, those that get a node, and those that do not."""
    counts = [("held", found.running, "running"), ("free", len(found.seats), "placed")]
    if not found.as_many:
        counts.append(("unusable", max(0, found.pods - found.placed), "without a node"))
    words = ", ".join(f"{amount(count, 'pod')} {word}" for _, count, word in counts if count)
    bar = divided([(name, count) for name, count, _ in counts])
    return tag("div", bar, tag("span", words, class_="counts"), class_="pods")


def _places(found: WorkloadFit) -> Markup:
    head = tag("tr", *(tag("th", name, scope="col") for name in ("Node", "Pods", "Devices")))
    seats = places(found)
    most = max((pods for _, pods, _ in seats), default=1)
    rows = [
        tag(
            "tr",
            tag("th", node, scope="row"),
            tag("td", f"{pods:,}", divided([("free", pods), ("", most - pods)]), class_="number"),
            tag("td", ", ".join(devices)),
        )
        for node, pods, devices in seats
    ]
    title = "Pods by node"
    parts = [_seats(head, rows[:MAX_ROWS], title)]
    if len(rows) > MAX_ROWS:
        rest = _seats(head, rows[MAX_ROWS:], f"{title}, continued")
        parts.append(tag("details", tag("summary", amount(len(rows) - MAX_ROWS, "more node")), rest))
    return tag("section", tag("h3", "Where"), *parts, class_="spaces")


def _seats(head: Markup, rows: Sequence[Markup], title: str) -> Markup:
    return scrolled(tag("table", tag("caption", title), tag("thead", head), tag("tbody", *rows)), title)


def _stop(found: WorkloadFit) -> Markup:
    assert found.stop is not None
    cause = code(found)
    linked = [cause_link(cause), ": "] if cause else []
    return tag("section", tag("h3", f"Pod {found.stop.pod} does not fit"), tag("p", *linked, stop(found)))


def _changes(found: WorkloadFit) -> Markup:
    texts = (f"{change(more.change)}: {gain(found, more)}." for more in found.more)
    entries = [tag("li", text[:1].upper() + text[1:]) for text in texts]
    return tag("section", tag("h3", "What makes room"), tag("ul", *entries))
