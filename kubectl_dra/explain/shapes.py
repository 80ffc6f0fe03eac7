"""What determines an answer: the many pods of a workload differ only in their names, and share one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from msgspec import structs

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.labels import LabelSelector
from kubectl_dra.api.meta import OwnerReference
from kubectl_dra.api.nodes import Affinity
from kubectl_dra.api.pods import Pod, PodSpec
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.registry import of_question
from kubectl_dra.explain.question.resolve import Question


class Shapes:
    """What determines the answers to questions in one cluster."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @cached_property
    def _labels(self) -> frozenset[str]:
        return frozenset(_label_keys(self._snapshot))

    @cached_property
    def _holding(self) -> frozenset[OwnerReference]:
        """The controllers of pods that use claims."""
        pods = (pod for pod in self._snapshot.pods.values() if pod.node_name and pod.claims)
        return frozenset(owner for pod in pods if (owner := pod.metadata.controller()) is not None)

    def of(self, question: Question, snapshot: Snapshot) -> str:
        """What determines the answer, as one text: the pod's placement and claims, without names that differ per pod.

        ``snapshot`` is what the question was resolved in, if its claims are others than in the cluster.
        """
        pod = question.pod
        names = [entry.claim.metadata.name if entry.claim else "" for entry in question.claims]
        claims = [
            # Which entries mean one and the same claim is part of it.
            (entry.entry, entry.template, names.index(name), entry.unresolved, _content(entry.claim))
            for entry, name in zip(question.claims, names, strict=True)
        ]
        found = [(finding.kind.code, finding.summary, finding.under_way) for finding in of_question(question, snapshot)]
        placement = None if pod is None else self._placement(pod)
        return repr((question.kind, question.namespace, placement, claims, found))

    def _placement(self, pod: Pod) -> object:
        """What places the pod, and what the scheduler has said of it."""
        condition = pod.condition("PodScheduled")
        return (
            structs.replace(pod.spec, resource_claims=()),
            pod.extended_resource_claim,
            sorted((key, value) for key, value in pod.metadata.labels.items() if key in self._labels),
            self._owner(pod),
            pod.status.nominated_node_name,
            (condition.status, condition.reason, condition.message),
        )

    def _owner(self, pod: Pod) -> OwnerReference | None:
        """The pod's controller where it counts: its pods are spread, or others of them hold devices."""
        owner = pod.metadata.controller()
        if owner is None:
            return None
        spread = (pod.metadata.namespace, owner.name) in self._snapshot.others.get(owner.kind, {})
        return owner if spread or owner in self._holding else None


def _label_keys(snapshot: Snapshot) -> Iterator[str]:
    """The labels of pods that decide about places: those that selectors of pods and services read."""
    seen: set[int] = set()
    for pod in snapshot.pods.values():
        spec = pod.spec
        if (spec.affinity is not None or spec.topology_spread_constraints) and id(spec) not in seen:
            seen.add(id(spec))
            yield from _read_by(spec)
    for service in snapshot.others.get("Service", {}).values():
        yield from service.spec.selector


def _read_by(spec: PodSpec) -> Iterator[str]:
    affinity = spec.affinity or Affinity()
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity):
        for term in (*side.required, *(entry.term for entry in side.preferred)):
            yield from _keys(term.label_selector, (*term.match_label_keys, *term.mismatch_label_keys))
    for constraint in spec.topology_spread_constraints:
        yield from _keys(constraint.label_selector, constraint.match_label_keys)


def _keys(selector: LabelSelector | None, more: Iterable[str]) -> Iterator[str]:
    yield from more
    if selector is not None:
        yield from selector.match_labels
        yield from (entry.key for entry in selector.match_expressions)


def _content(claim: ResourceClaim | None) -> object:
    if claim is None or claim.allocation is not None:
        return claim and claim.key
    return claim.requests, claim.constraints, claim.config
