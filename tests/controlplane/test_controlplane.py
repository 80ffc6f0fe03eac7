from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from kubectl_dra.api.releases import GROUP, Release, gate_default, parse_release, versions_of
from tools.controlplane.client import ApiError, Json
from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.objects import claims_of, device, request
from tools.controlplane.plane import ControlPlane, own_plane, release_of
from tools.controlplane.program import Program, kubernetes_version


def test_version_served_is_the_one_built_in(control_plane: ControlPlane, control_plane_program: Program) -> None:
    if not control_plane_program.built:
        pytest.skip("ready-made programs have a version of their own")
    assert control_plane.api().request("GET", "/version")["gitVersion"] == f"v{kubernetes_version()}"


def test_gates_and_versions_can_be_added(control_plane_program: Program, tmp_path: Path) -> None:
    if not control_plane_program.built:
        pytest.skip("ready-made programs are started with a profile only")
    _needs("DRAListTypeAttributes", parse_release(kubernetes_version()))
    arguments = [
        "--profile=defaults",
        "--feature-gates=DRAListTypeAttributes=true",
        "--runtime-config=resource.k8s.io/v1beta1=true",
    ]
    listed = {"models": {"strings": ["a", "b"]}}
    with own_plane(control_plane_program, arguments, tmp_path) as plane:
        assert set(plane.api().versions("resource.k8s.io")) == {"v1", "v1beta1"}
        share = Cluster(plane, "gates")
        (name,) = share.publish([device("gpu-0", listed)], pool="pool")
        assert share.get("ResourceSlice", name)["spec"]["devices"][0]["attributes"] == listed


def test_default_gates_refuse_list_attributes(api_cluster: Cluster) -> None:
    _needs("DRAListTypeAttributes", release_of(api_cluster.plane))
    with pytest.raises(ApiError, match="422"):
        api_cluster.publish([device("gpu-0", {"models": {"strings": ["a", "b"]}})], pool="pool")


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("v1", "Pod"), ("v1", "Node"), ("resource.k8s.io/v1", "ResourceSlice"), ("apps/v1", "Deployment")],
)
def test_restricted_user_is_refused(control_plane: ControlPlane, api_version: str, kind: str) -> None:
    assert isinstance(control_plane.api("admin").list(api_version, kind), list)
    with pytest.raises(ApiError) as refused:
        control_plane.api("restricted").list(api_version, kind)
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")
    assert 'User "restricted" cannot list resource' in refused.value.message


def test_a_grant_gives_the_restricted_user_just_that(api_cluster: Cluster) -> None:
    api_cluster.grant(["get", "list"], ["resourceclaims.resource.k8s.io"])
    restricted = api_cluster.plane.api("restricted")

    def listed() -> list[Json] | None:
        try:
            return restricted.list("resource.k8s.io/v1", "ResourceClaim", api_cluster.namespace)
        except ApiError:
            return None

    assert wait(listed, "the role to be known") == []
    with pytest.raises(ApiError, match="403"):
        restricted.list("resource.k8s.io/v1", "ResourceClaim", "default")
    with pytest.raises(ApiError, match="403"):
        restricted.list("v1", "Pod", api_cluster.namespace)


def test_unknown_fields_are_refused(api_cluster: Cluster) -> None:
    with pytest.raises(ApiError, match=r'unknown field "spec\.devices\.requests\[0\]\.exactly\.cuont"'):
        api_cluster.claim([request("gpu", cuont=2)])


def test_pod_gets_the_device_its_claim_selects(cluster: Cluster) -> None:
    node = cluster.node()
    gpu = cluster.device_class()
    devices = [device(f"gpu-{i}", {"model": model}) for i, model in enumerate(["a", "a", "b", "a"])]
    cluster.publish(devices, pool="pool", node=node, slices=2)
    claim = cluster.claim([request(gpu, selectors=[f'device.attributes["{cluster.driver}"].model == "b"'])])

    scheduled = cluster.scheduled(cluster.pod(claims={"gpu": claim}))

    assert scheduled.node == node
    assert scheduled.devices("gpu") == ["pool/gpu-2"]
    assert cluster.get("Pod", "pod", "v1")["status"]["phase"] == "Pending"
    reserved = cluster.get("ResourceClaim", claim)["status"]["reservedFor"]
    assert [consumer["name"] for consumer in reserved] == ["pod"]


def test_pod_that_fits_nowhere_gets_the_schedulers_message(cluster: Cluster) -> None:
    node = cluster.node()
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=node)
    pod = cluster.pod(claims={"gpu": cluster.claim([request(gpu, count=2)])})

    message = cluster.unschedulable(pod)

    assert "cannot allocate all claims" in message
    assert message in cluster.failed_scheduling(pod)


def test_next_generation_of_a_pool_unblocks_a_pod(cluster: Cluster) -> None:
    node = cluster.node()
    gpu = cluster.device_class()
    old = cluster.publish([device("gpu-0")], pool="pool", node=node)
    pod = cluster.pod(claims={"gpu": cluster.claim([request(gpu, count=2)])})
    cluster.unschedulable(pod)

    cluster.publish([device("gpu-0"), device("gpu-1")], pool="pool", node=node, generation=2)
    cluster.withdraw(old)

    assert cluster.scheduled(pod).devices("gpu") == ["pool/gpu-0", "pool/gpu-1"]


def test_incomplete_pool_is_not_used(cluster: Cluster) -> None:
    if not release_of(cluster.plane).at_least(35):
        pytest.skip("up to 1.34 an incomplete pool is used")
    node = cluster.node()
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=node, slice_count=2)
    pod = cluster.pod(claims={"gpu": cluster.claim([request(gpu)])})
    assert "cannot allocate all claims" in cluster.unschedulable(pod)


def test_claims_are_made_from_templates(cluster: Cluster) -> None:
    node = cluster.node()
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0"), device("gpu-1")], pool="pool", node=node)
    template = cluster.template([request(gpu)])

    placed = [cluster.scheduled(cluster.pod(name, templates={"gpu": template})) for name in ("one", "two")]

    assert sorted(scheduled.devices("gpu")[0] for scheduled in placed) == ["pool/gpu-0", "pool/gpu-1"]
    made = claims_of(cluster.get("Pod", "one", "v1"))["gpu"]
    assert made is not None
    owner = cluster.get("ResourceClaim", made)["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("Pod", "one")


def test_claim_is_freed_when_its_pod_is_gone(cluster: Cluster) -> None:
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    first = cluster.pod("first", templates={"gpu": cluster.template([request(gpu)])})
    cluster.scheduled(first)
    second = cluster.pod("second", claims={"gpu": cluster.claim([request(gpu)])})
    assert "cannot allocate all claims" in cluster.unschedulable(second)

    cluster.api.delete(cluster.get("Pod", first, "v1"), grace_seconds=0)

    assert cluster.scheduled(second).devices("gpu") == ["pool/gpu-0"]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("apps/v1", "Deployment", {"replicas": 2}),
        ("apps/v1", "StatefulSet", {"replicas": 1, "serviceName": "none"}),
        ("apps/v1", "DaemonSet", {}),
        ("batch/v1", "Job", {"parallelism": 2, "completions": 2}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_workloads_make_pods_that_get_scheduled(cluster: Cluster, api_version: str, kind: str, spec: Json) -> None:
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0"), device("gpu-1")], pool="pool", node=cluster.node())
    pod_spec = cluster.pod_spec(templates={"gpu": cluster.template([request(gpu)])})
    labels = {"app": "test"}
    if kind == "Job":
        pod_spec["restartPolicy"] = "Never"
    else:
        spec = {**spec, "selector": {"matchLabels": labels}}
    spec = {**spec, "template": {"metadata": {"labels": labels}, "spec": pod_spec}}
    cluster.create({"apiVersion": api_version, "kind": kind, "metadata": {"name": "work"}, "spec": spec})

    expected = 1 if kind in ("StatefulSet", "DaemonSet") else 2

    def made() -> list[Json] | None:
        pods = cluster.api.list("v1", "Pod", cluster.namespace, labelSelector="app=test")
        return pods if len(pods) == expected else None

    for pod in wait(made, f"{expected} pods of the {kind}"):
        assert len(cluster.scheduled(pod["metadata"]["name"]).devices("gpu")) == 1


def taint_rule(cluster: Cluster, effect: str) -> Json:
    version, *_ = versions_of("DeviceTaintRule", release_of(cluster.plane))
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": cluster.name("rule")},
        "spec": {
            "deviceSelector": {"driver": cluster.driver, "pool": "pool", "device": "gpu-0"},
            "taint": {"key": "example.com/broken", "effect": effect},
        },
    }


def test_rule_with_no_execute_evicts(cluster: Cluster) -> None:
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0"), device("gpu-1")], pool="pool", node=cluster.node())
    template = cluster.template([request(gpu)])
    pods = [cluster.pod(name, templates={"gpu": template}) for name in ("one", "two")]
    held = {cluster.scheduled(pod).devices("gpu")[0]: pod for pod in pods}

    cluster.create(taint_rule(cluster, "NoExecute"))

    def evicted() -> Json | None:
        pod = cluster.get("Pod", held["pool/gpu-0"], "v1")
        return pod if "deletionTimestamp" in pod["metadata"] else None

    conditions = wait(evicted, "the eviction")["status"]["conditions"]
    reasons = {condition["type"]: condition.get("reason") for condition in conditions}
    assert reasons["DisruptionTarget"] == "DeletionByDeviceTaintManager"
    assert "deletionTimestamp" not in cluster.get("Pod", held["pool/gpu-1"], "v1")["metadata"]


def test_rule_with_no_schedule_keeps_pods_away_until_it_is_deleted(cluster: Cluster) -> None:
    rule = cluster.create(taint_rule(cluster, "NoSchedule"))
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    pod = cluster.pod(claims={"gpu": cluster.claim([request(gpu)])})
    assert "cannot allocate all claims" in cluster.unschedulable(pod)

    cluster.api.delete(rule)

    assert cluster.scheduled(pod).devices("gpu") == ["pool/gpu-0"]


def test_quota_limits_devices_of_a_class(cluster: Cluster) -> None:
    gpu = cluster.device_class()
    cluster.quota({f"{gpu}.deviceclass.resource.k8s.io/devices": "2"})
    cluster.claim([request(gpu, count=2)], "fits")

    def refused() -> str | None:
        # The server hears of a quota by a watch of its own, and lets everything pass until then.
        try:
            cluster.claim([request(gpu)], "too-many")
        except ApiError as error:
            return str(error)
        cluster.api.delete(cluster.get("ResourceClaim", "too-many"))
        return None

    assert re.search(r"403 Forbidden: .*exceeded quota: quota", wait(refused, "the quota to be enforced"))


def test_pool_status_request_is_answered(cluster: Cluster) -> None:
    _needs("DRAResourcePoolStatus", release_of(cluster.plane))
    cluster.publish([device("gpu-0"), device("gpu-1")], pool="pool", node=cluster.node())
    name = cluster.name("ask")
    api_version = "resource.k8s.io/v1alpha3"
    cluster.create(
        {
            "apiVersion": api_version,
            "kind": "ResourcePoolStatusRequest",
            "metadata": {"name": name},
            "spec": {"driver": cluster.driver},
        }
    )

    def answered() -> Json | None:
        return cluster.get("ResourcePoolStatusRequest", name, api_version).get("status")

    (pool,) = wait(answered, "the answer")["pools"]
    assert (pool["poolName"], pool["totalDevices"]) == ("pool", 2)


def test_admin_access_needs_the_namespace_label(api_cluster: Cluster) -> None:
    with pytest.raises(ApiError, match=r"403|422"):
        api_cluster.claim([request("gpu", adminAccess=True)])
    api_cluster.allow_admin_access()
    claim = wait(lambda: _try_admin_claim(api_cluster), "the label to be known")
    assert api_cluster.get("ResourceClaim", claim)["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"]


def _try_admin_claim(cluster: Cluster) -> str | None:
    try:
        return cluster.claim([request("gpu", adminAccess=True)])
    except ApiError:
        return None


def test_nodes_stay_ready(cluster: Cluster) -> None:
    name = cluster.node()
    time.sleep(1)
    node = cluster.get("Node", name, "v1")
    assert "taints" not in node["spec"]
    assert [(condition["type"], condition["status"]) for condition in node["status"]["conditions"]] == [
        ("Ready", "True")
    ]


def test_removed_namespace_disappears_with_its_bound_pods(control_plane: ControlPlane, cluster: Cluster) -> None:
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    cluster.scheduled(cluster.pod(templates={"gpu": cluster.template([request(gpu)])}))
    api = control_plane.api()
    assert _named(api.list("v1", "Namespace"), cluster.namespace)

    cluster.remove()

    name = cluster.namespace
    wait(lambda: None if _named(api.list("v1", "Namespace"), name) else True, f"namespace {name} to go")


def test_unknown_profile_is_an_error(control_plane_program: Program) -> None:
    ended = subprocess.run(
        [*control_plane_program.command, "--profile=half"], capture_output=True, text=True, check=False
    )
    assert ended.returncode != 0
    assert "half" in ended.stderr
    assert ended.stdout == ""


def _needs(gate: str, release: Release) -> None:
    if gate_default(gate, release) is None:
        pytest.skip(f"Kubernetes {release} has no {gate}")


def _named(objects: list[Json], name: str) -> list[Json]:
    return [raw for raw in objects if raw["metadata"]["name"] == name]
