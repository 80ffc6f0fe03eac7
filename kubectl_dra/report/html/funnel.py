"""The funnel of a request as a table: the devices left after each stage, and where the others went."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.diagnosis import Funnel, Stage, StageError
from kubectl_dra.report.html.markup import Markup, code, join, tag
from kubectl_dra.report.observations import observation
from kubectl_dra.report.phrases import written

MAX_REASONS = 8


def funnel_html(funnel: Funnel) -> Markup:
    """The table of one request."""
    wanted = "all devices" if funnel.mode == "All" else f"{funnel.needed:,}"
    caption = tag("caption", tag("b", f"Request {funnel.request}"), f": {wanted} of class {funnel.device_class}")
    most = max((stage.passed + stage.failed for stage in funnel.stages), default=1)
    rows: list[Markup] = []
    for stage in funnel.stages:
        rows.append(_row(stage, most))
        if not stage.passed:
            break
    best = f"Most on one node: {funnel.best_count:,} on {funnel.best_node}." if funnel.best_node else ""
    table = tag("table", caption, _head("Left", "Lost", "After"), tag("tbody", *rows), class_="funnel")
    return Markup(table + (tag("p", best) if best else ""))


def narrowed_html(steps: tuple[tuple[str, int], ...]) -> Markup:
    """How each part of a selection reduced a list of devices."""
    most = max((left for _, left in steps), default=1)
    rows: list[Markup] = []
    before = most
    for what, left in steps:
        rows.append(_numbers(left, before - left, most, tag("td", what)))
        before = left
    return tag(
        "table",
        tag("caption", "What was asked for"),
        _head("Left", "Lost", "After"),
        tag("tbody", *rows),
        class_="funnel",
    )


def _head(*words: str) -> Markup:
    return tag("thead", tag("tr", *(tag("th", word, scope="col") for word in words)))


def _row(stage: Stage, most: int) -> Markup:
    parts: list[str] = [written(stage.label)]
    if stage.expression:
        parts += [Markup("<br>"), code(stage.expression)]
    remarks = list(_remarks(stage))
    if remarks:
        parts.append(tag("ul", *(tag("li", remark) for remark in remarks)))
    return _numbers(stage.passed, stage.failed, most, tag("td", *parts))


def _numbers(left: int, lost: int, most: int, words: Markup) -> Markup:
    width = round(100 * left / most) if most else 0
    # A bar that can be seen for the least that is left.
    bar = tag("path", d=f"M0 0H{max(1, width) if left else 0}V2H0z")
    picture = tag("svg", bar, class_="bar", viewBox="0 0 100 2", preserveAspectRatio="none", aria_hidden="true")
    kind = "empty" if not left else ("some" if lost else None)
    return tag(
        "tr",
        tag("td", f"{left:,}", picture, class_="number"),
        tag("td", f"−{lost:,}" if lost else "", class_="number"),
        words,
        class_=kind,
    )


def _remarks(stage: Stage) -> Iterator[str]:
    for reason, count in stage.details[:MAX_REASONS]:
        yield f"{count:,} × {written(reason)}"
    if len(stage.details) > MAX_REASONS:
        yield f"{sum(count for _, count in stage.details[MAX_REASONS:]):,} × others"
    if stage.error is not None:
        yield _error(stage.error)
    for seen in stage.observations:
        yield observation(seen)


def _error(error: StageError) -> Markup:
    place = f" at line {error.position.line}, column {error.position.column}" if error.position else ""
    return join(
        [
            tag("strong", f"error on {error.count:,}"),
            f": {error.message}{place}, for instance on {error.device}",
        ]
    )
