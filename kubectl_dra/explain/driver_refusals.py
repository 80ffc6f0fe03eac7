"""Notes about claims that the scheduler allocates, or would, and that their driver refuses to prepare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.api.claims import ALL, ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.drivers.refused_claims import (
    PartOfNode,
    any_of_whole_nodes,
    driver_of_whole_nodes,
    for_one_pod,
    parts_of_node,
    published_on,
)
from kubectl_dra.explain.analysis import Analysis, Outlook
from kubectl_dra.explain.diagnosis import NodeDevices, RefusedOn
from kubectl_dra.explain.phrase import ObjectName, Phrase, named, say


def driver_refusals(analysis: Analysis, places: Sequence[NodeDevices]) -> Iterator[Phrase]:
    """What drivers are known to refuse of the pod's claims; ``places``: what these get on nodes that fit."""
    for verb, part in _parts(analysis, places):
        yield part_refused(part, verb)
    if analysis.pod is not None:
        yield from _of_several_pods(analysis, analysis.pod)


def refused_on(analysis: Analysis, places: Sequence[NodeDevices]) -> Iterator[RefusedOn]:
    """The nodes that fit, as far as a driver refuses there what a pod's claims get."""
    several = next(_of_several_pods(analysis, analysis.pod), None) if analysis.pod is not None else None
    if several is not None:
        yield from (RefusedOn(name, several) for name in analysis.takers)
        return
    for place in places:
        for part in _gets(analysis, place)[:1]:
            yield RefusedOn(place.node, part_refused(part))


def part_refused(part: PartOfNode, verb: str = "gets") -> Phrase:
    """What becomes of a claim for a part of a node."""
    text = (
        "driver {driver} gives a claim all devices of a node or none: it refuses claim {claim}, which {verb} {got} of "
        "the {of} of {node}; allocationMode All asks for all"
    )
    words = {"driver": part.driver, "claim": part.claim, "verb": verb, "got": part.got, "of": part.of}
    return say(text, node=ObjectName("Node", part.node), **words)


def _parts(analysis: Analysis, places: Sequence[NodeDevices]) -> Iterator[tuple[str, PartOfNode]]:
    """Parts of a node that claims have where the pod is; else that they get on the first such node, or ask for."""
    index, pod = analysis.view.cycle.index, analysis.pod
    if pod is not None and pod.node_name:
        held = [(claim.key, device) for claim in analysis.allocated for device in claim.devices]
        for part in parts_of_node(held, pod.node_name, index.candidates(pod.node_name)):
            yield "has", part
        return
    for place in places:
        if parts := _gets(analysis, place):
            for part in parts:
                yield "gets", part
            return
    if analysis.outlook is Outlook.FAILS:
        for claim in analysis.claims:
            for part in _asked_for(analysis, claim):
                yield "asks for", part
                break


def _gets(analysis: Analysis, place: NodeDevices) -> list[PartOfNode]:
    """The parts of a node that claims would get there."""
    gets = [(each.claim, each.device) for each in place.devices]
    return list(parts_of_node(gets, place.node, analysis.view.cycle.index.candidates(place.node)))


def _asked_for(analysis: Analysis, claim: ResourceClaim) -> Iterator[PartOfNode]:
    """The nodes on which the claim asks for a part; nothing if there is one where it asks for all."""
    specs = [request.exactly for request in claim.requests]
    published = {slice_.pool.driver for slice_ in analysis.view.cycle.index.slices}
    if not any_of_whole_nodes(published) or any(spec is None or spec.allocation_mode == ALL for spec in specs):
        return
    count = sum(spec.count for spec in specs if spec is not None)
    drivers = {driver_of_whole_nodes(spec.device_class) for spec in specs if spec is not None}
    if len(drivers) != 1 or not (driver := drivers.pop()):
        return
    index = analysis.view.cycle.index
    there = {node.name: published_on(node.name, driver, index.candidates(node.name)) for node in analysis.view.nodes}
    if count not in there.values():
        for node, devices in there.items():
            if devices > count:
                yield PartOfNode(claim.key, driver, node, count, devices)


def _of_several_pods(analysis: Analysis, pod: Pod) -> Iterator[Phrase]:
    """A claim that other pods use, of a driver that refuses this."""
    for claim in analysis.allocated:
        driver = for_one_pod(device.driver for device in claim.devices)
        space = claim.metadata.namespace
        others = [
            f"{space}/{use.name}"
            for use in claim.reserved_for
            if use.resource == "pods" and use.uid != pod.metadata.uid
        ]
        if driver and others:
            text = (
                "driver {driver} gives the devices of a claim to one pod only: it refuses claim {claim}, which pod "
                "{others:some 2} uses, too; a template makes a claim for each pod"
            )
            yield say(text, driver=driver, claim=named("ResourceClaim", claim), others=others)
