"""Claims that the scheduler allocates, or would, and that their driver refuses to prepare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.api.claims import ALL, ResourceClaim
from kubectl_dra.drivers.refused_claims import (
    GateLacking,
    PartOfNode,
    Refusal,
    any_of_whole_nodes,
    driver_of_whole_nodes,
    gate_off,
    gates_needed,
    published_on,
    refusals,
)
from kubectl_dra.explain.analysis import Analysis, Outlook
from kubectl_dra.explain.diagnosis import NodeDevices
from kubectl_dra.explain.phrase import Phrase
from kubectl_dra.explain.refusal_words import each_sort, refused


def refused_on(analysis: Analysis, places: Sequence[NodeDevices]) -> Iterator[Refusal]:
    """What drivers refuse of the claims on the nodes that fit; ``places``: what these get there."""
    own = {claim.key for claim in analysis.claims}
    gets = {place.node: [claim for claim in place.claims if claim.key in own] for place in places}
    gets = gets or {name: [] for name in analysis.takers}
    for name, new in gets.items():
        yield from _refusals(analysis, [*analysis.allocated, *new], name)


def driver_refusals(analysis: Analysis, refused_there: Sequence[Refusal], *, tried: bool) -> Iterator[Phrase]:
    """What drivers are known to refuse: where the pod is, on nodes that fit, else of what it asks for.

    ``tried``: nodes were tried.
    """
    pod = analysis.pod
    verb, found = "gets", list(refused_there)
    if pod is not None and pod.node_name:
        verb, found = "has", list(_refusals(analysis, analysis.allocated, pod.node_name))
    elif not found and not (tried and analysis.outlook is Outlook.FITS):
        verb, found = "asks for", [*_asked_gates(analysis)]
        if tried and analysis.outlook is Outlook.FAILS:
            found += next(filter(None, (list(_asked_for(analysis, claim))[:1] for claim in analysis.claims)), [])
    for sort in each_sort(found):
        yield refused(sort, verb)


def _refusals(analysis: Analysis, claims: Sequence[ResourceClaim], node: str) -> Iterator[Refusal]:
    slices = analysis.view.cycle.index.candidates(node)
    yield from refusals(claims, node, analysis.snapshot, slices, analysis.pod)


def _asked_gates(analysis: Analysis) -> Iterator[GateLacking]:
    """Gates that the configurations need and that are off on every node."""
    if not analysis.snapshot.has_plugins:
        return
    for claim in (*analysis.allocated, *analysis.claims):
        for needed in gates_needed(claim, analysis.snapshot.classes):
            for row in gate_off(analysis.snapshot, needed.driver, needed.gate):
                yield GateLacking(claim.key, needed.driver, row.node, needed.gate, needed.needing, needed.device_class)


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
