"""Other pending pods that want the same devices: which of them the scheduler tries first, and what they leave.

The scheduler takes pods from its queue by priority, then by the time since which they wait in it: since they were made,
or since they were last tried in vain (PrioritySort, QueuedPodInfo.Timestamp).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from enum import Enum, auto
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.allocation.budgets import RIVALS_STEPS, RIVALS_TRIED, RIVALS_TRIES, RIVALS_WORK, Budget
from kubectl_dra.allocation.extended_resources import class_by_resource, resources_of
from kubectl_dra.api.claims import ResourceClaim, devices_of
from kubectl_dra.api.pods import Pod, replaced_by
from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.data.messages import AUTOSCALERS
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.analysis import as_created
from kubectl_dra.explain.attributes_read import complete
from kubectl_dra.explain.diagnosis import Diagnosis, Finding, NodeDevices
from kubectl_dra.explain.pending_alike import Shapes, pods_waiting
from kubectl_dra.explain.phrase import Phrase, by_key, say
from kubectl_dra.explain.question.resolve import Question, about_pod
from kubectl_dra.explain.question.what_if_flag import WITH_NODE
from kubectl_dra.explain.remedies.ending_pods import EndPods
from kubectl_dra.explain.remedies.freeing_claims import Free
from kubectl_dra.explain.remedies.proof_result import Beside, Proof
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.binding import Chance, place
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.gang_scheduling import kept_out
from kubectl_dra.scheduling.kinds_to_read import uses_volumes

MAX_DEVICES: Final = 200
"""Of the devices that a pod may get, so many are compared with what pods of other classes ask for."""
_SECONDS: Final = len("2006-01-02T15:04:05")
_NOW: Final = "~"
"""After every time that is written."""


class Left(Enum):
    """Whether devices are left for a pod after those that the scheduler tries before it."""

    YES = auto()
    NO = auto()
    CHANCE = auto()
    """It depends on which of several pods is tried first, or which of several nodes they take."""
    UNTRIED = auto()
    """There are too many to try them, or what becomes of one of them is open."""


class Rivals(NamedTuple):
    """The pods that want the same devices: those that are tried before, and those that come after.

    ``tied``: of some of the former it is not known whether they are. ``takers`` are those of them that get devices
    where nothing is left.
    """

    before: tuple[Pod, ...]
    after: tuple[Pod, ...]
    left: Left
    tied: bool
    takers: tuple[Pod, ...] = ()


class Queue:
    """The pods that wait for devices in a cluster and that the scheduler tries."""

    def __init__(self, snapshot: Snapshot, settings: Settings, created: Set[str] = frozenset()) -> None:
        """``created`` are the keys of pods that are only made now."""
        self._snapshot = snapshot
        self._settings = settings
        self._created = created
        self._shapes = Shapes(snapshot)
        self._known: dict[str, str] = {}
        self._last: dict[tuple[str, str], str] = {}
        tried = (pod for pod in pods_waiting(snapshot, settings) if settings.scheduler.schedules(pod))
        self.pods = [pod for pod in tried if not pod.metadata.deletion_timestamp and not pod.scheduling_gates]
        if len(self.pods) > 1:
            for event in snapshot.events:
                if event.kind == "Pod" and event.reason == "FailedScheduling" and event.speaker not in AUTOSCALERS:
                    key = (event.namespace, event.name)
                    self._last[key] = max(event.last, self._last.get(key, ""))

    def turn(self, pod: Pod) -> tuple[int, str]:
        """What a pod's place in the queue is told by. Pods with equal ones may be tried in any order."""
        if pod.key in self._created:
            return -pod.priority, _NOW
        tried = pod.condition("PodScheduled").last_transition_time
        last = self._last.get(key_of(pod), "")
        return -pod.priority, max(pod.metadata.creation_timestamp, tried, last)[:_SECONDS]

    def rivals(self, question: Question, diagnosis: Diagnosis) -> Rivals | None:
        """Pods that want the devices of a pod that would fit, and whether they leave any; None if there are none."""
        pod = question.pod
        others = [other for other in self.pods if pod is not None and other.key != pod.key]
        if pod is None or not others:
            return None
        wants = _Wants(self._snapshot, self._settings, question, diagnosis)
        pods = [other for other in others if wants.the_same_as(other)]
        if not pods:
            return None
        turn = self.turn(pod)
        before = tuple(other for other in pods if self.turn(other) <= turn)
        after = tuple(other for other in pods if self.turn(other) > turn)
        enough = len(before) < len(diagnosis.placements) and self._apart(pod, before, diagnosis)
        tied = any(self.turn(other) == turn for other in before)
        left, takers = (Left.YES, ()) if enough else self._left(pod, before)
        return Rivals(before, after, left, tied, takers)

    def _apart(self, pod: Pod, before: Sequence[Pod], diagnosis: Diagnosis) -> bool:
        """Whether a pod that is placed changes what its own node has, and nothing else for this pod."""
        spec, config = pod.spec, self._settings.scheduler.config
        spread = any(
            constraint.when_unsatisfiable == "DoNotSchedule" for constraint in spec.topology_spread_constraints
        )
        if (
            spread
            or uses_volumes(pod)
            or config is not None
            or any(placed.required_anti_affinity for placed in (pod, *before))
        ):
            return False
        if spec.affinity is not None and spec.affinity.pod_affinity.required:
            return False
        named = {pod_claim.claim_name for pod_claim in pod.claims} - {""}
        if any(named & {pod_claim.claim_name for pod_claim in other.claims} for other in before):
            return False
        homes = {(slice_.pool, slice_.scope.node_name) for slice_ in self._snapshot.slices}
        pools = {device[:2]: at.node for at in diagnosis.placements for device in devices_of(at.claims)}
        return all(node == pools[pool] for pool, node in homes if pool in pools)

    def _left(self, pod: Pod, before: tuple[Pod, ...]) -> tuple[Left, tuple[Pod, ...]]:
        runs = self.served([*before, pod], last=pod)
        if runs is None:
            return Left.UNTRIED, before
        served = {pod.key in run for run in runs}
        taking = frozenset[str]().union(*(run for run in runs if pod.key not in run))
        takers = tuple(other for other in before if other.key in taking)
        if len(served) > 1:
            return Left.CHANCE, takers
        return (Left.YES if served == {True} else Left.NO), takers

    def served(self, pods: Sequence[Pod], last: Pod | None = None) -> list[frozenset[str]] | None:
        """The keys of the pods that get devices if they are placed one after the other, ``last`` after all others.

        Where chance decides, there are several such sets. None if it cannot be tried.
        """
        snapshot = self._snapshot
        for pod in pods if snapshot.individual else ():
            snapshot = complete(about_pod(pod, snapshot, exists=True), snapshot, self._settings)
        state = self._settings.scheduler.sees(Cluster(snapshot), *pods)
        size = len(state.nodes) + len(state.snapshot.slices)
        budget = Budget(RIVALS_STEPS)
        tries, served = min(RIVALS_TRIED, RIVALS_WORK // max(1, size)), list[frozenset[str]]()
        for number in range(RIVALS_TRIES):
            run = Run(self, pods, last, Chance.of_try(number))
            if not run.place(state, budget, tries):
                # Some of the choices that chance has were tried already.
                return served if len(served) > 1 else None
            tries -= run.tried
            served.append(frozenset(run.served))
            if not run.chance.taken:
                break
        return served

    def shape(self, pod: Pod) -> str:
        """What is the same for pods that are placed alike."""
        known = self._known.get(pod.key)
        if known is None:
            known = self._known[pod.key] = self._shapes.of(about_pod(pod, self._snapshot, exists=True), self._snapshot)
        return known


class Run:
    """Pods placed in turn, once; ``state`` is the cluster with those that are ``served``."""

    def __init__(self, queue: Queue, pods: Sequence[Pod], last: Pod | None, chance: Chance) -> None:
        self._pods = chance.in_order(pods, lambda pod: (last is pod, queue.turn(pod)))
        self._queue = queue
        self.chance = chance
        self.tried = 0
        self.served: set[str] = set()

    def place(self, state: ClusterState, budget: Budget, most: int) -> bool:
        """Place them; false if it is open what becomes of one, or more than ``most`` would have to be tried."""
        refused, self.state = set[str](), state
        for pod in self._pods:
            # Who was refused is refused when even less is left.
            if self._queue.shape(pod) in refused or kept_out(pod, state) is not None:
                continue
            if self.tried >= most:
                return False
            self.tried += 1
            step = place(pod, state, budget, self.chance.of)
            self.state = state = step.state
            if step.node:
                self.served.add(pod.key)
            elif step.outcome.undetermined:
                return False
            else:
                refused.add(self._queue.shape(pod))
        return True


class _Wants:
    """What a pod asks for, to be compared with what others ask for."""

    def __init__(self, snapshot: Snapshot, settings: Settings, question: Question, diagnosis: Diagnosis) -> None:
        self._snapshot = snapshot
        self._cycle = settings.scheduler.cycle(snapshot)
        self._extended = class_by_resource(snapshot.classes) if self._cycle.features.extended_resources else {}
        self._classes = self._of(question)
        ids = {device for at in diagnosis.placements for device in devices_of(at.claims)}
        self._devices = list(_devices(snapshot, ids))[:MAX_DEVICES]
        self._known: dict[str, bool] = {}

    def the_same_as(self, pod: Pod) -> bool:
        """Whether the other pod asks for a class of this one, or for one that has a device of those that it may get."""
        wanted = self._of(about_pod(pod, self._snapshot, exists=True))
        return not wanted.isdisjoint(self._classes) or any(self._has(name) for name in wanted)

    def _of(self, question: Question) -> frozenset[str]:
        claims: Iterable[ResourceClaim] = question.existing_claims
        requests = (request for claim in claims if claim.allocation is None for request in claim.requests)
        names = {spec.device_class for request in requests for spec in request.alternatives() if not spec.admin_access}
        pod = question.pod
        more = (self._extended.get(name) for name in resources_of(pod)) if pod is not None and self._extended else ()
        return frozenset((*names, *(device_class.name for device_class in more if device_class is not None)))

    def _has(self, name: str) -> bool:
        if name not in self._known:
            device_class = self._cycle.classes.get(name)
            self._known[name] = device_class is not None and bool(
                self._cycle.selectors.accepted(device_class.selectors, self._devices)
            )
        return self._known[name]


def _devices(snapshot: Snapshot, ids: set[DeviceID]) -> Iterable[Device]:
    pools = {(device.driver, device.pool) for device in ids}
    for slice_ in snapshot.slices:
        if slice_.pool in pools:
            for position, name in enumerate(slice_.names):
                if DeviceID(*slice_.pool, name) in ids:
                    yield slice_.exact_device(position)


def with_rivals(diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """The diagnosis of a pod that would fit, or would with a fix, with other pending pods that want the same devices.

    It is undetermined where they may come first and leave none. Pods of a group are placed together, and what is only
    supposed, or about one node, is answered for the pod alone; but the others compete for new nodes as well.
    """
    pod = question.pod
    changed = any(change.kind != WITH_NODE for change in diagnosis.supposed)
    asked_alone = changed or settings.node or not question.exists
    if pod is None or asked_alone or _in_group(pod):
        return diagnosis
    if diagnosis.verdict is Verdict.UNSCHEDULABLE:
        return diagnosis if diagnosis.supposed else _with_rivals_of_fixes(diagnosis, pod, snapshot, settings)
    return _judged(diagnosis, question, Queue(snapshot, settings))


def with_rivals_of_new(
    diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings, new: Iterable[Key]
) -> Diagnosis:
    """The same of a pod that would be created: those that wait already come first, unless it is more important.

    It holds for what is supposed as well. ``new`` are the pods of its manifest, none of which waits already.
    """
    if question.exists or question.pod is None or settings.node or _in_group(question.pod):
        return diagnosis
    fits = diagnosis.verdict is Verdict.SCHEDULABLE and bool(diagnosis.placements)
    if not fits and (diagnosis.verdict is not Verdict.UNSCHEDULABLE or diagnosis.supposed):
        return diagnosis
    pods = [pod for key in new if (pod := snapshot.pods.get(key)) is not None]
    pod, cluster = as_created(question, Cluster(snapshot).ending(pods))
    assert pod is not None
    there = cluster.editing(pod).snapshot
    created = frozenset((pod.key,))
    if not fits:
        return _with_rivals_of_fixes(diagnosis, pod, there, settings, created)
    return _judged(diagnosis, about_pod(pod, there, exists=True), Queue(there, settings, created))


def _in_group(pod: Pod) -> bool:
    return bool(pod.pod_group) or pod.spec.workload_ref is not None


def _judged(diagnosis: Diagnosis, question: Question, queue: Queue) -> Diagnosis:
    """The diagnosis of a pod that would fit, with what the pods of the queue leave for it."""
    pod = question.pod
    if pod is None or diagnosis.verdict is not Verdict.SCHEDULABLE or not diagnosis.placements:
        return diagnosis
    rivals = queue.rivals(question, diagnosis)
    if rivals is None:
        return diagnosis
    note = _told(pod, rivals, len(diagnosis.supposed))
    if rivals.left is Left.YES:
        return replace(diagnosis, notes=(*diagnosis.notes, note))
    notes = (note, *diagnosis.notes)
    return replace(
        diagnosis, verdict=Verdict.UNDETERMINED, unclear=(note,), notes=notes, choice=None, provided="", fits_already=()
    )


def _with_rivals_of_fixes(
    diagnosis: Diagnosis, pod: Pod, snapshot: Snapshot, settings: Settings, created: Set[str] = frozenset()
) -> Diagnosis:
    """The diagnosis, in which fixes that give others something as well say who may take it first."""
    if key_of(pod) not in snapshot.pods or not settings.scheduler.schedules(pod):
        return diagnosis

    def contested(changes: Sequence[Change], proof: Proof) -> Proof:
        cluster: Cluster | None = Cluster(snapshot)
        for change in changes:
            cluster = change.made_for_all(cluster, key_of(pod)) if cluster is not None else None
        if cluster is None or proof.beside is not None:
            return proof
        there, placement = cluster.snapshot, NodeDevices(proof.node, proof.claims)
        question = about_pod(there.pods[key_of(pod)], there, exists=True)
        found = Queue(there, settings, created).rivals(question, replace(diagnosis, placements=(placement,)))
        takers = found.takers if found is not None and found.left is not Left.YES else ()
        # A pod that is made later is tried first only by its priority.
        owners = [
            replaced_by(ended)
            for change in changes
            for ended in change.ended_pods
            if ended.priority > pod.priority and not (isinstance(change, EndPods | Free) and change.fewer)
        ]
        successor = next((str(owner) for owner in owners if owner is not None), "")
        if not takers and not successor:
            return proof
        return replace(proof, beside=Beside(rivals=tuple(taker.key for taker in takers), successor=successor))

    def of_finding(finding: Finding) -> Finding:
        remedy = finding.remedy
        if remedy is None or remedy.proof is None or not remedy.offers or remedy.with_others:
            return finding
        return replace(finding, remedy=replace(remedy, proof=contested(remedy.offers[:1], remedy.proof)))

    ways = tuple(replace(way, proof=contested(way.changes, way.proof)) for way in diagnosis.ways)
    return replace(diagnosis, findings=tuple(map(of_finding, diagnosis.findings)), ways=ways)


_ENDS: Final = {
    Left.NO: "nothing is left for it then",
    Left.CHANCE: "whether something is left for it then depends on which of them is tried first, and where",
    Left.UNTRIED: "what they leave could not be tried",
}


def _told(pod: Pod, rivals: Rivals, supposed: int) -> Phrase:
    """Note on the rivals, and what follows; so many changes are ``supposed`` where it fits."""
    count = len(rivals.before) + len(rivals.after)
    if rivals.left is Left.YES:
        text = "{count:other pending pod} {count:wants|want} the same devices, and {count:comes|come} after it"
        if rivals.before:
            text = (
                "{count:other pending pod} {count:wants|want} the same devices: {before} of them {before:is|are} tried "
                "before it and may take those that are shown; enough is left"
            )
        return say(text, count=count, before=len(rivals.before))
    names = [by_key("Pod", other.key) for other in rivals.before]
    higher = any(other.priority > pod.priority for other in rivals.before)
    why = "by priority and time" if higher else "by time"
    first = "may come first" if rivals.tied else say("{before:comes|come} first", before=len(rivals.before))
    changes = "this change" if supposed == 1 else "these changes"
    fits = f"it would fit with {changes}" if supposed else "it fits now"
    text = "{fits}, but {names:some 3} {before:wants|want} the same devices and {first} ({why}): {ends}"
    return say(text, fits=fits, names=names, before=len(rivals.before), first=first, why=why, ends=_ENDS[rivals.left])
