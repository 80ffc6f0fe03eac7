"""Every pending claim of a namespace or cluster, with the first cause of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.budgets import ANSWER_STEPS, SHAPE_STEPS, STEPS_PER_NODE, Budget
from kubectl_dra.allocation.extended_resources import resources_of
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Gap, Snapshot
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.driver_refusals import judged_by_start
from kubectl_dra.explain.pending_alike import Shapes, placed, waiting, without_pod
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import Question, about_claim, about_pod
from kubectl_dra.explain.rivals import Queue
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.unread_kind import Stake, Unread, gaps_of, unread_of
from kubectl_dra.neighbours.no_pod import UnmadeLauncher, unmade

NOT_IN_TURN: Final = say("each is answered as if the others did not wait: placing them all in turn takes too long")
_PENDING: Final = "what is pending is unknown"


class TogetherServed(Struct, frozen=True):
    """Of so many pods that would each fit, the ``fewest`` that get devices if all that waits is placed in turn.

    ``always``: chance decides nothing about their number.
    """

    pods: int
    fewest: int
    always: bool


class Alike(Struct, frozen=True):
    """One diagnosis for several pods or claims of the same shape.

    ``served`` is None where that was not tried, or all of them get devices.
    """

    diagnosis: Diagnosis
    names: tuple[str, ...]
    served: TogetherServed | None = None

    @property
    def keys(self) -> frozenset[str]:
        """The namespaces and names of the pods or claims."""
        return frozenset(f"{self.diagnosis.namespace}/{name.partition('/')[2]}" for name in self.names)

    @property
    def exit_code(self) -> int:
        """That of the diagnosis; 3 where it does not hold for all of them."""
        return self.diagnosis.exit_code if self.served is None else max(3, self.diagnosis.exit_code)


class Overview(Struct, frozen=True):
    """Everything pending in ``namespace`` (empty for all).

    ``elsewhere`` counts what is pending in other namespaces. ``unread`` are the kinds of which objects may be pending
    that nobody has seen; ``unseen`` says what else is not in it. ``together``: of all pods that would each fit; None as
    for ``Alike.served``. ``unmade``: virtual machines of which no pod could be made. ``lacking``: what the
    diagnoses were made without, also of those that found nothing wrong.
    """

    namespace: str
    found: tuple[Alike, ...]
    elsewhere: int = 0
    unseen: tuple[Words, ...] = ()
    unread: tuple[Unread, ...] = ()
    left_out: int = 0
    together: TogetherServed | None = None
    unmade: tuple[UnmadeLauncher, ...] = ()
    lacking: frozenset[Gap] = frozenset()

    @property
    def notes(self) -> tuple[Words, ...]:
        """What was not read, and what else is not in it."""
        return (*self.unread, *map(without_pod, self.unmade), *self.unseen)

    @property
    def exit_code(self) -> int:
        """The largest of the diagnoses; 3 if pending objects could not be seen and none of those seen is stuck."""
        if self.left_out:
            return 3
        code = max((alike.exit_code for alike in self.found), default=0)
        return code or (1 if self.unmade else 3 if self.unread else 0)


def pending(
    snapshot: Snapshot, namespace: str, settings: Settings, progress: Callable[[str], None] | None = None
) -> Overview:
    """Diagnoses of all pending pods that need devices, and of pending claims that no pod uses, unless these only lack
    devices that others have.

    A pod needs devices through its claims, or through an extended resource that a DeviceClass names.
    ``namespace`` is empty for all. Pods that differ only in their names are diagnosed once.
    """
    groups: dict[str, list[Question]] = {}
    shapes = Shapes(snapshot)
    elsewhere = 0
    for subject in waiting(snapshot, settings):
        if namespace not in ("", subject.metadata.namespace):
            elsewhere += 1
            continue
        question = about_pod(subject, snapshot, exists=True) if isinstance(subject, Pod) else about_claim(subject)
        groups.setdefault(shapes.of(question, snapshot), []).append(question)
    out: list[Alike] = []
    lacking: set[Gap] = set()
    left_out = 0
    budget = Budget(ANSWER_STEPS + len(groups) * (SHAPE_STEPS + STEPS_PER_NODE * len(snapshot.nodes)))
    for number, questions in enumerate(groups.values(), 1):
        if not budget.left:
            left_out += len(questions)
            continue
        if progress is not None:
            progress(f"explaining {number} of {len(groups)}: {questions[0].kind} {questions[0].name}")
        names = tuple(f"{question.kind}/{question.name}" for question in questions)
        diagnosis = diagnose(questions[0], snapshot, replace(settings, with_ways=False), budget)
        lacking.update(gaps_of((*diagnosis.unclear, *diagnosis.notes)))
        if not _idle(diagnosis):
            out.append(Alike(diagnosis, names))
    for pod in placed(snapshot):
        if namespace in ("", pod.metadata.namespace) and budget.left:
            question = about_pod(pod, snapshot, exists=True)
            diagnosis = diagnose(question, snapshot, replace(settings, with_ways=False), budget)
            lacking.update(gaps_of((*diagnosis.unclear, *diagnosis.notes)))
            if (diagnosis.troubled and not diagnosis.findings[0].normal) or diagnosis.verdict is Verdict.UNSCHEDULABLE:
                out.append(Alike(diagnosis, (f"{question.kind}/{question.name}",)))
    served, together, tried = _in_scheduling_order(out, snapshot, settings)
    alikes = [replace(alike, diagnosis=judged_by_start(alike.diagnosis)) for alike in served]
    unseen: list[Words] = [NOT_IN_TURN] if not tried else []
    if left_out:
        text = "not explained, because it took too long: {count:,} pods and claims; ask about one, or a namespace"
        unseen.insert(0, say(text, count=left_out))
    machines = tuple(unmade(snapshot, namespace))
    unread = tuple(_unread(snapshot, namespace))
    return Overview(
        namespace, tuple(alikes), elsewhere, tuple(unseen), unread, left_out, together, machines, frozenset(lacking)
    )


def _idle(diagnosis: Diagnosis) -> bool:
    """Whether it is a claim that no pod uses and for which nothing is wrong: its devices are in use at the moment."""
    findings = diagnosis.findings
    return diagnosis.kind == "claim" and bool(findings) and all(finding.kind.held for finding in findings)


def _in_scheduling_order(
    groups: Sequence[Alike], snapshot: Snapshot, settings: Settings
) -> tuple[Sequence[Alike], TogetherServed | None, bool]:
    """The same, with how many get devices where not all of them do if those that fit are placed in turn.

    Then how many of all, and whether it was tried or could not matter.
    """
    fits = [alike for alike in groups if _fits(alike.diagnosis)]
    keys = {key for alike in fits for key in alike.keys}
    queue = Queue(snapshot, settings) if len(keys) > 1 else None
    pods = [pod for pod in queue.pods if pod.key in keys and not pod.pod_group] if queue is not None else []
    if queue is None or len(pods) < 2:
        return groups, None, True
    runs = queue.served(pods)
    if runs is None:
        return groups, None, all(len(pods) <= len(alike.diagnosis.placements) for alike in fits)
    tried = frozenset(pod.key for pod in pods)
    counted = [
        replace(alike, served=_served(alike.keys & tried, runs)) if _fits(alike.diagnosis) else alike
        for alike in groups
    ]
    return counted, _served(tried, runs), True


def _fits(diagnosis: Diagnosis) -> bool:
    """Whether it is a pod that would get devices if it were alone."""
    return diagnosis.kind == "pod" and diagnosis.verdict is Verdict.SCHEDULABLE and bool(diagnosis.placements)


def _served(keys: frozenset[str], runs: Sequence[frozenset[str]]) -> TogetherServed | None:
    """Number of these pods that got devices in each run; None if always all of them."""
    counts = {len(keys & run) for run in runs}
    return TogetherServed(len(keys), min(counts), len(counts) == 1) if counts != {len(keys)} else None


def _unread(snapshot: Snapshot, namespace: str) -> Iterator[Unread]:
    """What could not be read of the kinds that tell what is pending."""
    stakes = [Stake(kind, namespace, _PENDING) for kind in ("Pod", "ResourceClaim")]
    if any(not pod.node_name and not pod.finished and resources_of(pod) for pod in snapshot.pods.values()):
        stakes.append(Stake("DeviceClass", "", say("whether devices serve extended resources is unknown")))
    yield from unread_of(stakes, snapshot)
