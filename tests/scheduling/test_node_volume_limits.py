"""NodeVolumeLimits: how many volumes of a CSI driver a node attaches."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.scheduling.volume_filters import NodeVolumeLimits, VolumeLimitReached
from tools.scheduling.small_clusters import JSON, asked, claim, node, pod, refused, state, storage_class, using, volume

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
EBS = ("ebs.csi.aws.com", {"awsElasticBlockStore": {"volumeID": "aws://z1/vol-1"}})
PORTWORX = ("pxd.portworx.com", {"portworxVolume": {"volumeID": "vol-1"}})


@pytest.mark.parametrize(
    ("disk", "release", "annotations", "counts"),
    [
        (EBS, "1.35", {}, 1),
        (EBS, "1.36", {}, 1),
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
