"""The pods that controllers make in place of those that taints delete: whether they fit without the devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import MAKES_AGAIN, Pod, PodStatus, owner_of
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Gap, Snapshot
from kubectl_dra.explain.analysis import as_created
from kubectl_dra.explain.not_starting import troubled_nodes
from kubectl_dra.explain.question.resolve import about_pod
from kubectl_dra.explain.rivals import Queue
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.unread import DEVICE_KINDS
from kubectl_dra.scheduling.kinds_to_read import VOLUME_KINDS, uses_volumes
from kubectl_dra.taint import times

_READ: Final = (*DEVICE_KINDS, "DeviceClass", "Pod")
"""Kinds without which it is unknown where a new pod fits."""


class ReplacementPod(Struct, frozen=True):
    """A pod that takes the place of a deleted one, called like that one.

    ``made``: its owner makes one. ``fits``: it has a place then, after the pods that wait already, and starts there;
    None if that is not known, or depends on which of several nodes it or others get. ``unread`` is the gap because of
    which it is not known.
    """

    namespace: str
    name: str
    owner: str
    made: bool
    fits: bool | None = None
    unread: Gap | None = None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


def replacements(
    deleted: Sequence[Pod],
    taints: Iterable[tuple[DeviceID, DeviceTaint]],
    rules: frozenset[str],
    snapshot: Snapshot,
    settings: Settings,
    at: datetime,
) -> tuple[ReplacementPod, ...]:
    """What comes in place of the deleted pods, in the cluster without them and with the taints of the ``rules``."""
    owned = [(pod, owner_of(pod)) for pod in deleted]
    again = [pod for pod, owner in owned if owner is not None and owner.kind in MAKES_AGAIN]
    fits = _fitting(deleted, again, taints, rules, snapshot, settings, at)
    out: list[ReplacementPod] = []
    for pod, owner in owned:
        made = any(pod is other for other in again)
        known = fits.get(pod.key) if made else None
        kinds = (*_READ, "ResourceClaimTemplate", *(VOLUME_KINDS if uses_volumes(pod) else ()))
        gap = next(iter(snapshot.unread(kinds)), None) if made and known is None else None
        out.append(ReplacementPod(*key_of(pod), f"{owner.kind}/{owner.name}" if owner else "", made, known, gap))
    return tuple(out)


def _fitting(
    deleted: Sequence[Pod],
    again: Sequence[Pod],
    taints: Iterable[tuple[DeviceID, DeviceTaint]],
    rules: frozenset[str],
    snapshot: Snapshot,
    settings: Settings,
    at: datetime,
) -> dict[str, bool | None]:
    """Whether each of the pods that are made again gets a node, as far as that is known."""
    if not again or any(snapshot.unread(_READ)):
        return {}
    cluster = Cluster(snapshot).with_named_nodes().ending(deleted).tainting(taints, rules)
    tried: set[str] = set()
    for pod in again:
        made = _made(pod, cluster, times.stamp(at))
        if made is not None:
            new, cluster = made
            cluster = cluster.editing(new)
            tried.add(new.key)
    fits = _placed(cluster, settings)
    bad = troubled_nodes(snapshot)
    if bad and any(fits.get(key) for key in tried):
        # The scheduler may as well take a node where no pod with devices starts.
        there = cluster.editing(*(_cordoned(node) for node in cluster.nodes if node.name not in bad))
        unsure = _placed(there, settings)
        fits |= {key: None for key, known in fits.items() if known and unsure.get(key) is not False}
    return {key: fits.get(key) for key in tried}


def _placed(cluster: Cluster, settings: Settings) -> dict[str, bool | None]:
    """Whether the scheduler has a node for each pod that waits, where all ways to place them agree."""
    queue = Queue(cluster.snapshot, settings)
    runs = queue.served(queue.pods)
    found = {pod.key: {pod.key in run for run in runs or ()} for pod in queue.pods}
    return {key: answers.pop() if len(answers) == 1 else None for key, answers in found.items()}


def _cordoned(node: Node) -> Node:
    return replace(node, spec=replace(node.spec, unschedulable=True))


def _made(pod: Pod, cluster: Cluster, now: str) -> tuple[Pod, Cluster] | None:
    """The pod as its owner makes it, with its claims; None where something that it takes is not known."""
    metadata = replace(pod.metadata, uid=f"in place of {pod.metadata.uid}", creation_timestamp=now)
    new = replace(pod, metadata=metadata, status=PodStatus(phase="Pending"), node_name="", plugin=None)
    question = about_pod(new, cluster.snapshot, exists=False)
    unread = uses_volumes(new) and any(cluster.snapshot.unread(VOLUME_KINDS))
    if unread or any(entry.claim is None for entry in question.claims):
        return None
    created, cluster = as_created(question, cluster)
    return (created, cluster) if created is not None else None
