"""The devices behind folded rows: all of them, each with its cell and its holders, however large the fleet is."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from typing import Any

import pytest

from kubectl_dra.api.claims import DeviceResult
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.report.html import members as module
from kubectl_dra.report.html.cells import KEPT, MARK_WORDS, Mark
from kubectl_dra.report.html.lines import MAX_SINGLE, Fleet, fleet_of
from kubectl_dra.report.html.members import members
from tests.report.html import hostile
from tests.report.html.test_lines import HELD, SHARED, held_by, large, odd, on


def unpacked(fleet: Fleet, requests: tuple[str, ...] = ()) -> Any:
    """What the page's script reads."""
    packed = members(fleet, requests)
    assert packed is not None and packed.isascii()
    return json.loads(zlib.decompress(b64decode(packed)))


def told(fleet: Fleet) -> list[tuple[str, str, str]]:
    """Pool, device and holders of each device that is folded."""
    data = unpacked(fleet)
    found: list[tuple[str, str, str]] = []
    for line in data["lines"].values():
        for title, *devices in line["parts"]:
            for _, device, *rest in devices:
                held = rest[0] if rest else -1
                numbers = held if isinstance(held, list) else [held] if held >= 0 else []
                pool = rest[1] if len(rest) > 1 else title
                found.append((pool, device, ", ".join(data["claims"][number] for number in numbers)))
    return found


def expected(rows: list[DeviceRow]) -> list[tuple[str, str, str]]:
    """The same of all devices."""
    return [
        (
            row.id.pool,
            row.id.device,
            ", ".join(f"{claim.key} (pod {claim.metadata.name})" for claim in row.holders),
        )
        for row in rows
    ]


def test_small_fleets_fold_nothing() -> None:
    assert members(fleet_of(on("n1", ["gpu-0"])), ()) is None


@pytest.mark.parametrize("rows", [large(252), large(1_000, 900), odd(500)], ids=["alike", "kinds", "odd"])
def test_each_device_of_a_folded_row_is_there_with_its_holder(rows: list[DeviceRow]) -> None:
    fleet = fleet_of(rows)
    drawn = {
        (line.title, cell.label) for line in fleet.lines if not line.parts for box in line.boxes for cell in box.cells
    }
    found = told(fleet)
    assert sorted([*found, *(each for each in expected(rows) if each[:2] in drawn)]) == sorted(expected(rows))


def test_the_numbers_are_those_of_the_cells() -> None:
    fleet = fleet_of(large(MAX_SINGLE // 8 + 2))
    data = unpacked(fleet)
    for number, line in enumerate(fleet.lines):
        cells = [cell for box in line.boxes for cell in box.cells]
        counts = [0] * len(cells)
        for _, *devices in data["lines"][str(number)]["parts"]:
            for cell, *_ in devices:
                counts[cell] += 1
        assert counts == [cell.each * line.alike for cell in cells]
        said = [entry["said"] for entry in data["lines"][str(number)]["cells"]]
        assert said == [[["Kind", "m0"], ["State", str(cell.state)], ["Classes", "gpu"]] for cell in cells]


def test_shared_devices_tell_what_each_claim_takes() -> None:
    rows = [row for at in range(MAX_SINGLE + 1) for row in on(f"n{at}", ["gpu-0"], SHARED)]
    first = rows[0]
    claims = (held_by("a", DeviceResult("r", first.id)), held_by("b", DeviceResult("r", first.id)))
    rows[0] = first._replace(holders=claims)
    assert ("n0", "gpu-0", "ml/a (pod a), ml/b (pod b)") in told(fleet_of(rows))


def test_a_holder_that_was_not_read_is_said() -> None:
    rows = [row for at in range(MAX_SINGLE + 1) for row in on(f"n{at}", ["gpu-0"], HELD)]
    assert told(fleet_of(rows))[0] == ("n0", "gpu-0", "a claim that was not read")


def test_marks_say_what_holds_for_all() -> None:
    rows = large(MAX_SINGLE // 8 + 2)
    mark = Mark(KEPT, (0,), ("request gpu: held by claim ml/c1",))
    data = unpacked(fleet_of(rows, {str(row.id): mark for row in rows}), ("gpu",))
    said = data["lines"]["0"]["cells"][0]["said"]
    assert ["Claims", f"request gpu: {MARK_WORDS[KEPT]}"] in said


def test_names_are_made_visible() -> None:
    rows = [row for at in range(MAX_SINGLE + 1) for row in on(f"n{at}", [f"{hostile.TEXTS[7]}\n"])]
    assert told(fleet_of(rows))[0][1] == "\\u202eevil\\u2066\\n"


def test_more_devices_than_the_limit_stay_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MEMBERS", 10)
    assert members(fleet_of(large(MAX_SINGLE // 8 + 2)), ()) is None
