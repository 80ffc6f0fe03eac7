"""The picture of a fleet: a grid with a row per node and a cell per device, filters, and a legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.funnel.shown import Funnel
from kubectl_dra.explain.funnel.stages import SelectorFalse
from kubectl_dra.explain.phrase import Words
from kubectl_dra.report.html.cells import FITS, GOT, KEPT, MARK_WORDS, PASSED_OVER, Cell, Mark, counted
from kubectl_dra.report.html.lines import Box, Fleet, Line
from kubectl_dra.report.html.members import members
from kubectl_dra.report.html.page import Markup, join, tag
from kubectl_dra.report.html.shares import divided
from kubectl_dra.report.phrases import shares_of, written
from kubectl_dra.text import amount, listed

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


# What each device means to the claims of a diagnosis, from its placements and funnels.

USABLE = "usable"
# These stages say what a device is; the others, whether it can be had.
_SELECTING = {
    "published": "not published for it",
    "node": "not where the pod may run",
    "pool": "its pool cannot be used",
    "class-selector": "not of the class",
    "operations": "its node does not skip operations",
    "request-selector": "refused by a selector",
}


def funnels_of(diagnosis: Diagnosis) -> list[Funnel]:
    """The funnels of all claims, in the order in which ``Mark.requests`` numbers them."""
    return [funnel for claim in diagnosis.claims for funnel in claim.funnels]


def marks_of(diagnosis: Diagnosis) -> dict[str, Mark]:
    """The marks by ``driver/pool/device``; the diagnosis must have the devices in its funnels."""
    kinds: dict[str, str] = {}
    requests: dict[str, tuple[int, ...]] = {}
    sentences: dict[str, tuple[str, ...]] = {}
    got = _got(diagnosis)
    for number, funnel in enumerate(funnels_of(diagnosis)):
        said: dict[tuple[str, Words], tuple[str]] = {}
        for line in funnel.devices:
            name = str(line.device)
            kind = _kind(line.stage)
            if kind != PASSED_OVER:
                requests[name] = (*requests.get(name, ()), number)
            if kind == FITS or kinds.get(name, PASSED_OVER) == PASSED_OVER:
                kinds[name] = kind
            known = said.get((line.stage, line.reason))
            if known is None:
                known = said[line.stage, line.reason] = (_sentence(funnel, line.stage, line.reason),)
            sentences[name] = (*sentences[name], *known) if name in sentences else known
    for name, sentence in got.items():
        kinds[name] = GOT
        sentences[name] = (sentence, *sentences.get(name, ()))
    return {name: Mark(kind, requests.get(name, ()), sentences[name]) for name, kind in kinds.items()}


def _got(diagnosis: Diagnosis) -> Mapping[str, str]:
    """The devices that claims have, or would get on a node that works."""
    out: dict[str, str] = {}
    for claim in diagnosis.claims:
        for result in claim.devices:
            out[str(result.device)] = f"held by claim {claim.claim or claim.entry} for request {result.request}"
    for placement in diagnosis.placements:
        for result in (result for claim in placement.claims for result in claim.results):
            shares = shares_of(result)
            what = f"gets {shares} of it" if shares else "gets it"
            out.setdefault(str(result.device), f"on {placement.node}, request {result.request} {what}")
    return out


def _kind(stage: str) -> str:
    if stage == USABLE:
        return FITS
    return PASSED_OVER if stage in _SELECTING else KEPT


def _sentence(funnel: Funnel, stage: str, reason: Words) -> str:
    if stage == USABLE:
        return f"request {funnel.request}: it would do"
    what = _SELECTING.get(stage, f"asked for, but cannot be allocated ({stage})")
    more = f": {written(reason)}" if reason and not isinstance(reason, SelectorFalse) else ""
    return f"request {funnel.request}: {what}{more}"
