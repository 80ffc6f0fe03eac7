"""VolumeZone: zone and region labels of volumes."""

from __future__ import annotations

import pytest

from kubectl_dra.scheduling.volume_filters import VolumeZone
from tools.scheduling.small_clusters import (
    JSON,
    ZONE,
    asked,
    claim,
    node,
    pod,
    refused,
    state,
    storage_class,
    using,
    volume,
    words,
)

OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
WRONG = "node(s) had no available volume zone"


def told(labels: dict[str, str], *nodes: JSON) -> dict[str, str]:
    cluster = state([*nodes, claim("data", "pv"), volume("pv", labels=labels)])
    return refused(VolumeZone, pod("p", **using("data")), cluster)


def test_a_volume_without_zone_is_not_looked_at() -> None:
    cluster = state([node("a", "z1"), claim("data", "pv"), volume("pv")])
    assert asked(VolumeZone, pod("p", **using("data")), cluster).skipped


def test_the_node_is_in_the_volumes_zone() -> None:
    assert told({ZONE: "z1"}, node("a", "z1"), node("b", "z2")) == {"b": WRONG}


def test_a_volume_can_be_in_several_zones() -> None:
    assert told({ZONE: "z1__z2"}, node("a", "z1"), node("b", "z2"), node("c", "z3")) == {"c": WRONG}


def test_a_zone_label_with_an_empty_part_is_ignored() -> None:
    assert told({ZONE: "z1__"}, node("b", "z2")) == {}


def test_a_node_without_any_such_label_takes_every_volume() -> None:
    assert told({ZONE: "z1"}, node("a")) == {}


def test_a_node_with_a_region_alone_lacks_the_zone() -> None:
    assert told({ZONE: "z1"}, node("a", labels={"topology.kubernetes.io/region": "r"})) == {"a": WRONG}


def test_the_old_label_of_a_volume_is_sought_in_both_forms() -> None:
    assert told({OLD_ZONE: "z1"}, node("a", "z1"), node("b", "z2"), node("c", labels={OLD_ZONE: "z1"})) == {"b": WRONG}


def test_the_old_label_of_a_node_is_not_the_new_one() -> None:
    assert told({ZONE: "z1"}, node("c", labels={OLD_ZONE: "z1"})) == {"c": WRONG}


def test_regions_count_too() -> None:
    assert told({OLD_REGION: "r1"}, node("a", labels={"topology.kubernetes.io/region": "r2"})) == {"a": WRONG}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        ([claim("data", "pv")], 'persistentvolume "pv" not found'),
        ([claim("data")], "PersistentVolumeClaim had no pv name and storageClass name"),
        ([claim("data", storage_class="x")], 'storageclass.storage.k8s.io "x" not found'),
        ([claim("data", storage_class="x"), storage_class("x", waits=False)], "PersistentVolume had no name"),
    ],
)
def test_a_claim_whose_volume_cannot_be_told_refuses_the_pod(objects: list[JSON], expected: str) -> None:
    plugin = asked(VolumeZone, pod("p", **using("data")), state([node("a", "z1"), *objects]))
    assert words(plugin.rejection) == expected


def test_a_volume_names_its_claim() -> None:
    plugin = asked(VolumeZone, pod("p", **using("")), state([node("a", "z1")]))
    assert words(plugin.rejection) == "PersistentVolumeClaim had no name"


def test_a_waiting_claim_has_no_zone_yet() -> None:
    cluster = state([node("a", "z1"), claim("data", storage_class="later"), storage_class("later")])
    assert asked(VolumeZone, pod("p", **using("data")), cluster).skipped


def test_claims_of_ephemeral_volumes_are_not_looked_at() -> None:
    raw = pod("p", volumes=[{"name": "x", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])
    assert asked(VolumeZone, raw, state([node("a", "z1")])).skipped
