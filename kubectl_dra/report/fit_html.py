"""What fits as one HTML file: the answer, the nodes with their pods, what stops the next one, what makes room."""

from __future__ import annotations

from kubectl_dra.fit.result import FitAnswer, WorkloadFit
from kubectl_dra.report.assumed import assumed
from kubectl_dra.report.fit_words import change, code, gain, headline, places, stop
from kubectl_dra.report.html.markup import Markup, tag
from kubectl_dra.report.html.origin import PageOrigin
from kubectl_dra.report.html.page import notes_html, page
from kubectl_dra.report.phrases import written


def to_html(answer: FitAnswer, origin: PageOrigin) -> str:
    """The page."""
    parts: list[Markup] = [tag("header", tag("h1", "What fits"))]
    for found in answer.workloads:
        parts.append(tag("section", tag("h2", found.workload.title), tag("p", headline(found), class_="answer")))
        if found.seats:
            parts.append(_places(found))
        if found.stop is not None:
            parts.append(_stop(found))
        if found.more:
            parts.append(_changes(found))
    parts.append(notes_html([assumed(answer), *map(written, answer.notes)]))
    return page("What fits", parts, origin)


def _places(found: WorkloadFit) -> Markup:
    head = tag("tr", *(tag("th", name) for name in ("Node", "Pods", "Devices")))
    rows = [
        tag("tr", tag("td", node), tag("td", str(pods)), tag("td", ", ".join(devices)))
        for node, pods, devices in places(found)
    ]
    return tag("section", tag("h3", "Where"), tag("table", tag("thead", head), tag("tbody", *rows)))


def _stop(found: WorkloadFit) -> Markup:
    assert found.stop is not None
    cause = code(found)
    text = f"{cause}: {stop(found)}" if cause else stop(found)
    return tag("section", tag("h3", f"Pod {found.stop.pod} does not fit"), tag("p", text))


def _changes(found: WorkloadFit) -> Markup:
    texts = (f"{change(more.change)}: {gain(found, more)}." for more in found.more)
    entries = [tag("li", text[:1].upper() + text[1:]) for text in texts]
    return tag("section", tag("h3", "What makes room"), tag("ul", *entries))
