"""What to do about a driver that is broken on a node: in words, and the command that changes something for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubectl_dra.command import CommandEffect, CommandLine, kubectl
from kubectl_dra.drivers.health import DriverState, LeftOut, NodeDriver
from kubectl_dra.explain.diagnosis import Remedy
from kubectl_dra.explain.driver_words import TURN_ON, maker_of_pods
from kubectl_dra.explain.ending_taints import ending_taints
from kubectl_dra.explain.phrase import ObjectName, Words, nodes_named, say


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
