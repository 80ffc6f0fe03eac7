"""Where the schedulers of two releases give different answers about what waits or runs in a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.budgets import ANSWER_STEPS, SHAPE_STEPS, STEPS_PER_NODE, Budget
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.relation import ClaimRelation, relation_of
from kubectl_dra.cluster.snapshot import MADE_BY, Key, Snapshot
from kubectl_dra.explain.alike import Shapes
from kubectl_dra.explain.deciding_changes import TookTooLong, deciding_changes
from kubectl_dra.explain.diagnosis import Diagnosis, Verdict
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.giving_back import of_pods
from kubectl_dra.explain.question.new_pod import about_new_pod
from kubectl_dra.explain.question.resolve import Question, about_claim, about_pod
from kubectl_dra.explain.scene.prepare import Settings
from kubectl_dra.explain.waiting import waiting
from kubectl_dra.scheduling.release_changes import Deciding

_NOT_THE_POD: Final = (ClaimRelation.REPLACED, ClaimRelation.GROUP, ClaimRelation.FOREIGN)
"""What an entry is that means another pod than the one it is compared with, or none."""


class AskedSubject(NamedTuple):
    """A pod or claim as the scheduler meets it: the question, and the snapshot in which it was resolved.

    What runs is asked about as if it were made again, as the pod ``again``. ``left`` are its claims after its end, by
    namespace and name: those that only it uses gave their devices back. A ``new`` pod is asked about as each
    release's API server would store it; ``written`` is its manifest.
    """

    question: Question
    snapshot: Snapshot
    again: Pod | None = None
    left: Mapping[Key, ResourceClaim] = {}
    new: Pod | None = None
    written: Mapping[str, Any] = {}

    @property
    def runs(self) -> bool:
        """Whether it runs now."""
        return self.again is not None

    def question_on(self, settings: Settings) -> Question:
        """The question to a release."""
        return self.question if self.new is None else about_new_pod(self.new, self.snapshot, settings, self.written)

    def surroundings(self, snapshot: Snapshot) -> Snapshot:
        """The whole cluster in which it is asked about."""
        if self.again is None:
            return snapshot
        key = (self.again.metadata.namespace, self.again.metadata.name)
        pods, claims = {**snapshot.pods, key: self.again}, {**snapshot.claims, **self.left}
        return replace(snapshot, pods=pods, claims=claims)


class AlikeSubjects(NamedTuple):
    """Subjects with one answer: the first, and the names of all. Of the others nothing else is kept."""

    first: AskedSubject
    names: list[str]


class Differing(Struct, frozen=True):
    """Diagnoses of one question for both releases, and the names of those that are alike, it included.

    ``deciding``: the changes that make the difference; None if there was no time to try them.
    """

    before: Diagnosis
    after: Diagnosis
    names: tuple[str, ...]
    runs: bool
    deciding: Deciding | None


class SchedulersCompared(Struct, frozen=True):
    """What differs. ``judged`` counts pods and claims, ``open`` those that both leave undetermined, ``left_out`` those
    for which the time was too short.
    """

    differing: tuple[Differing, ...]
    judged: int = 0
    open: int = 0
    left_out: int = 0


def compare(
    snapshot: Snapshot,
    before: Settings,
    after: Settings,
    progress: Callable[[str], None] | None = None,
    manifest: Snapshot | None = None,
) -> SchedulersCompared:
    """Ask both schedulers about each pod that has or needs devices, and each pending claim that no pod uses.

    They are those of a cluster, or, each by itself, those of a ``manifest`` that was laid over it but for its pods.

    They differ where one gives devices and the other does not, or on other nodes. Which of several suitable devices a
    pod gets is not compared. Pods that differ only in their names are asked about once.
    """
    # What the present scheduler last said is about the present release.
    snapshot = replace(snapshot, events=())
    groups: dict[tuple[bool, str], AlikeSubjects] = {}
    if manifest is None:
        subjects = chain(_waiting(snapshot, after), running(snapshot))
    else:
        subjects = chain(_new(manifest, snapshot, after))
    shapes = Shapes(snapshot)
    for subject in subjects:
        alike = (subject.runs, shapes.of(subject.question, subject.snapshot))
        groups.setdefault(alike, AlikeSubjects(subject, [])).names.append(subject.question.name)
    each = SHAPE_STEPS + STEPS_PER_NODE * len(snapshot.nodes)
    budget = Budget(2 * (ANSWER_STEPS + each * len(groups)))
    found: list[Differing] = []
    judged = undetermined = left_out = 0
    for number, (first, names) in enumerate(groups.values(), 1):
        if not budget.left:
            left_out += len(names)
            continue
        if progress is not None:
            progress(f"comparing {number} of {len(groups)}: {first.question.kind} {first.question.name}")
        around = first.surroundings(snapshot)
        was, will = (
            diagnose(first.question_on(settings), around, replace(settings, with_ways=False), budget)
            for settings in (before, after)
        )
        judged += len(names)
        if _outcome(was) != _outcome(will):
            found.append(Differing(was, will, tuple(names), first.runs, _deciding(first, around, before, after)))
        elif was.verdict is Verdict.UNDETERMINED:
            undetermined += len(names)
    return SchedulersCompared(tuple(found), judged, undetermined, left_out)


def _deciding(subject: AskedSubject, around: Snapshot, before: Settings, after: Settings) -> Deciding | None:
    """What makes the difference, if that is found with few enough steps."""
    budget = Budget(ANSWER_STEPS + STEPS_PER_NODE * len(around.nodes))

    def answer(settings: Settings) -> tuple[Verdict, frozenset[str]]:
        if not budget.left:
            raise TookTooLong
        return _outcome(diagnose(subject.question_on(settings), around, replace(settings, with_ways=False), budget))

    try:
        return deciding_changes(before, after, answer)
    except TookTooLong:
        return None


def _outcome(diagnosis: Diagnosis) -> tuple[Verdict, frozenset[str]]:
    return diagnosis.verdict, frozenset(diagnosis.fitting)


def _waiting(snapshot: Snapshot, settings: Settings) -> Iterator[AskedSubject]:
    for entry in waiting(snapshot, settings):
        if isinstance(entry, ResourceClaim):
            yield AskedSubject(about_claim(entry), snapshot)
        else:
            yield AskedSubject(about_pod(_unscheduled(entry), snapshot, exists=True), snapshot)


def _new(manifest: Snapshot, snapshot: Snapshot, settings: Settings) -> Iterator[AskedSubject]:
    """What would wait if a manifest were applied, and what of it runs."""
    claims = {key: snapshot.claims[key] for key in manifest.claims}
    for entry in waiting(replace(snapshot, pods=manifest.pods, claims=claims), settings):
        if isinstance(entry, ResourceClaim):
            yield AskedSubject(about_claim(entry), snapshot)
            continue
        key = (entry.metadata.namespace, entry.metadata.name)
        known = snapshot.pods.get(key)
        if known is None or MADE_BY in entry.metadata.annotations:
            pod, written = _unscheduled(entry), manifest.written.get(("Pod", *key), {})
            yield AskedSubject(about_new_pod(pod, snapshot, settings, written), snapshot, new=pod, written=written)
        elif known.node_name:
            yield from _run(known, snapshot)
        else:
            yield AskedSubject(about_pod(_unscheduled(known), snapshot, exists=True), snapshot)


def running(snapshot: Snapshot) -> Iterator[AskedSubject]:
    """The pods that hold devices, each in the cluster in which it was made again and waits."""
    for pod in snapshot.pods.values():
        if pod.node_name:
            yield from _run(pod, snapshot)


def _run(pod: Pod, snapshot: Snapshot) -> Iterator[AskedSubject]:
    """A pod with a node in the cluster in which it was made again; nothing where it holds no devices."""
    if pod.finished or pod.metadata.deletion_timestamp or not pod.claims:
        return
    used = dict(_claims(pod, snapshot))
    given = of_pods([pod], used.values(), snapshot.pods).claims
    freed = {(claim.metadata.namespace, claim.metadata.name): claim.deallocated() for claim in given}
    left = {each: freed.get(each) or _left(claim, pod) for each, claim in used.items()}
    if left:
        again = _unscheduled(pod)
        # To tell pods that are alike, its own claims are enough.
        own = replace(snapshot, claims=left)
        yield AskedSubject(about_pod(again, own, exists=True), own, again, left)


def _claims(pod: Pod, snapshot: Snapshot) -> Iterator[tuple[Key, ResourceClaim]]:
    for name in pod.claim_names:
        key = (pod.metadata.namespace, name)
        claim = snapshot.claims.get(key)
        if claim is not None and claim.allocation is not None:
            yield key, claim


def _left(claim: ResourceClaim, pod: Pod) -> ResourceClaim:
    """A claim that others use as well, after the end of a pod."""
    others = (entry for entry in claim.reserved_for if relation_of(claim, entry, pod) in _NOT_THE_POD)
    return replace(claim, reserved_for=tuple(others))


def _unscheduled(pod: Pod) -> Pod:
    """The pod before a scheduler has looked at it."""
    status = replace(pod.status, phase="Pending", conditions=(), nominated_node_name="", container_statuses=())
    return replace(pod, node_name="", status=status)
