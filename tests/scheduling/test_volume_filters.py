"""Filters of volumes: disks and claims of one pod, zones, and the limit of a node."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.volume_filters import NodeVolumeLimits, VolumeLimitReached, VolumeRestrictions, VolumeZone
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

NODES = [node("a"), node("b")]
DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def with_disk(name: str, source: JSON, on: str = "") -> JSON:
    return pod(name, on, volumes=[{"name": "disk", **source}])


EBS: JSON = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
EBS_READ: JSON = {"awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": True}}
GCE: JSON = {"gcePersistentDisk": {"pdName": "pd"}}
GCE_READ: JSON = {"gcePersistentDisk": {"pdName": "pd", "readOnly": True}}
ISCSI: JSON = {"iscsi": {"iqn": "iqn.2001", "targetPortal": "x", "lun": 0}}
ISCSI_READ: JSON = {"iscsi": {"iqn": "iqn.2001", "targetPortal": "y", "lun": 3, "readOnly": True}}
RBD: JSON = {"rbd": {"monitors": ["m1", "m2"], "image": "i"}}
RBD_READ: JSON = {"rbd": {"monitors": ["m2"], "image": "i", "pool": "rbd", "readOnly": True}}


@pytest.mark.parametrize(
    ("own", "other", "conflict"),
    [
        (EBS, EBS, True),
        (EBS_READ, EBS_READ, True),
        (EBS, {"awsElasticBlockStore": {"volumeID": "vol-2"}}, False),
        (GCE, GCE, True),
        (GCE_READ, GCE, True),
        (GCE_READ, GCE_READ, False),
        (ISCSI, ISCSI_READ, True),
        (ISCSI_READ, ISCSI_READ, False),
        (RBD, RBD_READ, True),
        (RBD_READ, RBD_READ, False),
        (RBD, {"rbd": {"monitors": ["m3"], "image": "i"}}, False),
        (RBD, {"rbd": {"monitors": ["m1"], "image": "i", "pool": "other"}}, False),
        (EBS, GCE, False),
    ],
)
def test_a_disk_is_shared_by_readers_at_most(own: JSON, other: JSON, conflict: bool) -> None:
    cluster = state([*NODES, with_disk("other", other, "a")])
    assert refused(VolumeRestrictions, with_disk("p", own), cluster) == ({"a": DISK} if conflict else {})


def test_eviction_can_free_a_disk() -> None:
    cluster = state([*NODES, with_disk("other", GCE, "a")])
    plugin = asked(VolumeRestrictions, with_disk("p", GCE), cluster)
    found = plugin.filter(cluster.nodes["a"])
    assert found is not None and found.resolvable
    assert plugin.filter(cluster.nodes["a"].changed(removed=cluster.nodes["a"].pods)) is None


def test_a_pod_without_such_volumes_is_not_looked_at() -> None:
    cluster = state([*NODES, claim("data", "pv"), pod("other", "a", **using("data"))])
    assert asked(VolumeRestrictions, pod("p", **using("data")), cluster).skipped


def test_a_missing_claim_refuses_the_pod() -> None:
    plugin = asked(VolumeRestrictions, pod("p", **using("data")), state(NODES))
    assert words(plugin.rejection) == 'persistentvolumeclaim "data" not found'


def test_a_claim_of_one_pod_is_in_use_wherever_that_pod_is() -> None:
    alone = claim("data", "pv", accessModes=["ReadWriteOncePod"])
    assert asked(VolumeRestrictions, pod("p", **using("data")), state([*NODES, alone])).skipped
    cluster = state([*NODES, alone, pod("other", "a", **using("data"))])
    assert refused(VolumeRestrictions, pod("p", **using("data")), cluster) == {"a": IN_USE, "b": IN_USE}
    elsewhere = state([*NODES, alone, pod("other", "a", namespace="far", **using("data"))])
    assert asked(VolumeRestrictions, pod("p", **using("data")), elsewhere).skipped


def test_the_pod_that_uses_the_claim_can_be_evicted() -> None:
    alone = claim("data", "pv", accessModes=["ReadWriteOncePod"])
    cluster = state([*NODES, alone, pod("other", "a", **using("data"))])
    plugin = asked(VolumeRestrictions, pod("p", **using("data")), cluster)
    evicted = cluster.nodes["a"].changed(removed=cluster.nodes["a"].pods)
    found = plugin.filter(cluster.nodes["a"])
    assert found is not None and found.resolvable
    assert plugin.filter(evicted) is None


def test_pods_that_are_nominated_use_the_claim_too() -> None:
    """Here the scheduler compares claims by name alone, whatever their namespace."""
    alone = claim("data", "pv", accessModes=["ReadWriteOncePod"])
    cluster = state([*NODES, alone, pod("other", "a", **using("data"))])
    plugin = asked(VolumeRestrictions, pod("p", **using("data")), cluster)
    nominated = Pod.from_json(pod("high", namespace="far", **using("data")))
    evicted = cluster.nodes["a"].changed(removed=cluster.nodes["a"].pods, added=[nominated])
    assert words(plugin.filter(evicted)) == IN_USE


# VolumeZone: the node must have the zone and region labels of the pod's volumes.

OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
WRONG = "node(s) had no available volume zone"


def zones_told(labels: dict[str, str], *nodes: JSON) -> dict[str, str]:
    cluster = state([*nodes, claim("data", "pv"), volume("pv", labels=labels)])
    return refused(VolumeZone, pod("p", **using("data")), cluster)


def test_a_volume_without_zone_is_not_looked_at() -> None:
    cluster = state([node("a", "z1"), claim("data", "pv"), volume("pv")])
    assert asked(VolumeZone, pod("p", **using("data")), cluster).skipped


def test_the_node_is_in_the_volumes_zone() -> None:
    assert zones_told({ZONE: "z1"}, node("a", "z1"), node("b", "z2")) == {"b": WRONG}


def test_a_volume_can_be_in_several_zones() -> None:
    assert zones_told({ZONE: "z1__z2"}, node("a", "z1"), node("b", "z2"), node("c", "z3")) == {"c": WRONG}


def test_a_zone_label_with_an_empty_part_is_ignored() -> None:
    assert zones_told({ZONE: "z1__"}, node("b", "z2")) == {}


def test_a_node_without_any_such_label_takes_every_volume() -> None:
    assert zones_told({ZONE: "z1"}, node("a")) == {}


def test_a_node_with_a_region_alone_lacks_the_zone() -> None:
    assert zones_told({ZONE: "z1"}, node("a", labels={"topology.kubernetes.io/region": "r"})) == {"a": WRONG}


def test_the_old_label_of_a_volume_is_sought_in_both_forms() -> None:
    assert zones_told({OLD_ZONE: "z1"}, node("a", "z1"), node("b", "z2"), node("c", labels={OLD_ZONE: "z1"})) == {
        "b": WRONG
    }


def test_the_old_label_of_a_node_is_not_the_new_one() -> None:
    assert zones_told({ZONE: "z1"}, node("c", labels={OLD_ZONE: "z1"})) == {"c": WRONG}


def test_regions_count_too() -> None:
    assert zones_told({OLD_REGION: "r1"}, node("a", labels={"topology.kubernetes.io/region": "r2"})) == {"a": WRONG}


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


# NodeVolumeLimits: the maximum number of volumes that a node can attach per CSI driver.

FULL = "node(s) exceed max volume count"
DRIVER = "csi.example.com"


def csi_node(name: str, limit: int | None, driver: str = DRIVER, **annotations: str) -> JSON:
    allocatable = {} if limit is None else {"allocatable": {"count": limit}}
    spec = {"drivers": [{"name": driver, "nodeID": name, **allocatable}]}
    return {"kind": "CSINode", "metadata": {"name": name, "annotations": annotations}, "spec": spec}


def bound(name: str, handle: str = "", driver: str = DRIVER) -> list[JSON]:
    """A claim with its volume."""
    source = {"driver": driver, "volumeHandle": handle or f"h-{name}"}
    return [claim(name, f"pv-{name}"), volume(f"pv-{name}", phase="Bound", csi=source)]


def cluster(*objects: JSON, limit: int | None = 2, **options: Any) -> Any:
    return state([node("a"), csi_node("a", limit), *objects], **options)


def told(claims: list[str], found: Any) -> dict[str, str]:
    return refused(NodeVolumeLimits, pod("p", **using(*claims)), found)


def test_a_pod_without_volumes_of_a_driver_is_not_looked_at() -> None:
    plain = pod("p", volumes=[{"name": "x", "configMap": {"name": "c"}}])
    assert asked(NodeVolumeLimits, plain, cluster()).skipped


def test_volumes_of_pods_on_the_node_count() -> None:
    two = [*bound("one"), *bound("two"), pod("other", "a", **using("one", "two"))]
    assert told(["three"], cluster(*two, *bound("three"))) == {"a": FULL}
    assert told(["three"], cluster(*two, *bound("three"), limit=3)) == {}
    assert told(["three"], cluster(*two, *bound("three"), limit=None)) == {}
    assert told(["three"], cluster(*two, *bound("three", driver="other.example.com"))) == {}


def test_the_reason_tells_the_numbers() -> None:
    found = cluster(*bound("one"), pod("other", "a", **using("one")), *bound("two"), limit=1)
    rejection = asked(NodeVolumeLimits, pod("p", **using("two")), found).filter(found.nodes["a"])
    assert rejection is not None and rejection.resolvable
    assert rejection.reasons == (VolumeLimitReached(DRIVER, 1, 1, 1),)


def test_a_volume_that_is_attached_already_takes_no_place() -> None:
    shared = [*bound("one"), *bound("two"), pod("other", "a", **using("one", "two"))]
    assert told(["one"], cluster(*shared)) == {}
    # Two claims of one volume are one volume.
    same = [*bound("x", handle="h"), *bound("y", handle="h"), pod("more", "a", **using("x", "y"))]
    assert told(["z"], cluster(*same, *bound("z"))) == {}


def test_volumes_still_to_be_made_count_for_the_provisioner() -> None:
    made = [storage_class("made"), claim("new", storage_class="made"), claim("newer", storage_class="made")]
    assert told(["new", "newer"], cluster(*made, limit=1)) == {"a": FULL}
    assert told(["new"], cluster(*made, limit=1)) == {}


def test_a_claim_without_volume_and_class_does_not_count() -> None:
    assert told(["loose"], cluster(claim("loose"), limit=0)) == {}


def test_attached_volumes_that_no_pod_uses_count_too() -> None:
    attachment = {
        "kind": "VolumeAttachment",
        "metadata": {"name": "va"},
        "spec": {"attacher": DRIVER, "nodeName": "a", "source": {"persistentVolumeName": "pv-old"}},
    }
    old = [*bound("old"), attachment]
    assert told(["new"], cluster(*old, *bound("new"), limit=1)) == {"a": FULL}
    # The same volume in use by a pod is counted once.
    assert told(["new"], cluster(*old, pod("other", "a", **using("old")), *bound("new"))) == {}


def test_the_claim_of_an_ephemeral_volume_counts() -> None:
    owners = [{"kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]
    own = claim("p-scratch", storage_class="made", metadata={"ownerReferences": owners})
    raw = pod("p", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])
    assert refused(NodeVolumeLimits, raw, cluster(storage_class("made"), own, limit=0)) == {"a": FULL}


def test_a_foreign_claim_of_an_existing_pod_ends_the_attempt() -> None:
    stolen = pod("other", "a", volumes=[{"name": "x", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])
    found = cluster(*bound("one"), claim("other-x"), stolen)
    rejection = asked(NodeVolumeLimits, pod("p", **using("one")), found).filter(found.nodes["a"])
    assert rejection is not None and rejection.error


MIGRATED = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/portworx-volume"}
EBS_DISK = ("ebs.csi.aws.com", {"awsElasticBlockStore": {"volumeID": "aws://z1/vol-1"}})
PORTWORX = ("pxd.portworx.com", {"portworxVolume": {"volumeID": "vol-1"}})


@pytest.mark.parametrize(
    ("disk", "release", "annotations", "counts"),
    [
        (EBS_DISK, "1.35", {}, 1),
        (EBS_DISK, "1.36", {}, 1),
        (PORTWORX, "1.35", {}, 0),
        (PORTWORX, "1.35", MIGRATED, 1),
        (PORTWORX, "1.36", {}, 1),
    ],
)
def test_disks_of_before_csi_count_for_their_driver(
    disk: tuple[str, JSON], release: str, annotations: dict[str, str], counts: int
) -> None:
    """Before 1.36 the node has to say that Portworx moved to its CSI driver; the others always have."""
    name, source = disk
    asking = pod("p", volumes=[{"name": "d", **source}])
    driver = csi_node("a", 0, name, **annotations)
    assert len(refused(NodeVolumeLimits, asking, state([node("a"), driver], release=release))) == counts


@pytest.mark.parametrize(
    ("release", "gates", "prevents", "missing"),
    [
        ("1.34", [], True, False),
        ("1.36", [], True, False),
        ("1.35", ["VolumeLimitScaling"], False, True),
        ("1.36", ["VolumeLimitScaling"], False, False),
        ("1.36", ["VolumeLimitScaling"], True, True),
        ("1.37", [], True, True),
    ],
)
def test_a_driver_can_be_needed_before_its_pods(release: str, gates: list[str], prevents: bool, missing: bool) -> None:
    spec = {"preventPodSchedulingIfMissing": prevents}
    driver = {"kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": spec}
    found = state([node("a"), node("b"), csi_node("a", None), driver, *bound("one")], release=release, gates=gates)
    expected = {"b": f"{DRIVER} CSI driver is not installed on the node"} if missing else {}
    assert told(["one"], found) == expected
