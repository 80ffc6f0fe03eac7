"""Sentences about a driver on a node: its state there, and where to look next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_dra.api.behaviour import ALLOCATED_TWICE
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import CommandLine
from kubectl_dra.data.messages import Understood
from kubectl_dra.drivers.concerns import Concern, ConcernKind, devices_given_twice
from kubectl_dra.drivers.health import DriverPod, DriverState, FailingCall, LeftOut, NodeDriver
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.phrase import ObjectName, Subject, Words, known_defect, nodes_named, say, with_since

TURN_ON: Final = (
    "Turn {part} on with the Helm value resources.gpus.enabled=true, and with gpuResourcesEnabledOverride=true where "
    "the chart asks for it. The device plugin must not run on those nodes."
)
"""Advice to switch on the ``part`` of NVIDIA's driver that publishes GPUs: for all nodes of the installation."""
MAX_NOTES: Final = 3
MAX_WORDS: Final = 300
"""Of a container's last words, of which the last line says most."""


def why(row: NodeDriver, *, naming: bool = True) -> Words:
    """Why a driver is in its state on a node, ``naming`` its pod or not; empty where it is healthy."""
    if row.state is DriverState.NO_POD:
        return _no_pod(row)
    if row.node_gone:
        return say("there is no node {node} any more", node=row.node)
    if row.wanted_by:
        return _wanted(row)
    if row.state is DriverState.LEFT_OUT and row.left_out is not None:
        return _left_out(row, row.left_out)
    if row.state is DriverState.UNKNOWN and not row.pods_read:
        return "pods were not read"
    pod = say("pod {pod}", pod=pod_named(row.pod)) if naming else "its pod"
    if row.pod is not None and row.state in _OF_POD:
        return _of_pod(row.pod, row.state, pod, say(" of {pod}", pod=pod) if naming else "")
    return say(
        _TEXTS[row.state],
        pod=pod,
        devices=row.devices,
        usual=row.usual,
        slices=row.slices,
        likes=nodes_named(row.likes),
        pool=row.incomplete,
        **(_failing(row, row.failing) if row.failing is not None else {}),
        beside=_beside(row),
        node=row.node,
        in_use=row.in_use,
    )


def _failing(row: NodeDriver, call: FailingCall) -> dict[str, object]:
    """The parts of a sentence about how the kubelet's calls of a driver fail."""
    absent = row.pod is None and row.left_out is not None
    return {
        "waiting": ObjectName("Pod", call.pod, call.namespace),
        "others": say(" and {count} more", count=call.others) if call.others else "",
        "do": "do" if call.others else "does",
        "times": say(" ({count:time})", count=call.times) if call.times > 1 else "",
        "said": call.said.rstrip(" .\n"),
        "absent": say("; {why}", why=_left_out(row, row.left_out)) if absent and row.left_out is not None else "",
    }


def at_fault(row: NodeDriver) -> Words:
    """What is wrong with a driver of a node, as a sentence that names the driver."""
    if row.wanted_by and row.state is not DriverState.PART_OFF:
        return say(_NOWHERE[row.pods_read], driver=say("driver {driver}", driver=row.driver))
    words: dict[str, object] = {"driver": row.driver, "pod": pod_named(row.pod), "devices": row.devices}
    words |= {"beside": _beside(row), "pool": row.incomplete}
    return say(_AT_FAULT.get(row.state, "driver {driver}: {why}"), why=why(row), **words)


def starts_none(row: NodeDriver, *, elsewhere: bool = False) -> Words:
    """Why pods with devices of a driver do not start on a node, as a sentence that names the driver or the node.

    ``elsewhere``: it is on that node so, and nobody has seen the one that is meant.
    """
    if row.state is DriverState.NODE_DOWN:
        return why(row)
    text = _STARTS_NONE[row.state]
    if not elsewhere:
        return say(text, driver=row.driver)
    text = text.removesuffix(" there") + " on {node}, and a new node is taken to be no better"
    return say(text, driver=row.driver, node=ObjectName("Node", row.node))


_STARTS_NONE: Final = {
    DriverState.CRASHING: "driver {driver} crashes there",
    DriverState.NOT_STARTING: "driver {driver} does not start there",
    DriverState.NO_POD: "driver {driver} has no pod there",
    DriverState.NOT_REGISTERED: "driver {driver} is not registered",
    DriverState.NOT_ANSWERING: "driver {driver} does not answer",
    DriverState.PREPARE_FAILING: "driver {driver} cannot prepare its devices",
}
_AT_FAULT: Final = {
    DriverState.CRASHING: "driver {driver} does not run: {why}",
    DriverState.NOT_STARTING: "driver {driver} does not start: {why}",
    DriverState.NO_POD: "driver {driver} does not run here: {why}",
    DriverState.LEFT_OUT: "driver {driver} does not run here: {why}",
    DriverState.GONE: "driver {driver} is gone: {why}",
    DriverState.PART_OFF: "driver {driver} publishes nothing: {why}",
    DriverState.SILENT: "driver {driver} publishes no devices, though pod {pod} runs{beside}",
    DriverState.FEWER: "driver {driver} publishes only {devices:device}{beside}",
    DriverState.INCOMPLETE: "driver {driver} has published {pool.found} of {pool.expected} slices of pool {pool.pool}, "
    "so nothing of it is given out",
    DriverState.NOT_READY: "driver {driver} is not ready, though pod {pod} runs",
}
_OF_POD: Final = (DriverState.CRASHING, DriverState.NOT_STARTING)
_TEXTS: Final = {
    DriverState.GONE: "it publishes nothing any more and has no pod there, though claims hold {in_use:device} of it",
    DriverState.NOT_REGISTERED: "the kubelet says that it is not registered, so pod {waiting}{others} {do} not start"
    "{absent}",
    DriverState.NOT_ANSWERING: "the kubelet gets no answer of it, so pod {waiting}{others} {do} not start{absent}",
    DriverState.PREPARE_FAILING: "it cannot prepare the devices of pod {waiting}{others}{times}: {said}",
    DriverState.SILENT: "{pod} runs and publishes no devices{beside}",
    DriverState.FEWER: "it publishes {devices:device}{beside}",
    DriverState.INCOMPLETE: "the pool is incomplete: {pool.found} of {pool.expected} slices, so nothing of it is "
    "given out",
    DriverState.NOT_READY: "{pod} runs and is not ready",
    DriverState.NODE_DOWN: "node {node} is not ready",
    DriverState.ENDING: "{pod} is being deleted",
    DriverState.STARTING: "{pod} is starting",
    DriverState.IDLE: "it publishes no devices; nothing says that the node has any",
    DriverState.UNKNOWN: "no pod was recognized as the driver's",
    DriverState.HEALTHY: "",
}


def _wanted(row: NodeDriver) -> Words:
    """Words for a driver that publishes nothing anywhere, though its devices are wanted."""
    words = {"classes": row.wanted_by, "claims": row.claims, "other": row.other_part}
    waits = say("; {claims:claim} {claims:waits|wait} for it", **words) if row.claims else ""
    if row.state is DriverState.PART_OFF:
        text = "its GPU part is off: the node has GPUs, and only {other} publishes{waits}"
        return say(text, waits=waits, **words)
    text = "{nowhere}, and DeviceClass {classes:some 2} wants it{waits}{there}"
    nowhere = say(_NOWHERE[row.pods_read], driver="it")
    there = say("; its hardware is on {nodes:some 3}", nodes=nodes_named(row.hardware)) if row.hardware else ""
    return say(text, nowhere=nowhere, waits=waits, there=there, **words)


_NOWHERE: Final = {
    True: "no node has a ResourceSlice or a pod of {driver}",
    False: "no node has a ResourceSlice of {driver}",
}
"""That a driver runs nowhere, by whether pods were read."""


def pod_named(pod: DriverPod | None) -> ObjectName | str:
    """The name of a driver's pod."""
    return ObjectName("Pod", pod.name, pod.namespace) if pod is not None else ""


def _beside(row: NodeDriver) -> Words:
    if not row.usual:
        return ""
    text = "; on {likes:some 2} {usual:device}{each}"
    return say(text, likes=nodes_named(row.likes), usual=row.usual, each=" each" if row.likes[1:] else "")


def _of_pod(pod: DriverPod, state: DriverState, named: Words, of_it: Words) -> Words:
    reason, message = pod.waiting
    container = say("{kind} {name}", kind="init container" if pod.init else "container", name=pod.container)
    words = {"container": container, "of_it": of_it, "reason": reason}
    if state is DriverState.CRASHING:
        text = "{container}{of_it} crashes ({how}, {restarts:restart}){said}"
        code = pod.last.exit_code if pod.last is not None else 0
        how = reason or (say("exit code {code}", code=code) if code else "not ready")
        return say(text, **words, how=how, restarts=pod.restarts, said=_last_words(pod))
    if reason in ("", "ContainerCreating", "PodInitializing"):
        if pod.init:
            return say("{container}{of_it} has been running since {since}", **words, since=pod.since)
        return say("{pod} has not started since {since}", pod=named, since=pod.since)
    said = say(", {message}", message=last_line(message)) if message else ""
    return say("{container}{of_it} cannot start: {reason}{said}", **words, said=said)


def _last_words(pod: DriverPod) -> Words:
    text = last_line(pod.last.message) if pod.last is not None else ""
    return say('; last message: "{text}"', text=text) if text else ""


def last_line(text: str) -> str:
    """The last line of a text that says something, cut to a readable length."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:MAX_WORDS] if lines else ""


def _no_pod(row: NodeDriver) -> Words:
    daemon = row.daemon
    slices_left = say("; its {slices:ResourceSlice} {slices:is|are} left over", slices=row.slices) if row.slices else ""
    if daemon is None:
        return say("no pod of it is on the node{left}", left=slices_left)
    name = maker_of_pods(row)
    if row.left_out is not None:
        return say("{why}{left}", why=_left_out(row, row.left_out), left=slices_left)
    if daemon.labels:
        text = "{name} selects no node: none has label {labels}{left}"
        return say(text, name=name, labels=list(daemon.labels), left=slices_left)
    if daemon.failure:
        return say("{name} cannot make its pod: {said}{left}", name=name, said=daemon.failure, left=slices_left)
    return say("{name} has no pod on the node{left}", name=name, left=slices_left)


def _left_out(row: NodeDriver, why: LeftOut) -> Words:
    """Why the DaemonSet of a driver wants no pod on a node that has its hardware."""
    name = maker_of_pods(row)
    if why.taint:
        return say("{name} does not tolerate taint {taint} of the node", name=name, taint=why.taint)
    if why.labels:
        text = "{name} asks for label {labels:some 3}, which node {node} does not have"
        return say(text, name=name, labels=why.labels, node=ObjectName("Node", row.node))
    return say("the node affinity of {name} does not match the node", name=name)


def maker_of_pods(row: NodeDriver) -> Words:
    """The DaemonSet of a driver, by its name if that is known."""
    daemon = row.daemon
    if daemon is None:
        return "its DaemonSet"
    return Subject(daemon.kind, ObjectName(daemon.kind, daemon.name, daemon.namespace))


def tainted_words(row: NodeDriver) -> Words:
    """Number of a driver's devices on a node that taints keep from new claims, and the taints; empty for none."""
    if not row.tainted:
        return ""
    text = "{count:device} {count:is|are} tainted: {taints}"
    return say(text, count=row.tainted, taints=[with_since(taint) for taint in row.taints])


def next_look(row: NodeDriver) -> NextStep:
    """What shows why a driver is in its state."""
    if row.failing is not None:
        return NextStep(Look.EXPLAIN_POD, row.failing.pod, row.failing.namespace)
    if row.waiting_pod is not None and row.state is not DriverState.PART_OFF:
        # What keeps it may be another one's work: an autoscaler's, an operator's.
        space, name = row.waiting_pod
        return NextStep(Look.EXPLAIN_POD, name, space)
    return look_at_driver(row)


def look_at_driver(row: NodeDriver) -> NextStep:
    """What shows how a driver is: its pod, what makes its pods, or the node."""
    pod, daemon = row.pod, row.daemon
    if row.state is DriverState.NODE_DOWN:
        return NextStep(Look.ONE_NODE, row.node)
    if pod is None:
        if daemon is not None:
            return NextStep(Look.DAEMON_SET, daemon.name, daemon.namespace, daemon.kind.lower())
        there = row.state in (DriverState.INCOMPLETE, DriverState.UNKNOWN)
        return NextStep(Look.PODS_ON_NODE, row.node) if there else NextStep(Look.DAEMON_SETS)
    if row.state is DriverState.CRASHING:
        return NextStep(Look.LOG_BEFORE, pod.name, pod.namespace, pod.container)
    waits = row.state is DriverState.NOT_STARTING and not (pod.init and not pod.waiting[0])
    return NextStep(Look.POD if waits else Look.LOG, pod.name, pod.namespace, pod.container)


def concern_words(concern: Concern, driver: str, node: str) -> Words:
    """What is odd about a driver on a node, and what follows."""
    first, second, third = (*concern.values, "", "", "")[:3]
    said = (
        say('; last message: "{text}"', text=last_line(third))
        if third and concern.kind is ConcernKind.RESTARTED
        else ""
    )
    words = {"first": first, "second": second, "third": third, "driver": driver, "node": node, "said": said}
    return say(_CONCERNS[concern.kind], **words)


_CONCERNS: Final = {
    ConcernKind.OTHER_ROOT: "it announces itself below {first}, and pod {second} of the same node below {third}; the "
    "kubelet looks below one of them only (Helm value for the kubelet's directory)",
    ConcernKind.OLDER: "it has run since before pod {first} was made ({second}), which it needs; restart its pod",
    ConcernKind.OTHER_VERSION: "it is {first} here and {second} on most nodes; a state file of the one may stop the "
    "other",
    ConcernKind.PLUGIN_TOO: "a device plugin offers {second} {first} on {node}, too: the same device may be handed out "
    "twice; let only one of them serve the node",
    ConcernKind.IN_USE: "{first} of its devices are in use and not published; it publishes what is free",
    ConcernKind.RESTARTED: "its container ended at {first} ({second}) and was started again{said}; pods that it "
    "prepared before may have lost what it kept in memory",
    ConcernKind.TWICE: "device {first} is allocated to claim {second} and to claim {third}",
}


def twice_notes(snapshot: Snapshot) -> Iterator[Words]:
    """Devices that two claims have though only one can, and the defect behind it."""
    for device, claims in list(devices_given_twice(snapshot.claims.values()).items())[:MAX_NOTES]:
        text = "device {device} is allocated to claims {claims:some 3}, and only one can have it ({reference})"
        yield say(text, device=device, claims=[claim.key for claim in claims], reference=ALLOCATED_TWICE.reference)


def driver_notes(snapshot: Snapshot) -> Iterator[Words]:
    """The worst driver of a cluster whose pods were read, and how many more are broken."""
    if not snapshot.has_plugins:
        return
    from kubectl_dra.drivers.drivers_on_nodes import joined

    broken = joined(snapshot).broken()
    if broken:
        first = broken[0]
        text = "driver {driver}{where}: {state}{more}"
        where = say(" on node {node}", node=ObjectName("Node", first.node)) if first.node else ""
        more = say(", and {count} more {count:is|are} broken", count=len(broken) - 1) if broken[1:] else ""
        command = CommandLine(("kubectl", "dra", "drivers"))
        yield say(text, driver=first.driver, where=where, state=first.state, more=more, command=command)


def advice(known: Understood) -> Words:
    """What to do about a message, and the defect behind it."""
    if not known.url:
        return known.do
    return say("{do} This is {defect}.", do=known.do, defect=known_defect(known.url, known.entry.fixed))
