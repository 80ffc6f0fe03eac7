"""Who uses device plugins, which devices are handed out twice, and which namespaces are ready."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kubectl_dra.command import kubectl
from kubectl_dra.migrate.device_plugins import pod_rewrite as device_plugins
from kubectl_dra.migrate.model import PlanSurroundings
from kubectl_dra.migrate.rollout.survey import LABEL, Survey, survey
from kubectl_dra.report.json_output import with_exit_code
from kubectl_dra.report.migrate_live import summary, to_json, write_survey
from tests.migrate.cluster import DRIVER, Json, device_class, node, pod, slice_of, snapshot
from tests.migrate.runs import settings

GPU = {"nvidia.com/gpu": 2}
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "migrate-live.json").read_text())
DRA = (device_class(), slice_of("new", 4), node("new"))


def look(*objects: Json, workloads: Sequence[Json] = (), namespace: str = "", **more: Any) -> Survey:
    found = survey(snapshot(objects, **more), settings(), workloads, namespace=namespace)
    jsonschema.validate(with_exit_code(to_json(found), 0), SCHEMA)
    return found


def deployment(name: str, limits: Any, replicas: int = 0, namespace: str = "ml") -> Json:
    spec = {"containers": [{"name": "main", "image": "a:1", "resources": {"limits": limits}}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "template": {"spec": spec}},
    }


@pytest.mark.parametrize(
    ("owner", "labels", "expected"),
    [
        (None, {}, "Pod p"),
        (("ReplicaSet", "infer-5d4f"), {"pod-template-hash": "5d4f"}, "Deployment infer"),
        (("ReplicaSet", "infer-5d4f"), {"rollouts-pod-template-hash": "5d4f"}, "Rollout infer"),
        (("ReplicaSet", "infer-5d4f"), {"pod-template-hash": "other"}, "ReplicaSet infer-5d4f"),
        (("ReplicaSet", "infer-5d4f"), {}, "ReplicaSet infer-5d4f"),
        (("PyTorchJob", "train"), {}, "PyTorchJob train"),
    ],
)
def test_owners(owner: tuple[str, str] | None, labels: dict[str, str], expected: str) -> None:
    (use,) = look(pod("p", GPU, owner=owner, labels=labels)).uses
    assert (use.namespace, use.owner, use.resource, use.pods, use.devices) == ("ml", expected, "nvidia.com/gpu", 1, 2)


def test_pods_of_one_owner_are_one_use() -> None:
    objects = [pod(f"p{number}", GPU, owner=("Job", "train")) for number in range(3)]
    objects += [pod("done", GPU, owner=("Job", "train"), phase="Succeeded"), pod("cpu", {"cpu": 1})]
    (use,) = look(*objects).uses
    assert (use.owner, use.pods, use.devices, use.each) == ("Job train", 3, 6, 2)


def test_workloads_without_pods_count() -> None:
    found = look(
        pod("a-1", GPU, owner=("ReplicaSet", "a-1"), labels={"pod-template-hash": "1"}),
        workloads=[deployment("a", GPU), deployment("idle", GPU), deployment("web", {"cpu": 1})],
    )
    assert [(use.owner, use.pods, use.each) for use in found.uses] == [
        ("Deployment a", 1, 2),
        ("Deployment idle", 0, 2),
    ]


def test_how_many_pods_a_workload_is_to_have() -> None:
    job = deployment("once", GPU)
    job |= {"apiVersion": "batch/v1", "kind": "Job"}
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    daemons = deployment("everywhere", GPU) | {"kind": "DaemonSet"}
    found = look(
        pod("a-1", GPU, owner=("ReplicaSet", "a-1"), labels={"pod-template-hash": "1"}),
        workloads=[deployment("a", GPU, 2), daemons, job],
    )
    assert [(use.owner, use.pods, use.wanted) for use in found.uses] == [
        ("DaemonSet everywhere", 0, None),
        ("Deployment a", 1, 2),
        ("Job once", 0, None),
    ]
    told = io.StringIO()
    write_survey(found, "never", told, plan=kubectl("dra", "migrate", "plan"))
    assert re.search(r"Deployment a +nvidia.com/gpu +1 of 2 +2 +yes", told.getvalue())


def test_twins_are_counted_each() -> None:
    twin = pod("p", GPU)
    found = look(pod("p", GPU), workloads=[twin, deployment("d", GPU, 1), deployment("d", GPU, 1)])
    assert [(use.owner, use.pods, use.devices) for use in found.uses] == [
        ("Deployment d", 0, 0),
        ("Deployment d", 0, 0),
        ("Pod p", 2, 4),
    ]
    assert found.namespaces[0].pods == 2 and summary(found).startswith("3 owners with 2 pods ")


def test_each_is_the_largest_pod_and_not_their_sum() -> None:
    def replica(count: int) -> Json:
        container = {"name": "c", "image": "a", "resources": {"limits": {"nvidia.com/gpu": count}}}
        return {"replicas": 2, "template": {"spec": {"containers": [container]}}}

    spec = {"pytorchReplicaSpecs": {"Master": replica(1), "Worker": replica(4)}}
    raw = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "t", "namespace": "ml"}}
    (use,) = look(workloads=[{**raw, "spec": spec}]).uses
    assert (use.each, use.wanted) == (4, 4)


def test_what_another_object_made_is_not_an_owner() -> None:
    made = deployment("a-1", GPU)
    made["kind"] = "ReplicaSet"
    made["metadata"]["ownerReferences"] = [{"kind": "Deployment", "name": "a", "uid": "u", "controller": True}]
    assert not look(workloads=[made]).uses


def test_init_containers_need_no_more_than_runs_at_a_time() -> None:
    raw = pod("p", GPU, initContainers=[{"name": "first", "resources": {"limits": {"nvidia.com/gpu": 5}}}])
    assert look(raw).uses[0].devices == 5


@pytest.mark.parametrize(
    ("limits", "outcome", "part"),
    [
        (GPU, "auto", ""),
        ({"aws.amazon.com/neuron": 1}, "unsafe", "MIG101"),
        ({"example.org/thing": 1}, "refused", "MIG111"),
        ({"nvidia.com/gpu.shared": 1}, "refused", "MIG112"),
    ],
)
def test_what_migrate_would_do(limits: Any, outcome: str, part: str) -> None:
    (use,) = look(pod("p", limits)).uses
    assert use.outcome == outcome and part in use.reason


def test_what_the_scheduler_serves_by_a_claim_uses_no_plugin() -> None:
    served = device_class()
    served["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    raw = pod("p", GPU, nodeName="new")
    raw["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "c", "requestMappings": []}
    assert not look(served, node("new"), raw).uses
    assert look(served, node("new", 2), raw).uses


def test_one_namespace() -> None:
    objects = (pod("p", GPU), pod("q", GPU, namespace="other"))
    assert [use.namespace for use in look(*objects, namespace="other").uses] == ["other"]
    assert [one.namespace for one in look(*objects).namespaces] == ["ml", "other"]


# --- the same device twice -------------------------------------------------------------------------


def test_clashes() -> None:
    found = look(
        device_class(), node("both", 4), slice_of("both", 4), node("plugin", 4), node("driver"), slice_of("driver", 4)
    )
    (clash,) = found.clashes
    assert (clash.node, clash.resource, clash.amount, clash.driver) == ("both", "nvidia.com/gpu", 4, DRIVER)
    assert clash.same == tuple(f"both/gpu-{index}" for index in range(4)) and clash.published == 4


def test_other_devices_of_the_driver_are_told_apart() -> None:
    found = look(device_class(), node("n", 1), slice_of("n", 3, "mig"))
    (clash,) = found.clashes
    assert (clash.same, clash.published) == ((), 3)
    partition = look(node("n", 1, resource="nvidia.com/mig-1g.5gb"), slice_of("n", 3, "mig"))
    assert len(partition.clashes[0].same) == 3


def test_other_drivers_do_not_clash() -> None:
    assert not look(device_class(), node("n", 4, resource="amd.com/gpu"), slice_of("n", 4)).clashes


# --- namespaces ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "state", "reason"),
    [
        ((*DRA, pod("p", GPU)), "ready", ""),
        ((*DRA, pod("p", {"example.org/thing": 1})), "blocked", "MIG111"),
        ((node("new"), slice_of("new", 4), pod("p", GPU)), "blocked", "no DeviceClass gpu.nvidia.com"),
        ((device_class(), node("new"), pod("p", GPU)), "blocked", "no ResourceSlice"),
        ((device_class(), node("new"), slice_of("new", 1, "mig"), pod("p", GPU)), "blocked", "no ResourceSlice"),
    ],
)
def test_states(objects: Sequence[Json], state: str, reason: str) -> None:
    (standing,) = look(*objects).namespaces
    assert standing.state == state
    assert reason in " ".join(standing.reasons) and bool(reason) == bool(standing.reasons)


def test_what_cannot_be_seen_blocks_nothing() -> None:
    found = look(pod("p", GPU), expected=("Node", "ResourceSlice", "DeviceClass"))
    assert found.namespaces[0].state == "ready"
    assert len(found.notes) == 3


def test_a_namespace_that_has_moved() -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "ml"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "labels": {LABEL: "refuse"}}}
    (standing,) = look(*DRA, template, space).namespaces
    assert (standing.state, standing.claims, standing.label) == ("migrated", 1, "refuse")
    told = io.StringIO()
    write_survey(look(*DRA, template, space), "never", told, plan=kubectl("dra", "migrate", "plan"))
    assert "0 pods with device plugins, 1 claim or template, label refuse\n" in told.getvalue()


def test_what_no_node_offers_is_used_by_nobody() -> None:
    """Without a node that has any of it there is no device plugin, and the pod waits."""
    bare, offers = node("a"), node("b", 4)
    told = io.StringIO()
    found = look(bare, pod("p", GPU))
    write_survey(found, "never", told, plan=kubectl("dra", "migrate", "plan"))
    assert [use.offered for use in found.uses] == [False] and "device plugins" not in told.getvalue()
    assert told.getvalue().startswith("Asks for what no node offers\n")
    assert summary(found).startswith("1 owner with 1 pod asks for nvidia.com/gpu, which no node offers;")
    both = look(bare, offers, pod("p", GPU), pod("q", {"amd.com/gpu": 1}, owner=("Job", "j")))
    assert {use.resource: use.offered for use in both.uses} == {"nvidia.com/gpu": True, "amd.com/gpu": False}
    said = "1 owner with 1 pod uses device plugins; 1 owner with 1 pod asks for amd.com/gpu, which no node offers;"
    assert summary(both).startswith(said)
    assert [use.offered for use in look(pod("p", GPU)).uses] == [None], "no Node was read"


HAMI = "hami-core-gpu.project-hami.io"
SHARED = pod("shared", {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 8000}, namespace="edge")


def test_the_class_is_the_one_that_migrate_writes_for_the_workload() -> None:
    """HAMi and NVIDIA have one name for two things."""
    answer = look(*DRA, pod("p", GPU), SHARED)
    became = {(use.namespace, use.resource): use.becomes and use.becomes.device_class for use in answer.uses}
    assert became == {
        ("ml", "nvidia.com/gpu"): "gpu.nvidia.com",
        ("edge", "nvidia.com/gpu"): HAMI,
        ("edge", "nvidia.com/gpumem"): HAMI,
    }
    lacks = {standing.namespace: standing.reasons for standing in answer.namespaces}
    missing = f"there is no DeviceClass {HAMI}; install the driver hami-core-gpu.project-hami.io"
    assert lacks["ml"] == () and f"nvidia.com/gpu: {missing}" in lacks["edge"]


def test_a_class_that_labels_choose_is_the_one_that_is_looked_for() -> None:
    amd = pod("p", {"amd.com/gpu": 1}, nodeSelector={"amd.com/gpu.compute-partitioning": "CPX"})
    (use,) = look(amd).uses
    step = device_plugins.plan(amd, PlanSurroundings(), settings()).steps[-1]
    assert use.becomes is not None and [use.becomes.device_class] == [
        moved_request.device_class for moved_request in step.moved
    ]


def test_quotas_of_a_namespace_count_the_classes_that_are_used_there() -> None:
    raw: Json = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "edge"}}
    hard = {"requests.nvidia.com/gpu": "8"}
    todo = [standing.todo for standing in look(*DRA, SHARED, {**raw, "spec": {"hard": hard}}).namespaces]
    key = f"{HAMI}.deviceclass.resource.k8s.io/devices"
    assert todo == [(f"ResourceQuota q counts requests.nvidia.com/gpu and no claims: add {key}",)]


def test_quotas_that_count_no_claims() -> None:
    hard = {"requests.nvidia.com/gpu": "8"}
    raw: Json = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ml"}}
    assert look(*DRA, pod("p", GPU), {**raw, "spec": {"hard": hard}}).namespaces[0].todo
    both = {**hard, "gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "8"}
    assert not look(*DRA, pod("p", GPU), {**raw, "spec": {"hard": both}}).namespaces[0].todo
