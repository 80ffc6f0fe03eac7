"""The picture of a fleet: a grid with a row per node and a cell per device, filters, and a legend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.grouped import grouped
from kubectl_dra.report.devices import claim_words
from kubectl_dra.report.html.cells import FITS, GOT, KEPT, MARK_WORDS, MAX_PODS, Cell, counted
from kubectl_dra.report.html.lines import Box, Fleet, Line
from kubectl_dra.report.html.members import members
from kubectl_dra.report.html.page import Markup, join, scrolled, tag
from kubectl_dra.text import amount, listed, some

STATE_WORDS = {
    "free": "nobody holds it, nothing keeps it back",
    "shared": "claims hold shares of it; more fit as far as its capacity goes",
    "held": "a claim holds all of it",
    "tainted": "only requests that tolerate its taints get it",
    "blocked": "other devices take the counters that it needs",
    "unserved": "free, but its driver does not run there, or refuses a claim for it",
    "unusable": "its pool is incomplete, invalid or obsolete, or no node sees it",
    "unknown": "no holder is known, but not all claims could be read",
}
MAX_LISTED = 8
MAX_KINDS = 2
MAX_FIRST = 60
"""Rows shown at once; the script folds the rest."""


def fleet_html(fleet: Fleet, key: str, top: str, requests: Sequence[str] = (), first: int = MAX_FIRST) -> Markup:
    """The picture with its filters, below ``top``.

    ``key`` makes ids unique on the page; marks are numbered by ``requests``. The script folds what follows the
    ``first`` rows.
    """
    drivers = {name: str(position) for position, name in enumerate(fleet.drivers)}
    classes = {name: str(position) for position, name in enumerate(fleet.classes)}
    after = f"after-{key}"
    # Where rows stand for different numbers of nodes, bars compare them.
    most = max((line.devices for line in fleet.lines), default=0) if fleet.grouped else 0
    return tag(
        "div",
        top,
        _legend(fleet),
        _filters(fleet, key, requests),
        tag("a", "Skip the devices", href=f"#{after}", class_="skip"),
        tag(
            "div",
            "\n",
            join((_row(line, drivers, classes, most) for line in fleet.lines), "\n"),
            "\n",
            role="grid",
            aria_label="Devices by node",
            aria_readonly="true",
            class_="grid",
        ),
        tag("p", "No device passes the filters.", class_="none", hidden=True),
        _remark(fleet),
        tag("div", id=after, tabindex="-1"),
        class_="fleet",
        data_first=first,
        data_members=members(fleet, requests),
    )


def _remark(fleet: Fleet) -> Markup:
    hint = "Point at a device, or move to it with the arrow keys, to read about it."
    script = "Filters and arrow keys need JavaScript; without it, Tab moves from device to device."
    alike = (
        "Nodes whose devices look alike are one row, whoever holds them; so are devices that look alike on one node. "
        "Find shows those that match one by one, with their holders; Enter unfolds the row of a device. "
        if fleet.grouped
        else ""
    )
    return Markup(tag("p", alike, hint, class_="quiet") + tag("noscript", tag("p", script, class_="quiet")))


def _legend(fleet: Fleet) -> Markup:
    states = [
        tag("li", tag("span", state, class_="c", data_s=state), " ", STATE_WORDS[state])
        for state in DeviceState
        if state in fleet.states
    ]
    marks = [
        tag("li", tag("span", word, class_="c", data_m=kind), " ", MARK_WORDS[kind])
        for kind, word in ((GOT, "gets"), (FITS, "fits"), (KEPT, "kept back"))
        if kind in fleet.marks
    ]
    return tag("ul", *states, *marks, class_="legend")


def _filters(fleet: Fleet, key: str, requests: Sequence[str]) -> Markup:
    """The filters, hidden until the script shows them, because they need it."""
    states = [state for state in DeviceState if state in fleet.states]
    what = tag(
        "input",
        type="search",
        id=f"{key}-find",
        placeholder="node, device, claim, pod",
        autocomplete="off",
        spellcheck="false",
    )
    parts = [
        _field(key, "find", "Find", what),
        _choice(key, "driver", "Driver", list(enumerate(fleet.drivers))),
        _choice(key, "class", "Class", list(enumerate(fleet.classes))),
        _choice(key, "state", "State", [(state, state) for state in states]),
    ]
    if requests:
        named: list[tuple[int | str, str]] = [
            ("any", "any request"),
            *((position, f"request {name}") for position, name in enumerate(requests)),
        ]
        parts.append(_choice(key, "request", "Asked for by", named))
    parts.append(tag("button", "Show all", type="reset"))
    parts.append(tag("output", amount(fleet.devices), " shown", aria_live="polite"))
    return tag("form", *parts, class_="filters", role="search", aria_label="Filter devices", hidden=True)


def _choice(key: str, name: str, label: str, options: Sequence[tuple[int | str, str]]) -> Markup:
    listed = [tag("option", "all", value=""), *(tag("option", shown, value=value) for value, shown in options)]
    return _field(key, name, label, tag("select", *listed, id=f"{key}-{name}"))


def _field(key: str, name: str, label: str, control: Markup) -> Markup:
    return tag("div", tag("label", label, for_=f"{key}-{name}"), control, class_="field", data_by=name)


def _row(line: Line, drivers: Mapping[str, str], classes: Mapping[str, str], most: int) -> Markup:
    return tag(
        "div",
        _header(line, most),
        tag(
            "div",
            join(_box(box, drivers, classes, max(1, line.alike)) for box in line.boxes),
            class_="devices",
            role="none",
        ),
        role="row",
        class_="row",
        # Names that are not listed cannot be searched: no name rules the row out.
        data_any=line.unlisted > 0,
    )


def _header(line: Line, most: int) -> Markup:
    states = f"{amount(line.devices)}: {counted(line.states)}"
    parts = [tag("b", line.title), " ", tag("small", states)]
    if most:
        parts.append(divided([*line.states.items(), ("", most - line.devices)]))
    if line.kinds:
        parts.append(tag("span", listed(line.kinds[:MAX_KINDS], len(line.kinds)), class_="kinds"))
    if list(line.nodes) != [line.title] and (line.nodes or line.unlisted):
        total = len(line.nodes) + line.unlisted
        more = tag("span", f" and {line.unlisted:,} more") if line.unlisted else ""
        names = tag("span", ", ".join(line.nodes), more, class_="names")
        parts.append(names if total <= MAX_LISTED else tag("details", tag("summary", amount(total, "name")), names))
    return tag("div", *parts, role="rowheader", class_="node")


def _box(box: Box, drivers: Mapping[str, str], classes: Mapping[str, str], nodes: int) -> Markup:
    cells = join(_cell(cell, drivers, classes, nodes) for cell in box.cells)
    if not box.title:
        return cells
    # The facts of each cell name the counter set as well.
    title = tag("span", box.title, class_="set", aria_hidden="true")
    return tag("div", title, cells, class_="box", role="none")


def _cell(cell: Cell, drivers: Mapping[str, str], classes: Mapping[str, str], nodes: int) -> Markup:
    number = f"{cell.each:,} × " if cell.each > 1 else ""
    facts = join((Markup(f"<b>{word}</b> {tag('span', said)}") for word, said in cell.facts), Markup("<br>"))
    total = cell.each * nodes
    return tag(
        "div",
        tag("span", number, cell.label, class_="name"),
        _meter(cell.used),
        tag("span", facts, class_="facts"),
        role="gridcell",
        tabindex="0",
        class_="c",
        data_s=cell.state,
        data_d=drivers[cell.driver],
        data_c=" ".join(classes[name] for name in cell.classes) or None,
        data_m=cell.mark.kind if cell.mark and cell.mark.kind in MARK_WORDS else None,
        data_r=" ".join(map(str, cell.mark.requests)) or None if cell.mark else None,
        data_k=total if total != 1 else None,
    )


def _meter(used: float | None) -> str:
    """A bar for the used part of a shared device; the facts say the same in words."""
    if used is None:
        return ""
    bar = tag("path", d=f"M0 0H{round(used * 20)}V2H0z")
    return tag("svg", bar, class_="used", viewBox="0 0 20 2", preserveAspectRatio="none", aria_hidden="true")


# Shares of devices: a headline bar for each class, and what each namespace holds.


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
    bars = [_bar(name, {state: states[name][state] for state in DeviceState if states[name][state]}) for name in order]
    shown = tag("ul", *bars[:MAX_BARS], class_="bars", aria_label="Devices by class")
    if len(bars) <= MAX_BARS:
        return shown
    rest = tag("ul", *bars[MAX_BARS:], class_="bars", aria_label="Devices by class, continued")
    more = f"{len(bars) - MAX_BARS:,} more classes"
    return join([shown, tag("details", tag("summary", more), rest)])


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
    claims = {claim.key: claim for row in rows for claim in row.holders}
    held = grouped((claim.key, row) for row in rows for claim in row.holders)
    own = grouped((claims[key].metadata.namespace, (claims[key], of_claim)) for key, of_claim in held.items())
    devices = grouped((space, row) for row in rows for space in {claim.metadata.namespace for claim in row.holders})
    if not devices:
        return Markup()
    order = sorted(devices, key=lambda space: (-len(devices[space]), space))
    most = len(devices[order[0]])
    lines = [_space(space, devices[space], own[space], most) for space in order]
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
    items = [
        tag("li", f"{claim_words(claim, MAX_PODS)}: {'; '.join(_held(held))}") for claim, held in ranked[:MAX_CLAIMS]
    ]
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
    for place, names in grouped((row.where, row.id.device) for row in rows).items():
        yield f"{some(names, MAX_NAMES)} on {place}"
