"""``--what-if``, ``--all``, ``-A`` and ``--watch``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import EXAMPLES, Dra, cluster_of, write_list
from tests.taint.world import claim, device_class, gpu, pod, slice_of


@pytest.mark.parametrize(
    ("example", "question", "changes", "code"),
    [
        ("gaudi-too-few", ["pod/llama-hpu-0", "-n", "ml"], [], 1),
        ("gaudi-too-few", ["pod/llama-hpu-0", "-n", "ml"], ["count=7"], 0),
        ("gaudi-too-few", ["pod/llama-hpu-0", "-n", "ml"], ["hpu:count 7"], 0),
        ("gaudi-too-few", ["pod/llama-hpu-0", "-n", "ml"], ["free=ml/eval-hpu-0-hpu-45s44"], 0),
        ("gaudi-too-few", ["pod/llama-hpu-0", "-n", "ml"], ["free=ml/eval-hpu-1-hpu-9mw2r"], 0),
        ("gaudi-too-few", ["pod/llama-hpu-0", "-n", "ml"], ["free=eval-hpu-1-hpu-9mw2r"], 0),
        ("gaudi-too-few", ["pod/llama-hpu-0", "-n", "ml"], ["end=eval-hpu-1"], 0),
        ("all-tainted", ["pod/eval-0", "-n", "ml"], ["toleration=gpu.nvidia.com/xid=79:NoSchedule"], 0),
        ("all-tainted", ["pod/eval-0", "-n", "ml"], ["toleration gpu.nvidia.com/xid"], 0),
        ("all-tainted", ["pod/eval-0", "-n", "ml"], ["toleration=gpu.nvidia.com/xid=1"], 1),
        ("all-tainted", ["pod/eval-0", "-n", "ml"], ["untaint=h100-1/gpu-0"], 0),
        ("no-device-matches", ["pod/train-0", "-n", "ml"], ['selector=device.driver == "gpu.nvidia.com"'], 0),
        ("no-device-matches", ["pod/train-0", "-n", "ml"], ["selector=none", "count=5"], 1),
        ("class-missing", ["pod/whisper-0", "-n", "inference"], ["class=gpu.nvidia.com"], 0),
        ("cpu-capacity-exhausted", ["pod/upf-2", "-n", "ran"], ["capacity=dra.cpu/cpu=24"], 0),
        ("cpu-capacity-exhausted", ["pod/upf-2", "-n", "ran"], ["capacity=dra.cpu/cpu=25"], 1),
    ],
)
def test_what_if(
    dra: Dra, monkeypatch: pytest.MonkeyPatch, example: str, question: list[str], changes: list[str], code: int
) -> None:
    monkeypatch.chdir(EXAMPLES / example)
    supposed = [word for change in changes for word in ("--what-if", change)]
    ran = dra("explain", *question, "--snapshot", "cluster.yaml", *supposed)
    assert ran.code == code, ran.out
    assert ran.out.count("supposed: ") == len(changes)


def test_a_fix_takes_the_place_of_what_is_supposed_of_the_same_field(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "cpu-capacity-exhausted")
    words = ("explain", "pod/upf-2", "-n", "ran", "--snapshot", "cluster.yaml")
    supposed = ("--what-if", "cpus:capacity=dra.cpu/cpu=25", "--what-if", "cpus:toleration=a:NoSchedule")
    (line,) = [line for line in dra(*words, *supposed).out.splitlines() if "$ kubectl dra explain" in line]
    assert "cpu=24" in line and "cpu=25" not in line and "cpus:toleration=a:NoSchedule" in line


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: inference}
spec:
  parallelism: 4
  template:
    spec:
      restartPolicy: Never
      resourceClaims: [{name: g, resourceClaimTemplateName: l40s}]
      containers: [{name: c, image: x, resources: {claims: [{name: g}]}}]
"""


def test_a_fix_takes_the_place_of_a_change_that_names_no_request(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is only one request, so both mean the same field."""
    monkeypatch.chdir(EXAMPLES / "no-device-matches")
    words = ("explain", "pod/train-0", "-n", "ml", "--snapshot", "cluster.yaml", "--what-if")
    ran = dra(*words, 'selector=device.attributes["gpu.nvidia.com"].architecture == "Hopper"')
    (line,) = [line for line in ran.out.splitlines() if "$ kubectl dra explain" in line]
    assert "Ampere" in line and "Hopper" not in line


def test_all_pods_of_a_workload_are_counted_in_a_changed_cluster(
    dra: Dra, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(EXAMPLES / "all-held")
    (tmp_path / "job.yaml").write_text(JOB)
    words = ("explain", "-f", str(tmp_path / "job.yaml"), "--snapshot", "cluster.yaml", "--what-if")
    ran = dra(*words, "free=research/scratch-gpu")
    assert ran.code == 1, ran.out
    # A pod that waits may take what is supposed to be free.
    first = "1 of 4 pods of Job inference/j fits; 0 to 1 pods have room, depending on whether pod inference/sdxl-"
    assert ran.flat.startswith(first), ran.out
    assert "kubectl dra fit" not in ran.out, "fit knows no --what-if"
    # All of them make a changed request.
    ran = dra(*words, "count=2")
    assert ran.code == 1 and ran.out.startswith("None of the 4 pods of Job inference/j fits.\n"), ran.out
    assert "this is one of the pods" not in ran.out


TWO_DEPLOYMENTS = "".join(
    f"""
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: inference}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      resourceClaims: [{{name: g, resourceClaimTemplateName: gpus}}]
      containers: [{{name: c, image: x, resources: {{claims: [{{name: g}}]}}}}]
"""
    for name in ("a", "b")
)
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus, namespace: inference}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: COUNT}}]}}}
"""


@pytest.mark.parametrize(("count", "code"), [(1, 0), (2, 1)])
def test_workloads_of_one_manifest_do_not_get_the_same_devices(
    dra: Dra, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, count: int, code: int
) -> None:
    """Two devices are free: both Deployments have one pod, and the second is placed after the first."""
    monkeypatch.chdir(EXAMPLES / "all-held")
    (tmp_path / "two.yaml").write_text(TEMPLATE.replace("COUNT", str(count)) + TWO_DEPLOYMENTS)
    ran = dra("explain", "-f", str(tmp_path / "two.yaml"), "--snapshot", "cluster.yaml")
    assert ran.code == code, ran.out
    assert ("Deployment inference/b does not fit" in ran.out) == bool(code), ran.out
    assert ran.out.count("looked at with the others of the manifest on their nodes") == (0 if code else 2), ran.out
    assert "looked at by itself" not in ran.out, ran.out
    assert code or ran.out.count("t4-1/gpu-0") == 1, ran.out
    if code:
        assert "inference/a-0-gpu" in ran.out or "inference/a-0-g" in ran.out, ran.out


def test_a_pod_that_is_being_deleted_is_not_deleted_again(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "all-held")
    words = ("explain", "pod/sdxl-66d9f7b8c-h7m6r", "-n", "inference", "--snapshot", "cluster.yaml", "--what-if")
    assert "\nNext: kubectl dra explain pod/video-prep-1 -n research" in dra(*words, "end=research/video-prep-1").out
    assert "kubectl delete pod/rl-agent-3 -n research" in dra(*words, "end=research/rl-agent-3").out


def test_a_pod_that_is_made_again_is_not_to_be_deleted(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "mixed-fleet")
    ran = dra("explain", "pod/serve-0", "-n", "ml", "--snapshot", "cluster.yaml", "--what-if", "end=ml/bert-0")
    assert ran.code == 0 and "kubectl delete" not in ran.out
    assert "StatefulSet bert makes pod ml/bert-0 again, which wants its devices back" in ran.flat
    assert "kubectl get statefulset/bert -n ml" in ran.out


def test_held_devices_beside_tainted_ones_are_not_all_that_match(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "taint-rule-maintenance")
    ran = dra("explain", "pod/eval-3", "-n", "ml", "--snapshot", "cluster.yaml", "--what-if", "untaint=h100-1/gpu-0")
    assert "the only device without a taint that matches request" in ran.flat, ran.out


def test_a_capacity_needs_no_domain_where_one_is_meant(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "cpu-capacity-exhausted")
    words = ("explain", "pod/upf-2", "-n", "ran", "--snapshot", "cluster.yaml", "--what-if")
    assert [dra(*words, f"capacity=cpu={amount}").code for amount in (24, 25)] == [0, 1]
    ran = dra(*words, "capacity=cpus=24")
    assert ran.code == 2 and "no device has capacity cpus" in ran.err


def test_what_is_free_by_a_change_may_be_in_use(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim is not free as long as pods use it, and who makes them again wants it back."""
    monkeypatch.chdir(EXAMPLES / "every-alternative-fails")
    words = ("explain", "pod/sft-0", "-n", "ml", "--snapshot", "cluster.yaml", "--what-if", "free=eval-0-gpu-bdcwk")
    said = dra(*words).flat
    assert "pod ml/eval-0 uses claim ml/eval-0-gpu-bdcwk and has to end before it is free" in said
    said = dra(*words, "--what-if", "end=eval-0").flat
    assert "has to end before" not in said


def test_a_pod_of_the_manifests_namespace_is_made_again(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "nic-gpu-pcie-root")
    ran = dra("explain", "-f", "manifest.yaml", "--snapshot", "cluster.yaml", "--what-if", "end=nccl-0")
    assert "Job nccl makes pod ml/nccl-0 again" in ran.flat and "kubectl delete" not in ran.out


def test_only_no_constraints_can_be_supposed(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "nic-gpu-pcie-root")
    words = ("explain", "-f", "manifest.yaml", "--snapshot", "cluster.yaml", "--what-if")
    ran = dra(*words, "constraints=resource.kubernetes.io/numaNode")
    assert ran.code == 2 and "only constraints=none can be supposed" in " ".join(ran.err.split())


def test_what_if_drops_constraints(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "nic-gpu-pcie-root")
    words = ["explain", "-f", "manifest.yaml", "--snapshot", "cluster.yaml"]
    assert dra(*words).code == 1
    assert dra(*words, "--what-if", "constraints=none").code == 0


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("cout=7", 'did you mean "count"'),
        ("count", "count=N"),
        ("count=many", "positive number"),
        ("count=0", "positive number"),
        ("gpus:count=2", "there are: hpu"),
        ("free=ml/nobody", "there are: "),
        ("untaint=gpu-99", "pool/device"),
        ("capacity=memory=lots", "quantities"),
        ("hpu:free=ml/x", "not about one request"),
        ("end=llama-hpu-0", "that is the pod that is asked about"),
    ],
)
def test_what_if_that_makes_no_sense(dra: Dra, monkeypatch: pytest.MonkeyPatch, change: str, expected: str) -> None:
    monkeypatch.chdir(EXAMPLES / "gaudi-too-few")
    ran = dra("explain", "pod/llama-hpu-0", "-n", "ml", "--snapshot", "cluster.yaml", "--what-if", change)
    assert ran.code == 2 and expected in ran.err and not ran.out


def pending_pods(source: str, copies: int) -> list[dict[str, Any]]:
    """The objects of an example, with its pending pod several times."""
    items: list[dict[str, Any]] = yaml.safe_load((EXAMPLES / source / "cluster.yaml").read_text())["items"]
    pod = next(item for item in items if item["kind"] == "Pod" and not item["spec"].get("nodeName"))
    name = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    claim = next(item for item in items if item["kind"] == "ResourceClaim" and item["metadata"]["name"] == name)
    for number in range(copies):
        copied = json.loads(json.dumps([pod, claim]))
        for item in copied:
            item["metadata"].update(name=f"{item['metadata']['name']}-{number}", uid=f"{item['kind']}-{number}")
        copied[0]["status"]["resourceClaimStatuses"][0]["resourceClaimName"] = copied[1]["metadata"]["name"]
        copied[1]["metadata"]["ownerReferences"][0].update(name=copied[0]["metadata"]["name"], uid=f"Pod-{number}")
        items.extend(copied)
    return items


def test_all_pending_claims_in_one_table(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(pending_pods("gaudi-too-few", 3)))
    ran = dra("explain", "-A", "--snapshot", "cluster.yaml")
    assert ran.code == 1
    answer, _, header, row, *_ = ran.out.splitlines()
    assert answer == "4 pods are stuck"
    assert header.split() == ["NAMESPACE", "NAME", "VERDICT", "CAUSE", "REASON"]
    assert "pod/llama-hpu-0 and 3 more" in row and "too-few-on-one-node" in row
    nothing = dra("explain", "--all", "-n", "default", "--snapshot", "cluster.yaml")
    assert nothing.code == 0
    assert nothing.out.startswith("No claim is pending in namespace default; 4 in other namespaces.\n")
    assert nothing.out.endswith("Next: kubectl dra explain -A --snapshot cluster.yaml\n")
    result = dra("explain", "-A", "--snapshot", "cluster.yaml", "-o", "json").valid("explain")
    assert len(result["items"][0]["standsFor"]) == 4


@pytest.mark.parametrize("words", [["pod/x", "--all"], ["-A", "--watch"], ["-A", "--what-if", "count=1"]])
def test_all_goes_alone(dra: Dra, words: list[str]) -> None:
    ran = dra("explain", *words)
    assert ran.code == 2 and ("--all" in ran.err or "-A" in ran.err)


def test_watch_ends_when_the_claim_is_allocated(dra: Dra, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    items = yaml.safe_load((EXAMPLES / "no-device-matches" / "cluster.yaml").read_text())["items"]
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(items))
    name = "train-0-gpu-d5rtn"
    ticks: list[float] = []

    def allocate(seconds: float) -> None:
        """Stands for time that passes: at the second look the claim is allocated."""
        ticks.append(seconds)
        if len(ticks) == 2:
            claim = next(item for item in items if item["metadata"]["name"] == name)
            result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "gpu-1", "device": "gpu-2"}
            claim["status"] = {"allocation": {"devices": {"results": [result]}}}
            path.write_text(yaml.safe_dump_all(items))

    monkeypatch.setattr("kubectl_dra.cli.explain.run.time.sleep", allocate)
    ran = dra("explain", f"claim/{name}", "-n", "ml", "--snapshot", "cluster.yaml", "--watch")
    assert ran.code == 0 and len(ticks) == 2
    assert ran.out.count("cannot be allocated") == 1, "an answer that does not change is printed once"
    assert ran.out.count("is allocated") == 1


def test_watch_ends_when_the_pod_is_deleted(dra: Dra, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    items = yaml.safe_load((EXAMPLES / "no-device-matches" / "cluster.yaml").read_text())["items"]
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(items))

    def delete(seconds: float) -> None:
        path.write_text(yaml.safe_dump_all(item for item in items if item["kind"] != "Pod"))

    monkeypatch.setattr("kubectl_dra.cli.explain.run.time.sleep", delete)
    ran = dra("explain", "pod/train-0", "-n", "ml", "--snapshot", "cluster.yaml", "--watch")
    assert ran.code == 2 and "error: Pod ml/train-0 was deleted while it was watched" in ran.err
    assert ran.out.count("cannot be scheduled") == 1


def test_watch_ends_when_the_pod_has_ended(dra: Dra, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    items = yaml.safe_load((EXAMPLES / "no-device-matches" / "cluster.yaml").read_text())["items"]
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(items))

    def end(seconds: float) -> None:
        pod = next(item for item in items if item["kind"] == "Pod" and item["metadata"]["name"] == "train-0")
        pod["status"]["phase"] = "Failed"
        path.write_text(yaml.safe_dump_all(items))

    monkeypatch.setattr("kubectl_dra.cli.explain.run.time.sleep", end)
    ran = dra("explain", "pod/train-0", "-n", "ml", "--snapshot", "cluster.yaml", "--watch")
    assert ran.code == 1
    assert "Pod ml/train-0 has ended (Failed)." in ran.out


def test_kind_and_name_as_two_words(dra: Dra) -> None:
    snapshot = ("--snapshot", cluster_of("no-device-matches"))
    one = dra("explain", "pod/train-0", "-n", "ml", *snapshot)
    two = dra("explain", "pod", "train-0", "-n", "ml", *snapshot)
    assert (one.code, one.out) == (two.code, two.out) and one.code == 1
    three = dra("explain", "pod", "train-0", "train-1", "-n", "ml", *snapshot)
    assert three.code == 2 and "Pod train-1 does not exist in namespace ml" in three.err


def saved(folder: Path, example: str, *kinds: str) -> str:
    """A file with the objects of some kinds of an example; its name."""
    items = yaml.safe_load((EXAMPLES / example / "cluster.yaml").read_text())["items"]
    kept = [item for item in items if item["kind"] in kinds]
    (folder / "part.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": kept}))
    return str(folder / "part.yaml")


def test_a_change_that_is_only_supposed_does_not_come_by_waiting(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "no-device-matches")
    change = 'selector=device.attributes["gpu.nvidia.com"].architecture == "Ampere"'
    words = ["explain", "pod/train-0", "-n", "ml", "--snapshot", "cluster.yaml", "--what-if"]
    ran = dra(*words, change)
    assert ran.code == 0
    assert ran.out.startswith("Pod ml/train-0 could be scheduled with this change: its claims would fit on 3 nodes")
    assert "waiting-for-retry" not in ran.out and "Wait up to" not in ran.out
    assert "write the change into a new template" in ran.out
    assert ran.out.endswith(
        "Next (in the cluster, not the snapshot): kubectl get resourceclaimtemplate/a100-80gb -n ml -o yaml\n"
    )
    found = dra(*words, change, "-o", "json").valid("explain")
    assert found["supposed"] == [change] and found["causes"] == []
    still = dra(*words, "count=2")
    assert still.code == 1 and "cannot be scheduled with this change: " in still.out


@pytest.mark.parametrize(
    ("example", "question", "change", "expected"),
    [
        (
            "gaudi-too-few",
            "pod/llama-hpu-0",
            "free=ml/eval-hpu-0-hpu-45s44",
            "kubectl dra explain claim/eval-hpu-0-hpu-45s44 -n ml --snapshot cluster.yaml",
        ),
        ("all-tainted", "pod/eval-0", "untaint=h100-1/gpu-0", "kubectl dra taint --list --snapshot cluster.yaml"),
    ],
)
def test_the_next_command_is_about_the_change(
    dra: Dra, monkeypatch: pytest.MonkeyPatch, example: str, question: str, change: str, expected: str
) -> None:
    monkeypatch.chdir(EXAMPLES / example)
    ran = dra("explain", question, "-n", "ml", "--snapshot", "cluster.yaml", "--what-if", change)
    assert ran.code == 0 and ran.out.endswith(f"Next: {expected}\n")
    assert dra(*expected.split()[2:]).code in (0, 1)


def test_untaint_needs_one_device(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "all-tainted")
    ran = dra("explain", "pod/eval-0", "-n", "ml", "--snapshot", "cluster.yaml", "--what-if", "untaint=gpu-0")
    assert ran.code == 2 and '"gpu-0" names 3 devices' in ran.err and not ran.out


def test_untaint_spares_a_device_of_a_rule_for_its_pool(dra: Dra, tmp_path: Path) -> None:
    """The rule keeps the other devices."""
    items = yaml.safe_load((EXAMPLES / "taint-rule-maintenance" / "cluster.yaml").read_text())["items"]
    for raw in (item for item in items if item["kind"] == "ResourceClaim"):
        raw["status"] = {}
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(items))
    words = ["explain", "pod/eval-3", "-n", "ml", "--snapshot", str(tmp_path / "cluster.yaml"), "-o", "json"]
    tainted = dra(*words).valid("explain")
    assert tainted["verdict"] == "cannot-be-scheduled"
    free = dra(*words, "--what-if", "untaint=h100-1/gpu-2").valid("explain")
    assert free["verdict"] == "can-be-scheduled"
    (placed,) = free["placements"][0]["devices"]
    assert (placed["driver"], placed["pool"], placed["device"]) == ("gpu.nvidia.com", "h100-1", "gpu-2")


@pytest.mark.parametrize(
    ("kinds", "code", "expected"),
    [
        (["ResourceSlice", "DeviceClass"], 3, "Undetermined: there is no Pod in what was read, so what is pending"),
        (["ResourceSlice", "ConfigMap", "Node"], 3, "there is no ResourceClaim in what was read"),
        (["ResourceSlice", "DeviceClass", "ResourceClaim"], 1, "there is no Pod in what was read"),
    ],
)
def test_all_says_what_it_could_not_see(dra: Dra, tmp_path: Path, kinds: list[str], code: int, expected: str) -> None:
    part = saved(tmp_path, "no-device-matches", *kinds)
    ran = dra("explain", "-A", "--snapshot", part)
    assert ran.code == code and expected in ran.out
    found = dra("explain", "-A", "--snapshot", part, "-o", "json").valid("explain")
    assert found["exitCode"] == code and any("there is no Pod in what was read" in note for note in found["notes"])
    assert "there is no Pod in what was read" in dra("explain", "-A", "--snapshot", part, "-o", "html").out


def test_all_lists_pods_that_wait_for_extended_resources(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "extended-resource")
    ran = dra("explain", "-A", "--snapshot", "cluster.yaml")
    assert ran.code == 1 and "1 pod is stuck" in ran.out
    row = ran.out.splitlines()[3]
    assert row.split()[:6] == ["media", "pod/render-2", "cannot", "be", "scheduled", "devices-held"]
    off = dra("explain", "-A", "--snapshot", "cluster.yaml", "--feature-gates", "DRAExtendedResource=false")
    assert off.code == 0 and "No claim is pending." in off.out, "a device plugin offers the resource"


def test_fewer_of_an_extended_resource_is_said_of_its_limit(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "extended-resource")
    ran = dra("explain", "pod/render-2", "-n", "media", "--snapshot", "cluster.yaml")
    flat = ran.flat
    assert "Lower the limit of nvidia.com/gpu in container main to 1" in flat and "count" not in flat


def test_the_next_command_of_all_keeps_its_flags(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "no-device-matches")
    flags = ["--node", "gpu-1", "--kubernetes-version", "1.35"]
    ran = dra("explain", "-A", *flags, "--snapshot", "cluster.yaml")
    expected = f"kubectl dra explain pod/train-0 -n ml {' '.join(flags)} --snapshot cluster.yaml"
    assert ran.out.endswith(f"Next: {expected}\n")
    assert dra(*expected.split()[2:]).code == 1


def test_an_allocated_claim_fits_only_where_it_can_be_used(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "no-device-matches")
    words = ["explain", "claim/bert-eval-0-gpu-gsmgs", "-n", "ml", "--snapshot", "cluster.yaml", "-o", "json"]
    found = dra(*words).valid("explain")
    assert found["verdict"] == "allocated"
    assert {group["outcome"]: group["nodes"] for group in found["nodeGroups"]}["allocated"] == ["gpu-1"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["deployment/train"], "kubectl describe deployment/train -n default"),
        (["some/good.yaml"], "kubectl dra explain -f some/good.yaml"),
        (["claim/a100-80gb", "-n", "ml"], "write template/a100-80gb"),
        (["pod/train-0-gpu-d5rtn", "-n", "ml"], "write claim/train-0-gpu-d5rtn"),
        (["claim/train-0", "-n", "ml"], "write pod/train-0"),
        (["-A", "--request", "gpu"], "--request needs one pod or claim"),
        (["-A", "--verify"], "--verify needs one pod or claim"),
        (["-A", "--devices"], "needs -o json"),
    ],
)
def test_a_question_that_cannot_be_asked_says_how_to(
    dra: Dra, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: str
) -> None:
    monkeypatch.chdir(EXAMPLES / "no-device-matches")
    ran = dra("explain", *words, "--snapshot", "cluster.yaml")
    assert ran.code == 2 and expected in ran.err and not ran.out


def test_labels_of_nodes_that_may_not_be_read_refuse_nobody(dra: Dra, tmp_path: Path) -> None:
    """Of a node that only a slice names nobody knows whether it has the label; the row of the table says so, too."""
    waiting = pod("p", "c", node_name="")
    waiting["spec"]["nodeSelector"] = {"zone": "a"}
    items = [device_class(), slice_of("n1", gpu("gpu-0")), claim("c"), waiting]
    read = ["Pod", "ResourceClaim", "ResourceClaimTemplate", "DeviceTaintRule", "Namespace", "ResourceQuota", "Event"]
    said = {"schemaVersion": "1", "read": read, "gaps": [{"kind": "Node", "reason": "forbidden"}]}
    path = write_list(tmp_path / "cluster.json", items, **said)
    alone = dra("explain", "pod/p", "-n", "team", "--snapshot", path)
    assert alone.code == 3 and alone.out.startswith("Pod team/p: undetermined"), alone.out
    table = dra("explain", "-A", "--snapshot", path)
    row = table.flat
    assert table.code == 3 and "undetermined no-eligible-node no Nodes could be read" in row


def test_what_is_counted_as_stuck_is_called_stuck(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a pod that has its devices and cannot end."""
    monkeypatch.chdir(EXAMPLES / "all-held")
    ran = dra("explain", "-A", "--snapshot", "cluster.yaml")
    assert "2 pods are stuck" in ran.out
    (row,) = (line for line in ran.out.splitlines() if "pod/video-prep-1" in line)
    assert row.split()[2:4] == ["allocated,", "stuck"] and "gpu-3 until the kubelet of node l40s-1" in row


def test_a_fix_names_the_path_in_the_manifest(dra: Dra, tmp_path: Path) -> None:
    """Who edits a CronJob looks for the field where its pods' template has it."""
    cluster = cluster_of("devices-on-tainted-nodes")
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], "resourceClaims": claims}
    made = {"spec": {"template": {"spec": spec}}}
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]
    objects = [
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "namespace": "serving"},
         "spec": {"schedule": "0 1 * * *", "jobTemplate": made}},
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
         "metadata": {"name": "gpu", "namespace": "serving"}, "spec": {"spec": {"devices": {"requests": requests}}}},
    ]  # fmt: skip
    (tmp_path / "job.yaml").write_text(yaml.safe_dump_all(objects))
    ran = dra("explain", "-f", "job.yaml", "--snapshot", cluster)
    assert "spec.jobTemplate.spec.template.spec.tolerations of CronJob serving/nightly: [{key: sku" in ran.flat
