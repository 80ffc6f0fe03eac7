"""A device as a cell of the picture: its looks, its description, and which devices look alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.explain.devices.device_state import DeviceState, NodeMissing, SeenByNoNode, identifying
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.funnel.shown import Funnel
from kubectl_dra.explain.funnel.stages import SelectorFalse
from kubectl_dra.explain.phrase import Words
from kubectl_dra.report.devices import claim_words, plain, state_of, taints_of
from kubectl_dra.report.phrases import names_of_devices, shares_of, written
from kubectl_dra.text import amount, listed

GOT, FITS, KEPT, PASSED_OVER = "got", "fits", "kept", "no"
MARKS = (GOT, FITS, KEPT, PASSED_OVER)
"""What a device means to the claims of a report, best first: they get it; it satisfies a request by itself;
it matches, but is not available; they do not ask for it.
"""
MARK_WORDS = {
    GOT: "what a claim gets or has",
    FITS: "a candidate: by itself it would do for a request",
    KEPT: "asked for by class and selectors, but cannot be allocated now",
}

MAX_KIND = 3
MAX_CLAIMS = 6
MAX_TAINTS = 6
MAX_PODS = 2


class Mark(NamedTuple):
    """What a device means to the claims: one of ``MARKS``, the requests that could use it, a sentence for each."""

    kind: str
    requests: tuple[int, ...]
    sentences: tuple[str, ...]


class Cell(NamedTuple):
    """One device of a line, or ``each`` devices that look alike on each of its nodes.

    ``facts`` are pairs of label and text, in order; ``common`` are those that hold for each of several devices.
    ``used`` is the largest used fraction of a capacity, from 0 to 1, or None if the device is not shared.
    """

    label: str
    state: str
    each: int
    driver: str
    classes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    used: float | None
    mark: Mark | None
    common: tuple[tuple[str, str], ...] = ()


class CellLook(NamedTuple):
    """What makes devices look alike: everything in the picture except their names and holders."""

    kind: str
    driver: str
    state: str
    classes: tuple[str, ...]
    reason: str
    taints: tuple[str, ...]
    twentieths: int
    mark: str
    requests: tuple[int, ...]


def cell_of(row: DeviceRow, mark: Mark | None) -> Cell:
    """The cell of one device."""
    return Cell(
        label=row.id.device,
        state=row.state,
        each=1,
        driver=row.id.driver,
        classes=row.classes,
        facts=tuple(_facts(row, mark)),
        used=_used(row),
        mark=mark,
    )


def look_of(row: DeviceRow, mark: Mark | None) -> CellLook:
    """The looks of a device."""
    used = _used(row)
    of_node = isinstance(row.reason, NodeMissing | SeenByNoNode)
    return CellLook(
        kind=_kind(row),
        driver=row.id.driver,
        state=row.state,
        classes=row.classes,
        # Of held, shared and blocked devices it tells amounts and names, which differ from node to node.
        reason=written(row.reason) if (row.also_unusable or row.state is DeviceState.UNUSABLE) and not of_node else "",
        taints=tuple(sorted({str(taint) for taint in row.taints})),
        twentieths=-1 if used is None else round(used * 20),
        mark=mark.kind if mark else "",
        requests=mark.requests if mark else (),
    )


def cell_of_alike(look: CellLook, rows: Sequence[DeviceRow], first: Mark | None, nodes: int) -> Cell:
    """The cell of devices that look alike on ``nodes`` equal nodes; ``first`` is the mark of the first of them."""
    total = len(rows)
    number = f"{total:,}: {names_of_devices([row.id.device for row in rows], MAX_CLAIMS)}"
    if nodes > 1:
        number = f"{total // nodes:,} on each of {nodes:,} nodes, {total:,} in all"
    kinds = Counter([look.kind] if look.kind else map(_kind, rows))
    state = ("State", f"{look.state}{': ' if look.reason else ''}{look.reason}")
    used = (
        [("Used", f"about {look.twentieths * 5} % of the capacity that is used most")] if look.twentieths >= 0 else []
    )
    classes = ("Classes", ", ".join(look.classes) or "none")
    facts = [("Devices", number), ("Driver", look.driver)]
    if any(kinds):
        facts.append(("Kind", listed([kind or "unknown" for kind, _ in kinds.most_common(MAX_KIND)], len(kinds))))
    facts.append(state)
    claims = {claim.key: claim for row in rows for claim in row.holders}
    if claims:
        shown = [claim_words(claim, MAX_PODS) for claim in list(claims.values())[:MAX_CLAIMS]]
        facts.append(("Held by", f"{amount(len(claims), 'claim')}: {listed(shown, len(claims))}"))
    taints = Counter(str(taint) for row in rows for taint in row.taints)
    facts += used
    if taints:
        facts.append(("Taints", listed([taint for taint, _ in taints.most_common(MAX_TAINTS)], len(taints))))
    facts.append(classes)
    if first is not None:
        facts += [("Claims", f"{sentence} (as on the first of them)") for sentence in first.sentences]
    # What the looks say of each of them; less detailed looks say less.
    kind = [("Kind", look.kind)] if look.kind else []
    common = (*kind, state, *used, *([("Taints", ", ".join(look.taints))] if look.taints else []), classes)
    return Cell(
        label=look.kind.partition(",")[0] or look.driver,
        state=look.state,
        each=total // nodes,
        driver=look.driver,
        classes=look.classes,
        facts=tuple(facts),
        used=None if look.twentieths < 0 else look.twentieths / 20,
        mark=first,
        common=common,
    )


def _facts(row: DeviceRow, mark: Mark | None) -> Iterator[tuple[str, str]]:
    yield "Device", str(row.id)
    kind = _kind(row)
    if kind:
        yield "Kind", kind
    yield "State", f"{state_of(row)}{': ' if row.reason else ''}{written(row.reason)}"
    if row.holders:
        shown = [holder_words(row, claim) for claim in row.holders[:MAX_CLAIMS]]
        yield ("Shares" if row.state is DeviceState.SHARED else "Held by"), listed(shown, len(row.holders))
    elif row.state is DeviceState.HELD:
        yield "Held by", "a claim that was not read"
    capacity = list(_capacity(row))
    if capacity:
        yield "Capacity", ", ".join(capacity)
    for consumption in row.device.consumes_counters:
        amounts = ", ".join(f"{name} {amount}" for name, amount in consumption.counters.items())
        yield "Partition", f"takes {amounts} of counter set {consumption.counter_set}"
    if row.taints:
        taints = taints_of(row)
        yield ("Taints" if row.state is not DeviceState.TAINTED or len(taints) > 1 else "Taint"), ", ".join(taints)
    yield "Classes", ", ".join(row.classes) or "none"
    for sentence in mark.sentences if mark else ():
        yield "Claims", sentence


def _kind(row: DeviceRow) -> str:
    """The few attributes that identify the kind of device, without those that differ from device to device."""
    own = [column.name for column in row.slice.individual.columns] if row.slice.individual else ()
    names = identifying(name for name in row.device.attributes if name not in own)[:MAX_KIND]
    return ", ".join(plain(row.device.attributes[name]) for name in names)


def product_of(row: DeviceRow) -> str:
    """The first of the attributes that identify the kind of device; empty where it has none of them."""
    return _kind(row).partition(",")[0]


def _used(row: DeviceRow) -> float | None:
    """The largest used fraction of a capacity."""
    if not row.device.allow_multiple_allocations:
        return None
    return row.used_part


def _capacity(row: DeviceRow) -> Iterator[str]:
    for name, quantity in row.device.capacity.items():
        value = quantity.get("value", "0")
        if row.device.allow_multiple_allocations:
            yield f"{name} {row.consumed.get(name, 0)} of {value} used"
        else:
            yield f"{name} {value}"


def holder_words(row: DeviceRow, claim: ResourceClaim) -> str:
    """A claim with its consumers and, for a shared device, the capacity of its shares."""
    results = (result for result in claim.results if result.device == row.id and row.device.allow_multiple_allocations)
    shares = [shares_of(result) for result in results if result.consumed_capacity]
    return claim_words(claim, MAX_PODS) + (f" takes {', '.join(shares)}" if shares else "")


def counted(states: Mapping[str, int]) -> str:
    """States with their numbers: ``3 held, 1 free``."""
    return ", ".join(f"{number:,} {state}" for state, number in states.items())


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
            kind = _mark_kind(line.stage)
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


def _mark_kind(stage: str) -> str:
    if stage == USABLE:
        return FITS
    return PASSED_OVER if stage in _SELECTING else KEPT


def _sentence(funnel: Funnel, stage: str, reason: Words) -> str:
    if stage == USABLE:
        return f"request {funnel.request}: it would do"
    what = _SELECTING.get(stage, f"asked for, but cannot be allocated ({stage})")
    more = f": {written(reason)}" if reason and not isinstance(reason, SelectorFalse) else ""
    return f"request {funnel.request}: {what}{more}"
