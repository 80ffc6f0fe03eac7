"""How the picture is laid out, and that it stays small."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_dra.api.claims import Allocation, Consumer, DeviceResult, ResourceClaim
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device, DeviceID, NodeScope, PoolID, ResourceSlice
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.report.html.cells import FITS, KEPT, Mark
from kubectl_dra.report.html.fleet import fleet_html
from kubectl_dra.report.html.lines import MAX_CELLS, MAX_LINES, MAX_NAMES, MAX_SINGLE, Fleet, fleet_of, natural
from tests.report.html.support import Document

STATES = tuple(DeviceState)
FREE, HELD, SHARED = DeviceState.FREE, DeviceState.HELD, DeviceState.SHARED
DRIVER = "gpu.example.com"
MEMORY = {"memory": {"value": "40Gi"}}


def on(node: str, names: list[str], state: DeviceState = FREE, model: str = "a", claim: str = "") -> list[DeviceRow]:
    """Devices of one node, all in one state."""
    devices = [Device(DRIVER, name, {"model": {"string": model}}, MEMORY) for name in names]
    entry = ResourceSlice(node, DRIVER, PoolID(DRIVER, node), 1, 1, NodeScope(node_name=node), None, (), tuple(devices))
    holders = (held_by(claim),) if claim else ()
    return [
        DeviceRow(
            DeviceID(DRIVER, node, device.name), device, entry, (node,), node, ("gpu",), state, "", (), holders, {}
        )
        for device in devices
    ]


def held_by(name: str, *results: DeviceResult) -> ResourceClaim:
    meta = ObjectMeta(name=name, namespace="ml")
    return ResourceClaim(meta, allocation=Allocation(results, None), reserved_for=(Consumer("pods", name, ""),))


def large(nodes: int, kinds: int = 1) -> list[DeviceRow]:
    """Nodes with 8 devices; half of the nodes are held, each by another claim."""
    rows: list[DeviceRow] = []
    for number in range(nodes):
        state, claim = (HELD, f"c{number}") if number % 2 else (FREE, "")
        rows += on(f"n{number}", [f"gpu-{at}" for at in range(8)], state, f"m{number % kinds}", claim)
    return rows


def odd(nodes: int) -> list[DeviceRow]:
    """Nodes of which no two have devices of the same classes in the same states."""
    rows: list[DeviceRow] = []
    for number in range(nodes):
        each = on(f"n{number}", [f"gpu-{at}" for at in range(12)])
        rows += [row._replace(state=STATES[number >> at & 1], classes=(f"c{at}",)) for at, row in enumerate(each)]
    return rows


def size(fleet: Fleet) -> int:
    return len(fleet_html(fleet, "x", "all").encode("ascii", "xmlcharrefreplace"))


def cells(fleet: Fleet) -> int:
    return sum(len(box.cells) for line in fleet.lines for box in line.boxes)


def counted(fleet: Fleet) -> int:
    """How many devices the filters of the page count."""
    cells = [
        element
        for element in Document(fleet_html(fleet, "x", "")).elements
        if element.attributes.get("role") == "gridcell"
    ]
    return sum(int(cell.attributes.get("data-k") or 1) for cell in cells)


def test_small_fleets_have_a_line_for_each_node_and_a_cell_for_each_device() -> None:
    rows = [*on("n10", ["gpu-10", "gpu-9"]), *on("n9", ["gpu-0"], HELD, claim="train")]
    fleet = fleet_of(rows)
    assert [line.title for line in fleet.lines] == ["n9", "n10"]
    assert [cell.label for cell in fleet.lines[1].boxes[0].cells] == ["gpu-9", "gpu-10"]
    assert dict(fleet.lines[0].boxes[0].cells[0].facts)["Held by"] == "ml/train (pod train)"
    assert not fleet.grouped


def test_places_of_several_nodes_come_last_with_the_names_of_their_nodes() -> None:
    everywhere = NodeScope(all_nodes=True)
    shared = [
        row._replace(nodes=("n1", "n2"), where="all nodes", slice=replace(row.slice, scope=everywhere))
        for row in on("", ["nic-0"])
    ]
    fleet = fleet_of([*shared, *on("n1", ["gpu-0"])])
    assert [(line.title, line.nodes, line.alike) for line in fleet.lines] == [
        ("n1", ("n1",), 1),
        ("all nodes", ("n1", "n2"), 0),
    ]


def test_large_fleets_have_a_line_for_nodes_that_look_alike() -> None:
    rows = large(MAX_SINGLE // 8 + 2)
    fleet = fleet_of(rows)
    assert fleet.grouped and len(fleet.lines) == 2
    assert sum(line.devices for line in fleet.lines) == len(rows)
    assert sorted(name for line in fleet.lines for name in line.nodes) == sorted({row.where for row in rows})
    held = next(line for line in fleet.lines if HELD in line.states)
    (cell,) = held.boxes[0].cells
    facts = dict(cell.facts)
    assert cell.each == 8 and facts["Devices"] == f"8 on each of {held.alike:,} nodes, {held.devices:,} in all"
    assert facts["Held by"].startswith(f"{held.alike:,} claims: ml/c1 (pod c1), ")


def test_what_differs_between_nodes_keeps_them_apart() -> None:
    rows = large(MAX_SINGLE // 8 + 2)
    odd = rows[0]
    for other in (
        odd._replace(state=DeviceState.TAINTED),
        odd._replace(classes=()),
        odd._replace(device=Device(DRIVER, "gpu-0", {"model": {"string": "b"}}, MEMORY)),
    ):
        fleet = fleet_of([other, *rows[1:]])
        assert len(fleet.lines) == 3
        assert [line.nodes for line in fleet.lines if line.alike == 1] == [("n0",)]
    marked = fleet_of(rows, {str(odd.id): Mark(FITS, (0,), ("it would do",))})
    # What the claims could use is first.
    assert marked.lines[0].title == "n0" and len(marked.lines) == 3
    kept = fleet_of(rows, {str(odd.id): Mark(KEPT, (0,), ("held",))})
    assert kept.lines[0].title == "n0"


@pytest.mark.parametrize(
    ("make", "numbers"), [(large, (6_000,)), (large, (6_000, 300)), (large, (6_000, 5_000)), (odd, (1_000,))]
)
def test_the_picture_stays_small_however_many_nodes_there_are(
    make: Callable[..., list[DeviceRow]], numbers: tuple[int, ...]
) -> None:
    rows = make(*numbers)
    fleet = fleet_of(rows)
    assert len(fleet.lines) <= MAX_LINES + 1
    assert cells(fleet) <= MAX_CELLS + 100
    assert sum(line.devices for line in fleet.lines) == len(rows)
    assert counted(fleet) == len(rows)
    assert size(fleet) < 1_500_000


def test_nodes_that_are_all_different_are_drawn_with_less_detail() -> None:
    fleet = fleet_of(large(6_000, 5_000))
    assert len(fleet.lines) == 2
    kinds = dict(fleet.lines[0].boxes[0].cells[0].facts)["Kind"]
    assert re.fullmatch(r"m[0-9]+, m[0-9]+, m[0-9]+ and [0-9,]+ more", kinds)


def test_what_finds_no_room_is_one_line() -> None:
    fleet = fleet_of(odd(1_000))
    rest = fleet.lines[-1]
    assert "other nodes" in rest.title and rest.alike == 0 and len(rest.nodes) > 100


def test_names_are_listed_up_to_a_limit_and_counted_above_it() -> None:
    nodes = MAX_NAMES + 7
    rows = [row for number in range(nodes) for row in on(f"n{number}", ["gpu-0"])]
    (line,) = fleet_of(rows).lines
    assert len(line.nodes) == MAX_NAMES and line.unlisted == 7
    row = next(e for e in Document(fleet_html(fleet_of(rows), "x", "")).elements if e.attributes.get("role") == "row")
    assert "data-any" in row.attributes


def test_shares_say_who_takes_how_much() -> None:
    (row,) = on("n1", ["gpu-0"], SHARED)
    taken = {"memory": Quantity.parse("10Gi")}
    claim = held_by("part", DeviceResult("r", row.id, consumed_capacity=taken))
    device = Device(DRIVER, "gpu-0", {}, MEMORY, allow_multiple_allocations=True)
    row = row._replace(device=device, holders=(claim,), consumed=taken)
    cell = fleet_of([row]).lines[0].boxes[0].cells[0]
    assert cell.used == 0.25
    assert dict(cell.facts)["Shares"] == "ml/part (pod part) takes 10Gi of memory"
    assert dict(cell.facts)["Capacity"] == "memory 10Gi of 40Gi used"
    assert re.search(r'<path d="M0 0H5V2H0z">', fleet_html(fleet_of([row]), "x", ""))


@pytest.mark.parametrize("value", ["0", "none", "-1", "1e999"])
def test_capacities_that_make_no_sense(value: str) -> None:
    (row,) = on("n1", ["gpu-0"], SHARED)
    device = Device(DRIVER, "gpu-0", {}, {"memory": {"value": value}}, allow_multiple_allocations=True)
    row = row._replace(device=device, consumed={"memory": Quantity.parse("1"), "other": Quantity.parse("1")})
    used = fleet_of([row]).lines[0].boxes[0].cells[0].used
    assert used is not None and 0 <= used <= 1


@given(st.lists(st.text(alphabet="ab-019", max_size=8)))
def test_natural_order_is_an_order(names: list[str]) -> None:
    ordered = sorted(names, key=natural)
    assert all(natural(one) <= natural(other) for one, other in pairwise(ordered))
    assert sorted(["n10", "n9", "n1", "m"], key=natural) == ["m", "n1", "n9", "n10"]


def test_very_long_numbers_in_names() -> None:
    assert natural("n" + "9" * 5_000)
