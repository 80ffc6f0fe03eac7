"""Why a driver refuses to prepare what a pod has, where that is known beside its own error; and what ends that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod, owner_of
from kubectl_dra.cluster.claim_relation import claims_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import deleting
from kubectl_dra.drivers.health import DriverState, NodeDriver
from kubectl_dra.drivers.refused_claims import PartOfNode, parts_of_node
from kubectl_dra.explain.diagnosis import Remedy
from kubectl_dra.explain.gates_needed import GateNeeded, gate_named, gates_needed, without_gate
from kubectl_dra.explain.phrase import ObjectName, Words, say


def refusal(
    pod: Pod, claims: Sequence[ResourceClaim], drivers: Sequence[str], snapshot: Snapshot
) -> PartOfNode | GateNeeded | None:
    """The first reason why one of these drivers refuses what a pod's claims have on its node; None if none is known."""
    held = [(claim.key, device) for claim in claims for device in claim.devices]
    reasons: list[PartOfNode | GateNeeded] = [*parts_of_node(held, pod.node_name, snapshot.slices)]
    needed = (gate for claim in claims for gate in gates_needed(claim))
    reasons += (gate for gate in needed if gate.off_on(pod.node_name, snapshot))
    return next((reason for reason in reasons if reason.driver in drivers), None)


def remedy_of(pod: Pod, claims: Sequence[ResourceClaim], drivers: Sequence[str], snapshot: Snapshot) -> Remedy | None:
    """What ends a refusal, if its reason is known; the devices of a pod that nobody creates again end with it."""
    reason = refusal(pod, claims, drivers, snapshot)
    if reason is None:
        return None
    alone = isinstance(reason, PartOfNode) and owner_of(pod) is None
    ends = (deleting("pod", pod.metadata.name, pod.metadata.namespace),) if alone else ()
    return Remedy(mending(reason, pod), commands=ends, in_claim=True)


def mending(reason: PartOfNode | GateNeeded, pod: Pod) -> Words:
    """What ends a refusal. Specs of claims and templates that exist cannot be changed."""
    if isinstance(reason, GateNeeded):
        return without_gate(reason.gate)
    text = (
        "Ask for all devices of a node (allocationMode All) in a new claim or template, or delete pod {pod}: driver "
        "{driver} gives a claim all devices of a node or none, and claim {claim} has {got} of the {of} of {node}."
    )
    words = {"driver": reason.driver, "claim": reason.claim, "got": reason.got, "of": reason.of}
    named = ObjectName("Pod", pod.metadata.name, pod.metadata.namespace)
    return say(text, pod=named, node=ObjectName("Node", reason.node), **words)


def mendings(rows: Iterable[NodeDriver], snapshot: Snapshot) -> Mapping[str, Words]:
    """By driver: what ends its failure to prepare the devices of a pod on a node, where the reason is known."""
    return dict(_mendings(rows, snapshot))


def _mendings(rows: Iterable[NodeDriver], snapshot: Snapshot) -> Iterator[tuple[str, Words]]:
    for row in rows:
        call = row.failing
        pod = snapshot.pods.get((call.namespace, call.pod)) if call is not None else None
        if pod is None or call is None or row.state is not DriverState.PREPARE_FAILING:
            continue
        if reason := refusal(pod, claims_of(pod, snapshot), (row.driver,), snapshot):
            yield row.driver, mending(reason, pod)
        elif gate := gate_named(call.said, (row.driver,)):
            yield row.driver, without_gate(gate)
