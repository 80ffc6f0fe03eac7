"""Further kinds are read where a pod needs them, and only there."""

from __future__ import annotations

import pytest

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.kinds_to_read import VOLUME_KINDS, kinds_needed
from tools.scheduling.small_clusters import JSON, pod

BUDGET = ("PodDisruptionBudget",)


@pytest.mark.parametrize(
    "source",
    [
        {"persistentVolumeClaim": {"claimName": "data"}},
        {"ephemeral": {}},
        {"csi": {"driver": "csi.example.com"}},
        {"gcePersistentDisk": {"pdName": "d"}},
        {"awsElasticBlockStore": {"volumeID": "d"}},
        {"azureDisk": {"diskName": "d", "diskURI": "d"}},
        {"cinder": {"volumeID": "d"}},
        {"portworxVolume": {"volumeID": "d"}},
    ],
)
def test_volumes_that_a_driver_attaches(source: JSON) -> None:
    asked = Pod.from_json(pod("p", volumes=[{"name": "v", **source}]))
    assert kinds_needed(asked, None) == VOLUME_KINDS


def test_volumes_that_decide_nothing() -> None:
    asked = Pod.from_json(pod("p", volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c"}}]))
    assert kinds_needed(asked, None) == ()


@pytest.mark.parametrize(
    ("spec", "lowest", "expected"),
    [
        ({}, -10, BUDGET),
        ({"priority": 0}, 0, ()),
        ({"priority": 1000}, 0, BUDGET),
        ({"priority": 1000}, 1000, ()),
        ({"priority": 1000}, None, ()),
        ({"priority": -5}, -10, BUDGET),
        ({"priority": 1000, "preemptionPolicy": "Never"}, 0, ()),
    ],
)
def test_budgets_where_the_pod_can_evict_another(spec: JSON, lowest: int | None, expected: tuple[str, ...]) -> None:
    assert kinds_needed(Pod.from_json(pod("p", **spec)), lowest) == expected
