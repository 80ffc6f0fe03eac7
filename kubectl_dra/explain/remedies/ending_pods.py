"""Pods whose end makes room for another one on their node, and how their owner ends them for good."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.pods import Owner, Pod
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.explain.clock import Clock
from kubectl_dra.explain.holders import late
from kubectl_dra.explain.phrase import Phrase, Words, say
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.remedies.proof_result import ChangeStep, Price, StepKind, StepTarget
from kubectl_dra.explain.remedies.prove import Change, WhatIf
from kubectl_dra.neighbours.decider import is_queued_by_kueue
from kubectl_dra.scheduling.chain import Chain
from kubectl_dra.scheduling.default_preemption import by_importance, fewest
from kubectl_dra.scheduling.framework import NodeState
from kubectl_dra.scheduling.inter_pod_affinity import AntiAffinityBroken, ExistingAntiAffinityBroken
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.reasons import Reason
from kubectl_dra.scheduling.volume_filters import ClaimOfOnePodInUse
from kubectl_dra.text import whole_number

MAX_NODES: Final = 3
MAX_ALONE: Final = 4
MAX_ELSEWHERE: Final = 8
_MIRROR: Final = "kubernetes.io/config.mirror"
_SYSTEM: Final = 2_000_000_000


class EndPods(Change, frozen=True):
    """Pods of one node that end, so that the pod may run on the nodes ``onto``.

    ``late``: how long ago their grace period ended, in words, where all of them are being deleted. ``fewer``: how their
    owner ends them for good.
    """

    TEXT = "{what}"
    ASIDE = frozenset(("ended", "onto", "late", "fewer"))
    node: str
    keys: tuple[str, ...]
    ended: tuple[Pod, ...]
    onto: tuple[str, ...]
    late: Words
    fewer: FewerReplicas | None = None

    @classmethod
    def by(cls, fewer: FewerReplicas) -> EndPods:
        """With fewer replicas."""
        ended = fewer.ended
        nodes = tuple(dict.fromkeys(pod.node_name for pod in ended if pod.node_name))
        return cls(ended[0].node_name, tuple(pod.key for pod in ended), ended, nodes, "", fewer)

    @property
    def what(self) -> Phrase:
        """The change in words."""
        if self.fewer is not None:
            return self.fewer.what
        text = "wait until {pods} on {node} {count:has|have} ended" if self.ending else "end {pods} on {node}"
        if self.late:
            text = "get {pods} on {node} to end (Terminating, {count:its|their} grace period ended {late})"
        return say(text, late=self.late, **self.said)

    @property
    def ending(self) -> bool:
        """Whether all of them are already being deleted."""
        return all_ending(self.ended)

    @property
    def pods(self) -> Phrase:
        """Their names."""
        return say("pod {keys}" if len(self.keys) == 1 else "pods {keys:some 8}", keys=self.keys)

    @property
    def said(self) -> dict[str, Any]:
        """The values for sentences about the change."""
        return {"pods": self.pods, "node": self.node, "count": len(self.keys)}

    @property
    def about(self) -> Hashable:
        return "pods", self.keys

    @property
    def price(self) -> Price:
        return Price.WAIT if self.ending else Price.END_RUNNING

    @property
    def cost(self) -> int:
        return 4 + 2 * len(self.keys)

    @property
    def what_if(self) -> WhatIfChange | None:
        return WhatIfChange("", "end", ",".join(self.keys))

    @property
    def ended_pods(self) -> tuple[Pod, ...]:
        return self.ended

    def made_in(self, what_if: WhatIf) -> WhatIf:
        return what_if.for_all(self).on_named(self.onto)

    def made_for_all(self, cluster: Cluster, keep: Key | None) -> Cluster | None:
        return cluster.ending(self.ended)

    def step(self, what_if: WhatIf) -> ChangeStep:
        freed = {id(claim) for claim in what_if.cluster.ending(self.ended).delta.freed}
        given = [claim for claim in what_if.cluster.snapshot.claims.values() if id(claim) in freed]
        frees = (device for claim in given for device in claim.devices)
        return ChangeStep(StepKind.END_PODS, StepTarget(pods=self.keys, nodes=(self.node,)), frees=tuple(frees))


def all_ending(pods: Iterable[Pod]) -> bool:
    """Whether all of these pods are already being deleted."""
    return all(pod.metadata.deletion_timestamp for pod in pods)


def ending_pods(around: Outcome, nodes: Sequence[str], chain: Chain | None = None) -> list[EndPods]:
    """Pods without which the filters accept the pod on a node, the fewest and least important; for some nodes.

    The filters are those of ``chain``, by default all but that for devices.
    """
    chain = chain or around.others
    if chain.rejection is not None:
        return []
    by_pods: dict[tuple[str, ...], EndPods] = {}
    for name in nodes[:MAX_NODES]:
        node = around.state.nodes.get(name)
        if node is None or chain.filter(node) is None:
            continue
        for pods in list(_sets(chain, node)) or [[pod] for pod in _elsewhere(around, chain, node)]:
            keys = tuple(pod.key for pod in pods)
            known = by_pods.get(keys)
            onto = (*known.onto, name) if known is not None else (name,)
            overdue = late(pods, Clock(around.state.snapshot)) if all_ending(pods) else ""
            by_pods[keys] = EndPods(pods[0].node_name, keys, tuple(pods), onto, overdue)
    return list(by_pods.values())


def _sets(chain: Chain, node: NodeState) -> Iterator[Sequence[Pod]]:
    """Single pods that suffice, those with claims first; else one set, the smallest that is easily found."""
    ranked = by_importance([pod for pod in node.pods if can_end(pod)])
    alone = [pod for pod in reversed(ranked) if _takes_without(chain, node, [pod])]
    yield from ([pod] for pod in sorted(alone, key=lambda pod: not pod.claims)[:MAX_ALONE])
    if alone or not _takes_without(chain, node, ranked):
        return
    yield fewest(ranked, lambda pods: _takes_without(chain, node, pods))


def _elsewhere(around: Outcome, chain: Chain, node: NodeState) -> Iterator[Pod]:
    """Pods on other nodes, each of which alone keeps the pod off this node: by a volume or anti-affinity."""
    rejection = chain.filter(node)
    suspects = [pod for reason in (rejection.reasons if rejection else ()) for pod in _suspects(around, reason)]
    for pod in suspects[:MAX_ELSEWHERE]:
        if pod.node_name == node.name or not can_end(pod):
            continue
        after = around.changed(around.state.cluster.ending([pod]))
        if after.others.filter(after.state.nodes[node.name]) is None:
            yield pod


def _suspects(around: Outcome, reason: Reason) -> Iterator[Pod]:
    """The pods that a reason may concern."""
    state, space = around.state, around.pod.metadata.namespace
    if isinstance(reason, ClaimOfOnePodInUse):
        for node in state.nodes.values():
            for pod in node.pods:
                used = [volume.persistent_volume_claim for volume in pod.spec.volumes]
                names = {claim.claim_name for claim in used if claim is not None}
                if pod.metadata.namespace == space and names & set(reason.claims):
                    yield pod
    elif isinstance(reason, AntiAffinityBroken | ExistingAntiAffinityBroken):
        near = [node for node in state.nodes.values() if node.node.labels.get(reason.key) == reason.value]
        for node in near:
            excluding = isinstance(reason, ExistingAntiAffinityBroken)
            yield from node.pods_with_required_anti_affinity if excluding else node.pods


def _takes_without(chain: Chain, node: NodeState, pods: Sequence[Pod]) -> bool:
    return chain.filter(node.changed(removed=pods)) is None


def can_end(pod: Pod) -> bool:
    """Whether ending the pod makes room: a DaemonSet, the kubelet or the system would bring it back at once."""
    owner = pod.metadata.controller()
    return (
        _MIRROR not in pod.metadata.annotations
        and pod.priority < _SYSTEM
        and (owner is None or owner.kind not in ("DaemonSet", "Node"))
    )


STATEFUL: Final = "StatefulSet"
SUSPENDED: Final = ("Job", "JobSet")
_SCALED: Final = ("Deployment", "ReplicaSet", STATEFUL, "ReplicationController", "Rollout")


class FewerReplicas(Struct, frozen=True):
    """So many ``replicas`` of an owner that the pods ``ended`` end; 0 of a Job or JobSet: it is suspended.

    ``stays``: the owner ends none of them by itself, because it waits for a pod that does not run. ``first``: its pods
    are alike to it, and the one to end has to be told.
    """

    owner: Owner
    replicas: int
    ended: tuple[Pod, ...]
    stays: bool = False
    first: bool = False

    @property
    def what(self) -> Phrase:
        """The change in words."""
        text = "lower the replicas of {owner} to {replicas}, which ends {pods}"
        if self.owner.kind in SUSPENDED:
            text = "suspend {owner}, which ends {pods}"
        elif self.owner.kind == STATEFUL and self.replicas:
            text += " (the highest number goes first)"
        keys = [pod.key for pod in self.ended]
        pods = say("pod {keys}" if len(keys) == 1 else "pods {keys:some 3}", keys=keys)
        return say(text, owner=str(self.owner), replicas=self.replicas, pods=pods)


def by_number(pods: Sequence[Pod]) -> Sequence[Pod]:
    """The pods of a StatefulSet by their numbers; none where one is missing, so that no count leaves known pods."""
    numbered = {whole_number(pod.metadata.name.rpartition("-")[2]): pod for pod in pods}
    return [numbered[number] for number in range(len(pods))] if numbered.keys() == {*range(len(pods))} else ()


def fewer_replicas(owner: Owner, pods: Sequence[Pod], alike: Sequence[Pod]) -> FewerReplicas | None:
    """The most replicas without these pods, of the owner's pods ``alike``; None where no number of them does that, or
    it is not known which pods end: amid a rollout, whose ReplicaSets share the number.
    """
    # Who is being deleted counts only for a StatefulSet, which makes it anew.
    every = tuple(pod for pod in alike if owner.kind == STATEFUL or not pod.metadata.deletion_timestamp)
    keys = {pod.key for pod in pods if owner.kind == STATEFUL or not pod.metadata.deletion_timestamp}
    if not keys or not keys <= {pod.key for pod in every}:
        return None
    if owner.kind in SUSPENDED:
        # Kueue resumes what others suspend.
        return None if any(map(is_queued_by_kueue, every)) else FewerReplicas(owner, 0, every)
    if owner.kind not in _SCALED or len({pod.metadata.controller() for pod in every}) > 1:
        return None
    runs = all(pod.phase == "Running" for pod in every)
    if owner.kind == STATEFUL:
        ordered = by_number(every)
        left = next((number for number, pod in enumerate(ordered) if pod.key in keys), 0)
        return FewerReplicas(owner, left, tuple(ordered[left:]) or every, stays=bool(left) and not runs)
    # Pods that do not run go first, whatever their cost.
    if len(keys) == 1 < len(every) and runs:
        ended = tuple(pod for pod in every if pod.key in keys)
        return FewerReplicas(owner, len(every) - 1, ended, first=True)
    return FewerReplicas(owner, 0, every)


def fewer_for(owner: Owner, pods: Sequence[Pod], keep: Pod) -> Sequence[FewerReplicas]:
    """Fewer and fewer replicas of a StatefulSet with these pods, as long as they leave one of them."""
    ordered = by_number(pods) if owner.kind == STATEFUL else ()
    first = next((number for number, pod in enumerate(ordered) if pod.key == keep.key), len(ordered))
    numbers = range(len(ordered) - 1, first, -1)
    return [FewerReplicas(owner, number, tuple(ordered[number:]), stays=True) for number in numbers]
