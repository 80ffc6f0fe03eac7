"""What drivers refuse of claims that the scheduler allocates, or would: why, in words, and what ends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubectl_dra.api.claims import ALL, ResourceClaim
from kubectl_dra.api.pods import Pod, owner_of
from kubectl_dra.cluster.claim_relation import claims_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import deleting
from kubectl_dra.data.messages import understood
from kubectl_dra.drivers.health import DriverState, NodeDriver
from kubectl_dra.drivers.refused_claims import (
    GateLacking,
    OfSeveralPods,
    PartOfNode,
    Refusal,
    any_of_whole_nodes,
    driver_of_whole_nodes,
    gate_named,
    gate_off,
    gates_needed,
    published_on,
    refusals,
)
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.analysis import Analysis, Outlook
from kubectl_dra.explain.diagnosis import Diagnosis, Evidence, Finding, NodeDevices, Remedy
from kubectl_dra.explain.driver_words import advice
from kubectl_dra.explain.not_starting import NotStarting
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, Words, by_key, named, nodes_named, say

if TYPE_CHECKING:
    from kubectl_dra.data.driver_releases import DriverGate


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


def refused(refusals: Sequence[Refusal], verb: str = "gets") -> Phrase:
    """Why a driver refuses a claim: the first of these, with the nodes of all that are like it."""
    first = refusals[0]
    claim = by_key("ResourceClaim", first.claim)
    if isinstance(first, OfSeveralPods):
        text = (
            "driver {driver} gives the devices of a claim to one pod only: it refuses claim {claim}, which pod "
            "{others:some 2} uses, too; a template makes a claim for each pod"
        )
        return say(text, driver=first.driver, claim=claim, others=first.others)
    if isinstance(first, GateLacking):
        nodes = dict.fromkeys(refusal.node for refusal in refusals if _sort(refusal) == _sort(first))
        text = (
            "driver {driver} has gate {gate} off on {nodes:some 2}, and claim {claim} needs it ({needing}{of_class}): "
            "its driver refuses the claim; install it with featureGates.{gate}=true"
        )
        words = {"driver": first.driver, "claim": first.claim, "needing": first.needing, "gate": first.gate.name}
        of_class = say(" of DeviceClass {name}", name=first.device_class) if first.device_class else ""
        return say(text, nodes=nodes_named(nodes), of_class=of_class, **words)
    text = (
        "driver {driver} gives a claim all devices of a node or none: it refuses claim {claim}, which {verb} {got} of "
        "the {of} of {node}; allocationMode All asks for all"
    )
    words = {"driver": first.driver, "claim": first.claim, "verb": verb}
    return say(text, node=ObjectName("Node", first.node), got=first.got, of=first.of, **words)


def each_sort(refusals: Sequence[Refusal]) -> Iterator[list[Refusal]]:
    """The refusals of one sort and claim together."""
    sorts: dict[object, list[Refusal]] = {}
    for refusal in refusals:
        sorts.setdefault((_sort(refusal), refusal.claim), []).append(refusal)
    yield from sorts.values()


def _mending(reason: Refusal, pod: ObjectName) -> Words:
    """What ends a refusal. Specs of claims and templates that exist cannot be changed."""
    if isinstance(reason, GateLacking):
        return without_gate(reason.gate, reason.device_class)
    words = {"driver": reason.driver, "claim": reason.claim}
    if isinstance(reason, OfSeveralPods):
        text = (
            "Use a template, which makes a claim for each pod: driver {driver} gives the devices of a claim to one pod "
            "only, and claim {claim} is used by pod {others:some 2}, too."
        )
        return say(text, others=reason.others, **words)
    text = (
        "Ask for all devices of a node (allocationMode All) in a new claim or template, or delete pod {pod}: driver "
        "{driver} gives a claim all devices of a node or none, and claim {claim} has {got} of the {of} of {node}."
    )
    return say(text, pod=pod, node=ObjectName("Node", reason.node), got=reason.got, of=reason.of, **words)


def without_gate(gate: DriverGate, device_class: str = "") -> Words:
    """What ends a driver's refusal for want of a gate, which the configuration of a claim or its class needs."""
    text = "Install the driver with the Helm value featureGates.{gate}=true, or {other} without {does} in its config."
    other: Words = "make a new claim or template"
    if device_class:
        other = say("ask in a new claim or template for another class than {name},", name=device_class)
    return say(text, gate=gate.name, does=gate.does, other=other)


def _sort(refusal: Refusal) -> tuple[object, ...]:
    return type(refusal), refusal.driver, refusal.gate.name if isinstance(refusal, GateLacking) else ""


def remedy_of(pod: Pod, claims: Sequence[ResourceClaim], drivers: Sequence[str], snapshot: Snapshot) -> Remedy | None:
    """What ends the first refusal of one of these drivers of what a pod's claims have on its node, if one is known.

    The devices of a pod that nobody creates again end with it.
    """
    reasons = refusals(claims, pod.node_name, snapshot, snapshot.slices, pod)
    reason = next((reason for reason in reasons if reason.driver in drivers), None)
    if reason is None:
        return None
    alone = isinstance(reason, PartOfNode) and owner_of(pod) is None
    ends = (deleting("pod", pod.metadata.name, pod.metadata.namespace),) if alone else ()
    return Remedy(_mending(reason, named("Pod", pod)), commands=ends, in_claim=True)


def mendings(rows: Iterable[NodeDriver], snapshot: Snapshot) -> Mapping[str, Remedy]:
    """By driver: what ends its failure to prepare the devices of a pod on a node, where the reason is known."""
    out: dict[str, Remedy] = {}
    for row in rows:
        call = row.failing
        pod = snapshot.pods.get((call.namespace, call.pod)) if call is not None else None
        if pod is None or call is None or row.state is not DriverState.PREPARE_FAILING:
            continue
        if remedy := remedy_of(pod, claims_of(pod, snapshot), (row.driver,), snapshot):
            out[row.driver] = remedy
        elif gate := gate_named(call.said, (row.driver,)):
            out[row.driver] = Remedy(without_gate(gate), in_claim=True)
        elif (known := understood(call.said, (row.driver,))) is not None and row.driver in known.entry.says:
            out[row.driver] = Remedy(say("{means} {advice}", means=known.means, advice=advice(known)))
    return out


def not_starting_there(where: Iterable[NotStarting], refusals: Sequence[Refusal]) -> dict[str, Words]:
    """By node, why pods, or this one, do not start there."""
    whys: dict[str, Words] = {}
    for sort in each_sort(refusals):
        for refusal in sort:
            whys.setdefault(refusal.node, refused(sort))
    return {**whys, **{node.node: node.why for node in where}}


def judged_by_start(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis of what can be scheduled, with the verdict that a pod does not start with it, or may not.

    It is undetermined where the scheduler may as well take a node on which it starts.
    """
    bad = not_starting_there(diagnosis.not_starting, diagnosis.refused)
    chosen = diagnosis.choice
    fitting = chosen.nodes if chosen is not None and chosen.certain else diagnosis.fitting
    there = [name for name in fitting if name in bad]
    if diagnosis.verdict is not Verdict.SCHEDULABLE or not there:
        return diagnosis
    if len(there) == len(fitting):
        # The answer says the first.
        said = [refused(sort) for sort in islice(each_sort(diagnosis.refused), 1)]
        notes = tuple(note for note in diagnosis.notes if note not in said)
        return replace(diagnosis, verdict=Verdict.NOT_STARTING, notes=notes)
    if diagnosis.kind != "pod":
        return diagnosis
    text = "it fits on {nodes:some 3}, and the scheduler may take {bad:some 2}, where it does not start: {why}"
    unclear = say(text, nodes=nodes_named(fitting), bad=nodes_named(there), why=bad[there[0]])
    notes = tuple(note for note in diagnosis.notes if note != bad[there[0]])
    return replace(diagnosis, verdict=Verdict.UNDETERMINED, unclear=(unclear,), notes=notes)


def with_gate(analysis: Analysis, finding: Finding) -> Finding:
    """The finding that nothing matches a class; where that is because a gate of its driver is off, it says so."""
    from kubectl_dra.data.drivers import catalogue

    names = {located.funnel.device_class.name for located in analysis.funnels if located.funnel.name == finding.request}
    for name in names:
        driver = catalogue().of_class(name)
        for gate in driver.gates if driver is not None else ():
            if name not in gate.classes or driver is None:
                continue
            off = gate_off(analysis.snapshot, driver.name, gate)
            if off:
                nodes = nodes_named([row.node for row in off])
                text = (
                    "Install the driver with the Helm value featureGates.{gate}=true: without it {title} publishes no "
                    "such devices{instead}."
                )
                instead: Words = say(". Or {instead}", instead=gate.instead) if gate.instead else ""
                fact = Evidence(
                    Subject("driver", driver.name),
                    say("feature gate {gate}", gate=gate.name),
                    say("off on {nodes:some 2} ({does})", nodes=nodes, does=gate.does),
                )
                remedy = Remedy(say(text, gate=gate.name, title=driver.title, instead=instead))
                return replace(finding, evidence=(fact, *finding.evidence), remedy=remedy)
    return finding
