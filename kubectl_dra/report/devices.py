"""Devices as a table with a summary before it, as counts, or as names, one per line."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, TextIO

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.command import CommandLine
from kubectl_dra.explain.devices.alike_devices import AlikeDevices, Tally, names_of
from kubectl_dra.explain.devices.arrangement import CountedBy
from kubectl_dra.explain.devices.device_state import DeviceState, identifying, model_of
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory
from kubectl_dra.explain.phrase import with_owner, with_since
from kubectl_dra.grouped import grouped
from kubectl_dra.report.bars import PICTURE, STATE_STYLES, legend, with_bars, write_bars
from kubectl_dra.report.blocks import Answer, Section, ShellCommand, TableBlock, prose
from kubectl_dra.report.blocks_text import MAX_COLOURED, write_blocks
from kubectl_dra.report.color import Painter
from kubectl_dra.report.phrases import compressed, reason, written
from kubectl_dra.report.table import EMPTY, NarrowedTable, fitted, nameless, narrowed, owned_by, width_of
from kubectl_dra.safe_output import lines
from kubectl_dra.taint import times
from kubectl_dra.text import amount, listed, some
from kubectl_dra.usage.claim_use import ClaimUse

MAX_HOLDERS = 2
MAX_REASONS = 2
MOST_WITH_MODEL = 8
"""Rows that may have a line more for the model."""


class DeviceColumn(NamedTuple):
    """A column: its heading, and what it shows of devices that share a row."""

    heading: str
    cell: Callable[[AlikeDevices], str]


ROWS_BELOW_AN_ANSWER: Final = 6
"""Of alike devices, where the answer about them stands before the table."""


def write_table(
    inventory: Inventory,
    groups: Sequence[AlikeDevices],
    color: str = "auto",
    *,
    wide: bool = False,
    more: CommandLine | None = None,
    limit: int | None = None,
    headers: bool = True,
    answer: Answer | None = None,
) -> None:
    """Write the summary and a row for each group; a sentence where no device matches. An ``answer`` stands for both.

    ``more`` is the command that shows each device, where groups have several. ``limit``: at most so many rows.
    Without ``headers`` there are only the rows.
    """
    out = Painter(color=color, bare=not headers)
    how = "leave --limit out"
    if answer is not None:
        write_blocks(out, [answer])
        if limit is None and not wide and len(inventory.rows) > len(groups):
            limit, how = ROWS_BELOW_AN_ANSWER, "--full has all"
    elif headers or not inventory.rows:
        out.sentence(summary(inventory) if inventory.rows else nothing(inventory))
    if not inventory.rows:
        return
    if headers:
        out.write("")
    if out.draws:
        by_node = ((name, row.state) for row in inventory.rows for name in names_of(row, CountedBy.node))
        write_bars(out, grouped(by_node))
    whole, groups = len(groups), groups[:limit]
    several = any(len(group.rows) > 1 for group in groups)
    shown = list(columns(groups, several, wide))
    rows = [tuple(column.heading for column in shown)]
    rows += [tuple(column.cell(group) for column in shown) for group in groups]
    omitted: Sequence[str] = ()
    if several:
        rows, omitted = _summed_up(rows, out.limit)
    marks = [(state_of(group.first), STATE_STYLES.get(group.first.state, "red")) for group in groups[:MAX_COLOURED]]
    table = TableBlock(rows, _BELOW, not wide, "STATE", marks, whole - len(groups), how, omitted)
    write_blocks(out, [table])
    if several and headers and more is not None:
        write_blocks(out, [ShellCommand((more,), "Each device")])


def _summed_up(rows: list[tuple[str, ...]], limit: int | None) -> NarrowedTable:
    """The rows of several devices each, in the room that is there.

    First goes a class that all rows have, or what stands beside the first class. Then models go, or stand
    below where rows are few; where that is not enough, nothing goes, and both stand below.
    """
    gone: list[str] = []

    def fits() -> bool:
        return limit is None or width_of(rows, ("WHY",)) <= limit

    place, heading, *_ = rows[0]
    classes = {row[1] for row in rows[1:]}
    if not fits() and len(classes) == 1:
        gone.append(f"{heading}, which is {classes.pop()} in all rows")
        rows = [(row[0], *row[2:]) for row in rows]
    elif not fits():
        gone += ["DRIVER"] if heading == _CLASS_DRIVER else []
        rows = [(place, "CLASS", *rows[0][2:]), *((row[0], _first_class(row[1]), *row[2:]) for row in rows[1:])]
    if limit is not None and width_of(rows, ("WHY", "MODEL")) > limit:
        rows = narrowed(rows, limit, (), (place,), ("WHY", "MODEL", "CLASS")).rows
    elif not fits() and len(rows) - 1 > MOST_WITH_MODEL:
        table = narrowed(rows, limit, ("MODEL",), (), ("WHY",))
        return table._replace(omitted=[*gone, *table.omitted])
    return NarrowedTable(rows, gone)


def _first_class(cell: str) -> str:
    """The first class without the driver, and how many more there are."""
    first, *more = cell.partition(" (")[0].split(",")
    return f"{first} + {len(more):,} more" if more else first


def write_counts(
    inventory: Inventory,
    counts: Sequence[Tally],
    by: CountedBy,
    color: str = "auto",
    *,
    limit: int | None = None,
    headers: bool = True,
) -> None:
    """Write the summary and a row for each node, class, model or state; a sentence where no device matches.

    ``limit``: at most so many rows. Without ``headers`` there are only these.
    """
    out = Painter(color=color, bare=not headers)
    if not inventory.rows:
        out.sentence(nothing(inventory))
        return
    if headers:
        out.sentence(summary(inventory))
        out.write("")
    states = () if by is CountedBy.state else tuple(inventory.states())
    rows = [(by.value.upper(), "DEVICES", *(() if by is CountedBy.node else ("NODES",)), *(s.upper() for s in states))]
    for count in counts[:limit]:
        numbers = [count.devices, *(() if by is CountedBy.node else (count.nodes,))]
        numbers += [count.states.get(state, 0) for state in states]
        name = count.name or nameless(by.value, "DeviceClass" if by is CountedBy.class_ else "", inventory.notes)
        rows.append((name, *(f"{number:,}" if number else EMPTY for number in numbers)))
    hidden = len(counts) - len(rows) + 1
    rows = with_bars(rows, [count.states for count in counts[:limit]], out)
    if out.draws:
        rows, _ = narrowed(rows, out.limit, (PICTURE,), (by.value.upper(),))
    if PICTURE in rows[0]:
        out.write(legend(inventory.states()))
    write_blocks(out, [TableBlock(rows, left=hidden, how="leave --limit out")])
    if headers and by is CountedBy.class_ and sum(count.devices for count in counts) > len(inventory.rows):
        out.write("")
        out.sentence("A device of several classes is counted in each of them.")


def write_names(groups: Sequence[AlikeDevices], stream: TextIO | None = None) -> None:
    """Write DRIVER/POOL/DEVICE, one per line."""
    lines((str(row.id) for group in groups for row in group.rows), stream or sys.stdout)


def summary(inventory: Inventory) -> str:
    """Number of devices, of nodes with them, and of devices in each state."""
    total, nodes = len(inventory.rows), inventory.node_count()
    tainted = Counter(row.state for row in inventory.rows if row.also_tainted)
    unusable = Counter(row.state for row in inventory.rows if row.also_unusable)
    states = ", ".join(
        f"{count:,} {state}{_besides(count, tainted[state], unusable[state])}"
        for state, count in inventory.states().items()
    )
    place = f" on {amount(nodes, 'node')}" if nodes else ""
    return f"{amount(total)}{place}: {states}"


def _besides(count: int, tainted: int, unusable: int) -> str:
    """Number of devices in a state that are tainted or unusable besides."""
    also = ((tainted, DeviceState.TAINTED), (unusable, DeviceState.UNUSABLE))
    parts = [f"{'all' if number == count > 1 else f'{number:,}'} {state}" for number, state in also if number]
    return f" ({', '.join(parts)})" if parts else ""


def nothing(inventory: Inventory) -> str:
    """Which part of the selection left no device; of devices that were not read nothing is said."""
    published, *parts = inventory.narrowed
    if not published[1]:
        if not inventory.all_read:
            return "ResourceSlices were not read, so which devices are published is unknown."
        held = sum(len(unpublished.devices) for unpublished in inventory.unpublished)
        return "No device is published" + (
            f"; {held:,} {'is' if held == 1 else 'are'} held all the same." if held else "."
        )
    steps = [f"{published[1]:,} published"]
    for what, count in parts:
        steps.append(f"{count:,} {what}" if count else f"none {what}")
        if not count:
            break
    where = "" if inventory.all_read else " of what was read"
    return f"No device{where} matches: {', '.join(steps)}."


def columns(groups: Sequence[AlikeDevices], several: bool, wide: bool) -> Iterator[DeviceColumn]:
    """The columns; those of several devices a row count them by state."""
    yield DeviceColumn(_with("NODE", "POOL", any(_pool(group) for group in groups)), _place)
    yield DeviceColumn(_with("CLASS", "DRIVER", any(_driver(group) for group in groups)), _class)
    yield DeviceColumn("MODEL", lambda group: group.model or EMPTY)
    if several:
        yield DeviceColumn("STATE", _counted)
        # Those in one of the places.
        yield DeviceColumn("NAMES", lambda group: compressed([row.id.device for row in group.rows[: group.each]]))
    else:
        yield DeviceColumn("DEVICE", lambda group: group.first.id.device)
        yield DeviceColumn("STATE", lambda group: state_of(group.first))
    # Taints have a column of their own there.
    yield DeviceColumn("WHY", (lambda group: "; ".join(_why_but_taints(group)) or EMPTY) if wide else _why)
    if wide:
        yield DeviceColumn("CAPACITY", lambda group: ",".join(_capacity(group.first)) or EMPTY)
        yield DeviceColumn("TAINTS", lambda group: ",".join(taints_of(group.first)) or EMPTY)
        yield DeviceColumn("ATTRIBUTES", lambda group: ",".join(_attributes(group.first)) or EMPTY)


_CLASS_DRIVER: Final = "CLASS (DRIVER)"
_BELOW: Final = (
    "ATTRIBUTES",
    "TAINTS",
    "CAPACITY",
    "WHY",
    "MODEL",
    _CLASS_DRIVER,
    "CLASS",
)
"""What goes below a row that is too long, first to go first."""


def _with(heading: str, other: str, shown: bool) -> str:
    return f"{heading} ({other})" if shown else heading


def _pool(group: AlikeDevices) -> str:
    """The pool where it is not called like the node."""
    pool = group.first.id.pool
    return "" if pool == group.first.where else pool


def _driver(group: AlikeDevices) -> str:
    """The driver where no class is called like it."""
    driver = group.first.id.driver
    return "" if driver in group.first.classes else driver


def _place(group: AlikeDevices) -> str:
    own = f"{group.first.where} ({_pool(group)})" if _pool(group) else group.first.where
    return own if len(group.places) == 1 else f"{own} and {len(group.places) - 1:,} alike"


def _class(group: AlikeDevices) -> str:
    classes = ",".join(group.first.classes) or EMPTY
    return f"{classes} ({_driver(group)})" if _driver(group) else classes


def _counted(group: AlikeDevices) -> str:
    return f"{group.each:,} {state_of(group.first)}" + (" each" if len(group.places) > 1 else "")


def state_of(row: DeviceRow) -> str:
    """The state, and what keeps the device from new claims besides."""
    also = ((row.also_unusable, DeviceState.UNUSABLE), (row.also_tainted, DeviceState.TAINTED))
    return ",".join((row.state, *(state for applies, state in also if applies)))


def _why(group: AlikeDevices) -> str:
    """The holders of the devices, and what else makes their state."""
    parts = _why_but_taints(group)
    if group.first.state is DeviceState.TAINTED:
        parts += _reasons(group)
    elif group.first.taints:
        parts.append(f"tainted with {', '.join(written(with_owner(taint)) for taint in group.first.taints)}")
    return "; ".join(parts) or EMPTY


def _why_but_taints(group: AlikeDevices) -> list[str]:
    parts = []
    claims = group.holders()
    if len(group.places) > 1 and len(claims) > MAX_HOLDERS:
        spaces = {claim.metadata.namespace for claim in claims}
        where = f"namespace {min(spaces)}" if len(spaces) == 1 else amount(len(spaces), "namespace")
        parts.append(f"held by {amount(len(claims), 'claim')} of {where}")
    elif claims:
        parts.append(f"held by {held_by(claims)}")
    return parts if group.first.state is DeviceState.TAINTED else [*parts, *_reasons(group)]


def _reasons(group: AlikeDevices) -> Sequence[str]:
    """What else makes their state: one reason for all, or each with its device; of many the first."""
    whys = [(row.id.device, why) for row in group.rows if (why := reason(row.reason))]
    if len({why for _, why in whys}) < 2:
        return [why for _, why in whys[:1]]
    shown = [f"{name}: {why}" for name, why in (whys if len(whys) <= MAX_REASONS else whys[:1])]
    more = len(whys) - len(shown)
    return [*shown, f"{amount(more, 'other')} alike, with names and amounts of their own"] if more else shown


def taints_of(row: DeviceRow) -> list[str]:
    """Each taint, who sets it, and since when."""
    return [written(with_since(taint)) for taint in row.taints]


def _attributes(row: DeviceRow) -> Iterator[str]:
    """All of them, first those that say what the device is; without their domains where names are told apart so."""
    attributes = row.device.attributes
    short = {name: name.rpartition("/")[2] for name in attributes}
    taken = Counter(short.values())
    for name in dict.fromkeys((*identifying(attributes, "version", "uuid"), *attributes)):
        yield f"{short[name] if taken[short[name]] == 1 else name}={plain(attributes[name])}"


def held_by(holders: Sequence[ResourceClaim]) -> str:
    """The claims, each with the pods that consume it; first those that nobody uses."""
    shown = sorted(holders, key=lambda claim: bool(claim.reserved_for))[:MAX_HOLDERS]
    return listed([claim_words(claim, 1) for claim in shown], len(holders))


def claim_words(claim: ResourceClaim, pods: int) -> str:
    """A claim with some of those that it is reserved for."""
    return f"{claim.key} ({some([*map(str, claim.reserved_for)], pods) or 'unused'})"


def _capacity(row: DeviceRow) -> Iterator[str]:
    """Each capacity; of a device that can be shared, what is used of it."""
    for name, quantity in row.device.capacity.items():
        value = quantity.get("value", "0")
        if row.device.allow_multiple_allocations:
            yield f"{name}={row.consumed.get(name, 0)}/{value}"
        else:
            yield f"{name}={value}"


def plain(attribute: Mapping[str, Any]) -> str:
    """An attribute's value as text, as CEL would write a boolean."""
    value: Any = next(iter(attribute.values()), "")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + " ".join(str(item) for item in value) + "]"
    return str(value)


# One device: what it is, where, in which state, who holds it, and all that its driver says of it.

HOLDERS = ("NAMESPACE", "CLAIM", "STATE", "POD", "OWNER", "AGE")
_CLAIM_BELOW = ("OWNER", "AGE", "POD")
_SHOWN_NODES = 4


def write_device(row: DeviceRow, claims: Sequence[ClaimUse], at: datetime, stream: TextIO, color: str = "auto") -> None:
    """Write the page of a device, without its name; ``claims`` are those that are known, among them its holders."""
    out = Painter(stream, color)
    why = written(row.reason)
    style = STATE_STYLES.get(row.state, "red")
    out.heading(state_of(row), f": {why}" if why else "", style=f"bold {style}".strip())
    write_device_facts(out, row, claims, at)


def write_device_facts(
    out: Painter,
    row: DeviceRow,
    claims: Sequence[ClaimUse],
    at: datetime,
    *,
    full: bool = True,
    classes_read: bool = True,
) -> None:
    """Write what a device is, where, who holds it, and, in ``full``, all that its driver says of it."""
    for label, text in _facts(row, classes_read=classes_read):
        out.paragraph(text, indent=" " * 10, first=label.ljust(10))
    if not full and row.device.attributes:
        out.paragraph(f"{len(row.device.attributes)} (--full shows them)", indent=" " * 10, first="Values".ljust(10))
    out.write("")
    _holders(out, row, claims, at)
    attributes = [f"{name} = {plain(value)}" for name, value in sorted(row.device.attributes.items())]
    listed = [("Capacity", list(_capacity_lines(row)))]
    listed = [("Taints", taints_of(row)), *listed, ("Attributes", attributes)] if full else listed
    write_blocks(out, [Section(heading, tuple(map(prose, lines))) for heading, lines in listed if lines])


def _facts(row: DeviceRow, *, classes_read: bool) -> Iterator[tuple[str, str]]:
    yield "Model", model_of(row.device.attributes) or EMPTY
    yield "Place", row.where
    if len(row.nodes) > 1:
        yield "Nodes", f"{amount(len(row.nodes), 'node')}: {some(row.nodes, _SHOWN_NODES)}"
    yield "Classes", ", ".join(row.classes) or ("no DeviceClass selects it" if classes_read else "not read")
    yield "Slice", f"{row.slice.name}, generation {row.slice.generation} of pool {row.id.pool}"


def _holders(out: Painter, row: DeviceRow, claims: Sequence[ClaimUse], at: datetime) -> None:
    if not row.holders:
        unknown = row.state is DeviceState.UNKNOWN
        out.write(("Held by ", "bold"), "nobody that is known" if unknown else "nobody")
        return
    out.write((f"Held by {amount(len(row.holders), 'claim')}", "bold"))
    known = {(item.claim.metadata.namespace, item.claim.metadata.name): item for item in claims}
    rows = [
        HOLDERS,
        *(_holder(claim, known.get((claim.metadata.namespace, claim.metadata.name)), at) for claim in row.holders),
    ]
    for block in fitted(rows, out.width - 2, _CLAIM_BELOW):
        for line in block:
            out.write("  ", line)


def _holder(claim: ResourceClaim, use: ClaimUse | None, at: datetime) -> tuple[str, ...]:
    meta = claim.metadata
    age = times.age(meta.creation_timestamp, at) if meta.creation_timestamp else EMPTY
    pods = use.pods if use is not None else tuple(consumer.name for consumer in claim.reserved_for)
    owner = owned_by(use.owner if use is not None else None)
    return meta.namespace, meta.name, use.state if use is not None else EMPTY, some(pods, 2) or EMPTY, owner, age


def _capacity_lines(row: DeviceRow) -> Iterator[str]:
    for name, quantity in sorted(row.device.capacity.items()):
        used = f", {row.consumed[name]} used" if name in row.consumed else ""
        yield f"{name} = {quantity.get('value', '0')}{used}"
