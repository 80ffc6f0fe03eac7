"""Every pending claim of a namespace or cluster, with the first cause of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.case import Settings
from kubectl_dra.explain.diagnose import diagnose
from kubectl_dra.explain.model import Diagnosis
from kubectl_dra.explain.question import Question, about_claim, about_pod


@dataclass(frozen=True, slots=True)
class Alike:
    """One diagnosis that stands for several pods or claims of the same shape."""

    diagnosis: Diagnosis
    names: tuple[str, ...]


def pending(
    snapshot: Snapshot, namespace: str, settings: Settings, progress: Callable[[str], None] | None = None
) -> list[Alike]:
    """Diagnoses of all pending pods with claims, and of pending claims that no pod uses.

    ``namespace`` is empty for all. Pods that differ in nothing but their name are diagnosed once.
    """
    groups: dict[object, list[Question]] = {}
    for question in _questions(snapshot, namespace):
        groups.setdefault(_shape(question), []).append(question)
    out: list[Alike] = []
    for number, questions in enumerate(groups.values(), 1):
        if progress is not None:
            progress(f"explaining {number} of {len(groups)}: {questions[0].kind} {questions[0].name}")
        names = tuple(f"{question.kind}/{question.name}" for question in questions)
        out.append(Alike(diagnose(questions[0], snapshot, replace(settings, invocation="", with_ways=False)), names))
    return out


def _questions(snapshot: Snapshot, namespace: str) -> Iterator[Question]:
    used: set[tuple[str, str]] = set()
    for (space, _), pod in snapshot.pods.items():
        for entry in pod.claims:
            used.add((space, entry.claim_name or pod.claim_statuses.get(entry.name) or ""))
        if namespace in ("", space) and pod.claims and not pod.node_name and not pod.finished:
            yield about_pod(pod, snapshot, exists=True)
    for key, claim in snapshot.claims.items():
        if namespace in ("", key[0]) and claim.allocation is None and key not in used:
            yield about_claim(claim, snapshot)


def _shape(question: Question) -> object:
    """What makes the answer: the pod's placement and claims, without names that differ per pod."""
    pod = question.pod
    return (
        question.kind,
        question.namespace,
        None if pod is None else _placement(pod),
        tuple((state.entry, state.template, _content(state.claim)) for state in question.claims),
        tuple(cause.kind.code for cause in question.causes),
        tuple(cause.summary for state in question.claims for cause in state.causes),
    )


def _placement(pod: Pod) -> str:
    spec: Mapping[str, object] = pod.raw_spec
    keys = ("nodeSelector", "affinity", "tolerations", "schedulerName", "schedulingGates", "overhead")
    resources = [(container.name, sorted(container.requests.items())) for container in pod.containers]
    return repr([spec.get(key) for key in keys]) + repr(resources)


def _content(claim: ResourceClaim | None) -> object:
    if claim is None:
        return None
    if claim.allocation is not None:
        return claim.key
    return repr((claim.requests, claim.constraints, claim.config))
