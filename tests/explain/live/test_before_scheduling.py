"""Pods that the scheduler does not get to judge, or judges before any device: nobody says much, explain does."""

from __future__ import annotations

import pytest

from tools.controlplane.client import Json
from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.objects import cel_selectors, claims_of, device, request, resource_object
from tools.live.command import Answer
from tools.live.proved import device_path
from tools.live.referee import Referee
from tools.live.releases import needs

GATE = [{"name": "example.com/wait"}]


def gpus(cluster: Cluster, count: int = 1) -> str:
    """A node with devices, and their class."""
    cluster.publish([device(f"gpu-{index}") for index in range(count)], pool="pool", node=cluster.node())
    return cluster.device_class()


def silent(referee: Referee, cause: str, name: str = "pod") -> Answer:
    """Explain names one `cause`; Kubernetes says nothing on the pod."""
    answer = referee.explain(f"pod/{name}")
    assert (answer.code, answer.causes) == (1, [cause]), answer.text
    condition = referee.scheduling(name)
    assert condition.get("reason") != "SchedulerError"
    assert condition.get("message", "") == ""
    return answer


def test_gated(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = gpus(cluster)
    cluster.pod(templates={"gpu": cluster.template([request(gpu)])}, schedulingGates=GATE)
    wait(lambda: claims_of(cluster.get("Pod", "pod", "v1"))["gpu"], "the claim")
    before = referee.explain("pod/pod")
    assert (before.code, before.causes) == (1, ["scheduling-gated"])
    assert referee.scheduling("pod")["reason"] == "SchedulingGated"
    cluster.api.patch(_in(cluster, _pod()), {"spec": {"schedulingGates": None}})
    referee.same(before, cluster.scheduled("pod"))


def test_claim_missing_then_made(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = gpus(cluster)
    cluster.pod(claims={"gpu": "absent"})
    silent(referee, "claim-missing")
    claim = cluster.claim([request(gpu)], "absent")
    assert cluster.scheduled("pod").devices("gpu") == ["pool/gpu-0"], claim


def test_template_missing_then_made(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = gpus(cluster)
    cluster.pod(templates={"gpu": "absent"})
    message = referee.event("pod", "FailedResourceClaimCreation")
    answer = silent(referee, "template-missing")
    assert message in [word["message"] for word in answer.report["scheduler"]]
    cluster.template([request(gpu)], "absent")
    assert cluster.scheduled("pod").devices("gpu") == ["pool/gpu-0"]


def test_template_named_as_a_claim(referee: Referee) -> None:
    cluster = referee.cluster
    template = cluster.template([request(gpus(cluster))])
    cluster.pod(claims={"gpu": template})
    answer = silent(referee, "claim-missing")
    assert f"resourceClaimTemplateName: {template}" in answer.report["causes"][0]["fix"]["text"]


def test_quota_denies_the_claim(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = gpus(cluster, 2)
    cluster.quota({f"{gpu}.deviceclass.resource.k8s.io/devices": "1"})
    cluster.pod(templates={"gpu": cluster.template([request(gpu, count=2)])})
    message = referee.event("pod", "FailedResourceClaimCreation")
    answer = silent(referee, "claim-quota-exceeded")
    cause = answer.report["causes"][0]
    assert message.rpartition("is forbidden: ")[2] in cause["text"]
    assert cause["evidence"][0]["value"] == message
    assert "exceeded quota" in message


def test_admin_access_without_the_label(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = gpus(cluster)
    cluster.allow_admin_access()
    template = cluster.template([request(gpu, adminAccess=True)])
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.namespace}}
    cluster.api.patch(namespace, {"metadata": {"labels": {"resource.kubernetes.io/admin-access": None}}})
    cluster.pod(templates={"gpu": template})
    message = referee.event("pod", "FailedResourceClaimCreation")
    answer = silent(referee, "admin-access-not-allowed")
    assert "admin access to devices requires" in message
    assert message in answer.report["causes"][0]["text"]


def test_claim_deleted_while_in_use(referee: Referee) -> None:
    cluster = referee.cluster
    claim = cluster.claim([request(gpus(cluster))])
    cluster.scheduled(cluster.pod("one", claims={"gpu": claim}))
    cluster.api.delete(_in(cluster, resource_object("ResourceClaim", claim)))
    assert cluster.get("ResourceClaim", claim)["metadata"]["deletionTimestamp"]
    cluster.pod("two", claims={"gpu": claim})
    silent(referee, "claim-being-deleted", "two")


def test_class_missing_then_made(referee: Referee) -> None:
    cluster = referee.cluster
    gpus(cluster)
    name = cluster.name("absent")
    cluster.pod(claims={"gpu": cluster.claim([request(name)])})
    message = cluster.unschedulable("pod")
    assert f"request gpu: device class {name} does not exist" in message
    answer = referee.explain("pod/pod")
    assert (answer.code, answer.causes) == (1, ["class-missing"])
    assert message in [word["message"] for word in answer.report["scheduler"]]
    cluster.device_class("absent")
    assert cluster.scheduled("pod").devices("gpu") == ["pool/gpu-0"]


def test_class_missing_in_a_subrequest(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = gpus(cluster)
    name = cluster.name("absent")
    listed = [{"name": "a", "deviceClassName": gpu}, {"name": "b", "deviceClassName": name}]
    cluster.pod(claims={"gpu": cluster.claim([{"name": "gpu", "firstAvailable": listed}])})
    assert f"request gpu/b: device class {name} does not exist" in cluster.unschedulable("pod")
    answer = referee.explain("pod/pod")
    assert (answer.code, answer.causes) == (1, ["class-missing"])
    assert answer.report["causes"][0]["request"] == "gpu/b"


@pytest.mark.parametrize(
    ("count", "reason", "text"),
    [(1, "Unschedulable", "cannot allocate all claims"), (2, "SchedulerError", "claim")],
    ids=["one device", "two devices"],
)
def test_claim_listed_twice(referee: Referee, count: int, reason: str, text: str) -> None:
    cluster = referee.cluster
    claim = cluster.claim([request(gpus(cluster, count))])
    cluster.pod(claims={"one": claim, "two": claim})
    message = referee.condition("pod", reason, text)
    answer = referee.explain("pod/pod")
    assert (answer.code, answer.causes) == (1, ["claim-listed-twice"]), f"{message}\n{answer.text}"


@pytest.mark.parametrize(
    ("spec", "cause"),
    [({"nodeName": "NODE"}, "bypassed-scheduler"), ({"schedulerName": "other"}, "other-scheduler")],
    ids=["bound by hand", "another scheduler"],
)
def test_past_the_scheduler(referee: Referee, spec: Json, cause: str) -> None:
    cluster = referee.cluster
    claim = cluster.claim([request(gpus(cluster))])
    spec = {key: cluster.name("node") if value == "NODE" else value for key, value in spec.items()}
    cluster.pod(claims={"gpu": claim}, **spec)
    # A scheduler that is only asked for gets its time.
    wait(lambda: referee.explain("pod/pod").code == 1 or None, "that to count as stuck")
    assert silent(referee, cause).report["claims"][0]["state"] == "pending"


def test_ended(referee: Referee) -> None:
    cluster = referee.cluster
    claim = cluster.claim([request(gpus(cluster))])
    cluster.scheduled(cluster.pod(claims={"gpu": claim}))
    cluster.api.patch(_in(cluster, _pod()), {"status": {"phase": "Succeeded"}}, "status")
    wait(lambda: "allocation" not in cluster.get("ResourceClaim", claim)["status"] or None, "the device to be free")
    answer = referee.explain("pod/pod")
    assert (answer.code, answer.causes) == (1, ["pod-finished"])


def test_without_claims(referee: Referee) -> None:
    cluster = referee.cluster
    cluster.node()
    cluster.scheduled(cluster.pod())
    answer = referee.explain("pod/pod")
    assert (answer.code, answer.causes) == (0, [])


def test_claim_before_and_after(referee: Referee) -> None:
    cluster = referee.cluster
    claim = cluster.claim([request(gpus(cluster))])
    before = referee.explain(f"claim/{claim}", "--node", cluster.name("node"))
    assert (before.code, before.report["verdict"]) == (0, "can-be-scheduled")
    scheduled = cluster.scheduled(cluster.pod(claims={claim: claim}))
    referee.same(before, scheduled)
    after = referee.explain(f"claim/{claim}")
    assert (after.code, after.report["verdict"]) == (0, "allocated")


def test_everything_in_one_manifest(referee: Referee) -> None:
    cluster = referee.cluster
    cluster.publish([device("gpu-0"), device("gpu-1")], pool="pool", node=cluster.node())
    gpu = cluster.name("new")
    objects = [
        resource_object("DeviceClass", gpu, {"selectors": cel_selectors([f'device.driver == "{cluster.driver}"'])}),
        _in(cluster, resource_object("ResourceClaim", "claim", {"devices": {"requests": [request(gpu)]}})),
        _in(
            cluster,
            resource_object("ResourceClaimTemplate", "template", {"spec": {"devices": {"requests": [request(gpu)]}}}),
        ),
        _in(cluster, {**_pod(), "spec": cluster.pod_spec(claims={"a": "claim"}, templates={"b": "template"})}),
    ]
    before = referee.explain_manifest(*objects)
    assert before.code == 0, before.text
    for raw in objects:
        cluster.create(raw)
    referee.same(before, cluster.scheduled("pod"))


def test_binding_conditions(referee: Referee) -> None:
    cluster = referee.cluster
    needs(cluster.plane, "DRADeviceBindingConditions")
    gpu = cluster.device_class()
    conditions: Json = {"bindingConditions": ["example.com/ready"], "bindingFailureConditions": ["example.com/broken"]}
    cluster.publish([device("gpu-0", **conditions)], pool="pool", node=cluster.node())
    claim = cluster.claim([request(gpu)])
    cluster.pod(claims={"gpu": claim}, schedulingGates=GATE)
    before = referee.explain("pod/pod")
    cluster.api.patch(_in(cluster, _pod()), {"spec": {"schedulingGates": None}})
    message = referee.event("pod", "BindingConditionsPending")

    waiting = referee.explain("pod/pod")
    assert (waiting.code, waiting.causes) == (1, ["binding-condition-pending"]), waiting.text
    assert message in [word["message"] for word in waiting.report["scheduler"]]

    ready = {"type": "example.com/ready", "status": "True", "reason": "Ready", "message": ""}
    ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    state = {"driver": cluster.driver, "pool": "pool", "device": "gpu-0", "conditions": [ready]}
    cluster.api.patch(_in(cluster, resource_object("ResourceClaim", claim)), {"status": {"devices": [state]}}, "status")
    referee.same(before, cluster.scheduled("pod"))


# Extended resources


def limits(amounts: dict[str, str]) -> list[Json]:
    return [{"name": "main", "image": "example.com/none", "resources": {"requests": amounts, "limits": amounts}}]


def test_extended_resource_of_a_class(referee: Referee) -> None:
    cluster = referee.cluster
    needs(cluster.plane, "DRAExtendedResource")
    cluster.publish([device("gpu-0"), device("gpu-1")], pool="pool", node=cluster.node())
    name = f"{cluster.namespace}.example.com/gpu"
    cluster.device_class(extendedResourceName=name)
    pod = {**_pod(), "spec": {**cluster.pod_spec(), "containers": limits({name: "2"})}}
    before = referee.explain_manifest(_in(cluster, pod))
    assert before.code == 0, before.text
    cluster.create(pod)
    cluster.scheduled("pod")
    made = cluster.get("Pod", "pod", "v1")["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    results = cluster.get("ResourceClaim", made)["status"]["allocation"]["devices"]["results"]
    theirs = [f"{result['request']}: {result['driver']}/{result['pool']}/{result['device']}" for result in results]
    (placement,) = before.report["placements"]
    assert [f"{each['request']}: {device_path(each)}" for each in placement["devices"]] == theirs
    after = referee.explain("pod/pod")
    assert (after.code, after.report["verdict"]) == (0, "allocated"), after.text


def test_extended_resource_exhausted(referee: Referee) -> None:
    cluster = referee.cluster
    needs(cluster.plane, "DRAExtendedResource")
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    name = f"{cluster.namespace}.example.com/gpu"
    cluster.device_class(extendedResourceName=name)
    for pod in ("one", "two"):
        cluster.pod(pod, containers=limits({name: "1"}))
        if pod == "one":
            cluster.scheduled(pod)
    message = cluster.unschedulable("two")
    answer = referee.explain("pod/two")
    assert (answer.code, answer.causes) == (1, ["devices-held"]), f"{message}\n{answer.text}"


def test_extended_resource_unknown(referee: Referee) -> None:
    cluster = referee.cluster
    cluster.node()
    name = f"{cluster.namespace}.example.com/gpu"
    cluster.pod(containers=limits({name: "1"}))
    message = cluster.unschedulable("pod")
    answer = referee.explain("pod/pod")
    assert f"Insufficient {name}" in message
    assert (answer.code, answer.causes) == (1, ["extended-resource-unknown"]), f"{message}\n{answer.text}"


def test_extended_resource_of_a_device_plugin(referee: Referee) -> None:
    cluster = referee.cluster
    name = f"{cluster.namespace}.example.com/gpu"
    cluster.node(allocatable={name: "1"})
    cluster.device_class(extendedResourceName=name)
    for pod in ("one", "two"):
        cluster.pod(pod, containers=limits({name: "1"}))
        if pod == "one":
            cluster.scheduled(pod)
    message = cluster.unschedulable("two")
    answer = referee.explain("pod/two")
    assert f"Insufficient {name}" in message
    assert (answer.code, answer.causes) == (1, ["device-plugin-exhausted"]), f"{message}\n{answer.text}"


def _pod() -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}}


def _in(cluster: Cluster, obj: Json) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "namespace": cluster.namespace}}
