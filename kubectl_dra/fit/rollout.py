"""Replacement of the pods of a former template by a controller: in which steps pods come and go.

Sources: the controllers of Deployments (rolling.go, recreate.go, ResolveFenceposts), StatefulSets
(updateStatefulSet) and DaemonSets (pkg/controller/daemon/update.go), and what the API server lets nobody change
(ValidateJobSpecUpdate, selectors of apps/v1, JobSet's webhook).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from msgspec import Struct, ValidationError
from msgspec.structs import replace

from kubectl_dra.api.labels import LabelSelector
from kubectl_dra.api.meta import convert
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import RefusedChange
from kubectl_dra.drivers.daemons import node_of
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.fit.existing_pods import Surplus, number_of
from kubectl_dra.fit.place import Placement, Placer, Unplaced
from kubectl_dra.fit.pod_factory import NewPod
from kubectl_dra.fit.workload import WorkloadPods
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.workloads import key_of
from kubectl_dra.text import whole_number

_FIXED: Final = {("batch", "Job"): "spec.template", ("jobset.x-k8s.io", "JobSet"): "spec.replicatedJobs"}
"""Immutable fields of workloads whose pods exist."""
_SELECTING: Final = (("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("apps", "DaemonSet"))
_KEEPS: Final = (("apps", "ReplicaSet"), ("", "ReplicationController"))
_DAEMON_SET: Final = ("apps", "DaemonSet")
_KEEPING: Final = (*_KEEPS, ("apps", "StatefulSet"))
"""Without limits of a rollout they end no pod because their template has changed."""


class PodReplacement(Struct, frozen=True):
    """The pods of a former template, in the order in which they end.

    There are at most ``surge`` pods more than ``replicas``, and all but ``unavailable`` of these run. ``in_order``: a
    pod has the name of the one that it replaces. ``by_node``: it has the node of that one, as those of a DaemonSet.
    """

    old: tuple[Pod, ...]
    replicas: int
    surge: int
    unavailable: int
    in_order: bool = False
    by_node: bool = False

    @property
    def in_place(self) -> bool:
        """Whether each new pod takes the place of a certain one."""
        return self.in_order or self.by_node

    def mixed(self, chance: Random) -> PodReplacement:
        """The same with another order, where that is open."""
        return self if self.in_order else replace(self, old=tuple(chance.sample(self.old, len(self.old))))


class Former(Struct, frozen=True):
    """What becomes of pods of a former template: a rollout replaces them, or they stay (``kept``).

    ``unclear`` is why that is not known.
    """

    rollout: PodReplacement | None = None
    kept: tuple[Pod, ...] = ()
    unclear: Words = ""


def keeps_pods(workload: WorkloadPods) -> bool:
    """Whether a workload ends no pod because its template has changed."""
    return not workload.raw or key_of(workload.raw) in (*_KEEPS, *_FIXED)


def refused_change(
    workload: WorkloadPods, own: Sequence[Pod], former: Sequence[Pod], *, changed: bool | None = None
) -> RefusedChange | None:
    """What the API server refuses to change of a workload that has these pods, some of a ``former`` template.

    ``changed``: whether the stored template is another one; None where that is not known.
    """
    key, fields = key_of(workload.raw), []
    # Of a Job that never ran, some may be changed while it is suspended.
    if key in _FIXED and (former or (changed and not workload.suspended)):
        fields.append(_FIXED[key])
    if key in _SELECTING:
        try:
            selector = convert(fields_at(workload.raw, "spec", "selector"), LabelSelector)
        except ValidationError:
            return None
        # A file may lack the labels.
        if any(pod.metadata.labels and not selector.matches(pod.metadata.labels) for pod in own):
            fields.append("spec.selector")
    change = RefusedChange(workload.kind, workload.namespace, workload.name, tuple(fields), by_its_pods=True)
    return change if fields else None


class RolloutLimits(NamedTuple):
    """Limits of a rollout on the number of replicas: ``surge`` pods more, ``unavailable`` fewer.

    ``first`` is the lowest number of a pod that it replaces.
    """

    surge: int
    unavailable: int
    first: int = 0


def limits_of(workload: WorkloadPods, replicas: int) -> RolloutLimits | None:
    """The limits of a workload's rollouts; None where its controller replaces no pod by itself."""
    key, spec = key_of(workload.raw), fields_at(workload.raw, "spec")
    if key == ("apps", "Deployment") and spec.get("paused") is not True:
        strategy = fields_at(spec, "strategy")
        if strategy.get("type") == "Recreate":
            return RolloutLimits(0, max(replicas, 1))
        rolling = fields_at(strategy, "rollingUpdate")
        surge = _number(rolling.get("maxSurge"), replicas, up=True)
        unavailable = min(_number(rolling.get("maxUnavailable"), replicas, up=False), replicas)
        # Where neither more nor fewer pods than wanted may be there, one may be missing.
        return RolloutLimits(surge, unavailable or (not surge))
    strategy = fields_at(spec, "updateStrategy")
    if key == ("apps", "StatefulSet") and strategy.get("type") != "OnDelete":
        rolling = fields_at(strategy, "rollingUpdate")
        partition = rolling.get("partition")
        unavailable = max(1, _number(rolling.get("maxUnavailable", 1), replicas, up=True))
        return RolloutLimits(0, unavailable, partition if isinstance(partition, int) else 0)
    return None


def _limits_of_nodes(workload: WorkloadPods, nodes: int) -> RolloutLimits | None:
    """The limits of a DaemonSet's rollouts; None where it replaces no pod by itself."""
    strategy = fields_at(workload.raw, "spec", "updateStrategy")
    if strategy.get("type") == "OnDelete":
        return None
    rolling = fields_at(strategy, "rollingUpdate")
    surge = _number(rolling.get("maxSurge", 0), nodes, up=True)
    unavailable = _number(rolling.get("maxUnavailable", 1), nodes, up=True)
    # The API server lets nobody set both.
    return RolloutLimits(surge, 0 if surge else max(1, unavailable))


def what_becomes_of(former: Sequence[Pod], workload: WorkloadPods, replicas: int, running: int) -> Former:
    """What the controller of a workload does with pods of a former template, of all its pods that are ``running``."""
    if not former:
        return Former()
    key, limits = key_of(workload.raw), limits_of(workload, replicas)
    if key == ("apps", "Deployment") and limits is None:
        text = "it is paused: the pods that it lacks are made of the former template as well, which is not modelled"
        return Former(kept=tuple(former), unclear=text if running < replicas else "")
    if limits is not None and key == ("apps", "Deployment"):
        # The newest end first.
        old = sorted(former, key=lambda pod: pod.metadata.creation_timestamp, reverse=True)
        return Former(PodReplacement(tuple(old), replicas, limits.surge, limits.unavailable))
    if limits is not None:
        kept = [pod for pod in former if number_of(pod) < limits.first]
        old = sorted((pod for pod in former if number_of(pod) >= limits.first), key=number_of, reverse=True)
        rollout = PodReplacement(tuple(old), replicas, 0, limits.unavailable, in_order=True) if old else None
        return Former(rollout, tuple(kept))
    if key == _DAEMON_SET and (limits := _limits_of_nodes(workload, replicas)) is not None:
        # Which nodes come first is open.
        rollout = PodReplacement(tuple(former), replicas, limits.surge, limits.unavailable, by_node=True)
        return Former(rollout)
    if key in (*_KEEPING, _DAEMON_SET):
        return Former(kept=tuple(former))
    text = "pod {pod} is of a former template, and how a {kind} replaces such pods is not modelled"
    return Former(kept=tuple(former), unclear=say(text, pod=former[0].key, kind=workload.kind))


def _number(written: Any, replicas: int, *, up: bool) -> int:
    """A number of pods, or a share of them, 25% by default."""
    if isinstance(written, int):
        return max(0, written)
    share = whole_number(written.removesuffix("%")) if isinstance(written, str) else None
    share = 25 if share is None else share
    return -(-share * replicas // 100) if up else share * replicas // 100


class Rolling:
    """A workload while its pods come and go: ``old`` are those of a former template that run still, ``later`` the new
    ones that are not created yet, ``kept`` how many run that are as they should be.
    """

    def __init__(
        self,
        number: int,
        pods: Sequence[NewPod],
        rollout: PodReplacement | None,
        kept: int,
        surplus: Surplus,
        chance: Random | None = None,
    ) -> None:
        self.number = number
        """The workload's."""
        self.surplus = surplus.ended(chance)
        """The pods that end before any is made."""
        self._rollout = rollout
        self._kept = kept
        self._created = 0
        self.old = list(rollout.old) if rollout is not None else []
        self.later = list(pods)
        nodes = set(map(_node, pods))
        by_node = rollout is not None and rollout.by_node
        self._unwanted = [pod for pod in self.old if by_node and pod.node_name not in nodes]
        self.chosen = surplus.open
        """Whether other old pods could have ended first."""

    def end(self, placed: Collection[NewPod]) -> list[Pod]:
        """The old pods that end now, while these new ones have a node."""
        rollout = self._rollout
        if rollout is None or not self.old:
            return []
        ended = self._leave(self._unwanted)
        if rollout.by_node and rollout.surge:
            return [*ended, *self._leave(pod for pod in self.old if pod.node_name in set(map(_node, placed)))]
        return [*ended, *self._ended_first(rollout, len(placed))]

    def _leave(self, pods: Iterable[Pod]) -> list[Pod]:
        """Those of the pods that run still, which they do no more then."""
        gone = {pod.key for pod in pods}
        ended = [pod for pod in self.old if pod.key in gone]
        self.old = [pod for pod in self.old if pod.key not in gone]
        return ended

    def _ended_first(self, rollout: PodReplacement, placed: int) -> list[Pod]:
        """The old pods that end before those come that replace them, while so many of the new ones have a node."""
        if rollout.in_place:
            # Pods that replace none come first.
            behind = self._created - placed if not any(map(self._replaces_none, self.later)) else rollout.unavailable
            number = rollout.unavailable - behind
        else:
            number = len(self.old) + self._kept + placed - (rollout.replicas - rollout.unavailable)
        number = max(0, number)
        self.chosen = self.chosen or (not rollout.in_order and 0 < number < len(self.old))
        ended, self.old = self.old[:number], self.old[number:]
        return ended

    def create(self, placed: int) -> list[NewPod]:
        """The pods that are created now, while so many of the new ones have a node."""
        rollout = self._rollout
        if rollout is None:
            created = self.later
        elif rollout.in_place:
            created = [new for new in self.later if self._replaces_none(new)]
            if rollout.by_node and rollout.surge:
                beside = [new for new in self.later if not self._replaces_none(new)]
                room = max(0, rollout.surge - (self._created - placed))
                self.chosen = self.chosen or 0 < room < len(beside)
                created += beside[:room]
        else:
            there = [new for new in self.later if new.exists]
            room = rollout.replicas + rollout.surge - len(self.old) - self._kept - self._created - len(there)
            created = [*there, *[new for new in self.later if not new.exists][: max(0, room)]]
        made = set(map(id, created))
        self.later = [new for new in self.later if id(new) not in made]
        self._created += len(created)
        return created

    def _replaces_none(self, new: NewPod) -> bool:
        if self._rollout is not None and self._rollout.by_node:
            return all(pod.node_name != _node(new) for pod in self.old)
        return all(pod.metadata.name != new.pod.metadata.name for pod in self.old)


def _node(new: NewPod) -> str:
    """The node that a new pod of a DaemonSet is for."""
    return node_of(new.pod)


def roll(placer: Placer, workloads: Sequence[Rolling]) -> Placement:
    """Places the pods of workloads while those of former templates end, until no step is left.

    Those that are too many end first.
    """
    if surplus := [pod for rolling in workloads for pod in rolling.surplus]:
        placer.end(surplus)
    while True:
        placed: dict[int, list[NewPod]] = defaultdict(list)
        for placed_pod in placer.placed_pods:
            placed[placed_pod.new.workload].append(placed_pod.new)
        ended = [pod for rolling in workloads for pod in rolling.end(placed[rolling.number])]
        if ended:
            placer.end(ended)
        created = [new for rolling in workloads for new in rolling.create(len(placed[rolling.number]))]
        if not (ended or created):
            break
        placer.place_all(created)
    placer.chosen = placer.chosen or any(rolling.chosen for rolling in workloads)
    later = [Unplaced(new, placer.state, later=True) for rolling in workloads for new in rolling.later]
    placer.refused.extend(later)
    return placer.placement()
