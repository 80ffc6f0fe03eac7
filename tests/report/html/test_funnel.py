"""The table of a funnel: what is left after each stage, and what is said of those that went."""

from __future__ import annotations

from kubectl_dra.explain.diagnosis import Funnel, Position, Stage, StageError
from kubectl_dra.report.html.funnel import MAX_REASONS, funnel_html, funnels_html
from tests.report.html.support import Document


def table(*stages: Stage) -> Document:
    return Document(funnel_html(Funnel("gpu", "gpu.example.com", "ExactCount", 1, stages)))


def remarks(*stages: Stage) -> list[str]:
    """The items of the lists, as people read them."""
    return ["".join(item.text) for item in table(*stages).named("li")]


def test_reasons_are_listed_and_the_rare_ones_summed() -> None:
    few = tuple((f"reason {number}", 20 - number) for number in range(MAX_REASONS))
    assert remarks(Stage("taint", "without taints", 1, 9, details=few)) == [
        f"{20 - number} × reason {number}" for number in range(MAX_REASONS)
    ]
    more = (*few, ("rare", 2), ("rarer", 1))
    assert remarks(Stage("taint", "without taints", 1, 9, details=more))[-1] == "3 × others"


def test_an_error_says_where_and_for_which_device() -> None:
    error = StageError("no such key: memory", "d/p/gpu-0", 1200, Position(20, 2, 7))
    page = table(Stage("request-selector", "selector", 0, 1200, error=error))
    assert len(page.named("li")) == 1 and page.named("strong")[0].text == ["error on 1,200"]
    assert "no such key: memory at line 2, column 7, for instance on d/p/gpu-0" in page.text()


def test_nothing_follows_a_stage_that_leaves_nothing() -> None:
    text = table(Stage("node", "on this node", 0, 4), Stage("taint", "without taints", 0, 0)).text()
    assert "on this node" in text and "without taints" not in text


def test_stages_that_take_nothing_are_one_row() -> None:
    page = table(
        Stage("published", "published by drivers", 46, 0),
        Stage("node", "on nodes where the pod may run", 46, 0),
        Stage("class-selector", "class gpu", 46, 0, expression="true"),
        Stage("taint", "without taints", 4, 42),
    )
    rows = [each for each in page.named("td") if each.attributes.get("class") != "number"]
    assert rows[0].text == ["published by drivers, on nodes where the pod may run"]
    # What has an expression of its own keeps its row.
    assert rows[1].text == ["class gpu"] and len(rows) == 3


def test_one_funnel_is_open_and_several_are_a_line_each() -> None:
    stages = (Stage("published", "published by drivers", 46, 0), Stage("taint", "without taints", 0, 46))
    funnels = [Funnel(name, "gpu", "ExactCount", 1, stages) for name in ("a", "b")]
    assert not Document("".join(funnels_html(funnels[:1]))).named("details")
    page = Document("".join(funnels_html(funnels)))
    assert [each.attributes for each in page.named("details")] == [{}, {}]
    assert ["".join(each.text) for each in page.named("small")] == ["46 \u2192 0 left"] * 2
    assert len(page.named("table")) == 2
