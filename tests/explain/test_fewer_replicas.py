"""With how many replicas of its owner a pod ends for good, and which pods end with it."""

from __future__ import annotations

import pytest

from kubectl_dra.api.meta import ObjectMeta, OwnerReference
from kubectl_dra.api.pods import Owner, Pod, PodStatus
from kubectl_dra.explain.holders import scaled_by
from kubectl_dra.explain.remedies.ending_pods import EndPods, fewer_replicas
from kubectl_dra.report.explain_commands import making

Found = tuple[int, list[int], bool, bool] | None


def _pods(phases: str) -> list[Pod]:
    """Numbered pods: R runs, P is pending, T runs and is being deleted."""
    gone = {"T": "2026-01-01T00:00:00Z"}
    return [
        Pod(
            ObjectMeta(name=f"p-{number}", namespace="x", deletion_timestamp=gone.get(phase, "")),
            status=PodStatus(phase="Pending" if phase == "P" else "Running"),
        )
        for number, phase in enumerate(phases)
    ]


@pytest.mark.parametrize(
    ("kind", "phases", "ended", "found"),
    [
        ("StatefulSet", "RRR", [2], (2, [2], False, False)),
        ("StatefulSet", "RRR", [1], (1, [1, 2], False, False)),
        ("StatefulSet", "RRR", [0], (0, [0, 1, 2], False, False)),
        ("StatefulSet", "RPR", [2], (2, [2], True, False)),
        ("Deployment", "RRR", [1], (2, [1], False, True)),
        ("Deployment", "R", [0], (0, [0], False, False)),
        ("Deployment", "RP", [0], (0, [0, 1], False, False)),
        ("Deployment", "RRT", [1], (1, [1], False, True)),
        ("Rollout", "RR", [0, 1], (0, [0, 1], False, False)),
        ("Job", "RR", [1], (0, [0, 1], False, False)),
        ("JobSet", "RR", [1], (0, [0, 1], False, False)),
        ("DaemonSet", "RR", [1], None),
        ("Notebook", "R", [0], None),
    ],
)
def test_which_pods_end(kind: str, phases: str, ended: list[int], found: Found) -> None:
    alike = _pods(phases)
    fewer = fewer_replicas(Owner(kind, "o"), [alike[number] for number in ended], alike)
    if fewer is None or found is None:
        assert fewer is None and found is None
        return
    numbers = [alike.index(pod) for pod in fewer.ended]
    assert (fewer.replicas, numbers, fewer.stays, fewer.first) == found


def _of(controller: str, labels: dict[str, str] | None = None, kind: str = "ReplicaSet") -> Pod:
    owners = (OwnerReference(kind=kind, name=controller, uid=controller, controller=True),)
    metadata = ObjectMeta(name=f"{controller}-x", namespace="x", labels=labels or {}, owners=owners)
    return Pod(metadata, status=PodStatus(phase="Running"))


def test_amid_a_rollout_no_number_of_replicas_is_known_to_end_a_pod() -> None:
    """The number is that of both ReplicaSets, and which of them loses pods is the rollout's affair."""
    old, new = _of("web-1", {"pod-template-hash": "1"}), _of("web-2", {"pod-template-hash": "2"})
    assert scaled_by(old) == scaled_by(new) == Owner("Deployment", "web")
    assert fewer_replicas(Owner("Deployment", "web"), [old], [old, new]) is None
    assert fewer_replicas(Owner("Deployment", "web"), [old], [old]) is not None


def test_a_job_that_somebody_else_resumes_is_not_suspended() -> None:
    """A JobSet resumes its Jobs, so it is suspended itself; Kueue resumes both."""
    first, second = (_of(f"train-w-{n}", {"jobset.sigs.k8s.io/jobset-name": "train"}, "Job") for n in range(2))
    assert scaled_by(first) == scaled_by(second) == Owner("JobSet", "train")
    fewer = fewer_replicas(Owner("JobSet", "train"), [first], [first, second])
    assert fewer is not None and len(fewer.ended) == 2
    (command,) = making([EndPods.by(fewer)])
    assert str(command) == """kubectl patch jobset/train -n x --type=merge -p '{"spec":{"suspend":true}}'"""
    queued = _of("train", {"kueue.x-k8s.io/podset": "main"}, "Job")
    assert fewer_replicas(Owner("Job", "train"), [queued], [queued]) is None
