"""The four tables, their filters, and how little room and colour they need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.segment import Segment

from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.report.bars import CELLS, bar
from kubectl_dra.ui.row_list import fitted
from kubectl_dra.ui.tables import ScreenColumn
from tests.cli.test_canary import CANARY, RAW, marked
from tests.taint.world import claim, device_class, gpu, node, pod, result, slice_of
from tools.screen import before, example, saved


async def test_four_tables() -> None:
    async with before(example("mixed-fleet")) as person:
        await person.sees("[1 Fleet]", "46 devices on 4 nodes", "mi300x-2", "#######o", "2 Pending 1")
        await person.press("b")
        await person.sees("CLASS", "gpu.amd.com-spx")
        await person.press("tab")
        await person.sees("[2 Pending 1]", "pod/serve-0", "cannot be scheduled")
        await person.press("3")
        await person.sees("[3 Claims 3]", "pretrain-0-gpu-w2d5c", "in-use")
        await person.press("shift+tab", "shift+tab", "shift+tab")
        await person.sees("[4 Devices 46]", "gpu-0-spx-nps1", "tainted")


async def test_filters() -> None:
    async with before(example("mixed-fleet")) as person:
        await person.sees("46 devices")
        await person.press("4", "/")
        await person.type("H100 held")
        await person.sees("1 of 3", "/ H100 held")
        await person.press("enter")
        await person.sees("filter: H100 held (Esc clears it)")
        await person.press("1", "4")
        await person.sees("1 of 3")
        await person.press("/")
        await person.type(" no such words")
        await person.sees("No row has")
        await person.press("escape")
        await person.sees("1 of 46")


async def test_a_node_lists_its_devices() -> None:
    async with before(example("mixed-fleet")) as person:
        await person.sees("h100-1")
        await person.press("down", "enter")
        await person.sees("[4 Devices 46]", "1 of 4", "filter: =h100-1")


@pytest.mark.parametrize("columns", [40, 80, 200])
async def test_it_fits_the_terminal(columns: int) -> None:
    async with before(example("mixed-fleet"), columns, 24) as person:
        await person.sees("46 devices")
        for key, most in (("1", "NODE"), ("2", "NAME"), ("3", "CLAIM"), ("4", "DEVICE")):
            await person.press(key)
            text = await person.sees(most)
            assert len(person.lines) == 24 and max(map(len, person.lines)) <= columns
            assert text.isascii(), "a terminal over ssh may not have UTF-8"


async def test_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with before(example("mixed-fleet")) as person:
        await person.sees("46 devices")
        await person.press("4")
        await person.sees("tainted")
        shown = [
            segment
            for strip in person.screens.screen._compositor.render_strips()
            for segment in strip.apply_filter(person.screens._filters[-1], person.screens.background_colors[0])
        ]
        assert shown and not [segment for segment in shown if coloured(segment)]
        assert any(segment.style is not None and segment.style.reverse for segment in shown), "where is the cursor?"


def coloured(segment: Segment) -> bool:
    colors = (segment.style.color, segment.style.bgcolor) if segment.style is not None else ()
    return any(color is not None and not color.is_default for color in colors)


async def test_what_strangers_wrote(tmp_path: Path) -> None:
    """Neither escapes nor markup are obeyed, in tables, pages and titles."""
    evil = "[red]x[/]\x1b[31m\u202e"
    devices = slice_of("n1", gpu("gpu-0", "GPU-[b]a"), gpu("gpu-1", evil))
    objects = [node("n1"), device_class(), devices, claim("c", result("gpu-0"), pods=("p",)), pod("p", "c")]
    waiting = [claim(f"w{CANARY}"), pod("q", f"w{CANARY}", node_name="")]
    path = tmp_path / f"[bold]{CANARY.replace('/', '')}.json"
    items = [*(marked(one) for one in objects), *waiting]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    async with before(saved(path), 200, 50) as person:
        await person.sees("2 devices")
        for keys in (["2", "enter"], ["escape", "3", "enter"], ["escape", "4", "down", "enter"], ["escape", "n"]):
            await person.press(*keys)
            await person.until(lambda: "explaining" not in person.text)
            assert (found := RAW.search(person.text.replace("\n", ""))) is None, found
        await person.press("escape", "4", "enter")
        await person.sees("uuid = [red]x[/]\\u001b[31m")


def test_columns_that_have_no_room() -> None:
    columns = (ScreenColumn("A", 2), ScreenColumn("B", 0), ScreenColumn("C", 1))
    shown = [[column.heading for _, column in fitted(columns, (10, 10, 40), width)[0]] for width in (64, 52, 50, 35, 9)]
    assert shown == [["A", "B", "C"], ["A", "B", "C"], ["A", "C"], ["A"], ["A"]]
    assert fitted(columns, (10, 10, 40), 52)[1] == [10, 10, 28]


def test_marks_of_many_devices() -> None:
    many = [DeviceState.HELD] * 5000 + [DeviceState.FREE] * 4999 + [DeviceState.TAINTED]
    assert bar(many) == "o" * 19 + "#" * 20 + "!" and len(bar(many)) == CELLS
    assert bar([DeviceState.FREE, DeviceState.HELD]) == "o#"
