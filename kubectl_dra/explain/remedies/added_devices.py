"""Which devices to add, and where: the fewest of one kind, proved with devices that do not exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any

from msgspec.structs import replace

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import Device, NodeScope, PoolID, ResourceSlice
from kubectl_dra.cel.columns import Column
from kubectl_dra.explain.diagnosis import Way
from kubectl_dra.explain.funnel.blocked import Located
from kubectl_dra.explain.funnel.observed_values import value_of
from kubectl_dra.explain.phrase import Phrase, Subject, say
from kubectl_dra.explain.remedies.prove import Proof, Tries, World
from kubectl_dra.explain.remedies.satisfying_device import satisfying
from kubectl_dra.explain.remedies.selector_values import distinct
from kubectl_dra.explain.scene.view import View

MAX_KINDS = 8
MAX_BASES = 1000
MAX_NODES = 8
MAX_SEEN = 2000
MAX_ADDED = 16
TRIES = 100
POOL = "kubectl-dra-what-if"


def devices_to_add(view: View, world: World, funnels: Sequence[Located]) -> Way | None:
    """The smallest number of equal devices on one node with which the claims fit; None if none was found."""
    tries = Tries(TRIES)
    short = [located for located in funnels if located.funnel.blocking_stage() is not None] or list(funnels)
    for kind, located in _kinds(view, short):
        for node, count in _places(view, located, kind.driver):
            added = [replace(kind, name=f"{POOL}-{index}") for index in range(count)]
            view.supposed.extend(added)
            if not tries.left:
                return None
            tries.left -= 1
            proof = world.proof_with_slice(_slice(kind, node, added), node)
            if proof is not None:
                text = "add {count:device} to node {node}: {device}"
                change = say(text, count=count, node=node.name, device=_describe(view, kind, funnels))
                return Way((change,), Proof(proof.node))
    return None


def _kinds(view: View, funnels: Sequence[Located]) -> Iterator[tuple[Device, Located]]:
    """Devices that a request would accept, each kind once: published kinds first, else made-up ones."""
    seen: set[object] = set()
    for located in funnels:
        for selected in _selected(view, located):
            device = _bare(selected)
            key = (located.request_index, device.driver, repr(_said(view, device, funnels)))
            if key in seen:
                continue
            if len(seen) == MAX_KINDS:
                return
            seen.add(key)
            yield device, located
    if seen:
        return
    for located in funnels:
        funnel = located.funnel
        made = satisfying(
            view.cycle.selectors,
            (*funnel.device_class.selectors, *funnel.spec.selectors),
            _some_devices(view, located),
        )
        if made is not None:
            yield _bare(made), located


def _selected(view: View, located: Located) -> list[Device]:
    """The different devices, anywhere, that match a request's selectors and those of its class."""
    funnel = located.funnel
    left = [item.device for item in view.kinds]
    for expression in (*funnel.device_class.selectors, *funnel.spec.selectors):
        if not expression or not left:
            return []
        verdicts = view.cycle.selectors.verdicts(expression, left)
        left = [device for device, verdict in zip(left, verdicts, strict=True) if verdict is True]
    return left


def _some_devices(view: View, located: Located) -> list[Device]:
    """Different devices; of very many, the first that each stage of the funnel rejects."""
    if len(view.kinds) <= MAX_BASES:
        return [item.device for item in view.kinds]
    stages = located.funnel.stages
    few = MAX_BASES // len(stages)
    return distinct(item.device for stage in reversed(stages) for item in stage.failed[:few])


def _places(view: View, located: Located, driver: str) -> Iterator[tuple[Node, int]]:
    """Nodes with the number of devices that they lack: nodes of the driver first, then those that lack fewest."""
    lacking = nsmallest(
        MAX_NODES,
        (
            (all(item.id.driver != driver for item in view.on_node(node.name)), _lack(located, node), index)
            for index, node in enumerate(view.nodes[:MAX_SEEN])
        ),
    )
    for count in range(1, MAX_ADDED + 1):
        for _, lack, index in lacking:
            if lack <= count <= lack + 3:
                yield view.nodes[index], count


def _lack(located: Located, node: Node) -> int:
    funnel = located.funnel
    return max(1, funnel.needed_on(node.name) - len(funnel.usable_on(node.name)))


def _bare(device: Device) -> Device:
    """The same kind of device, free and healthy."""
    return replace(device, taints=(), consumes_counters=(), scope=NodeScope(), binds_to_node=False)


def _slice(kind: Device, node: Node, devices: Sequence[Device]) -> ResourceSlice:
    return ResourceSlice(
        name=POOL,
        driver=kind.driver,
        pool=PoolID(kind.driver, f"{POOL}-{node.name}"),
        generation=1,
        slice_count=1,
        scope=NodeScope(node_name=node.name),
        per_device_node_selection=None,
        shared_counters=(),
        devices=tuple(devices),
    )


def _describe(view: View, device: Device, funnels: Sequence[Located]) -> Phrase:
    read = _said(view, device, funnels)
    return say("{parts}", parts=[Subject(name, value) for name, value in (("driver", device.driver), *read.items())])


def _said(view: View, device: Device, funnels: Sequence[Located]) -> Mapping[str, Any]:
    """What the claims' selectors, constraints and capacity requests read from a device."""
    columns: set[Column] = set()
    out: dict[str, Any] = {}
    for located in funnels:
        funnel = located.funnel
        for expression in (*funnel.device_class.selectors, *funnel.spec.selectors):
            for term in view.cycle.selectors.terms(expression or ""):
                columns.update(column for column in term.columns or () if column.id)
        for constraint in located.claim.constraints:
            name = constraint.match_attribute or constraint.distinct_attribute
            domain, _, identifier = name.partition("/")
            columns.add(Column("attribute", domain, identifier))
        for name in funnel.spec.capacity or ():
            raw = device.capacity.get(name)
            if raw is not None:
                out[name] = raw.get("value")
    for column in sorted(columns, key=lambda entry: (entry.kind, entry.domain or "", entry.id or "")):
        value = value_of(device, column)
        if value is not None:
            out[column.id or ""] = value
    return out
