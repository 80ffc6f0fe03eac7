"""Every pending claim of a namespace or cluster, with the first cause of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.extended_resources import amount_of, class_by_resource, resources_of
from kubectl_dra.allocation.features import Features
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.alike import shape
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import Question, about_claim, about_pod
from kubectl_dra.explain.scene.prepare import SECONDS, SECONDS_PER_NODE, Settings
from kubectl_dra.explain.unread import Stake, Unread, unread_of

SECONDS_PER_SHAPE = 0.1
"""Time limit for one question, besides ``SECONDS`` for all."""
_PENDING = "what is pending is unknown"


class Alike(Struct, frozen=True):
    """One diagnosis for several pods or claims of the same shape."""

    diagnosis: Diagnosis
    names: tuple[str, ...]


class Overview(Struct, frozen=True):
    """Everything pending in ``namespace`` (empty for all).

    ``elsewhere`` counts what is pending in other namespaces. ``unread`` are the kinds of which objects may be pending
    that nobody has seen; ``unseen`` says what else is not in it.
    """

    namespace: str
    found: tuple[Alike, ...]
    elsewhere: int = 0
    unseen: tuple[Words, ...] = ()
    unread: tuple[Unread, ...] = ()
    left_out: int = 0

    @property
    def notes(self) -> tuple[Words, ...]:
        """What was not read, and what else is not in it."""
        return (*self.unread, *self.unseen)

    @property
    def exit_code(self) -> int:
        """The largest of the diagnoses; 3 if pending objects could not be seen and none of those seen is stuck."""
        if self.left_out:
            return 3
        return max((alike.diagnosis.exit_code for alike in self.found), default=0) or (3 if self.unread else 0)


def pending(
    snapshot: Snapshot, namespace: str, settings: Settings, progress: Callable[[str], None] | None = None
) -> Overview:
    """Diagnoses of all pending pods that need devices, and of pending claims that no pod uses.

    A pod needs devices through its claims, or through an extended resource that a DeviceClass names.
    ``namespace`` is empty for all. Pods that differ only in their names are diagnosed once.
    """
    groups: dict[str, list[Question]] = {}
    elsewhere = 0
    for entry in waiting(snapshot, settings):
        if namespace not in ("", entry.metadata.namespace):
            elsewhere += 1
            continue
        question = about_pod(entry, snapshot, exists=True) if isinstance(entry, Pod) else about_claim(entry)
        groups.setdefault(shape(question, snapshot), []).append(question)
    out: list[Alike] = []
    left_out = 0
    end = time.process_time() + SECONDS + len(groups) * (SECONDS_PER_SHAPE + SECONDS_PER_NODE * len(snapshot.nodes))
    for number, questions in enumerate(groups.values(), 1):
        if time.process_time() > end:
            left_out += len(questions)
            continue
        if progress is not None:
            progress(f"explaining {number} of {len(groups)}: {questions[0].kind} {questions[0].name}")
        names = tuple(f"{question.kind}/{question.name}" for question in questions)
        out.append(Alike(diagnose(questions[0], snapshot, replace(settings, with_ways=False)), names))
    unseen = (*_unseen(snapshot, namespace), *_untried(left_out))
    return Overview(namespace, tuple(out), elsewhere, unseen, tuple(_unread(snapshot, namespace, settings)), left_out)


def _untried(count: int) -> Iterator[Words]:
    if count:
        text = "not explained, because it took too long: {count:,} pods and claims; ask about one, or a namespace"
        yield say(text, count=count)


def _unseen(snapshot: Snapshot, namespace: str) -> Iterator[Words]:
    names = snapshot.namespaces
    if namespace and names and namespace not in names and snapshot.missing("Namespace", namespace) is None:
        yield say("namespace {namespace} is none of those that were read", namespace=namespace)


def _unread(snapshot: Snapshot, namespace: str, settings: Settings) -> Iterator[Unread]:
    """What could not be read of the kinds that tell what is pending."""
    stakes = [Stake(kind, namespace, _PENDING) for kind in ("Pod", "ResourceClaim")]
    if any(not pod.node_name and not pod.finished and resources_of(pod) for pod in snapshot.pods.values()):
        stakes.append(Stake("DeviceClass", "", say("whether devices serve extended resources is unknown")))
    yield from unread_of(stakes, snapshot)


def waiting(snapshot: Snapshot, settings: Settings) -> Iterator[Pod | ResourceClaim]:
    """Pods that wait for devices, then pending claims that no pod uses, in all namespaces."""
    backed = _backed(snapshot, settings)
    used: set[tuple[str, str]] = set()
    for (space, _), pod in snapshot.pods.items():
        if pod.finished:
            continue
        used |= {(space, name) for name in pod.claim_names}
        # One that is being deleted is not queued, and is shown as well: a cause says what keeps it.
        if not pod.node_name and (pod.claims or not backed.isdisjoint(resources_of(pod))):
            yield pod
    for key, claim in snapshot.claims.items():
        if claim.allocation is None and key not in used:
            yield claim


def _backed(snapshot: Snapshot, settings: Settings) -> frozenset[str]:
    """Extended resources that a class offers; while the feature is off, those that no device plugin offers."""
    names = class_by_resource(snapshot.classes).keys()
    if Features.from_gates(settings.gates).extended_resources:
        return frozenset(names)
    nodes = snapshot.nodes.values()
    return frozenset(name for name in names if not any(amount_of(node.allocatable.get(name)) for node in nodes))
