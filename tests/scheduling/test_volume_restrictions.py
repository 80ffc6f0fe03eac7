"""VolumeRestrictions: disks that cannot be shared on a node, and claims of one pod alone."""

from __future__ import annotations

import pytest

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.volume_filters import VolumeRestrictions
from tools.scheduling.small_clusters import JSON, asked, claim, node, pod, refused, state, using, words

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
