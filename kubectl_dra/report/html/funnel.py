"""The funnel of a request as a table: the devices left after each stage, and where the others went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.explain.diagnosis import Funnel, Stage, StageError
from kubectl_dra.report.explain_words import observation
from kubectl_dra.report.html.markup import Markup, code, join, tag
from kubectl_dra.report.phrases import written

MAX_REASONS = 8


def funnels_html(funnels: Sequence[Funnel]) -> list[Markup]:
    """The funnels of a claim. Of several, each is folded to one line."""
    if len(funnels) < 2:
        return [funnel_html(funnel) for funnel in funnels]
    return [
        tag("details", tag("summary", _title(funnel), " ", tag("small", _brief(funnel))), funnel_html(funnel))
        for funnel in funnels
    ]


def funnel_html(funnel: Funnel) -> Markup:
    """The table of one request."""
    most = max((stage.passed + stage.failed for stage in funnel.stages), default=1)
    rows = [_row(stages, most) for stages in _steps(funnel.stages)]
    best = f"Most on one node: {funnel.best_count:,} on {funnel.best_node}." if funnel.best_node else ""
    head = _head("Left", "Lost", "After")
    table = tag("table", tag("caption", _title(funnel)), head, tag("tbody", *rows), class_="funnel")
    return Markup(table + (tag("p", best) if best else ""))


def _title(funnel: Funnel) -> Markup:
    wanted = "all devices" if funnel.mode == "All" else f"{funnel.needed:,}"
    return join([tag("b", f"Request {funnel.request}"), f": {wanted} of class {funnel.device_class}"])


def _brief(funnel: Funnel) -> str:
    """How many devices are left after each stage that takes some: ``46 → 4 → 1 left``."""
    left: list[str] = []
    for stages in _steps(funnel.stages):
        text = f"{stages[0].passed:,}"
        if not left or left[-1] != text:
            left.append(text)
    return f"{' → '.join(left)} left" if left else ""


def _steps(stages: Sequence[Stage]) -> Iterator[list[Stage]]:
    """The stages up to the one that leaves nothing; those in a row of which there is nothing to say are one step."""
    step: list[Stage] = []
    for stage in stages:
        plain = not (stage.failed or stage.expression or stage.details or stage.observations or stage.error)
        if step and not plain:
            yield step
            step = []
        if plain:
            step.append(stage)
        else:
            yield [stage]
        if not stage.passed:
            break
    if step:
        yield step


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


def _row(stages: Sequence[Stage], most: int) -> Markup:
    last = stages[-1]
    parts: list[str] = [", ".join(written(stage.label) for stage in stages)]
    if last.expression:
        parts += [Markup("<br>"), code(last.expression)]
    remarks = list(_remarks(last))
    if remarks:
        parts.append(tag("ul", *(tag("li", remark) for remark in remarks)))
    return _numbers(last.passed, last.failed, most, tag("td", *parts))


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
