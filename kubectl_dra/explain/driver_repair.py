"""What to do about a driver that is broken on a node, and about taints: in words, and the commands for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from kubectl_dra.api.nodes import Node
from kubectl_dra.command import CommandEffect, CommandLine, deleting, kubectl, uncordon
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.drivers.health import DriverState, LeftOut, NodeDriver
from kubectl_dra.explain.diagnosis import Evidence, Remedy
from kubectl_dra.explain.driver_words import TURN_ON, maker_of_pods
from kubectl_dra.explain.node_reasons import NodeCordoned
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, Words, nodes_named, say


def remedy(row: NodeDriver, mends: Mapping[str, Remedy]) -> Remedy | None:
    """What ends the state of a driver on a node, or the taints of its devices where nothing else is wrong.

    ``mends`` is what ends the failures of drivers to prepare devices, where the reason is known. None: the answer about
    the pod that waits for the driver has more, or there is nothing to end.
    """
    if row.state is DriverState.PREPARE_FAILING and row.driver in mends:
        return mends[row.driver]
    if row.ails:
        # Where a pod waits for the driver, its own answer has more, but why the driver is away.
        commands = labelling(row)
        return Remedy(repair(row), commands=commands) if row.failing is None or commands else None
    if row.tainted:
        rules = sorted({taint.rule for taint in row.taints if taint.rule})
        return ending_taints(rules, {(row.driver, taint.key) for taint in row.taints})
    return None


def repair(row: NodeDriver) -> Words:
    """What to do about a driver of a node, which is broken there."""
    if row.pod is None and row.left_out is not None:
        return say("{how:capital}.", how=wanted_again(row, row.left_out))
    words: dict[str, object] = {"driver": row.driver, "node": ObjectName("Node", row.node)}
    if row.state is DriverState.NODE_DOWN:
        gone = "Remove what is left of node {node}: its pods and ResourceSlices."
        return say(gone if row.node_gone else "Bring node {node} back.", **words)
    if row.state is DriverState.PART_OFF:
        return say(TURN_ON, part="the GPU part of NVIDIA's driver")
    if row.wanted_by:
        on = say(" on {nodes:some 3}", nodes=nodes_named(row.hardware)) if row.hardware else ""
        return say("Install driver {driver}{on}, or see why it runs on no node.", on=on, **words)
    if not row.node:
        labels = row.daemon.labels if row.daemon is not None else ()
        text = "Give the nodes with its hardware label {labels:some 3}, by which {maker} selects nodes."
        if not labels:
            text = "See why {maker} has no pod."
        return say(text, labels=list(labels), maker=maker_of_pods(row))
    if (how := _HOW.get(row.state)) is None:
        return say("Repair driver {driver} on node {node}.", **words)
    find = "find its pod there, and " if row.pod is None and row.state in _OF_LOG else ""
    return say("Repair driver {driver} on node {node}: {find}{how}.", find=find, how=how, **words)


_OF_LOG: Final = (DriverState.SILENT, DriverState.FEWER, DriverState.INCOMPLETE)
"""States that the log of a pod explains which may not have been recognized."""
_HOW: Final = {
    DriverState.CRASHING: "read in its log why it ended",
    DriverState.NOT_STARTING: "see at its pod why that does not start",
    DriverState.NO_POD: "see why it has no pod there",
    DriverState.GONE: "start it, and its ResourceSlices come back",
    DriverState.SILENT: "read in its log why it publishes no devices",
    DriverState.FEWER: "read in its log why it publishes fewer devices",
    DriverState.INCOMPLETE: "read in its log why slices of the pool are missing",
    DriverState.NOT_READY: "read in its log why it is not ready",
}


def wanted_again(row: NodeDriver, why: LeftOut) -> Words:
    """What makes the DaemonSet of a driver want a pod on a node again that it leaves out, as a part of a sentence."""
    if why.labels:
        text = "give node {node} label {labels:some 3}, by which {maker} selects nodes"
    elif why.taint:
        text = "make the pods of {maker} tolerate taint {taint} of node {node}, or take the taint away"
    else:
        text = "change the node affinity of {maker}, which does not match node {node}, or the labels of the node"
    node = ObjectName("Node", row.node)
    return say(text, node=node, labels=why.labels, taint=why.taint, maker=maker_of_pods(row))


def labelling(row: NodeDriver) -> tuple[CommandLine, ...]:
    """The command that gives a node the labels by which the driver's DaemonSet selects nodes; none if it lacks none."""
    if row.pod is not None or row.left_out is None or not row.left_out.labels:
        return ()
    labels = row.left_out.labels
    return (kubectl("label", "node", row.node, *labels, others=(row.node,), effect=CommandEffect.WRITES),)


# Signs that a vendor's driver is installed without the part that publishes the requested devices.

_OFF = "The GPU part of NVIDIA's driver is off"


class TurnOn(NamedTuple):
    """What shows that a part is off, how to turn it on, and the nodes that have its devices."""

    evidence: tuple[Evidence, ...]
    fix: Words
    nodes: tuple[str, ...] = ()


def turn_on(wanted: str, nodes: Iterable[Node], drivers: Collection[str]) -> TurnOn | None:
    """Advice to turn on the driver's part that is off; None if none is: see ``part_off``."""
    from kubectl_dra.drivers.hardware import NVIDIA, part_off

    off = part_off(wanted, nodes, drivers)
    if off is None:
        return None
    evidence: list[Evidence] = []
    if off.nodes:
        about = say("nodes {have:some}", have=nodes_named(off.nodes))
        field = f"label {off.label} or allocatable {off.resource}"
        evidence.append(Evidence(about, field, f"they have GPUs, and no ResourceSlice of {NVIDIA}"))
    if off.other:
        text = "its other part runs, so the driver is installed"
        evidence.append(Evidence(Subject("driver", off.other), "publishes ResourceSlices", text))
    missing = "" if off.other else ", or the driver is not installed"
    fix = say("{off}{missing}. {turn_on}", off=_OFF, missing=missing, turn_on=say(TURN_ON, part="it"))
    return TurnOn(tuple(evidence), fix, off.nodes)


# What gives devices back to new pods: the end of taints, by rules or by their driver, or of a node's cordon.

MAX_COMMANDS: Final = 3


def ending_taints(rules: Sequence[str], own: Collection[tuple[str, str]] = ()) -> Remedy:
    """What takes the taints of these DeviceTaintRules from devices; without a rule those that drivers set: ``own`` has
    driver and key of each.
    """
    if rules:
        deleted = tuple(deleting("devicetaintrule", rule) for rule in rules[:MAX_COMMANDS])
        text = "Delete {rules} as soon as the devices may be used again."
        return Remedy(say(text, rules=rules_named(rules)), commands=deleted)
    passing = {driver.passing_taints.get(key) for name, key in own if (driver := catalogue().driver(name)) is not None}
    if len(passing) == 1 and (known := passing.pop()):
        return Remedy(known)
    unknown = sorted({key for name, key in own if not _says_a_fault(name, key)})
    if unknown:
        return Remedy(
            say(
                "Repair or reset the device if {taints:some} {count:says|say} that it is broken. Its driver set the "
                "taint and removes it when the reason is over; some drivers do so only when they are restarted.",
                taints=unknown,
                count=len(unknown),
            )
        )
    # Such a taint says that the device is unfit: tolerating it is no way out to offer.
    return Remedy(
        "Repair or reset the device. Its driver set the taint and removes it once the device is healthy; some drivers "
        "do so only when they are restarted."
    )


def _says_a_fault(driver: str, key: str) -> bool:
    """Whether the catalogue knows the taint of the driver, and as a fault."""
    known = catalogue().driver(driver)
    patterns = [pattern for pattern in known.taints if pattern not in known.passing_taints] if known is not None else []
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def rules_named(rules: Sequence[str]) -> Phrase:
    """The rules by name."""
    return say("{kind} {rules:some}", kind="DeviceTaintRule" if len(rules) == 1 else "DeviceTaintRules", rules=rules)


def uncordoning(node: str) -> Remedy:
    """The end of a node's cordon."""
    return Remedy(say("{what:capital}.", what=NodeCordoned.ended_on((node,))), commands=(uncordon(node),))
