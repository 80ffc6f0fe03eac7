"""Where the schedulers of two releases give different answers about what waits or runs in a cluster."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.budgets import ANSWER_STEPS, SHAPE_STEPS, STEPS_PER_NODE, Budget, of_answer
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Snapshot, stand_in
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.pending_alike import Shapes, waiting
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.new_pod import about_new_pod
from kubectl_dra.explain.question.resolve import Question, about_claim, about_pod
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.default_preemption import fewest
from kubectl_dra.scheduling.scheduler import ChangeKind, Deciding, PartialUpgrade, Scheduler, SchedulerChange, changes

# Which change of the scheduler gives a pod another answer after an upgrade: each is tried on the release before it.

Answer = Callable[[Scheduler], Hashable]
"""What a scheduler answers, without its reasons."""


class TookTooLong(Exception):
    """There was no time to try all changes; an ``Answer`` may raise it."""


def deciding_changes(before: Scheduler, after: Scheduler, answer: Answer) -> Deciding:
    """The changes between two schedulers whose answers differ, which alone, or else together, make the difference.

    Of several that do so alone those count without which the later scheduler would go on answering as the earlier one
    does, if there are any.

    Raises:
        TookTooLong: ``answer`` did.
    """
    differences = tuple(changes(before, after))
    was, will = answer(before), answer(after)

    def with_only(chosen: Iterable[SchedulerChange]) -> Hashable:
        return answer(_ahead(before, after, chosen))

    alone = tuple(change for change in differences if with_only((change,)) == will)
    if len(alone) > 1:
        needed = tuple(
            change for change in alone if with_only(other for other in differences if other is not change) == was
        )
        alone = needed or alone
    if alone:
        return Deciding(alone)
    if with_only(differences) != will:
        return Deciding()
    return Deciding(tuple(fewest(differences, lambda chosen: with_only(chosen) == will)), together=True)


def _ahead(before: Scheduler, after: Scheduler, chosen: Iterable[SchedulerChange]) -> Scheduler:
    """The scheduler before the upgrade with some of its changes."""
    chosen = tuple(chosen)
    on = {change.name for change in chosen if change.kind is ChangeKind.GATE_ON}
    off = {change.name for change in chosen if change.kind is ChangeKind.GATE_OFF}
    parts = frozenset(change.name for change in chosen)
    return before.changed(gates=(before.gates | on) - off, upgrade=PartialUpgrade(after.release, after.patch, parts))


class AskedSubject(NamedTuple):
    """A pod or claim as the scheduler meets it: the question, and the cluster in which it is asked.

    What ``runs`` is asked about as if it were made again: those of its claims that only it uses gave their devices
    back. A ``new`` pod is asked about as each release's API server would store it; ``written`` is its manifest.
    """

    question: Question
    snapshot: Snapshot
    runs: bool = False
    new: Pod | None = None
    written: Mapping[str, Any] = {}

    def question_on(self, settings: Settings) -> Question:
        """The question to a release."""
        return self.question if self.new is None else about_new_pod(self.new, self.snapshot, settings, self.written)


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
    snapshot = Cluster(snapshot).without_events().snapshot
    groups: dict[tuple[bool, str], AlikeSubjects] = {}
    if manifest is None:
        subjects = chain(_waiting(snapshot, after), running(snapshot))
    else:
        subjects = chain(_new(manifest, snapshot, after))
    shapes = Shapes(snapshot)
    for subject in subjects:
        alike = (subject.runs, shapes.of(subject.question, subject.snapshot))
        groups.setdefault(alike, AlikeSubjects(subject, [])).names.append(subject.question.name)
    steps = SHAPE_STEPS + STEPS_PER_NODE * len(snapshot.nodes)
    budget = Budget(2 * (ANSWER_STEPS + steps * len(groups)))
    answers: list[Differing] = []
    judged = undetermined = left_out = 0
    for number, (first, names) in enumerate(groups.values(), 1):
        if not budget.left:
            left_out += len(names)
            continue
        if progress is not None:
            progress(f"comparing {number} of {len(groups)}: {first.question.kind} {first.question.name}")
        around = first.snapshot
        was, will = (
            diagnose(first.question_on(settings), around, replace(settings, with_ways=False), budget)
            for settings in (before, after)
        )
        judged += len(names)
        if _outcome(was) != _outcome(will):
            answers.append(Differing(was, will, tuple(names), first.runs, _deciding(first, around, before, after)))
        elif was.verdict is Verdict.UNDETERMINED:
            undetermined += len(names)
    return SchedulersCompared(tuple(answers), judged, undetermined, left_out)


def _deciding(subject: AskedSubject, around: Snapshot, before: Settings, after: Settings) -> Deciding | None:
    """What makes the difference, if that is found with few enough steps."""
    budget = of_answer(len(around.nodes))

    def answer(scheduler: Scheduler) -> tuple[Verdict, frozenset[str]]:
        if not budget.left:
            raise TookTooLong
        settings = replace(after if scheduler == after.scheduler else before, scheduler=scheduler, with_ways=False)
        return _outcome(diagnose(subject.question_on(settings), around, settings, budget))

    try:
        return deciding_changes(before.scheduler, after.scheduler, answer)
    except TookTooLong:
        return None


def _outcome(diagnosis: Diagnosis) -> tuple[Verdict, frozenset[str]]:
    return diagnosis.verdict, frozenset(diagnosis.fitting)


def _waiting(snapshot: Snapshot, settings: Settings) -> Iterator[AskedSubject]:
    for subject in waiting(snapshot, settings):
        if isinstance(subject, ResourceClaim):
            yield AskedSubject(about_claim(subject), snapshot)
        else:
            yield AskedSubject(about_pod(_unscheduled(subject), snapshot, exists=True), snapshot)


def _new(manifest: Snapshot, snapshot: Snapshot, settings: Settings) -> Iterator[AskedSubject]:
    """What would wait if a manifest were applied, and what of it runs."""
    for subject in waiting(snapshot, settings, manifest):
        if isinstance(subject, ResourceClaim):
            yield AskedSubject(about_claim(subject), snapshot)
            continue
        key = key_of(subject)
        known = snapshot.pods.get(key)
        if known is None or stand_in(subject) is not None:
            pod, written = _unscheduled(subject), manifest.written.get(("Pod", *key), {})
            yield AskedSubject(about_new_pod(pod, snapshot, settings, written), snapshot, new=pod, written=written)
        elif known.node_name:
            yield from _run(known, Cluster(snapshot))
        else:
            yield AskedSubject(about_pod(_unscheduled(known), snapshot, exists=True), snapshot)


def running(snapshot: Snapshot) -> Iterator[AskedSubject]:
    """The pods that hold devices, each in the cluster in which it was made again and waits."""
    cluster = Cluster(snapshot)
    for pod in snapshot.pods.values():
        if pod.node_name:
            yield from _run(pod, cluster)


def _run(pod: Pod, cluster: Cluster) -> Iterator[AskedSubject]:
    """A pod with a node in the cluster in which it was made again; nothing where it holds no devices."""
    if pod.finished or pod.metadata.deletion_timestamp or not pod.claims:
        return
    again = _unscheduled(pod)
    after = cluster.unbinding(again)
    if after.delta.claims:
        yield AskedSubject(about_pod(again, after.snapshot, exists=True), after.snapshot, runs=True)


def _unscheduled(pod: Pod) -> Pod:
    """The pod before a scheduler has looked at it."""
    status = replace(pod.status, phase="Pending", conditions=(), nominated_node_name="", container_statuses=())
    return replace(pod, node_name="", status=status)
