"""The bars of classes and the use by namespace."""

from __future__ import annotations

import re

from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.report.html.fleet import MAX_BARS, MAX_CLAIMS, MAX_SPACES, bars_html, divided, spaces_html
from tests.report.html.support import Document
from tests.report.html.test_lines import FREE, HELD, held_by, on


def counts(source: str) -> list[str]:
    return [
        "".join(element.text) for element in Document(source).elements if element.attributes.get("class") == "counts"
    ]


def test_a_bar_for_each_class_largest_first_and_devices_without_a_class_last() -> None:
    rows = [*on("n1", ["gpu-0", "gpu-1"]), *on("n2", ["gpu-0"], HELD, claim="train")]
    rows += [row._replace(classes=("nic", "gpu")) for row in on("n3", ["nic-0"], DeviceState.TAINTED)]
    rows += [row._replace(classes=()) for row in on("n4", ["x-0", "x-1", "x-2"])]
    page = Document(bars_html(rows))
    assert ["".join(element.text) for element in page.named("b")] == ["gpu", "nic", "of no class"]
    assert counts(bars_html(rows)) == [
        "4 devices: 2 free, 1 held, 1 tainted",
        "1 device: 1 tainted",
        "3 devices: 3 free",
    ]
    states = [element.attributes["data-s"] for element in page.named("path")]
    assert states == ["free", "held", "tainted", "tainted", "free"]


def test_many_classes_are_folded() -> None:
    rows = [row._replace(classes=(f"c{at}",)) for at in range(MAX_BARS + 3) for row in on(f"n{at}", ["gpu-0"])]
    page = Document(bars_html(rows))
    assert len(page.named("b")) == MAX_BARS + 3
    assert ["".join(element.text) for element in page.named("summary")] == ["3 more classes"]


def test_parts_of_a_bar_touch_and_the_least_can_be_seen() -> None:
    (svg,) = Document(divided([("free", 1), ("held", 99_999), ("tainted", 0)])).named("svg")
    pieces = re.findall(r"M([0-9]+) 0H([0-9]+)", divided([("free", 1), ("held", 99_999), ("tainted", 0)]))
    assert pieces == [("0", "4"), ("4", "1004")] and svg.attributes["viewbox"] == "0 0 1004 2"
    assert "path" not in divided([])


def test_namespaces_say_what_their_claims_hold() -> None:
    claim = held_by("train")
    rows = [row._replace(holders=(claim,)) for row in on("n1", ["gpu-0", "gpu-1"], HELD)]
    text = " ".join(Document(spaces_html(rows)).text().split())
    assert "ml/train (pod train): gpu-0, gpu-1 on n1" in text and "1 claim" in text


def of(space: str, name: str) -> ResourceClaim:
    claim = held_by(name)
    return replace(claim, metadata=replace(claim.metadata, namespace=space))


def test_a_device_that_two_namespaces_share_counts_for_both() -> None:
    rows = [
        row._replace(holders=(of("a", "x"), of("b", "y"), of("b", "z")))
        for row in on("n1", ["gpu-0"], DeviceState.SHARED)
    ]
    page = Document(spaces_html(rows))
    assert [element.text for element in page.named("td") if element.attributes.get("class") == "number"] == [["1"]] * 4
    assert ["".join(element.text) for element in page.named("summary")] == ["1 claim", "2 claims"]


def test_nothing_held_is_no_table() -> None:
    assert spaces_html(on("n1", ["gpu-0"], FREE)) == ""


def test_many_claims_and_namespaces_are_folded() -> None:
    rows = [row for at in range(MAX_CLAIMS + 5) for row in on(f"n{at}", ["gpu-0"], HELD, claim=f"c{at}")]
    items = Document(spaces_html(rows)).named("li")
    assert len(items) == MAX_CLAIMS + 1 and items[-1].text == ["5 more"]
    rows = [
        row._replace(holders=(of(f"s{at}", "x"),))
        for at in range(MAX_SPACES + 2)
        for row in on(f"n{at}", ["gpu-0"], HELD)
    ]
    page = Document(spaces_html(rows))
    assert len(page.named("table")) == 2 and page.named("summary")[MAX_SPACES].text == ["2 more"]
