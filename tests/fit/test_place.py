"""Pods placed one after the other: how many fit, where, with which devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fit.worlds import (
    CLASS,
    HOST,
    REPLICA_SET,
    ZONE,
    claim,
    deployment,
    existing,
    fitted,
    held,
    item,
    made_claim,
    node,
    pod_spec,
    published,
    running,
    said,
    template,
    wanting,
)


def test_devices_bound_how_many_fit(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, [*node("a", 2), *node("b", 1)], [template(), deployment(5)])
    (found,) = report["items"]
    assert code == report["exitCode"] == 1
    assert found["verdict"] == "can-be-scheduled-in-part"
    assert found["podCounts"] == {"wanted": 5, "fit": 3, "running": 0, "starting": 3, "fewest": 3, "most": 3}
    assert {entry["node"]: entry["podCount"] for entry in found["byNode"]} == {"a": 2, "b": 1}
    taken = [(device["pool"], device["device"]) for one in found["placements"] for device in one["devices"]]
    assert sorted(taken) == [("a", "gpu-0"), ("a", "gpu-1"), ("b", "gpu-0")]
    assert found["stop"]["cause"] == "devices-held"
    assert found["stop"]["others"] == 1
    assert found["stop"]["pod"]["name"] == "web-3"


def test_all_fit(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, [*node("a", 2), *node("b", 1)], [template(), deployment(3)])
    assert code == 0
    assert report["items"][0]["verdict"] == "can-be-scheduled"
    assert "stop" not in report["items"][0]


@pytest.mark.parametrize(("release", "cause"), [("1.37.0", "taint-rule-without-selector"), ("1.37.1", None)])
def test_a_rule_that_a_defect_takes_for_one_of_every_device(tmp_path: Path, release: str, cause: str | None) -> None:
    spec = {"taint": {"key": "example.com/repair", "effect": "NoSchedule"}}
    rule = {"kind": "DeviceTaintRule", "apiVersion": "resource.k8s.io/v1beta2", "metadata": {"name": "r"}, "spec": spec}
    flags = ("--kubernetes-version", release, "--feature-gates", "DRADeviceTaintRules=true")
    code, report = fitted(tmp_path, [*node("a", 2), rule], [template(), deployment(2)], *flags)
    assert code == (cause is not None)
    assert report["items"][0].get("stop", {}).get("cause") == cause


def test_devices_that_others_hold_are_not_free(tmp_path: Path) -> None:
    cluster = [*node("a", 4), *running("other", "a", [0, 2])]
    assert item(tmp_path, cluster, [template(), deployment(4)])["podCounts"]["fit"] == 2


def test_other_resources_count(tmp_path: Path) -> None:
    """Devices would do for eight pods, cpu does for three on each node."""
    cluster = [*node("a", 4, cpu="8"), *node("b", 4, cpu="8"), *running("other", "a")]
    found = item(tmp_path, cluster, [template(), deployment(8, cpu="2500m")])
    assert found["podCounts"]["fit"] == 6


def test_pods_without_claims_are_placed_too(tmp_path: Path) -> None:
    found = item(tmp_path, [*node("a", pods="2"), *node("b", pods="1")], [deployment(5, gpus=0)])
    assert found["podCounts"]["fit"] == 3
    assert found["stop"]["cause"]


def test_spread_constraints_count_the_pods_before(tmp_path: Path) -> None:
    spread: dict[str, Any] = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread["labelSelector"] = {"matchLabels": {"app": "web"}}
    cluster = [*node("a", 4, zone="x"), *node("b", 1, zone="y")]
    found = item(tmp_path, cluster, [template(), deployment(5, topologySpreadConstraints=[spread])])
    assert {entry["node"]: entry["podCount"] for entry in found["byNode"]} == {"a": 2, "b": 1}


def test_anti_affinity_counts_the_pods_before(tmp_path: Path) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster = [*node("a", 4), *node("b", 4), *node("c", 4)]
    found = item(tmp_path, cluster, [template(), deployment(5, affinity=apart)])
    assert found["podCounts"]["fit"] == 3
    assert {entry["podCount"] for entry in found["byNode"]} == {1}


def test_host_ports_are_taken(tmp_path: Path) -> None:
    manifest = deployment(3)
    manifest["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    assert item(tmp_path, [*node("a", 4), *node("b", 4)], [template(), manifest])["podCounts"]["fit"] == 2


def test_a_shared_claim_is_allocated_once(tmp_path: Path) -> None:
    """All pods use one claim, so they are where its device is."""
    spec = pod_spec(0, resourceClaims=[{"name": "gpu", "resourceClaimName": "ours"}])
    manifest = deployment(5, gpus=0)
    manifest["spec"]["template"]["spec"] = spec
    cluster = [*node("a", 1, pods="3"), *node("b", 1, pods="3")]
    found = item(tmp_path, cluster, [claim("ours"), manifest])
    assert found["podCounts"]["fit"] == 3
    assert len(found["byNode"]) == 1


TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
SKEW = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": TERM["labelSelector"]}
APART: dict[str, dict[str, Any]] = {
    "cpu": {"cpu": "5"},
    "anti-affinity": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}},
    "host port": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
    "spread": {"topologySpreadConstraints": [SKEW]},
}


@pytest.mark.parametrize("allocated", [False, True])
@pytest.mark.parametrize("apart", APART.values(), ids=APART)
def test_a_shared_claim_stays_where_the_pod_before_uses_it(
    tmp_path: Path, apart: dict[str, Any], allocated: bool
) -> None:
    """The scheduler gives back a claim only as long as no pod is listed in it, so two pods apart cannot share it."""
    manifest = deployment(2, gpus=0)
    manifest["spec"]["template"]["spec"] = pod_spec(0, **apart)
    manifest["spec"]["template"]["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "ours"}]
    ours = held("ours", "a", [0]) if allocated else claim("ours")
    if allocated:
        ours["status"]["allocation"]["allocationTimestamp"] = "2026-07-01T00:00:00Z"
    found = item(tmp_path, [*node("a", 2), *node("b", 2), ours], [manifest])
    assert (found["verdict"], found["podCounts"]["fit"]) == ("can-be-scheduled-in-part", 1)
    assert found["stop"]["cause"] == "claim-allocated-elsewhere"


def test_devices_of_several_nodes_run_out_for_all(tmp_path: Path) -> None:
    cluster = [*node("a"), *node("b"), published("net", 3, allNodes=True)]
    assert item(tmp_path, cluster, [template(), deployment(6)])["podCounts"]["fit"] == 3


def test_pods_of_lower_priority_are_evicted(tmp_path: Path) -> None:
    high = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 1000}
    cluster = [high, *node("a", cpu="8"), *running("low", "a", containers=wanting("6"))]
    manifest = deployment(2, gpus=0, cpu="4", priorityClassName="high")
    found = item(tmp_path, cluster, [manifest])
    assert found["podCounts"]["fit"] == 2
    assert found["evicted"] == [{"namespace": "default", "name": "low"}]


def test_devices_are_not_freed_by_eviction(tmp_path: Path) -> None:
    high = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 1000}
    cluster = [high, *node("a", 1), *running("low", "a", [0])]
    found = item(tmp_path, cluster, [template(), deployment(1, priorityClassName="high")])
    assert found["podCounts"]["fit"] == 0
    assert found["evicted"] == []


def test_pods_that_run_already_count(tmp_path: Path) -> None:
    runs = f"{REPLICA_SET['name']}-x"
    cluster = [*node("a", 3), template(), existing(runs, pod_spec(1), "a"), made_claim(runs, "a", [0])]
    found = item(tmp_path, cluster, [deployment(4)])
    assert found["podCounts"] == {"wanted": 4, "fit": 3, "running": 1, "starting": 3, "fewest": 3, "most": 3}
    assert found["replicaCounts"]["fit"] == 3


@pytest.mark.parametrize(("kind", "runs"), [("ReplicaSet", 1), ("StatefulSet", 2)])
def test_a_pod_that_is_being_deleted_is_no_replica(tmp_path: Path, kind: str, runs: int) -> None:
    """Its successor is made at once, while it holds its device; that of a StatefulSet waits for it."""
    labels = {"pod-template-hash": "5d"} if kind == "ReplicaSet" else {}
    owner = {"kind": kind, "apiVersion": "apps/v1", "name": "web-5d" if labels else "web"}
    pods = [existing(f"web-{number}", pod_spec(1), "a", owner) for number in range(2)]
    claims = [made_claim(f"web-{number}", "a", [number]) for number in range(2)]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web", **labels}
    pods[1]["metadata"]["deletionTimestamp"] = "2026-03-01T10:00:00Z"
    wanted = deployment(2)
    if kind == "StatefulSet":
        wanted["kind"], wanted["spec"]["serviceName"] = kind, "web"
    found = item(tmp_path, [*node("a", 2), *pods, *claims, template()], [wanted])
    assert (found["podCounts"]["running"], found["podCounts"]["fit"]) == (runs, runs)


@pytest.mark.parametrize(("quota", "fit"), [({"pods": "2"}, 2), ({"count/resourceclaims.resource.k8s.io": "3"}, 3)])
def test_quotas_end_it(tmp_path: Path, quota: dict[str, str], fit: int) -> None:
    limit: dict[str, Any] = {"kind": "ResourceQuota", "apiVersion": "v1"}
    limit |= {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": quota}, "status": {"hard": quota}}
    found = item(tmp_path, [limit, *node("a", 8)], [template(), deployment(5)])
    assert found["podCounts"]["fit"] == fit
    assert found["stop"]["denied"] == ("pod" if "pods" in quota else "claim")
    assert found["stop"]["cause"]


def test_as_many_as_fit(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, [*node("a", 2), *node("b", 3)], [template(2), deployment(1, gpus=2)], "--max")
    assert code == 0
    assert report["items"][0]["replicaCounts"] == {"unit": "replica", "wanted": None, "fit": 2, "podsInEach": 1}


def test_none_fits_at_most(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, node("a", 1), [template(2), deployment(1, gpus=2)], "--max")
    assert code == 1
    assert report["items"][0]["replicaCounts"]["fit"] == 0


def test_more_replicas_than_written(tmp_path: Path) -> None:
    found = item(tmp_path, node("a", 4), [template(), deployment(1)], "--replicas", "3")
    assert found["podCounts"]["fit"] == found["podCounts"]["wanted"] == 3


def test_what_devices_take_of_the_node_counts(tmp_path: Path) -> None:
    """Eight cores: devices for four pods, but each takes two cores beside the one of its container."""
    device_takes = {"cpu": {"mapping": {"deviceMultiplier": "2"}}}
    cluster = node("a", 4, cpu="8")
    for device in cluster[1]["spec"]["devices"]:
        device["nodeAllocatableResources"] = device_takes
    words = (template(), deployment(4, cpu="1"))
    found = item(tmp_path, cluster, [*words], "--kubernetes-version", "1.37")
    assert found["podCounts"]["fit"] == 2
    assert found["stop"]["cause"] == "node-resources-for-devices"
    off = ("--kubernetes-version", "1.37", "--feature-gates", "DRANodeAllocatableResources=false")
    assert item(tmp_path, cluster, [*words], *off)["podCounts"]["fit"] == 4


def test_a_claim_of_the_manifest_is_made_where_the_namespace_allows_it(tmp_path: Path) -> None:
    """Admin access needs a label of the namespace, whether a template or the manifest has the claim."""
    space: dict[str, Any] = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default"}}
    written = claim("every")
    del written["metadata"]["uid"]
    written["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
    pods = deployment(2)
    pods["spec"]["template"]["spec"]["resourceClaims"][0] = {"name": "gpu", "resourceClaimName": "every"}
    found = item(tmp_path, [space, *node("a", 2)], [written, pods])
    assert (found["podCounts"]["fit"], found["stop"]["cause"]) == (0, "admin-access-not-allowed")
    space["metadata"]["labels"] = {"resource.kubernetes.io/admin-access": "true"}
    assert item(tmp_path, [space, *node("a", 2)], [written, pods])["podCounts"]["fit"] == 2


def test_pods_of_one_claim_take_no_shares(tmp_path: Path) -> None:
    written = claim("every")
    pods = deployment(3)
    pods["spec"]["template"]["spec"]["resourceClaims"][0] = {"name": "gpu", "resourceClaimName": "every"}
    _, out, _ = said(tmp_path, node("a", 2), [written, pods])
    assert "3 pods on a: gpu-0 (one claim, 3 pods)" in out
    assert item(tmp_path, node("a", 2), [written, pods])["byNode"][0]["deviceNames"] == ["gpu-0"]


def test_a_pod_that_names_its_node_gets_no_devices(tmp_path: Path) -> None:
    """The scheduler never sees it, so nobody allocates its claim."""
    manifest = [template(), deployment(1, nodeName="a")]
    found = item(tmp_path, [CLASS, *node("a", 2)], manifest)
    assert (found["verdict"], found["stop"]["cause"]) == ("cannot-be-scheduled", "bypassed-scheduler")
