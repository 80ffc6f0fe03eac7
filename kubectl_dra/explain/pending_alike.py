"""What waits for devices: pods, and claims that no pod uses; and what determines the answer about each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import cached_property

from msgspec import structs

from kubectl_dra.allocation.extended_resources import amount_of, class_by_resource, resources_of
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.labels import LabelSelector
from kubectl_dra.api.meta import OwnerReference
from kubectl_dra.api.nodes import Affinity
from kubectl_dra.api.pods import Pod, PodSpec
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cluster.claim_relation import waiting_for
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.on_node import devices_elsewhere, may_be_lost, unready_since, unserved
from kubectl_dra.explain.causes.registry import of_question
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.settings import Settings
from kubectl_dra.neighbours.no_pod import UnmadeLauncher


class PodProgress(IntEnum):
    """Progress of a pod, the least first."""

    NO_NODE = 0
    NOT_STARTED = 1
    IN_DOUBT = 2
    """It runs, and something is wrong with its node, its claims or its devices."""
    ENDING = 3
    RUNS = 4
    ENDED = 5

    @property
    def hangs(self) -> bool:
        """Whether there is something to explain."""
        return self < PodProgress.RUNS


def progress_of(pod: Pod, snapshot: Snapshot) -> PodProgress:
    """Progress of a pod of a cluster."""
    if pod.finished:
        return PodProgress.ENDED
    if pod.metadata.deletion_timestamp:
        return PodProgress.ENDING
    if not pod.node_name:
        return PodProgress.NO_NODE
    if pod.phase != "Running":
        return PodProgress.NOT_STARTED
    return PodProgress.IN_DOUBT if _in_doubt(pod, snapshot) else PodProgress.RUNS


def not_running_with(claim: ResourceClaim, snapshot: Snapshot) -> Pod | None:
    """The pod on its node that does not run with the devices of a claim, or of which that is in doubt, and so answers
    for it; None if there is none.

    Of several it is the one that has come least far, and of these the first by name.
    """
    pods = waiting_for(claim, snapshot) if claim.allocation is not None else []
    late = [(progress_of(pod, snapshot), pod.metadata.name, pod) for pod in pods if pod.node_name]
    stuck = [entry for entry in late if entry[0] in (PodProgress.NOT_STARTED, PodProgress.IN_DOUBT)]
    return min(stuck, key=lambda entry: entry[:2])[2] if stuck else None


def waiting(snapshot: Snapshot, settings: Settings, manifest: Snapshot | None = None) -> Iterator[Pod | ResourceClaim]:
    """Pods that wait for devices, then pending claims that no pod uses, in all namespaces.

    With a ``manifest`` its pods and claims alone, as they are in the cluster.
    """
    yield from pods_waiting(snapshot, settings, manifest)
    used: set[tuple[str, str]] = set()
    for (space, _), pod in (manifest or snapshot).pods.items():
        if not pod.finished:
            used |= {(space, name) for name in pod.claim_names}
    for key in (manifest or snapshot).claims:
        claim = snapshot.claims[key]
        if claim.allocation is None and key not in used:
            yield claim


def pods_with_devices(snapshot: Snapshot, settings: Settings) -> Iterator[Pod]:
    """Pods that have not ended and need devices, or have them."""
    yield from pods_waiting(snapshot, settings)
    yield from (pod for pod in snapshot.pods.values() if pod.node_name and pod.claims and not pod.finished)


def pods_waiting(snapshot: Snapshot, settings: Settings, manifest: Snapshot | None = None) -> Iterator[Pod]:
    """Pods without a node that need devices, in all namespaces; with a ``manifest`` its own alone."""
    backed = _backed(snapshot, settings)
    for pod in (manifest or snapshot).pods.values():
        # One that is being deleted is not queued, and is shown as well: a cause says what keeps it.
        if not pod.node_name and not pod.finished and (pod.claims or not backed.isdisjoint(resources_of(pod))):
            yield pod


def placed(snapshot: Snapshot) -> Iterator[Pod]:
    """Pods with claims that have a node and that something may keep from starting, running or ending."""
    served = class_by_resource(snapshot.classes).keys()
    # Most pods need no devices, and those of a workload share one spec.
    needs = ByIdentity[PodSpec, bool]()
    for pod in snapshot.pods.values():
        if not pod.node_name or pod.finished:
            continue
        if needs.get(pod.spec) is None:
            needs.put(pod.spec, bool(pod.claims) or not served.isdisjoint(resources_of(pod)))
        if not (needs.get(pod.spec) or pod.extended_resource_claim):
            continue
        if not (pod.claims or pod.extended_resource_claim or unserved(pod, snapshot)):
            continue
        if progress_of(pod, snapshot).hangs:
            yield pod


def _in_doubt(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether a pod that runs has an unhealthy device, a lost node, a claim that is gone or not allocated, or no device
    where it should have one.
    """
    if unready_since(pod.node_name, snapshot) is not None or may_be_lost(pod, snapshot):
        return True
    if any(
        resource.health == "Unhealthy"
        for status in pod.status.container_statuses
        for device_status in status.allocated_resources_status
        for resource in device_status.resources
    ):
        return True
    if not pod.extended_resource_claim and unserved(pod, snapshot):
        return True
    claims = [snapshot.claims.get((pod.metadata.namespace, name)) for name in pod.claim_names]
    if any(claim is None or claim.allocation is None for claim in claims):
        return True
    return bool(devices_elsewhere(pod, [claim for claim in claims if claim is not None], snapshot))


def _backed(snapshot: Snapshot, settings: Settings) -> frozenset[str]:
    """Extended resources that a class offers; while the feature is off, those that no device plugin offers."""
    names = class_by_resource(snapshot.classes).keys()
    if settings.scheduler.features.extended_resources:
        return frozenset(names)
    nodes = snapshot.nodes.values()
    return frozenset(name for name in names if not any(amount_of(node.allocatable.get(name)) for node in nodes))


# What determines an answer: the many pods of a workload differ only in their names, and share one.


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


# What is said of a virtual machine of which KubeVirt cannot make the pod.


def without_pod(launcher: UnmadeLauncher) -> Words:
    """Note that it has no pod, and the API server's reason."""
    text = "VirtualMachineInstance {namespace}/{name} has no pod, because the API server refuses it{often}: {message}"
    often = (
        say(" ({count:,} times since {since})", count=launcher.count, since=launcher.since)
        if launcher.count > 1
        else ""
    )
    return say(text, namespace=launcher.namespace, name=launcher.name, often=often, message=launcher.message)


def remedy(launcher: UnmadeLauncher) -> Words:
    """What helps."""
    if launcher.twice:
        return (
            "KubeVirt before 1.9 lists a claim once for each device that names it (kubevirt#16769). Update it, or give "
            "each device a claim of its own in resourceClaims; kubectl dra lint finds such virtual machines (DRA414)."
        )
    return "Change in the virtual machine what the message names: KubeVirt makes the pod again by itself."
