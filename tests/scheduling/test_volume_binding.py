"""VolumeBinding: claims that keep a pod from all nodes, volumes that are elsewhere, to be matched or to be made."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.reasons import NotRead
from kubectl_dra.scheduling.volume_binding import VolumeBinding
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
    within,
    words,
)

NODES = [node("a", "z1"), node("b", "z2")]
NO_MATCH = "node(s) didn't find available persistent volumes to bind"
ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
NO_ROOM = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
STATIC = storage_class("local", provisioner="kubernetes.io/no-provisioner")


def before(*objects: JSON, spec: JSON | None = None) -> str:
    """The words with which the pod is refused as a whole."""
    plugin = asked(VolumeBinding, pod("p", **(spec or using("data"))), state([*NODES, *objects]))
    assert plugin.rejection is None or not plugin.rejection.resolvable
    return words(plugin.rejection) if plugin.rejection is not None else ""


def on_nodes(*objects: JSON, spec: JSON | None = None) -> dict[str, str]:
    return refused(VolumeBinding, pod("p", **(spec or using("data"))), state([*NODES, *objects]))


def test_a_pod_without_claims_is_not_looked_at() -> None:
    assert asked(VolumeBinding, pod("p", volumes=[{"name": "tmp", "emptyDir": {}}]), state(NODES)).skipped


def test_a_missing_claim_refuses_the_pod() -> None:
    assert before() == 'persistentvolumeclaim "data" not found'


def test_a_lost_claim_refuses_the_pod() -> None:
    lost = before(claim("data", "pv", phase="Lost"))
    assert lost == 'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'


def test_a_claim_that_is_being_deleted_refuses_the_pod() -> None:
    ending = claim("data", "pv", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert before(ending, volume("pv")) == 'persistentvolumeclaim "data" is being deleted'


@pytest.mark.parametrize(
    "unbound",
    [
        [claim("data")],
        [claim("data", storage_class="")],
        [claim("data", storage_class="gone")],
        [claim("data", storage_class="now"), storage_class("now", waits=False)],
        # The user wrote volumeName: such a claim is bound at once whatever its class says.
        [claim("data", "pv", bound=False, storage_class="later"), storage_class("later"), volume("pv")],
    ],
)
def test_an_unbound_claim_that_does_not_wait_refuses_the_pod(unbound: list[JSON]) -> None:
    assert before(*unbound) == "pod has unbound immediate PersistentVolumeClaims"


def test_the_first_bad_claim_is_named() -> None:
    assert before(claim("data"), spec=using("data", "gone")) == 'persistentvolumeclaim "gone" not found'


EPHEMERAL: JSON = {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}


def test_an_ephemeral_volume_waits_for_its_claim() -> None:
    told = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"'
    assert before(spec=EPHEMERAL) == told


def test_the_claim_of_an_ephemeral_volume_is_owned_by_the_pod() -> None:
    foreign = claim("p-scratch", "pv")
    assert before(foreign, volume("pv"), spec=EPHEMERAL) == (
        "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    )
    owners = [{"kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]
    own = claim("p-scratch", "pv", metadata={"ownerReferences": owners})
    assert on_nodes(own, volume("pv", zone="z1"), spec=EPHEMERAL) == {"b": ELSEWHERE}


def unstored(**spec: Any) -> Pod:
    """A pod with an ephemeral volume, as it is in a file."""
    claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    template = {"volumeClaimTemplate": {"spec": claim_spec}}
    raw = pod("p", volumes=[{"name": "scratch", "ephemeral": template}])
    del raw["metadata"]["uid"]
    return Pod.from_json(raw)


def test_the_claim_of_a_pod_that_is_not_stored_yet_is_assumed() -> None:
    limited = storage_class("made", allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["z2"]}]}])
    cluster = state([*NODES, limited])
    binding = VolumeBinding(unstored(storageClassName="made"), cluster)
    assert binding.rejection is None
    assert [binding.filter(entry) is None for entry in cluster.nodes.values()] == [False, True]


def test_an_assumed_claim_has_the_default_class() -> None:
    marked = {"metadata": {"name": "made", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}
    cluster = state([*NODES, {**storage_class("made"), **marked}])
    binding = VolumeBinding(unstored(), cluster)
    assert binding.rejection is None and binding.filter(cluster.nodes["a"]) is None


def test_nobody_knows_where_a_volume_is_made_at_once() -> None:
    binding = VolumeBinding(unstored(storageClassName="now"), state([*NODES, storage_class("now", waits=False)]))
    assert binding.rejection is not None and isinstance(binding.rejection.reasons[0], NotRead)


def test_a_bound_volume_is_used_where_its_node_affinity_holds() -> None:
    assert on_nodes(claim("data", "pv"), volume("pv", zone="z2", phase="Bound")) == {"a": ELSEWHERE}


def test_node_affinity_of_a_volume_reads_labels_alone() -> None:
    """The scheduler compares with the node's labels, so that a term over the node's name never holds."""
    by_name = {"required": {"nodeSelectorTerms": [{"matchFields": [within("metadata.name", "a")]}]}}
    assert set(on_nodes(claim("data", "pv"), volume("pv", nodeAffinity=by_name))) == {"a", "b"}


def test_a_volume_that_is_gone_is_told_for_each_node() -> None:
    assert on_nodes(claim("data", "pv")) == {"a": GONE, "b": GONE}


def test_a_waiting_claim_takes_a_volume_that_the_node_can_use() -> None:
    waiting = claim("data", storage_class="local")
    assert on_nodes(STATIC, waiting, volume("pv", zone="z1", storage_class="local")) == {"b": NO_MATCH}


@pytest.mark.parametrize(
    "fields",
    [
        {"size": "512Mi"},
        {"phase": "Released"},
        {"storage_class": "other"},
        {"accessModes": ["ReadOnlyMany"]},
        {"volumeMode": "Block"},
        {"claimRef": {"namespace": "default", "name": "someone"}},
        {"claimRef": {"namespace": "default", "name": "data", "uid": "of-an-older-claim"}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"volumeAttributesClassName": "fast"},
    ],
)
def test_a_volume_that_does_not_fit_the_claim_is_not_taken(fields: dict[str, Any]) -> None:
    waiting = claim("data", storage_class="local")
    assert set(on_nodes(STATIC, waiting, volume("pv", **{"storage_class": "local", **fields}))) == {"a", "b"}


def test_a_claim_selects_volumes_by_their_labels() -> None:
    waiting = claim("data", storage_class="local", selector={"matchLabels": {"tier": "gold"}})
    silver = volume("silver", zone="z1", storage_class="local", labels={"tier": "silver"})
    gold = volume("gold", zone="z2", storage_class="local", labels={"tier": "gold"})
    assert on_nodes(STATIC, waiting, silver, gold) == {"a": NO_MATCH}


def test_a_volume_made_for_the_claim_is_the_only_one_it_takes() -> None:
    waiting = claim("data", storage_class="local")
    own = volume("own", zone="z1", storage_class="local", claimRef={"namespace": "default", "name": "data"})
    other = volume("other", zone="z2", storage_class="local")
    assert on_nodes(STATIC, waiting, other, own) == {"b": NO_MATCH}


def test_two_claims_do_not_take_one_volume() -> None:
    waiting = [claim(name, storage_class="local") for name in ("data", "logs")]
    spec = using("data", "logs")
    one = volume("one", zone="z1", storage_class="local")
    assert on_nodes(STATIC, *waiting, one, spec=spec) == {"a": NO_MATCH, "b": NO_MATCH}
    two = volume("two", zone="z1", storage_class="local")
    assert on_nodes(STATIC, *waiting, one, two, spec=spec) == {"b": NO_MATCH}


def test_the_smallest_claim_chooses_first_and_takes_the_smallest_volume() -> None:
    waiting = [claim("large", size="10Gi", storage_class="local"), claim("small", size="1Gi", storage_class="local")]
    volumes = [volume("v10", "10Gi", storage_class="local"), volume("v2", "2Gi", storage_class="local")]
    cluster = state([*NODES, STATIC, *waiting, *volumes])
    binding = VolumeBinding(Pod.from_json(pod("p", **using("large", "small"))), cluster)
    matched = binding.placement(cluster.nodes["a"]).matched
    assert [(own.metadata.name, found.metadata.name) for own, found in matched] == [("small", "v2"), ("large", "v10")]


def test_a_waiting_claim_without_a_volume_gets_one_made() -> None:
    assert on_nodes(storage_class("made"), claim("data", storage_class="made")) == {}


def test_the_class_of_the_old_annotation_counts() -> None:
    waiting = claim("data", annotations={"volume.beta.kubernetes.io/storage-class": "made"}, storage_class="local")
    assert on_nodes(storage_class("made"), STATIC, waiting) == {}


def test_a_class_makes_volumes_for_its_topologies() -> None:
    limited = storage_class(
        "made", allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["z2", "z3"]}]}]
    )
    assert on_nodes(limited, claim("data", storage_class="made")) == {"a": NO_MATCH}


def test_an_empty_topology_term_allows_nothing() -> None:
    limited = storage_class("made", allowedTopologies=[{"matchLabelExpressions": []}])
    assert set(on_nodes(limited, claim("data", storage_class="made"))) == {"a", "b"}


def test_a_claim_with_a_selected_node_goes_there() -> None:
    selected = claim("data", storage_class="made", annotations={"volume.kubernetes.io/selected-node": "b"})
    assert on_nodes(storage_class("made"), selected) == {"a": NO_MATCH}


def driver(tracks: bool = True) -> JSON:
    return {"kind": "CSIDriver", "metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": tracks}}


def capacity(name: str, zone: str | None, amount: str, **fields: Any) -> JSON:
    topology = {} if zone is None else {"nodeTopology": {"matchLabels": {ZONE: zone}} if zone else {}}
    return {
        "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": "kube-system"},
        "storageClassName": "made",
        "capacity": amount,
        **topology,
        **fields,
    }


def test_a_driver_that_tracks_its_capacity_needs_room() -> None:
    objects = [storage_class("made"), claim("data", size="5Gi", storage_class="made"), driver()]
    assert on_nodes(*objects) == {"a": NO_ROOM, "b": NO_ROOM}
    assert on_nodes(*objects, capacity("c1", "z1", "10Gi"), capacity("c2", "z2", "4Gi")) == {"b": NO_ROOM}
    assert on_nodes(*objects, capacity("everywhere", "", "5Gi")) == {}
    assert on_nodes(*objects, capacity("nowhere", None, "5Gi")) == {"a": NO_ROOM, "b": NO_ROOM}
    assert on_nodes(*objects, capacity("other", "", "50Gi", storageClassName="x")) == {"a": NO_ROOM, "b": NO_ROOM}


def test_the_largest_volume_counts_before_the_capacity() -> None:
    objects = [storage_class("made"), claim("data", size="5Gi", storage_class="made"), driver()]
    assert on_nodes(*objects, capacity("c", "", "100Gi", maximumVolumeSize="4Gi")) == {"a": NO_ROOM, "b": NO_ROOM}
    assert on_nodes(*objects, capacity("c", "", "1Gi", maximumVolumeSize="5Gi")) == {}


def test_a_driver_that_does_not_track_its_capacity_is_believed() -> None:
    objects = [storage_class("made"), claim("data", storage_class="made")]
    assert on_nodes(*objects, driver(tracks=False)) == {}
    assert on_nodes(*objects) == {}


def test_a_volume_elsewhere_and_none_to_bind_are_two_reasons() -> None:
    told = on_nodes(
        STATIC,
        claim("data", "pv"),
        volume("pv", zone="z2"),
        claim("more", storage_class="local"),
        spec=using("data", "more"),
    )
    assert told == {"a": f"{ELSEWHERE}; {NO_MATCH}", "b": NO_MATCH}


def test_a_disk_of_before_csi_is_sought_by_its_drivers_zone() -> None:
    """Only where the node's CSINode says that the driver serves such disks."""
    disk = volume("pv", zone="z2", awsElasticBlockStore={"volumeID": "vol-1"})
    migrated = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"}
    csi_nodes = [{"kind": "CSINode", "metadata": {"name": "b", "annotations": migrated}, "spec": {"drivers": []}}]
    told = on_nodes(claim("data", "pv"), disk, *csi_nodes)
    assert told == {"a": ELSEWHERE, "b": ELSEWHERE}
    labelled = node("b", "z2", labels={"topology.ebs.csi.aws.com/zone": "z2"})
    cluster = state([node("a", "z1"), labelled, claim("data", "pv"), disk, *csi_nodes])
    assert refused(VolumeBinding, pod("p", **using("data")), cluster) == {"a": ELSEWHERE}
