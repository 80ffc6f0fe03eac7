"""What changed after the scheduler's last message about a pod, as far as objects show it; deletions leave no trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.pods import Pod
from kubectl_dra.explain.diagnosis import Evidence
from kubectl_dra.explain.phrase import ObjectName, Subject, named, say
from kubectl_dra.explain.question.last_word import LastWord
from kubectl_dra.explain.trial import Trial
from kubectl_dra.scheduling.default_preemption import ending_victims

MAX_SHOWN: Final = 3
_SECONDS: Final = len("2006-01-02T15:04:05")
_TOTAL: Final = re.compile(r"^0/(\d+) nodes are available")
"""The beginning of kube-scheduler's message: its count of nodes."""


def changes(trial: Trial, pod: Pod, word: LastWord) -> tuple[Evidence, ...]:
    """The first few changes, each with the object that shows it."""
    found = (
        *_of_spec(pod),
        *_of_nodes(trial, word),
        *_victims_gone(trial, pod),
        *_newer(trial, pod, word),
        *_ended(trial, pod),
    )
    return tuple(islice(found, MAX_SHOWN))


def _of_spec(pod: Pod) -> Iterator[Evidence]:
    """The scheduler examined an earlier spec of the pod."""
    condition = pod.condition("PodScheduled")
    seen = condition.observed_generation if condition is not None else 0
    if 0 < seen < pod.metadata.generation:
        text = "{generation}, and the scheduler looked at {seen}"
        shown = say(text, generation=pod.metadata.generation, seen=seen)
        yield Evidence(Subject("Pod", named("Pod", pod)), "metadata.generation", shown)


def _of_nodes(trial: Trial, word: LastWord) -> Iterator[Evidence]:
    """Nodes were added or removed."""
    told = _TOTAL.match(word.message)
    snapshot = trial.scene.snapshot
    if told is not None and snapshot.nodes and not snapshot.is_gap("Node") and int(told[1]) != len(snapshot.nodes):
        shown = say("{count:,} now, and the scheduler counted {told:,}", count=len(snapshot.nodes), told=int(told[1]))
        yield Evidence("Nodes", "how many there are", shown)


def _victims_gone(trial: Trial, pod: Pod) -> Iterator[Evidence]:
    """The pods that were evicted for this one have ended."""
    filters, name = trial.scene.filters, pod.status.nominated_node_name
    node = filters.chain.state.nodes.get(name) if filters is not None and name else None
    if node is not None and not ending_victims(pod, node):
        yield Evidence(
            Subject("Pod", named("Pod", pod)),
            "status.nominatedNodeName",
            say("{name}: nothing evicted for it is left there", name=ObjectName("Node", name)),
        )


def _newer(trial: Trial, pod: Pod, word: LastWord) -> Iterator[Evidence]:
    """Objects created since, newest first; of the same second, those that were written after the pod."""
    if not word.time:
        return
    scene = trial.scene
    snapshot = scene.snapshot
    known: list[tuple[str, ObjectMeta]] = []
    known += [("DeviceClass", entry.metadata) for entry in trial.view.cycle.classes.values()]
    known += [("Node", entry.metadata) for entry in snapshot.nodes.values()]
    known += [("DeviceTaintRule", entry.metadata) for entry in snapshot.taint_rules]
    known += [("ResourceClaim", entry.metadata) for entry in (*scene.allocated, *scene.unallocated)]
    known += [(kind, entry.metadata) for kind, objects in snapshot.others.items() for entry in objects.values()]
    written = _number(pod.metadata.resource_version)

    said = word.time[:_SECONDS]

    def newer(made: str, version: str) -> bool:
        # RFC 3339 in UTC, so text compares; creation has no fractions of a second, which those of events may have.
        at = made[:_SECONDS]
        return at > said or (at == said and 0 < written < _number(version))

    found = [
        (meta.creation_timestamp, kind, meta.namespace, meta.name)
        for kind, meta in known
        if newer(meta.creation_timestamp, meta.resource_version)
    ]
    found += [
        (entry.creation_timestamp, "ResourceSlice", "", entry.name)
        for entry in trial.view.cycle.index.slices
        if newer(entry.creation_timestamp, entry.resource_version)
    ]
    for at, kind, space, name in sorted(found, reverse=True):
        yield Evidence(Subject(kind, ObjectName(kind, name, space)), "metadata.creationTimestamp", at)


def _ended(trial: Trial, pod: Pod) -> Iterator[Evidence]:
    """Pods that have ended and were written after this one."""
    written = _number(pod.metadata.resource_version)
    for other in trial.scene.snapshot.pods.values():
        if other.finished and other.node_name and 0 < written < _number(other.metadata.resource_version):
            yield Evidence(Subject("Pod", named("Pod", other)), "status.phase", other.phase)


def _number(version: str) -> int:
    """A resource version, which counts the writes of the whole cluster; 0 if unknown."""
    return int(version) if version.isdigit() else 0
