"""The table of a funnel: what is left after each stage, and what is said of those that went."""

from __future__ import annotations

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.diagnosis import ClaimReport, Diagnosis
from kubectl_dra.explain.funnel.shown import Funnel, Position, Stage, StageError, StageName
from kubectl_dra.report.explain_blocks import blocks_of
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.report.funnel_blocks import MAX_REASONS
from kubectl_dra.report.html.page import blocks_html
from tests.report.html.support import Document


def page(*funnels: Funnel) -> Document:
    claim = ClaimReport("gpu", "ml/gpu", "", "pending", funnels=funnels)
    diagnosis = Diagnosis("claim", "ml", "gpu", Verdict.UNSCHEDULABLE, claims=(claim,), release="1.36")
    (section,) = (block for block in blocks_of(diagnosis, Invocation()) if getattr(block, "name", "") == "claim")
    return Document("".join(blocks_html([section], 2)))


def table(*stages: Stage) -> Document:
    return page(Funnel("gpu", "gpu.example.com", "ExactCount", 1, stages))


def test_frequent_reasons_are_listed_and_the_rare_ones_folded_under_their_sum() -> None:
    few = tuple((f"reason {number}", 20 - number) for number in range(MAX_REASONS))
    listed = [f"{20 - number} × reason {number}" for number in range(MAX_REASONS)]
    found = table(Stage(StageName.TAINT, "without taints", 1, 9, details=few))
    assert ["".join(item.text) for item in found.named("li")] == listed and not found.named("details")
    found = table(Stage(StageName.TAINT, "without taints", 1, 9, details=(*few, ("rare", 2), ("rarer", 1))))
    assert ["".join(item.text) for item in found.named("li")] == [*listed, "2 × rare", "1 × rarer"]
    assert ["".join(item.text) for item in found.named("summary")] == ["3 × others"]


def test_an_error_says_where_and_for_which_device() -> None:
    error = StageError("no such key: memory", DeviceID("d", "p", "gpu-0"), 1200, Position(20, 2, 7))
    found = table(Stage(StageName.REQUEST_SELECTOR, "selector", 0, 1200, error=error))
    (item,) = found.named("li")
    assert item.attributes["class"] == "error"
    assert ": no such key: memory at column 7 of line 2, for instance on d/p/gpu-0" in found.text()
    assert "error on 1,200" in ["".join(words.text) for words in found.named("b")]


def test_nothing_follows_a_stage_that_leaves_nothing() -> None:
    text = table(Stage(StageName.NODE, "on this node", 0, 4), Stage(StageName.TAINT, "without taints", 0, 0)).text()
    assert "on this node" in text and "without taints" not in text


def test_stages_that_take_nothing_are_one_row() -> None:
    found = table(
        Stage(StageName.PUBLISHED, "published by drivers", 46, 0),
        Stage(StageName.NODE, "on nodes where the pod may run", 46, 0),
        Stage(StageName.CLASS_SELECTOR, "class gpu", 46, 0, expression="true"),
        Stage(StageName.TAINT, "without taints", 4, 42),
    )
    rows = [element for element in found.named("td") if element.attributes.get("class") != "number"]
    assert rows[0].text == ["published by drivers, on nodes where the pod may run"]
    # What has an expression of its own keeps its row.
    assert rows[1].text == ["class gpu"] and len(rows) == 3


def test_one_funnel_is_open_and_several_are_a_line_each() -> None:
    stages = (
        Stage(StageName.PUBLISHED, "published by drivers", 46, 0),
        Stage(StageName.TAINT, "without taints", 0, 46),
    )
    funnels = [Funnel(name, "gpu", "ExactCount", 1, stages) for name in ("a", "b")]
    assert not page(funnels[0]).named("details")
    found = page(*funnels)
    assert [element.attributes for element in found.named("details")] == [{}, {}]
    assert "46 \u2192 0 left" in ["".join(element.text) for element in found.named("small")]
    assert len(found.named("table")) == 2
