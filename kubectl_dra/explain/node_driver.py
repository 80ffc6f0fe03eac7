"""The driver that the kubelet of a node calls for a pod: which one a message is about, how it is, what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.time_read import parse
from kubectl_dra.data.messages import ANY, KUBELET, understood
from kubectl_dra.drivers.concerns import ConcernKind, concerns_of
from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.drivers.health import DriverState
from kubectl_dra.drivers.refused_claims import gate_named
from kubectl_dra.explain.causes.on_node import containers_ended
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.driver_refusals import without_gate
from kubectl_dra.explain.driver_words import advice, concern_words, look_at_driver, pod_named, why
from kubectl_dra.explain.phrase import ObjectName, Subject, Words, say, subject

if TYPE_CHECKING:
    from kubectl_dra.drivers.health import NodeDriver


def on_node(snapshot: Snapshot, drivers: Sequence[str], node: str) -> tuple[NodeDriver, ...]:
    """Rows of these drivers on a node, as far as their pods were found; worst first."""
    rows = joined(snapshot).rows
    return tuple(row for row in rows if row.node == node and row.driver in drivers)


def _changed(remedy: Remedy | None, change: Words, *, in_claim: bool) -> Remedy | None:
    """The remedy with another text, which its commands do not follow."""
    if not change or (remedy is not None and remedy.change == change):
        return remedy
    return replace(remedy or Remedy(change), change=change, commands=(), in_claim=in_claim)


def with_driver(
    finding: Finding, rows: Sequence[NodeDriver], drivers: Sequence[str], message: str, snapshot: Snapshot
) -> Finding:
    """A finding with what a message means, what to do about it, and the log of the driver that says it."""
    known, gate = understood(message, drivers), gate_named(message, drivers)
    off = without_gate(gate) if gate is not None else None
    change: Words = finding.remedy.change if finding.remedy is not None else ""
    facts = list(finding.evidence)
    # Of these the cause itself says more.
    broken = next((row for row in rows if row.state.broken and row.state not in _SAID), None)
    if known is not None and not known.entry.generic:
        change = advice(known)
        who: Words | Subject = "the kubelet"
        if known.entry.says not in ((KUBELET,), (ANY,)):
            who = Subject("driver", ", ".join(drivers))
        facts.insert(0, Evidence(who, "means", known.means))
    elif off is not None:
        change = off
    facts += odd(snapshot, rows)
    if broken is not None:
        about = Subject("Pod", pod_named(broken.pod)) if broken.pod is not None else Subject("driver", broken.driver)
        facts.insert(0, Evidence(about, say("driver {driver}", driver=broken.driver), why(broken)))
        if known is None or known.entry.says == (KUBELET,):
            text = "Repair driver {driver} on node {node}: {why}."
            change = say(text, driver=broken.driver, node=broken.node, why=why(broken))
    known_by = (row for row in rows if row.pod is not None or row.daemon is not None)
    looked = broken or next(known_by, None)
    return replace(
        finding,
        evidence=tuple(facts),
        remedy=_changed(finding.remedy, change, in_claim=change is off),
        next=look_at_driver(looked) if looked is not None else finding.next,
    )


_SAID: Final = (
    *(DriverState.GONE, DriverState.NOT_REGISTERED, DriverState.NOT_ANSWERING),
    DriverState.PREPARE_FAILING,
)


def other_root(snapshot: Snapshot, drivers: Sequence[str], node: str) -> Iterator[Evidence]:
    """Evidence that a driver registers in another folder than the node's other plugins: the kubelet has only one."""
    yield from odd(snapshot, on_node(snapshot, drivers, node), (ConcernKind.OTHER_ROOT,))


_ODD: Final = (ConcernKind.OLDER, ConcernKind.OTHER_VERSION, ConcernKind.PLUGIN_TOO, ConcernKind.RESTARTED)


def odd(snapshot: Snapshot, rows: Sequence[NodeDriver], kinds: Sequence[ConcernKind] = _ODD) -> Iterator[Evidence]:
    """What else is odd about these drivers on their nodes and may explain a failure."""
    # What is usual is so among all nodes.
    concerns = concerns_of(snapshot, joined(snapshot).rows) if rows else {}
    for row in rows:
        for concern in concerns.get((row.driver, row.node), ()):
            if concern.kind in kinds:
                where = say("on {node}", node=ObjectName("Node", row.node))
                yield Evidence(Subject("driver", row.driver), where, concern_words(concern, row.driver, row.node))


def with_meaning(finding: Finding, message: str, claims: Sequence[ResourceClaim]) -> Finding:
    """A finding with what the container runtime's or kubelet's message means, if it is known."""
    drivers = {device.driver for claim in claims for device in claim.devices}
    known = understood(message, drivers)
    if known is None or known.entry.generic:
        return finding
    fact = Evidence("the message", "means", known.means)
    return replace(finding, evidence=(fact, *finding.evidence), remedy=Remedy(advice(known)))


BEGAN: Final = timedelta(minutes=10)
"""A node that goes down within this time after a pod was placed there may do so because of the pod's claims."""


def configured(finding: Finding, pod: Pod, claims: Sequence[ResourceClaim], away: str) -> Finding:
    """Finding that a node is down since ``away``, with the configurations that its driver was just given, if it was."""
    kinds: list[tuple[ResourceClaim, str, str]] = []
    for claim in claims:
        for config in claim.config:
            opaque = config.get("opaque") or {}
            parameters = opaque.get("parameters")
            if isinstance(parameters, dict):
                kinds.append((claim, str(opaque.get("driver")), str(parameters.get("kind") or "parameters")))
    placed, down = parse(pod.condition("PodScheduled").last_transition_time), parse(away)
    if not kinds or placed is None or down is None or not timedelta() <= down - placed <= BEGAN:
        return finding
    claim, driver, kind = kinds[0]
    text = "{summary}; that began {seconds:second} after it was placed there with a {kind} for {driver}"
    seconds = int((down - placed).total_seconds())
    change = (
        "Bring node {node} back. If it goes down again with this claim, leave {kind} out of claim {claim}: read the "
        "log of driver {driver} and of the kubelet there first."
    )
    words: dict[str, Words] = {"kind": kind, "driver": driver, "node": pod.node_name, "claim": claim.key}
    summary = say(text, summary=finding.summary, seconds=seconds, **words)
    fact = Evidence(subject("ResourceClaim", claim), "configures", say("{driver}: {kind}", **words))
    return replace(finding, summary=summary, evidence=(fact, *finding.evidence), remedy=Remedy(say(change, **words)))


def without_driver(pod: Pod, snapshot: Snapshot, devices: Sequence[DeviceID]) -> tuple[NodeDriver, Words] | None:
    """The driver that is missing on the node of a pod that ends, and what to say of it; None if all are there.

    The kubelet lets a pod end only after the driver of each of its claims has released the devices. A pod with
    finalizers waits for others as well.
    """
    if pod.metadata.finalizers:
        return None
    drivers = sorted({device.driver for device in devices})
    # Where nobody saw a driver's pod anywhere, that none is on this node says little while a container may run.
    seen = (snapshot.has_plugins or containers_ended(pod)) and not snapshot.is_gap("Pod")
    for row in on_node(snapshot, drivers, pod.node_name):
        if row.pod is None and row.state in _UNSEEN and seen:
            plugins = (other for other in snapshot.pods.values() if other.plugin is not None)
            if not any(other.node_name == row.node and not other.finished for other in plugins):
                return row, say("no pod on node {node} looks like a driver's", node=row.node)
        elif row.state.broken and row.state in _AWAY:
            return row, why(row)
    return None


_UNSEEN: Final = (
    *(DriverState.UNKNOWN, DriverState.INCOMPLETE),
    *(DriverState.NOT_REGISTERED, DriverState.NOT_ANSWERING),
)
"""States of a driver whose pod was not found."""
_AWAY: Final = (DriverState.CRASHING, DriverState.NOT_STARTING, DriverState.NO_POD)
