"""Who gets no device with the taints: pods and claims that wait and could now, and pods in place of deleted ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Attempt, Cycle
from kubectl_dra.allocation.budgets import TAINT_STEPS, Budget
from kubectl_dra.allocation.extended_resources import extended_requests
from kubectl_dra.api.claims import ALL, DeviceRequest
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import MAKES_AGAIN, Pod, PodStatus, owner_of
from kubectl_dra.api.slices import Device, DeviceID, PoolID
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Gap, Snapshot
from kubectl_dra.cluster.time_read import moment
from kubectl_dra.explain.analysis import Analysis, analysis_of, as_created
from kubectl_dra.explain.causes.registry import of_question
from kubectl_dra.explain.not_starting import troubled_nodes
from kubectl_dra.explain.pending_alike import Shapes, waiting
from kubectl_dra.explain.question.resolve import Question, about_claim, about_pod
from kubectl_dra.explain.rivals import Queue
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.unread_kind import DEVICE_KINDS
from kubectl_dra.scheduling.kinds_to_read import VOLUME_KINDS, uses_volumes
from kubectl_dra.scheduling.node_equivalence import judge_at_once
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.taint import times
from kubectl_dra.taint.device_taint_rules import DesiredRule

_MANY_NODES: Final = 100
"""With at least this many nodes, selectors are evaluated for all devices at once."""


class Lost(Struct, frozen=True):
    """A pending pod or claim that fits now, and nowhere with the taints. ``all_mode``: it requests all devices."""

    kind: str
    namespace: str
    name: str
    all_mode: bool


class _TooLong(Exception):
    """No steps are left for further pods and claims."""


def lost_matches(
    desired_rules: Sequence[DesiredRule],
    devices: Sequence[Device],
    cycle: Cycle,
    snapshot: Snapshot,
    settings: Settings,
    notes: list[str],
    progress: Callable[[str], None] | None,
) -> list[Lost]:
    """Those that lose their devices to the desired rules. ``devices`` are the published devices of the desired rules.

    Only pods and claims that could get one of the devices are tried.
    """
    analysis, shapes = _Trial(desired_rules, snapshot, settings), Shapes(snapshot)
    out: list[Lost] = []
    cache: dict[str, bool] = {}
    questions = [pending for pending in _pending(snapshot, settings) if _may_get(pending, devices, cycle, cache)]
    known: dict[str, bool] = {}
    untried = 0
    for number, question in enumerate(questions):
        if progress is not None:
            progress(f"trying pending claims: {number + 1} of {len(questions)}")
        kind = shapes.of(question, snapshot)
        if kind not in known:
            try:
                known[kind] = analysis.loses(question)
            except _TooLong:
                untried += 1
                continue
        if known[kind]:
            specs = (spec for claim in question.existing_claims for spec in claim.alternatives())
            alls = any(spec.allocation_mode == ALL for spec in specs)
            out.append(Lost(question.kind, question.namespace, question.name, alls))
    if untried:
        notes.append(f"{untried:,} pending pods and claims were not tried: it took too long")
    return out


class _Trial:
    """The cluster as it is, and as it would be with the taints."""

    def __init__(self, desired_rules: Sequence[DesiredRule], snapshot: Snapshot, settings: Settings) -> None:
        self._desired = desired_rules
        at = moment(snapshot).at
        self._taints = [(desired.device, taint_of(desired, at)) for desired in desired_rules]
        self._devices = {desired.device for desired in desired_rules}
        self._pools = {PoolID(device.driver, device.pool) for device in self._devices}
        self._snapshot = snapshot
        self._settings = settings
        self._budget = Budget(TAINT_STEPS)

    def loses(self, question: Question) -> bool:
        """Whether a pod or claim that fits now would fit nowhere. Raises _TooLong: no steps are left."""
        if of_question(question, self._snapshot) or any(claim_entry.claim is None for claim_entry in question.claims):
            return False
        self._check_budget()
        now = analysis_of(question, self._snapshot, self._settings, self._budget)
        if not now.claims and not (now.extended and now.extended.amounts):
            return False
        near, far = self._nodes(now)
        # Who fits on a node without one of the devices goes on doing so, and nothing changes on nodes that see none.
        fit = next((attempt for attempt in self._attempts(now.claims_outcome, near) if attempt.certain), None)
        if fit is None or self._devices.isdisjoint(fit.devices) or not self._excluded(now.claims_outcome, far):
            return False
        after = now.claims_outcome.state.cluster.tainting(self._taints, {desired.name for desired in self._desired})
        return self._excluded(now.claims_outcome.changed(after, budget=now.budget), near)

    def _nodes(self, case: Analysis) -> tuple[list[Node], list[Node]]:
        """The nodes that see pools of the devices, and the others."""
        near: list[Node] = []
        far: list[Node] = []
        for node in case.view.nodes:
            if node.name not in case.unavailable:
                pools = case.view.pools.get(node.name)
                sees = pools is not None and any(pool.id in self._pools for pool in pools.pools)
                (near if sees else far).append(node)
        return near, far

    def _excluded(self, outcome: Outcome, nodes: Sequence[Node]) -> bool:
        """Whether none of the nodes can be the one."""
        return all(attempt.excluded for attempt in self._attempts(outcome, nodes))

    def _attempts(self, outcome: Outcome, nodes: Sequence[Node]) -> Iterator[Attempt]:
        """The attempt on each of the nodes."""
        for number, node in enumerate(nodes):
            self._check_budget()
            if number == _MANY_NODES:
                judge_at_once(outcome.devices.cycle, nodes[number:], outcome.devices.unallocated)
            yield outcome.try_on(node)

    def _check_budget(self) -> None:
        if not self._budget.left:
            raise _TooLong


def _pending(snapshot: Snapshot, settings: Settings) -> Iterator[Question]:
    """The pods that the scheduler is to place and that need devices, and the pending claims that no pod uses."""
    for subject in waiting(snapshot, settings):
        if isinstance(subject, Pod):
            if subject.is_queued:
                yield about_pod(subject, snapshot, exists=True)
        elif not subject.metadata.deletion_timestamp:
            yield about_claim(subject)


def _may_get(question: Question, devices: Sequence[Device], cycle: Cycle, cache: dict[str, bool]) -> bool:
    """Whether one of its requests selects one of the devices, or it requests extended resources that devices serve."""
    pod = question.pod
    if pod is not None and cycle.features.extended_resources and extended_requests(pod, cycle.classes) is not None:
        return True
    for claim in question.existing_claims:
        for spec in claim.alternatives() if claim.allocation is None else ():
            # Many pods of one workload ask for the same.
            key = repr((spec.device_class, spec.selectors))
            if key not in cache:
                cache[key] = bool(selected(spec, devices, cycle))
            if cache[key]:
                return True
    return False


def selected(spec: DeviceRequest, devices: Sequence[Device], cycle: Cycle) -> Set[int]:
    """The devices that a request selects, by identity; none if one of its selectors fails."""
    device_class = cycle.classes.get(spec.device_class)
    if device_class is None:
        return frozenset()
    return frozenset(map(id, cycle.selectors.accepted((*device_class.selectors, *spec.selectors), devices)))


def taint_of(desired: DesiredRule, at: datetime) -> DeviceTaint:
    """The taint that a desired rule makes."""
    return DeviceTaint(desired.taint.key, desired.taint.value, desired.taint.effect, times.stamp(at), desired.name)


# The pods that controllers make in place of those that taints delete: whether they fit without the devices.


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
