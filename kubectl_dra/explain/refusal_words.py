"""The words of a refusal: why a driver refuses a claim, and what ends that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kubectl_dra.drivers.refused_claims import GateLacking, OfSeveralPods, Refusal
from kubectl_dra.explain.phrase import ObjectName, Phrase, Words, by_key, nodes_named, say

if TYPE_CHECKING:
    from kubectl_dra.data.driver_releases import DriverGate


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


def mending(reason: Refusal, pod: ObjectName) -> Words:
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
