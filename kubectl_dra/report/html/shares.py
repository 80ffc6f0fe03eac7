"""Shares of devices: a headline bar for each class, and what each namespace holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.report.html.cells import claim_words, counted
from kubectl_dra.report.html.page import Markup, join, scrolled, tag
from kubectl_dra.text import amount, some

MAX_BARS: Final = 8
"""Classes with a bar at once; the bars of the others are folded."""
MAX_SPACES: Final = 12
"""Namespaces listed at once; the others are folded."""
MAX_CLAIMS: Final = 20
"""Claims listed for each namespace."""
MAX_NAMES: Final = 8
NO_CLASS: Final = "of no class"


def bars_html(rows: Sequence[DeviceRow]) -> Markup:
    """A bar for each class, divided by state; a device counts for each class that selects it."""
    states: dict[str, Counter[DeviceState]] = {}
    for (names, state), count in Counter((row.classes, row.state) for row in rows).items():
        for name in names or (NO_CLASS,):
            states.setdefault(name, Counter())[state] += count
    order = sorted(states, key=lambda name: (name == NO_CLASS, -states[name].total(), name))
    bars = [_bar(name, _in_order(states[name])) for name in order]
    shown = tag("ul", *bars[:MAX_BARS], class_="bars", aria_label="Devices by class")
    if len(bars) <= MAX_BARS:
        return shown
    rest = tag("ul", *bars[MAX_BARS:], class_="bars", aria_label="Devices by class, continued")
    more = f"{len(bars) - MAX_BARS:,} more classes"
    return join([shown, tag("details", tag("summary", more), rest)])


def _in_order(states: Mapping[DeviceState, int]) -> dict[str, int]:
    return {state: states[state] for state in DeviceState if states.get(state)}


def _bar(name: str, states: Mapping[str, int]) -> Markup:
    total = sum(states.values())
    return tag(
        "li",
        tag("b", name),
        " ",
        tag("span", f"{amount(total)}: {counted(states)}", class_="counts"),
        divided(list(states.items())),
    )


def divided(parts: Iterable[tuple[str, int]]) -> Markup:
    """A bar of named parts. The words beside it say the same, so that it is hidden from screen readers."""
    known = [(name, count) for name, count in parts if count]
    total = sum(count for _, count in known) or 1
    pieces: list[Markup] = []
    at = 0
    for name, count in known:
        # What is there can be seen, however little it is.
        width = max(4, round(1000 * count / total))
        pieces.append(tag("path", d=f"M{at} 0H{at + width}V2H{at}z", data_s=name))
        at += width
    return tag(
        "svg",
        *pieces,
        class_="share",
        viewBox=f"0 0 {max(1, at)} 2",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def spaces_html(rows: Sequence[DeviceRow], heading: str = "h2") -> Markup:
    """What the claims of each namespace hold of these devices, with the claims; nothing where none is held."""
    devices: dict[str, list[DeviceRow]] = {}
    claims: dict[str, dict[tuple[str, str], tuple[ResourceClaim, list[DeviceRow]]]] = {}
    for row in rows:
        spaces = dict.fromkeys(claim.metadata.namespace for claim in row.holders)
        for space in spaces:
            devices.setdefault(space, []).append(row)
        for claim in row.holders:
            held = claims.setdefault(claim.metadata.namespace, {})
            held.setdefault((claim.metadata.namespace, claim.metadata.name), (claim, []))[1].append(row)
    if not devices:
        return Markup()
    order = sorted(devices, key=lambda space: (-len(devices[space]), space))
    most = len(devices[order[0]])
    lines = [_space(space, devices[space], list(claims[space].values()), most) for space in order]
    parts = [tag(heading, "Use by namespace"), _table(lines[:MAX_SPACES], "Devices by namespace")]
    if len(lines) > MAX_SPACES:
        more = f"{len(lines) - MAX_SPACES:,} more"
        rest = _table(lines[MAX_SPACES:], "Devices by namespace, continued")
        parts.append(tag("details", tag("summary", more), rest))
    return tag("section", *parts, class_="spaces")


def _table(lines: Sequence[Markup], title: str) -> Markup:
    head = tag("tr", *(tag("th", word, scope="col") for word in ("Namespace", "Devices", "Nodes", "Claims")))
    return scrolled(tag("table", tag("caption", title), tag("thead", head), tag("tbody", *lines)), title)


def _space(
    space: str, rows: Sequence[DeviceRow], claims: Sequence[tuple[ResourceClaim, list[DeviceRow]]], most: int
) -> Markup:
    nodes = len({row.where for row in rows})
    ranked = sorted(claims, key=lambda holding: (-len(holding[1]), holding[0].key))
    items = [tag("li", f"{claim_words(claim)}: {'; '.join(_held(held))}") for claim, held in ranked[:MAX_CLAIMS]]
    if len(ranked) > MAX_CLAIMS:
        items.append(tag("li", f"{len(ranked) - MAX_CLAIMS:,} more"))
    listed = tag("details", tag("summary", amount(len(ranked), "claim")), tag("ul", *items))
    bar = divided([("held", len(rows)), ("", most - len(rows))])
    return tag(
        "tr",
        tag("th", space, scope="row"),
        tag("td", f"{len(rows):,}", bar, class_="number"),
        tag("td", f"{nodes:,}", class_="number"),
        tag("td", listed),
    )


def _held(rows: Sequence[DeviceRow]) -> Iterator[str]:
    """The devices by place: ``gpu-0, gpu-1 on node-1``."""
    by_place: dict[str, list[str]] = {}
    for row in rows:
        by_place.setdefault(row.where, []).append(row.id.device)
    for place, names in by_place.items():
        yield f"{some(names, MAX_NAMES)} on {place}"
