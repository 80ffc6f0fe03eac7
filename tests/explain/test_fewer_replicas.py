"""With how many replicas of its owner a pod ends for good, and which pods end with it."""

from __future__ import annotations

import pytest

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.pods import Owner, Pod, PodStatus
from kubectl_dra.explain.remedies.fewer_replicas import fewer_replicas

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
