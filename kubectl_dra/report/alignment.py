"""Where the devices of pods are, as a table; of one pod each device, and what would align them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubectl_dra.allocation.constraints import Values
from kubectl_dra.api.pods import Pod
from kubectl_dra.command import ClusterFlags, CommandLine, kubectl
from kubectl_dra.report.blocks import Answer, Block, Items, Para, Section, TableBlock, Tone, prose, shell
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.color import Painter
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import device_json, key_json, object_json
from kubectl_dra.report.phrases import names_of_devices, written
from kubectl_dra.report.remedy_json import unread_json
from kubectl_dra.report.table import EMPTY
from kubectl_dra.text import amount, either, some
from kubectl_dra.usage.alignment import (
    Aligned,
    Alignment,
    Alignments,
    DevicePlace,
    NotAlignable,
    PodAlignment,
    Topology,
    Way,
)

_STYLES: Final = {Alignment.APART: "red", Alignment.SPREAD: "yellow", Alignment.UNKNOWN: "yellow"}
_HEADINGS: Final = {
    Topology.SOCKET: "SOCKET",
    Topology.NUMA: "NUMA",
    Topology.L3_CACHE: "L3-CACHE",
    Topology.PCIE_ROOT: "PCIE-ROOT",
}
_ON: Final = {
    Topology.SOCKET: "on one socket",
    Topology.NUMA: "on one NUMA node",
    Topology.L3_CACHE: "at one L3 cache",
    Topology.PCIE_ROOT: "under one PCIe root",
}
_IN: Final = {
    Topology.SOCKET: "on sockets",
    Topology.NUMA: "on NUMA nodes",
    Topology.L3_CACHE: "at L3 caches",
    Topology.PCIE_ROOT: "under PCIe roots",
}
_CPU_DRIVERS: Final = ("dra.cpu", "dra.memory")


def _no_devices(out: Painter, pods: Sequence[Pod], where: ClusterFlags) -> None:
    """Write that pods have no devices, and the command that says why the first has none."""
    names = [pod.metadata.key for pod in pods]
    has = "has no device" if len(names) == 1 else "have no devices"
    out.sentence(f"{'Pod' if len(names) == 1 else 'Pods'} {some(names, 3)} {has}.")
    first = pods[0].metadata
    why = CommandLine(("kubectl", "dra", "explain", f"pod/{first.name}", "-n", first.namespace))
    write_blocks(out, [shell((why,), where, "Next")])


def write_alignments(
    alignments: Alignments,
    ways: Sequence[Way],
    color: str = "auto",
    *,
    where: ClusterFlags,
    limit: int | None = None,
    named: Sequence[str] = (),
) -> None:
    """Write the table of pods, at most ``limit`` rows; of a single pod its devices, and what would align them.

    ``named``: only these pods were asked about.
    """
    out = Painter(color=color)
    if len(alignments.pods) == 1:
        write_blocks(out, pod_blocks(alignments.pods[0], ways))
        return
    single = f" ({amount(alignments.single, 'pod')} with a single device)" if alignments.single else ""
    if not alignments.pods:
        if named and alignments.none and not alignments.unread and not alignments.single:
            _no_devices(out, alignments.none, where)
            return
        read = " in what was read" if alignments.unread else ""
        who = f"No pod named {either(named)}" if named else "No pod"
        out.sentence(f"{who} has two devices or more{read}{single}.")
        return
    counts = ", ".join(f"{count:,} {state}" for state, count in alignments.counts.items())
    out.sentence(f"{amount(len(alignments.pods), 'pod')} with two devices or more: {counts}{single}")
    out.write("")
    kinds = [kind for kind in Topology if any(kind in item.topologies for item in alignments.pods)]
    header = ("NAMESPACE", "POD", "NODE", "ALIGNMENT", *(_HEADINGS[kind] for kind in kinds), "DEVICES")
    shown = alignments.pods[:limit]
    rows = [header, *(_row(item, kinds) for item in shown)]
    marks = [(item.alignment.value, _STYLES.get(item.alignment, "")) for item in shown]
    hidden = len(alignments.pods) - len(shown)
    below = ("DEVICES", *(_HEADINGS[kind] for kind in reversed(kinds)), "NODE")
    write_blocks(out, [TableBlock(rows, below, False, "ALIGNMENT", marks, hidden, "leave --limit out")])
    worst = alignments.pods[0]
    if worst.split:
        meta = worst.pod.metadata
        following = kubectl("dra", "claims", "--alignment", kind="pod", name=meta.name, namespace=meta.namespace)
        write_blocks(out, [shell((following,), where, "Next")])


def _row(item: PodAlignment, kinds: Sequence[Topology]) -> tuple[str, ...]:
    meta = item.pod.metadata
    devices = names_of_devices([place.device.device for place in item.places], 3)
    places = [some(_sorted(_all(item, kind)), 2) or EMPTY for kind in kinds]
    return meta.namespace, meta.name, item.pod.node_name or EMPTY, item.alignment, *places, devices


def _sorted(values: Values) -> list[str]:
    return [str(value) for _, value in sorted(values, key=str)]


def _all(item: PodAlignment, kind: Topology) -> Values:
    """Every place in which some device of the pod is."""
    return frozenset[tuple[str, Any]]().union(*(place.at(kind) for place in item.places))


def pod_blocks(item: PodAlignment, ways: Sequence[Way]) -> Iterator[Block]:
    """A pod: how its devices are aligned, each with its place, and what would align them."""
    yield _headline(item)
    header = ("DRIVER", "DEVICE", "CLAIM", "REQUEST", *(_HEADINGS[kind] for kind in item.topologies))
    rows = [header, *(_device(place, item.topologies) for place in item.places)]
    yield Section("Devices", (TableBlock(rows, ("CLAIM", "REQUEST"), amid=True),))
    proved = tuple(tuple(_offer(way)) for way in ways if isinstance(way, Aligned) and way.node)
    if proved:
        each = "each by itself " if len(proved) > 1 else ""
        title = f"Fixes, proved {each}by running the scheduler's steps with them"
        yield Section(title, (Items(proved),))
    others = [text for way in ways if (text := _no_offer(way))]
    notes = tuple((prose(note, hang=0),) for note in (*others, *_notes(item)))
    if notes:
        yield Section("Notes", (Items(notes),))


def _headline(item: PodAlignment) -> Answer:
    who = f"Pod {item.pod.key}" + (f" on {item.pod.node_name}" if item.pod.node_name else "")
    drivers = len({place.device.driver for place in item.places})
    what = f"its {len(item.places):,} devices" + (f" of {drivers} drivers" if drivers > 1 else "")
    state = item.alignment
    if state is Alignment.UNKNOWN:
        return Answer(f"{who}: no two of {what} publish where they are", "", Tone.WARNING)
    if state is Alignment.ALIGNED:
        both = " and ".join(_ON[kind] for kind in item.topologies if item.state(kind) is Alignment.ALIGNED)
        return Answer(f"{who} is aligned: {what} are {both}", "", Tone.GOOD)
    places = [f"{_IN[kind]} {some(_sorted(_all(item, kind)), 4)}" for kind in item.split]
    reason = f"{what} are {' and '.join(places)}"
    if state is Alignment.SPREAD:
        requests = {(place.claim, place.request) for place in item.places}
        every = ", in each of them devices of every request" if len(requests) > 1 else ""
        return Answer(f"{who} is spread", f"{reason}{every}", Tone.WARNING)
    return Answer(f"{who} is not aligned", reason, Tone.BAD)


def _device(place: DevicePlace, kinds: Sequence[Topology]) -> tuple[str, ...]:
    device = place.device
    cells = (",".join(_sorted(place.at(kind))) or EMPTY for kind in kinds)
    claim = place.claim.rpartition("/")[2]
    return device.driver, device.device, claim, place.request or EMPTY, *cells


def _offer(way: Aligned) -> Iterator[Para]:
    requests_alike = way.requests[0]
    requests = some([name for names in way.requests for name in names] if not way.pairs else requests_alike, 6)
    if way.merged:
        names = [key.rpartition("/")[2] for key in way.merged]
        start = f"Put the requests of claims {' and '.join(names)} into one claim (a constraint reaches no other), with"
    else:
        start = "Add to the claim"
    split = ""
    if way.pairs:
        split = f", each request written as {len(way.requests)} of count 1 ({requests} are the first pair)"
    got = names_of_devices([device.device for device in way.devices], 4)
    together = f"{_ON[way.topology]}{' in pairs' if way.pairs else ''}"
    text = f"{start} the constraint below{split}: then a pod like this one gets {got} on {way.node}, {together}."
    yield prose(text, hang=0)
    yield prose(f"constraints: {_flow(way.constraints)}", hang=2)


def _flow(value: Any) -> str:
    """YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return str(value)


def _no_offer(way: Way) -> str:
    if isinstance(way, NotAlignable):
        if way.claims:
            names = some([key.rpartition("/")[2] for key in way.claims])
            return f"Other pods use {names} as well, so nothing is proposed: their devices stay where they are."
        if way.names:
            terms = " and ".join(f"{_cel(name)} == VALUE" for name in way.names)
            return (
                f"No constraint can compare {' with '.join(way.names)}: it compares one name, which all devices have "
                f"to publish. Select the same value in each request instead: {terms}."
            )
        return "One claim for all of it would have more than 32 requests or constraints."
    if way.node:
        return ""
    tried = f"With matchAttribute {way.attribute} over {some(way.requests[0], 6)}"
    if way.refused:
        return f"{tried} a pod like this one fits on no node, as devices are held now."
    return f"Whether a pod like this one fits {tried[:1].lower()}{tried[1:]} could not be determined."


def _cel(name: str) -> str:
    domain, _, identifier = name.partition("/")
    return f'device.attributes["{domain}"].{identifier}'


def _notes(item: PodAlignment) -> Iterator[str]:
    unpublished = [place.device.device for place in item.places if not place.published]
    if unpublished:
        yield f"{some(unpublished)}: no slice has {'it' if len(unpublished) == 1 else 'them'} any more."
    silent = [place.device.device for place in item.silent if place.published]
    if silent and len(silent) < len(item.places):
        yield f"{some(silent)}: the driver publishes no NUMA node or PCIe root."
    if not any(place.device.driver in _CPU_DRIVERS for place in item.places):
        yield (
            "CPU and memory are not seen: the kubelet chooses them, and claims give its topology manager no hints. The "
            "drivers dra.cpu and dra.memory publish them as devices."
        )


# As JSON or YAML, in the shape of ``schemas/alignment.json``.


def to_json(alignments: Alignments, ways: Sequence[Way]) -> dict[str, Any]:
    """An AlignmentList; ``ways`` are those of its only pod."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "AlignmentList",
        "summary": {
            "pods": len(alignments.pods),
            "single": alignments.single,
            "states": {state.name.lower(): count for state, count in alignments.counts.items()},
        },
        "items": [_pod(item, ways if len(alignments.pods) == 1 else ()) for item in alignments.pods],
        "notes": [written(note) for note in alignments.unread],
        "unread": unread_json(alignments.unread),
    }


def _pod(item: PodAlignment, ways: Sequence[Way]) -> dict[str, Any]:
    meta = item.pod.metadata
    return {
        **object_json(meta.namespace, meta.name),
        "alignment": item.alignment.name.lower(),
        "topologies": {kind.name.lower(): item.state(kind).name.lower() for kind in item.topologies},
        "devices": [*map(_place, item.places)],
        **filled(node=item.pod.node_name, ways=[*map(_way, ways)]),
    }


def _place(place: DevicePlace) -> dict[str, Any]:
    values = {name: _scalar(attribute) for name, attribute in sorted(place.attributes.items())}
    return {
        "claim": key_json(place.claim),
        "request": place.request,
        **device_json(place.device),
        "published": place.published,
        "attributes": json.loads(json.dumps(values, default=str)),
    }


def _scalar(values: Values) -> object:
    """The value, or a list where there are several, as in the list of devices."""
    told = sorted((value for _, value in values), key=str)
    return told[0] if len(told) == 1 else told


def _way(way: Way) -> dict[str, Any]:
    if isinstance(way, NotAlignable):
        return {"possible": None, "sharedClaims": [*way.claims], "attributeNames": [*way.names]}
    return {
        "possible": True if way.node else False if way.refused else None,
        "topology": way.topology.name.lower(),
        "mergedClaims": [key.rpartition("/")[2] for key in way.merged],
        "singleRequests": way.pairs,
        "constraints": way.constraints,
        **({"node": way.node, "devices": [*map(device_json, way.devices)]} if way.node else {}),
    }
