"""The sentences of ``fit``: the answer, what stops the next pod, and what each change brings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from kubectl_dra.api.pods import owner_of
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.command import CommandLine, deleting
from kubectl_dra.explain.diagnosis import Verdict
from kubectl_dra.explain.remedies.room import EndPods
from kubectl_dra.explain.unread import Unread
from kubectl_dra.fit.place import PlacedPod, evicted
from kubectl_dra.fit.pod_factory import Denied
from kubectl_dra.fit.result import ClusterChange, More, NodesNeeded, OneMoreNode, WorkloadFit
from kubectl_dra.report.explain_words import making, reason
from kubectl_dra.report.phrases import written
from kubectl_dra.text import amount, some


def headline(found: WorkloadFit) -> str:
    """The answer in one sentence."""
    if found.unclear:
        return f"{found.workload.title}: undetermined: {written(found.unclear[0])}.{_by_devices(found)}"
    return f"{_count(found)}{_beside(found)}."


def _by_devices(found: WorkloadFit) -> str:
    """What the devices alone say where no nodes were read."""
    why = found.unclear[0]
    if not isinstance(why, Unread) or why.gap.kind != "Node" or not found.placed_pods:
        return ""
    whose = "Its" if found.workload.name else "Their"
    if found.as_many:
        return f" {whose} devices alone would fit {amount(found.fitting, found.workload.unit)}."
    return f" {whose} devices alone would fit {found.fitting:,} of {amount(found.replicas, found.workload.unit)}."


def _count(found: WorkloadFit) -> str:
    workload, title = found.workload, found.workload.title
    unit, size = workload.unit, workload.size
    # Bare pods have no name in common: "Pods of team" instead of "Deployment team/web".
    fits, does = ("fits", "does") if workload.name else ("fit", "do")
    inner = f" ({found.placed:,} of {amount(found.pods, 'pod')})" if size > 1 else ""
    if found.as_many:
        if not found.fitting:
            return f"Not one {unit} of {title} fits"
        how = "At least" if found.at_least else "At most"
        verb = "fits" if found.fitting == 1 else "fit"
        return f"{how} {amount(found.fitting, unit)} of {title} {verb}"
    if found.stop is not None and found.stop.minimum:
        at_once = f"it needs {found.stop.minimum:,} at once"
        if found.placed:
            return f"{found.placed:,} of the {amount(found.pods, 'pod')} of {title} fit, and {at_once}"
        return f"{title} {does} not fit: {found.stop.placed:,} of its {amount(found.pods, 'pod')} would, and {at_once}"
    if found.replicas == 1:
        if found.verdict is Verdict.SCHEDULABLE:
            return f"{title} {fits}" + (f": all {amount(found.pods, 'pod')}" if size > 1 else _on(found.placed_pods))
        return f"{title} {does} not fit" + (
            f": {found.placed:,} of its {amount(found.pods, 'pod')} do" if size > 1 else ""
        )
    if found.verdict is Verdict.SCHEDULABLE:
        every = "Both" if found.replicas == 2 else f"All {found.replicas:,}"
        return f"{every} {unit}s of {title} fit"
    if not found.fitting:
        return f"None of the {amount(found.replicas, unit)} of {title} fits{inner}"
    verb = "fits" if found.fitting == 1 else "fit"
    return f"{found.fitting:,} of {amount(found.replicas, unit)} of {title} {verb}{inner}"


def _on(placed_pods: Sequence[PlacedPod]) -> str:
    return f" on {placed_pods[0].node}" if len(placed_pods) == 1 else ""


def _beside(found: WorkloadFit) -> str:
    said = []
    if found.running:
        said.append(f"{amount(found.running, 'pod')} of it {'runs' if found.running == 1 else 'run'} already")
    if ended := evicted(found.placed_pods):
        said.append(f"for which the scheduler ends {some([f'pod {pod.key}' for pod in ended], 3)}")
    if found.fewest != found.greatest:
        said.append(f"by which nodes the scheduler takes {found.fewest:,} to {found.greatest:,} pods have room")
    return f"; {'; '.join(said)}" if said else ""


def needed(found: NodesNeeded) -> str:
    """How many new nodes it takes, in one sentence."""
    which, number = f"({found.nodes})", amount(found.number, "new node")
    fewer = ""
    if found.fewer is not None:
        count, placed = found.fewer
        fewer = f"; with {count or 'none'}, {placed or 'none'} of {amount(found.pods, 'pod')} fit"
    if not found.number:
        return f"No new node {which} is needed" if found.enough else f"New nodes {which} do not help: {_tried(found)}"
    if found.enough:
        return f"It takes {number} {which}{fewer}"
    fit = f"{found.placed:,} of {amount(found.pods, 'pod')}"
    return f"With {number} {which} {fit} fit, and more do not help: {_tried(found)}"


def _tried(found: NodesNeeded) -> str:
    return f"up to {found.most:,} were tried"


def places(found: WorkloadFit) -> list[tuple[str, int, list[str]]]:
    """Nodes with how many pods they get and their devices, most pods first."""
    pods: Counter[str] = Counter()
    devices: dict[str, Counter[DeviceID]] = defaultdict(Counter)
    for placed_pod in found.placed_pods:
        pods[placed_pod.node] += 1
        devices[placed_pod.node].update(held.device for held in placed_pod.devices)
    ranked = sorted(pods, key=lambda name: (-pods[name], name))
    return [(name, pods[name], [_short(*each, name) for each in devices[name].items()]) for name in ranked]


def _short(device: DeviceID, times: int, node: str) -> str:
    """A device, without its pool where that is called as the node, and how many shares of it are taken."""
    name = device.device if device.pool == node else f"{device.pool}/{device.device}"
    return f"{name} ({times} shares)" if times > 1 else name


def stop(found: WorkloadFit) -> str:
    """Why the first pod that does not fit has no node; empty where all have one."""
    if found.stop is None:
        return ""
    if differs := found.stop.differs:
        who = f"pod {differs.pod} has priority {differs.priority}, group {differs.group} {differs.wanted}"
        return f"the scheduler tries no pod of a group of which one has another priority: {who}"
    if found.stop.domain:
        label = found.stop.domain
        return f"its group has to be within one {label}, and none has room for {found.stop.minimum:,} of its pods"
    text = reason(found.stop.diagnosis)
    if found.stop.denied is not None and not found.stop.diagnosis.findings:
        text = "a quota refuses it" if found.stop.denied is Denied.POD else "a quota refuses its claim"
    return text


def code(found: WorkloadFit) -> str:
    """The code of the cause; empty where none was found."""
    findings = found.stop.diagnosis.findings if found.stop is not None else ()
    return findings[0].kind.code if findings else ""


def change(what: ClusterChange) -> str:
    """A change in words."""
    if isinstance(what, OneMoreNode):
        exist = f"{amount(what.alike, 'such node')} {'exists' if what.alike == 1 else 'exist'}"
        return f"add one more node like {what.like} ({exist})"
    if isinstance(what, EndPods):
        owner = owner_of(what.ended[0])
        again = f" (of {owner}, which may recreate it)" if owner is not None else ""
        return f"{written(what.what)}{again}"
    return written(what.what)


def gain(found: WorkloadFit, more: More) -> str:
    """What a change brings."""
    unit, one_by_one = found.workload.unit, found.workload.size == 1
    whole = not found.as_many and found.fitting + more.replicas == found.replicas
    if whole and found.replicas == 1:
        return "then it fits" if one_by_one else f"then it fits, all {amount(found.pods, 'pod')}"
    verb = "fits" if more.pods == 1 else "fit"
    if one_by_one:
        return f"{amount(more.pods, f'more {unit}')} {verb}{f', and so all {found.replicas:,}' if whole else ''}"
    pods = f"{amount(more.pods, 'more pod')} {verb}"
    if found.replicas == 1 and not found.as_many:
        return f"{pods}, but not all of it"
    return (
        f"{pods}, {amount(more.replicas, f'more whole {unit}')}" if more.replicas else f"{pods}, no more whole {unit}"
    )


def commands(what: ClusterChange) -> tuple[CommandLine, ...]:
    """The commands that make a change; none where it takes more than commands."""
    if isinstance(what, EndPods) and owner_of(what.ended[0]) is None:
        return tuple(deleting("pod", pod.metadata.name, pod.metadata.namespace) for pod in what.ended)
    return making([what])
