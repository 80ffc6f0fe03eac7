"""Ways of sharing devices: the manifest of each, and how many pods run with it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from referencing import Registry, Resource

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.fit.sharing_parts import amounts_for, most_of, partitioning, why_no_partition
from kubectl_dra.report.phrases import written
from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra
from tests.fit.test_existing import REPLICAS, two_run_and_one_waits
from tests.fit.worlds import CLASS, deployment, node, write_cluster
from tests.ran import unwrapped

Dra = Callable[..., Ran]
Json = dict[str, Any]
SAMPLES = Path(__file__).parents[2] / "docs" / "samples"
NOTEBOOKS = str(SAMPLES / "notebooks.yaml")
SCHEMAS = SAMPLES.parents[1] / "schemas"
FLEET = str(SAMPLES / "alignment.yaml")
"""Two of four H100 are free."""
SHARED_CPUS = str(SAMPLES.parents[1] / "examples" / "explain" / "cpu-capacity-exhausted" / "cluster.yaml")
"""Several claims have shares of each device."""


def cluster(tmp_path: Path, *devices: Json, driver: str = "gpu.example.com", **classes: str) -> str:
    """A node with these devices of a driver, and classes by their selectors."""
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": "n1", "pool": pool, "devices": list(devices)}
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    api = "resource.k8s.io/v1"
    items: list[Json] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": allocatable}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        {"apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": "n1"}, "spec": spec},
    ]
    for name, text in (classes or {"gpu": f"device.driver == '{driver}'"}).items():
        selectors = [{"cel": {"expression": text}}]
        metadata = {"name": name.replace("_", ".")}
        items.append({"apiVersion": api, "kind": "DeviceClass", "metadata": metadata, "spec": {"selectors": selectors}})
    read = ["ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "DeviceTaintRule", "Pod", "Node"]
    read += ["Namespace", "ResourceQuota", "Event", "LimitRange", "ServiceAccount", "PriorityClass", "RuntimeClass"]
    told = {"schemaVersion": "1", "serverVersion": "v1.36.2", "read": read}
    account = {"name": "default", "namespace": "default"}
    items.append({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    (path := tmp_path / "cluster.yaml").write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "kubectl-dra": told, "items": items})
    )
    return str(path)


def schema_of_share() -> Any:
    contents = [json.loads((SCHEMAS / name).read_text()) for name in ("share.json", "claims.json", "explain.json")]
    registry: Any = Registry().with_resources((content["$id"], Resource.from_contents(content)) for content in contents)
    return jsonschema.Draft202012Validator(contents[0], registry=registry)


def test_a_template_makes_pods_wait_and_one_claim_does_not(dra: Dra) -> None:
    ran = dra("share", "-f", NOTEBOOKS, "--snapshot", FLEET)
    assert ran.code == 0 and ran.out.startswith(
        "4 pods, class gpu.nvidia.com: there is not a device for each; all would be placed by claim, by time-slices"
    )
    rows = {line.split()[0]: line.split()[1:4] for line in ran.out.splitlines() if " of 4 " in line}
    assert rows["each"] == ["2", "of", "4"] and rows["claim"] == ["4", "of", "4"]
    assert ran.out.splitlines()[-1].endswith(f"{NOTEBOOKS} --snapshot {FLEET} --by claim")


def test_what_is_written_fits_and_passes_lint(dra: Dra, tmp_path: Path) -> None:
    ran = dra("share", "-f", NOTEBOOKS, "--snapshot", FLEET, "--by", "claim")
    claim, deployment = yaml.safe_load_all(ran.out)
    assert (claim["kind"], claim["spec"]["devices"]["requests"][0]["name"]) == ("ResourceClaim", "gpu")
    (entry,) = deployment["spec"]["template"]["spec"]["resourceClaims"]
    assert entry == {"name": "gpu", "resourceClaimName": "notebook-gpu"}
    assert "# any GPU will do" in ran.out, "what need not change stays"
    assert ran.err == "note: 4 of 4 pods fit with it, by the scheduler's steps\n"
    (shared := tmp_path / "shared.yaml").write_text(ran.out)
    assert dra("fit", "-f", str(shared), "--snapshot", FLEET).code == 0
    assert dra("fit", "-f", NOTEBOOKS, "--snapshot", FLEET).code == 1
    assert " error " not in dra("lint", str(shared), "--snapshot", FLEET).out


@pytest.mark.parametrize(
    ("by", "strategy", "gate"), [("time-slices", "TimeSlicing", "TimeSlicingSettings"), ("mps", "MPS", "MPSSupport")]
)
def test_a_driver_s_configuration_names_its_gate(dra: Dra, by: str, strategy: str, gate: str) -> None:
    ran = dra("share", "-f", NOTEBOOKS, "--snapshot", FLEET, "--by", by)
    claim = next(yaml.safe_load_all(ran.out))
    (config,) = claim["spec"]["devices"]["config"]
    assert config["requests"] == ["gpu"]
    parameters = config["opaque"]["parameters"]
    assert (parameters["kind"], parameters["sharing"]["strategy"]) == ("GpuConfig", strategy)
    assert f"--set featureGates.{gate}=true" in ran.err.replace("\n  ", " ")


def test_partitions_are_the_largest_of_which_there_are_enough(dra: Dra, tmp_path: Path) -> None:
    parts = [("3g.20gb", "20Gi", 1), ("2g.10gb", "10Gi", 3)]
    devices = [
        {
            "name": f"mig-{profile.partition('.')[0]}-{number}",
            "attributes": {"type": {"string": "mig"}, "profile": {"string": profile}},
            "capacity": {"memory": {"value": memory}},
        }
        for profile, memory, count in parts
        for number in range(count)
    ]
    selector = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == '{}'"
    classes = {"gpu_nvidia_com": selector.format("gpu"), "mig_nvidia_com": selector.format("mig")}
    saved = cluster(tmp_path, *devices, driver="gpu.nvidia.com", **classes)
    ran = dra("share", "--class", "gpu.nvidia.com", "--pods", "3", "--snapshot", saved, "--by", "partitions")
    exactly = next(yaml.safe_load_all(ran.out))["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert (
        exactly["deviceClassName"] == "mig.nvidia.com" and '"2g.10gb"' in exactly["selectors"][0]["cel"]["expression"]
    )
    assert ran.code == 0


def test_amounts_of_a_device_that_several_claims_may_have(dra: Dra, tmp_path: Path) -> None:
    shared = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "40Gi"}}}
    saved = cluster(tmp_path, shared)
    words = ("share", "--class", "gpu", "--pods", "4", "--snapshot", saved, "--by", "capacity")
    assert "say with --part how much of memory a pod gets (a device has 40Gi)" in dra(*words).err.replace("\n  ", " ")
    ran = dra(*words, "--part", "10Gi")
    exactly = next(yaml.safe_load_all(ran.out))["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly["capacity"] == {"requests": {"memory": "10Gi"}} and ran.code == 0
    assert "DRAConsumableCapacity" not in ran.err, "the release has it on"
    off = dra(*words, "--part", "10Gi", "--feature-gates", "DRAConsumableCapacity=false")
    assert "DRAConsumableCapacity of the control plane and the kubelets" in unwrapped(off.err)
    assert dra(*words, "--part", "15Gi").code == 1, "two of 15Gi have room in 40Gi, not four"


PARTITIONS_IN_USE = str(SAMPLES.parents[1] / "examples" / "explain" / "amd-partitions-in-use" / "cluster.yaml")
"""Eight claims have a partition of a GPU each, of which there are eight in each GPU."""


def test_pods_with_shares_of_a_device_do_share(dra: Dra) -> None:
    words = ("share", "--class", "gpu.amd.com", "--snapshot", PARTITIONS_IN_USE, "--pods")
    said = unwrapped(dra(*words, "20").out)
    assert "there is a share of a device for each (20 claims on 4 devices, of which 4 serve other claims, too)." in said
    assert "each 20 of 20 a device: a share for each pod" in said and "nothing has to be shared" not in said
    one = unwrapped(dra(*words, "1").out)
    assert "a share of a device for it (1 claim on 1 device, of which 1 serves another claim, too)." in one


def test_no_amount_that_is_proposed_is_zero(dra: Dra, tmp_path: Path) -> None:
    """Where a claim gets none of a capacity unless it asks for some, that is not what is divided."""
    words = ("share", "--class", "gpu.amd.com", "--pods", "4", "--snapshot", PARTITIONS_IN_USE)
    assert "a device, by amounts: 1 of partitions" in dra(*words).out
    ran = dra(*words, "--by", "capacity")
    exactly = next(yaml.safe_load_all(ran.out))["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert (exactly["capacity"], ran.code) == ({"requests": {"partitions": "1"}}, 0)
    memory = {"value": "40Gi", "requestPolicy": {"default": "0"}}
    saved = cluster(tmp_path, {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": memory}})
    ran = dra("share", "--class", "gpu", "--pods", "4", "--snapshot", saved, "--by", "capacity")
    assert "say with --part how much of memory a pod gets (a device has 40Gi)" in ran.err.replace("\n  ", " ")


def test_what_stops_the_pods_of_one_way_is_said_beside_its_manifest(dra: Dra) -> None:
    ran = dra("share", "--class", "dra.cpu", "--part", "30", "--by", "capacity", "--snapshot", SHARED_CPUS)
    assert "wants 30 of dra.cpu/cpu, and no device has more than " in unwrapped(ran.err)


def test_a_manifest_is_for_the_namespace_that_was_named(dra: Dra, tmp_path: Path) -> None:
    words = ("--snapshot", SHARED_CPUS, "-n", "ran", "--by", "each")
    file = tmp_path / "plain.yaml"
    file.write_text(dra("share", "--class", "dra.cpu", *words[:2], "--by", "each").out)
    for source in (("--class", "dra.cpu"), ("-f", str(file))):
        spaces = [each["metadata"].get("namespace") for each in yaml.safe_load_all(dra("share", *source, *words).out)]
        assert spaces == ["ran", "ran"]
    assert "namespace" not in file.read_text(), "none was named"


def test_an_error_names_the_file(dra: Dra, tmp_path: Path) -> None:
    file = of_template(tmp_path, "cu-cpus", 1)
    assert dra("share", "-f", file, "-n", "default", "--snapshot", SHARED_CPUS).err.startswith(f"error: {file}:1: ")


def of_template(folder: Path, template: str, replicas: int) -> str:
    """A Deployment whose pods have a claim of a template of the cluster of shared CPUs."""
    spec = {
        "containers": [{"name": "app", "image": "i", "resources": {"claims": [{"name": "cpus"}]}}],
        "resourceClaims": [{"name": "cpus", "resourceClaimTemplateName": template}],
    }
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "ran"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec},
        },
    }
    (file := folder / "web.yaml").write_text(yaml.safe_dump(web))
    return str(file)


def test_what_a_template_asks_for_today_is_compared(dra: Dra, tmp_path: Path) -> None:
    """A template that names an amount shares already: the answer says so, and with which amount all have room."""
    ran = dra("share", "-f", of_template(tmp_path, "cu-cpus", 9), "--snapshot", SHARED_CPUS)
    assert ran.code == 0 and "there is room for what each asks for, 8 of dra.cpu/cpu" in unwrapped(ran.out)
    assert "--part" not in ran.out and "nothing has to be shared" not in ran.out
    large = ("share", "-f", of_template(tmp_path, "cpus-32", 9), "--snapshot", SHARED_CPUS)
    report = json.loads(dra(*large, "-o", "json").out)
    schema_of_share().validate(report)
    items = {item["way"]: item for item in report["items"]}
    of = "dra.cpu/cpu"
    assert (items["each"]["sharedCapacity"], items["each"]["placed"]) == ({"name": of, "requested": "32"}, 0)
    # 16, 24, 24 and 8 are left: 9 pods would have room with 8, but a container requests as many CPUs of its node.
    assert (items["capacity"]["sharedCapacity"], items["capacity"]["placed"]) == ({"name": of, "requested": "6"}, 9)
    ran = dra(*large)
    said = "not room for what each asks for, 32 of dra.cpu/cpu; all would be placed by capacity with 6 of dra.cpu/cpu"
    assert said in unwrapped(ran.out)
    following = shlex.split(ran.out.splitlines()[-1].removeprefix("Next: kubectl dra "))
    assert sorted(following) == sorted((*large, "--by", "capacity", "--part", "6")) and dra(*following).code == 0


def test_an_amount_is_proposed_for_a_class(dra: Dra) -> None:
    """Without --part the largest with which all have room; where there is no room for the one that was typed, too."""
    words = ("share", "--class", "dra.cpu", "--pods", "3", "--snapshot", SHARED_CPUS)
    assert dra(*words).out.splitlines()[-1].endswith("--by capacity --part 16")
    assert dra(*words, "--part", "17").out.splitlines()[-1] == f"Next: kubectl dra {' '.join(words)}"


def test_amounts_keep_to_the_policy_of_a_capacity() -> None:
    left = [Quantity.parse("46068Mi"), Quantity.parse("20Gi")]
    assert next(amounts_for(4, left, {})) == "15356Mi"
    assert next(amounts_for(4, left, {"validRange": {"min": "1Gi", "step": "4Gi"}})) == "13Gi"
    assert next(amounts_for(4, left, {"validValues": ["5Gi", "10Gi", "40Gi"]})) == "10Gi"
    assert list(amounts_for(4, left, {"validRange": {"min": "40Gi"}})) == []
    assert next(amounts_for(3, [Quantity.parse("10")], {})) == "3"


def test_containers_of_a_pod_name_one_request(dra: Dra) -> None:
    ran = dra("share", "--class", "gpu.nvidia.com", "--containers", "3", "--snapshot", FLEET, "--by", "claim")
    template, deployment = yaml.safe_load_all(ran.out)
    assert template["kind"] == "ResourceClaimTemplate" and deployment["spec"]["replicas"] == 1
    containers = deployment["spec"]["template"]["spec"]["containers"]
    assert [container["resources"]["claims"] for container in containers] == [
        [{"name": "device", "request": "device"}]
    ] * 3


def test_the_template_of_the_cluster_is_used(dra: Dra, tmp_path: Path) -> None:
    (alone := tmp_path / "alone.yaml").write_text(
        Path(NOTEBOOKS).read_text().split("---\n")[1].replace("inference", "ml").replace("notebook-gpu", "gpu")
    )
    ran = dra("share", "-f", str(alone), "-n", "ml", "--snapshot", FLEET, "--by", "claim")
    deployment, claim = yaml.safe_load_all(ran.out)
    assert (deployment["kind"], claim["kind"], claim["metadata"]["name"]) == ("Deployment", "ResourceClaim", "gpu")
    assert ran.code == 0


def test_what_cannot_be_told_is_not_promised(dra: Dra, tmp_path: Path) -> None:
    (saved := tmp_path / "less.yaml").write_text(Path(FLEET).read_text().replace("LimitRange,", ""))
    ran = dra("share", "-f", NOTEBOOKS, "--snapshot", str(saved), "--by", "claim")
    assert ran.code == 3 and "whether all pods fit is undetermined" in ran.err


def test_an_interface_goes_into_one_pod(dra: Dra, tmp_path: Path) -> None:
    saved = cluster(tmp_path, {"name": "eth1"}, driver="dra.net")
    ran = dra("share", "--class", "gpu", "--pods", "2", "--snapshot", saved, "--by", "claim")
    assert ran.code == 2 and "driver dra.net gives a claim's devices to one pod" in ran.err


def test_a_claim_for_a_part_of_a_node_is_noted(dra: Dra, tmp_path: Path) -> None:
    saved = cluster(tmp_path, {"name": "tpu-0"}, {"name": "tpu-1"}, driver="tpu.google.com")
    manifest = dra("share", "--class", "gpu", "--pods", "1", "--snapshot", saved, "--by", "each").out
    (path := tmp_path / "pods.yaml").write_text(manifest)
    ran = dra("fit", "-f", str(path), "--snapshot", saved)
    told = unwrapped(ran.out)
    assert "it refuses claim" in told and "which gets 1 of the 2 of n1" in told


def test_admin_access_needs_a_label(dra: Dra, tmp_path: Path) -> None:
    saved = cluster(tmp_path, {"name": "gpu-0"})
    ran = dra("share", "--class", "gpu", "--snapshot", saved, "--by", "admin")
    assert ran.code == 1 and "label resource.kubernetes.io/admin-access=true on the namespace" in ran.err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "say what shares"),
        (("-f", NOTEBOOKS, "--tolerate", "a"), "--tolerate goes with --class"),
        (("--class", "gpu.nvidia.com", "--tolerate", "=a"), '--tolerate "=a" names no taint'),
        (("--class", "gpu", "-f", NOTEBOOKS), "--class goes without -f"),
        (("-f", NOTEBOOKS, "--pods", "3"), "go with --class"),
        (("--class", "no-such"), "there is no DeviceClass no-such; there are: "),
        (("--class", "gpu.nvidia.co"), "there is no DeviceClass gpu.nvidia.co; did you mean gpu.nvidia.com?"),
        (("--class", "gpu.nvidia.com", "--by", "claim", "--part", "10Gi"), "--part is for --by capacity"),
        (("--class", "gpu.nvidia.com", "--part", "abc"), 'error: --part "abc" is not a quantity, such as 10Gi\n'),
        (("--class", "gpu.nvidia.com", "--part", "0"), "error: --part 0 gives a pod nothing\n"),
        (
            ("--class", "gpu.nvidia.com", "--containers", "2", "--by", "partitions"),
            "the containers of one pod share by",
        ),
        (("--class", "gpu.nvidia.com", "--by", "partitions"), "partitions: no partition is published"),
        (("-f", str(SAMPLES / "train.yaml")), "no pod in it has a claim from a template"),
    ],
)
def test_one_sentence_says_what_is_wrong(dra: Dra, words: tuple[str, ...], error: str) -> None:
    ran = dra("share", *words, "--snapshot", FLEET)
    assert ran.code == 2 and error in ran.err.replace("\n  ", " ") and "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("product", "capable", "said"),
    [
        ("NVIDIA L40S", "", "NVIDIA L40S cannot be partitioned (MIG)"),
        ("NVIDIA Next 1", "false", "NVIDIA Next 1 cannot be partitioned (MIG)"),
        ("NVIDIA Next 1", "", "nothing tells whether NVIDIA Next 1 can be partitioned (MIG)"),
        (
            "NVIDIA Next 1",
            "true",
            "no partition is published; make some on the nodes, or set the driver's gate DynamicMIG",
        ),
        ("NVIDIA A30", "", "no partition is published; make some on the nodes, or set the driver's gate DynamicMIG"),
    ],
)
def test_partitions_are_advised_where_the_hardware_makes_them(product: str, capable: str, said: str) -> None:
    device = Device("gpu.nvidia.com", "gpu-0", {"productName": {"string": product}})
    on = Node(ObjectMeta("n", labels={"nvidia.com/mig.capable": capable} if capable else {}))
    driver = catalogue().driver("gpu.nvidia.com")
    assert said in written(why_no_partition(driver, partitioning(driver, [(device, on)])))


@pytest.mark.parametrize("example", ["all-held", "prepare-fails"])
def test_no_partitions_are_advised_for_models_without(dra: Dra, example: str) -> None:
    cluster = str(SAMPLES.parents[1] / "examples" / "explain" / example / "cluster.yaml")
    text = unwrapped(dra("share", "--class", "gpu.nvidia.com", "--snapshot", cluster).out)
    assert "cannot be partitioned (MIG)." in text and "DynamicMIG" not in text


def test_json_has_every_way_with_its_manifest(dra: Dra) -> None:
    validator = schema_of_share()
    words = ("share", "-f", NOTEBOOKS, "--snapshot", FLEET)
    ran = dra(*words, "-o", "json")
    report = json.loads(ran.out)
    validator.validate(report)
    items = {item["way"]: item for item in report["items"]}
    verdicts = {way: (item["verdict"], item.get("placed")) for way, item in items.items()}
    assert (ran.code, report["exitCode"], report["deviceClass"]) == (0, 0, "gpu.nvidia.com")
    assert verdicts["each"] == ("can-be-scheduled-in-part", 2) and verdicts["claim"] == ("can-be-scheduled", 4)
    assert verdicts["partitions"][0] == "impossible" and "DynamicMIG" in items["partitions"]["reason"]
    assert [need["name"] for need in items["mps"]["needs"]] == ["MPSSupport"]
    assert items["claim"]["manifest"] == dra(*words, "--by", "claim").out
    alone = dra(*words, "--by", "each", "-o", "yaml")
    assert alone.code == 1 and [item["way"] for item in yaml.safe_load(alone.out)["items"]] == ["each"]
    assert dra(*words, "-o", "jsonpath={.items[?(@.verdict=='can-be-scheduled')].way}").out == "claim time-slices mps"
    pod = json.loads(
        dra("share", "--class", "gpu.nvidia.com", "--containers", "3", "--snapshot", FLEET, "-o", "json").out
    )
    validator.validate(pod)
    assert (pod["containers"], len(pod["items"])) == (3, 3)


def test_partitions_that_the_driver_makes_itself(dra: Dra) -> None:
    """AMD's AutoPartition publishes each GPU in every way of partitioning it."""
    fleet = str(SAMPLES.parents[1] / "examples" / "explain" / "mixed-fleet" / "cluster.yaml")
    words = ("--class", "gpu.amd.com", "--pods", "2", "--kubernetes-version", "1.37", "--by", "partitions")
    ran = dra("share", *words, "--snapshot", fleet)
    exactly = next(yaml.safe_load_all(ran.out))["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert '.?computePartition.orValue("") == "cpx"' in exactly["selectors"][0]["cel"]["expression"]
    assert exactly["capacity"] == {"requests": {"partitions": "1"}} and ran.code == 0


def test_a_list_is_read_and_written(dra: Dra, tmp_path: Path) -> None:
    items = list(yaml.safe_load_all(Path(NOTEBOOKS).read_text()))
    (path := tmp_path / "list.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    ran = dra("share", "-f", str(path), "--snapshot", FLEET, "--by", "claim")
    kinds = {one["kind"]: one for one in yaml.safe_load(ran.out)["items"]}
    (entry,) = kinds["Deployment"]["spec"]["template"]["spec"]["resourceClaims"]
    assert entry == {"name": "gpu", "resourceClaimName": "notebook-gpu"} and "ResourceClaim" in kinds
    assert ran.err == "note: 4 of 4 pods fit with it, by the scheduler's steps\n"


def test_a_claim_that_has_the_name_already_is_told(dra: Dra, tmp_path: Path) -> None:
    path = Path(cluster(tmp_path, {"name": "gpu-0"}))
    whole = yaml.safe_load(path.read_text())
    spec = {"devices": {"requests": [{"name": "other", "exactly": {"deviceClassName": "gpu"}}]}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": spec}
    whole["items"].append({**claim, "metadata": {"name": "shared", "namespace": "default"}})
    path.write_text(yaml.safe_dump(whole))
    ran = dra("share", "--class", "gpu", "--pods", "2", "--by", "claim", "--snapshot", str(path))
    assert "needs another name: ResourceClaim shared exists already" in unwrapped(ran.err)
    assert (
        "exists already"
        not in dra("share", "--class", "gpu", "--pods", "2", "--by", "each", "--snapshot", str(path)).err
    )


RUNS_ON = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default"}}


def running_workload(
    tmp_path: Path, strategy: Json | None = None, kind: str = "Deployment", more: Any = ()
) -> list[str]:
    """The words that ask how the pods of a workload share, of which two run with all devices and one waits."""
    web, owner = deployment(3), {"kind": kind, "name": "web", "uid": "o", "apiVersion": "apps/v1"}
    if kind == "Deployment":
        world = two_run_and_one_waits(REPLICAS)
    else:
        web["kind"] = kind
        world = two_run_and_one_waits(("web-0", "web-1", "web-2"), owner)
    web["spec"] |= strategy or {}
    write_cluster(tmp_path / "running.json", [CLASS, RUNS_ON, *world, *more])
    (tmp_path / "web.json").write_text(json.dumps(web))
    return ["-f", str(tmp_path / "web.json"), "--snapshot", str(tmp_path / "running.json")]


def rolling(surge: int | str, missing: int | str) -> Json:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": missing}}}


@pytest.mark.parametrize(
    ("strategy", "hangs"),
    [
        (None, True),
        (rolling(1, 0), True),
        (rolling("100%", "0%"), True),
        (rolling(0, 1), True),
        (rolling(0, 2), False),
        (rolling("25%", "70%"), False),
        ({"strategy": {"type": "Recreate"}}, False),
    ],
)
def test_a_rollout_that_waits_for_its_own_old_pods_is_told(
    dra: Dra, tmp_path: Path, strategy: Json | None, hangs: bool
) -> None:
    """Two of three run: with one that may be missing, the pod that waits is that one."""
    ran = dra("share", *running_workload(tmp_path, strategy), "--by", "claim")
    said = unwrapped(ran.err)
    assert ran.code == 0 and ("once the pods that run now have ended" in said) is hangs
    scale = "Destructive (in the cluster, not the snapshot): $ kubectl scale deployment/web -n default --replicas=0"
    assert (scale in said) is hangs and ("2 pods of Deployment default/web that run end before" in said) is hangs


def test_a_rollout_with_devices_beside_does_not_hang(dra: Dra, tmp_path: Path) -> None:
    ran = dra("share", *running_workload(tmp_path, more=node("b", 1)), "--by", "claim")
    assert ran.code == 0 and ran.err == "note: 3 of 3 pods fit with it, by the scheduler's steps\n"


@pytest.mark.parametrize(
    ("kind", "strategy", "why"),
    [
        ("StatefulSet", None, "the rollout would wait"),
        ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}, "nothing replaces them by itself"),
        ("ReplicaSet", None, "nothing replaces them by itself"),
    ],
)
def test_pods_that_nothing_replaces_end_first(
    dra: Dra, tmp_path: Path, kind: str, strategy: Json | None, why: str
) -> None:
    said = unwrapped(dra("share", *running_workload(tmp_path, strategy, kind), "--by", "claim").err)
    assert why in said and f"$ kubectl scale {kind.lower()}/web -n default --replicas=0" in said


def test_what_has_to_end_first_is_in_the_table_and_in_json(dra: Dra, tmp_path: Path) -> None:
    words = running_workload(tmp_path)
    ran = dra("share", *words)
    assert "all would be placed by claim or by time-slices once the pods that run now have ended" in unwrapped(ran.out)
    assert "old pods ended first" in ran.out
    report = json.loads(dra("share", *words, "-o", "json").out)
    schema_of_share().validate(report)
    (need,) = next(item["needs"] for item in report["items"] if item["way"] == "claim")
    assert (need["name"], need["commands"][0]["effect"]) == ("old pods ended first", "destroys")


def test_pods_that_run_are_no_pods_of_another_way(dra: Dra, tmp_path: Path) -> None:
    """The cluster has a template of that name: what counts is the one that is written, which is refused a claim."""
    words = running_workload(tmp_path)
    report = json.loads(dra("share", *words, "-o", "json").out)
    items = {item["way"]: item for item in report["items"]}
    assert (items["each"]["placed"], items["admin"]["placed"]) == (2, 0)
    assert [need["name"] for need in items["admin"]["needs"]] == ["a namespace label", "another name for the template"]


def test_what_the_server_has_set_is_not_written(dra: Dra, tmp_path: Path) -> None:
    """A manifest from ``kubectl get -o yaml``, of one object and of a List, can be applied again."""
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    metadata = {
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "selfLink": "/x",
        "creationTimestamp": "2026-11-25T10:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
    }
    spec = {"devices": {"requests": [{"name": "device", "exactly": {"deviceClassName": "gpu"}}]}}
    of_claims = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {**metadata, "name": "gpu-1", "annotations": {applied: "{}"}},
        "spec": {"spec": spec},
    }
    web = deployment(2)
    web["metadata"] |= {**metadata, "annotations": {applied: "{}", "note": "mine"}}
    web["status"] = {"replicas": 2}
    whole = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": [of_claims, web]}
    saved = cluster(tmp_path, {"name": "gpu-0"})
    # Without anchors for what they share.
    whole, of_claims, web = json.loads(json.dumps([whole, of_claims, web]))
    texts = {"a": yaml.safe_dump(whole), "b": yaml.safe_dump_all([of_claims, web]), "c.json": json.dumps(whole)}
    for name, text in texts.items():
        (file := tmp_path / name).write_text(f"# mine\n{text}" if name != "c.json" else text)
        for way in ("claim", "each", "admin"):
            ran = dra("share", "-f", str(file), "--snapshot", saved, "--by", way)
            written = list(yaml.safe_load_all(ran.out))
            written = written[0].get("items", written)
            assert [each["metadata"] for each in written] == [
                {"name": "gpu-1", "namespace": "default"},
                {"name": "web", "namespace": "default", "annotations": {"note": "mine"}},
            ]
            assert "status" not in written[1] and "resourceVersion" not in ran.out
            assert name == "c.json" or ran.out.startswith("# mine\n")


def test_a_finding_is_said_once_for_all_ways(dra: Dra, tmp_path: Path) -> None:
    web = deployment(2)
    of_claims = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "gpu-1"}}
    asked = {"deviceClassName": "gpu", "tolerations": [{"operator": "Exists"}]}
    spec = {"devices": {"requests": [{"name": "device", "exactly": asked}]}}
    (file := tmp_path / "m.yaml").write_text(yaml.safe_dump_all([{**of_claims, "spec": {"spec": spec}}, web]))
    ran = dra("share", "-f", str(file), "--snapshot", cluster(tmp_path, {"name": "gpu-0"}))
    told = unwrapped(ran.out)
    assert told.count("DRA802") == 1 and "Lint says of each, claim, " in told


REFUSED = str(SAMPLES.parents[1] / "examples" / "explain" / "prepare-fails" / "cluster.yaml")
"""A pod waits because the driver's error says that its gate for time slices is off."""


def test_what_a_driver_refuses_here_is_no_way(dra: Dra) -> None:
    """The scheduler places pods whose configuration the driver refuses: the answer says on what they depend."""
    flags = ("share", "--class", "gpu.nvidia.com", "--pods", "12", "--snapshot", REFUSED)
    ran = dra(*flags)
    first = unwrapped(ran.out.split("\n\n")[0])
    assert first.endswith("all would be placed by claim.")
    assert "time-slices is refused here: the driver's error for pod dev/ide-lea names gate" in unwrapped(ran.out)
    report = json.loads(dra(*flags, "-o", "json").out)
    schema_of_share().validate(report)
    needs = {item["way"]: item["needs"] for item in report["items"]}
    (need,) = needs["time-slices"]
    assert (need["driver"], need["refused"]) == ("gpu.nvidia.com", {"namespace": "dev", "name": "ide-lea"})
    (need,) = needs["mps"]
    assert (need["offOn"], "refused" in need) == (["l40s-2"], False)
    off = "mps is refused here: gate MPSSupport of driver gpu.nvidia.com is off on l40s-2; with it all 12 pods would be"
    assert off in unwrapped(ran.out)
    assert dra(*flags, "--by", "time-slices").code == 1


def test_why_pods_of_a_way_do_not_start_is_said(dra: Dra, tmp_path: Path) -> None:
    """A template that needs a gate which is off: no way of it starts, and each says why."""
    file = tmp_path / "web.yaml"
    file.write_text(
        Path(of_template(tmp_path, "shared-gpu", 3)).read_text().replace("namespace: ran", "namespace: dev")
    )
    ran = dra("share", "-f", str(file), "--snapshot", REFUSED)
    assert ran.code == 1
    assert "Not by each: driver gpu.nvidia.com has gate TimeSlicingSettings off on" in unwrapped(ran.out)


def test_a_template_with_a_choice_is_no_error_of_fit(dra: Dra, tmp_path: Path) -> None:
    """Whether its pods could share is not looked at, and what fits is answered all the same."""
    file = tmp_path / "web.yaml"
    file.write_text(Path(of_template(tmp_path, "any-two", 3)).read_text().replace("namespace: ran", "namespace: ml"))
    mixed = str(SAMPLES.parents[1] / "examples" / "explain" / "mixed-fleet" / "cluster.yaml")
    assert dra("fit", "-f", str(file), "--snapshot", mixed).code == 1
    refused = dra("share", "-f", str(file), "--snapshot", mixed)
    assert refused.code == 2 and "the first request is a prioritized list" in refused.err


def test_next_is_what_the_answer_says(dra: Dra, tmp_path: Path) -> None:
    """Where nothing has to be shared, no way of sharing comes next."""
    file = cluster(tmp_path, {"name": "gpu-0"}, {"name": "gpu-1"})
    ran = dra("share", "--class", "gpu", "--pods", "2", "--snapshot", file)
    assert "nothing has to be shared" in unwrapped(ran.out)
    assert ran.out.splitlines()[-1].endswith("--by each")


def test_next_has_every_flag_that_was_given(dra: Dra) -> None:
    """Without --part it would end in an error; with another release it would be another answer."""
    about = ("--class", "dra.cpu", "--pods", "3", "-n", "ran", "--kubernetes-version", "1.36")
    gates = ("--feature-gates", "DRAConsumableCapacity=true")
    words = ("share", *about, *gates, "--snapshot", SHARED_CPUS, "--complete", "--part", "8")
    following = shlex.split(dra(*words).out.splitlines()[-1].removeprefix("Next: kubectl dra "))
    assert sorted(following) == sorted((*words, "--by", "capacity")) and dra(*following).code == 0


def test_next_explains_with_every_flag_of_the_scheduler(dra: Dra, tmp_path: Path) -> None:
    text = Path(NOTEBOOKS).read_text().replace("gpu.nvidia.com", "gpu").replace("inference", "default")
    (manifest := tmp_path / "notebooks.yaml").write_text(text)
    about = ("--kubernetes-version", "1.36", "--feature-gates", "DRAConsumableCapacity=false")
    words = ("-f", str(manifest), *about, "--snapshot", cluster(tmp_path))
    following = shlex.split(dra("share", *words).out.splitlines()[-1].removeprefix("Next: kubectl dra "))
    assert following == ["fit", *words, "--explain"] and dra(*following).code == 1


def test_a_gate_that_is_on_is_no_need(dra: Dra) -> None:
    words = ("share", "--class", "dra.cpu", "--part", "8", "--snapshot", SHARED_CPUS)
    assert "DRAConsumableCapacity" not in dra(*words).out
    off = dra(*words, "--feature-gates", "DRAConsumableCapacity=false").out
    assert next(line for line in off.splitlines() if line.startswith("capacity")).endswith("DRAConsumableCapacity")


def test_partitions_of_another_class_where_the_own_admits_none(dra: Dra) -> None:
    words = ("share", "--class", "gpu.amd.com-spx", "--snapshot", PARTITIONS_IN_USE)
    ran = dra(*words)
    told = unwrapped(ran.out)
    assert "class gpu.amd.com-spx takes whole devices only, so the claims ask for class gpu.amd.com." in told
    assert "all would be placed by partitions" in told and "Lint says" not in told
    report = json.loads(dra(*words, "-o", "json").out)
    way = next(item for item in report["items"] if item["way"] == "partitions")
    assert (way["deviceClass"], way["verdict"], way["placed"]) == ("gpu.amd.com", "can-be-scheduled", 2)
    assert report["answer"].startswith("2 pods, class gpu.amd.com-spx: ")


def test_a_missing_namespace_is_supposed(dra: Dra, tmp_path: Path) -> None:
    text = (SAMPLES.parents[1] / "examples" / "fit" / "as-many-as-fit" / "manifest.yaml").read_text()
    (file := tmp_path / "m.yaml").write_text(text.replace("namespace: ran", "namespace: nowhere"))
    saved = str(SAMPLES.parents[1] / "examples" / "explain" / "shared-capacity-fits" / "cluster.yaml")
    ran = dra("share", "-f", str(file), "--snapshot", saved)
    assert ran.code == 1 and "$ kubectl create namespace nowhere\n1 pod, class dra.cpu: there is room" in ran.out
    report = json.loads(dra("share", "-f", str(file), "--snapshot", saved, "-o", "json").out)
    assert report["missingNamespaces"] == ["nowhere"] and report["commands"][0]["effect"] == "writes"


EXAMPLES = SAMPLES.parents[1] / "examples" / "explain"


@pytest.mark.parametrize(
    ("example", "device_class"),
    [
        ("prepare-fails", "gpu.nvidia.com"),
        ("cpu-capacity-exhausted", "dra.cpu"),
        ("amd-partitions-in-use", "gpu.amd.com"),
        ("tpu-all-one-held", "tpu.google.com"),
        ("compute-domain-one-per-node", "compute-domain-daemon.nvidia.com"),
    ],
)
def test_what_is_written_passes_lint_but_for_what_it_says(
    dra: Dra, tmp_path: Path, example: str, device_class: str
) -> None:
    saved = str(EXAMPLES / example / "cluster.yaml")
    report = json.loads(dra("share", "--class", device_class, "--part", "8", "--snapshot", saved, "-o", "json").out)
    for item in report["items"]:
        if "manifest" not in item:
            continue
        (file := tmp_path / f"{item['way']}.yaml").write_text(item["manifest"])
        found = json.loads(dra("lint", str(file), "--snapshot", saved, "-o", "json").out)["findings"]
        codes = {one["code"] for one in found if one["severity"] in ("error", "warning")}
        said = {warning.partition(":")[0] for warning in item["warnings"]}
        assert codes <= said | ({"DRA608", "DRA803"} if item["needs"] else set()), (item["way"], found)
        assert not said or item["way"] in ("each", "admin"), "another way asks for an amount"


def test_what_runs_in_no_way_has_a_next_step(dra: Dra) -> None:
    """A taint of nodes leads to the flag with which the pods run; a class without devices to those that there are."""
    words = (
        "share",
        "--class",
        "gpu.nvidia.com",
        "--snapshot",
        str(EXAMPLES / "devices-on-tainted-nodes/cluster.yaml"),
    )
    ran = dra(*words)
    following = shlex.split(ran.out.splitlines()[-1].removeprefix("Next: kubectl dra "))
    assert ran.code == 1 and following == [*words, "--tolerate", "sku=gpu:NoSchedule"]
    assert dra(*following).code == 0 and len(ran.out.splitlines()) <= 15
    (_, deployment) = yaml.safe_load_all(dra(*following, "--by", "each").out)
    toleration = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    assert deployment["spec"]["template"]["spec"]["tolerations"] == [toleration]
    none = dra("share", "--class", "mig.nvidia.com", "--snapshot", str(EXAMPLES / "all-held/cluster.yaml"))
    assert "no device here is of this class, so there is nothing to share" in unwrapped(none.out)
    assert none.out.splitlines()[-1].startswith("Next: kubectl dra devices --snapshot ")


def test_an_amount_that_is_typed_is_written(dra: Dra, tmp_path: Path) -> None:
    shared = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "40Gi"}}}
    saved = cluster(tmp_path, shared, {**shared, "name": "gpu-1"})
    ran = dra("share", "--class", "gpu", "--part", "10Gi", "--snapshot", saved)
    assert ran.out.splitlines()[-1].endswith("--by capacity --part 10Gi")


SHAPES = {"v1beta2": False, "v1beta1": True, "v1alpha3": True}
"""Old versions, and whether a request of theirs has itself what v1 has in ``exactly``."""


def of_version(version: str, *, flat: bool) -> str:
    """Pods with a claim for two GPUs each, from a template of this version."""
    asked = {"deviceClassName": "gpu.nvidia.com", "count": 2}
    request = {"name": "gpu", **(asked if flat else {"exactly": asked})}
    template = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "notebook-gpu"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    _, workload = yaml.safe_load_all(Path(NOTEBOOKS).read_text())
    return yaml.safe_dump_all([template, workload])


@pytest.mark.parametrize("version", SHAPES)
@pytest.mark.parametrize("way", ["each", "claim", "time-slices"])
def test_a_template_of_an_old_version_is_read_and_written(dra: Dra, tmp_path: Path, version: str, way: str) -> None:
    (old := tmp_path / "old.yaml").write_text(of_version(version, flat=SHAPES[version]))
    (new := tmp_path / "new.yaml").write_text(of_version("v1", flat=False))
    told, expected = (
        json.loads(dra("share", "-f", str(path), "--snapshot", FLEET, "-o", "json").out) for path in (old, new)
    )
    assert [(one["way"], one.get("placed")) for one in told["items"]] == [
        (one["way"], one.get("placed")) for one in expected["items"]
    ]
    claim = next(yaml.safe_load_all(dra("share", "-f", str(old), "--snapshot", FLEET, "--by", way).out))
    spec = claim["spec"]["spec"] if way == "each" else claim["spec"]
    (request,) = spec["devices"]["requests"]
    asked = request if SHAPES[version] else request["exactly"]
    assert claim["apiVersion"] == f"resource.k8s.io/{version}"
    assert (asked["deviceClassName"], asked["count"], "exactly" in request) == (
        "gpu.nvidia.com",
        2,
        not SHAPES[version],
    )


@pytest.mark.parametrize(
    ("version", "flat", "error"),
    [
        (
            "v1",
            True,
            "ResourceClaimTemplate notebook-gpu asks for nothing: request gpu names no deviceClassName in exactly",
        ),
        ("v1alpha2", True, "ResourceClaimTemplate notebook-gpu is of resource.k8s.io/v1alpha2, which is not read"),
    ],
)
def test_a_template_that_cannot_be_read_is_named(
    dra: Dra, tmp_path: Path, version: str, flat: bool, error: str
) -> None:
    (path := tmp_path / "new.yaml").write_text(of_version(version, flat=flat))
    ran = dra("share", "-f", str(path), "--snapshot", FLEET)
    assert ran.code == 2 and error in unwrapped(ran.err)


def test_a_shared_claim_that_is_full_is_divided(dra: Dra) -> None:
    """The node of one claim runs 110 pods, all of them this workload's: nobody waits for one to end."""
    words = ("--tolerate", "nvidia.com/gpu", "--snapshot", str(EXAMPLES / "fits" / "cluster.yaml"))
    ran = dra("share", "--class", "gpu.nvidia.com", "--pods", "200", *words)
    said = unwrapped(ran.out)
    assert "Fix: Make 2 shared claims, each for 100 pods of a workload of its own" in said
    assert "other consumer" not in said and "which takes 110 of them" in said
    following = shlex.split(ran.out.splitlines()[-1].removeprefix("Next: kubectl dra "))
    assert following == ["share", "--class", "gpu.nvidia.com", "--pods", "100", *words]
    assert dra(*following).code == 0
    report = json.loads(dra("share", "--class", "gpu.nvidia.com", "--pods", "200", *words, "-o", "json").out)
    schema_of_share().validate(report)
    assert report["divided"] == {"claimCount": 2, "podsOfClaim": 110, "nodesSuffice": True}
    more = dra("share", "--class", "gpu.nvidia.com", "--pods", "900", *words)
    assert "Fix: Add nodes with such devices, and make 9 shared claims" in unwrapped(more.out)


def test_what_keeps_pods_behind_a_taint_is_told(dra: Dra) -> None:
    """No Deployment of the answer's own is named, as the user has none."""
    words = ("share", "--class", "tpu.google.com", "--pods", "4", "--snapshot")
    saved = str(EXAMPLES / "tpu-all-one-held" / "cluster.yaml")
    ran = dra(*words, saved)
    said = unwrapped(ran.out)
    assert "Not by each, claim with --tolerate google.com/tpu=present:NoSchedule, either: request" in said
    assert "pod scratch/probe, Pending for over 20 hours, holds tpu-2" in said and "Deployment" not in said
    report = json.loads(dra(*words, saved, "-o", "json").out)
    schema_of_share().validate(report)
    assert report["tolerating"]["nodeTaints"] == ["google.com/tpu=present:NoSchedule"]
    assert "tpu-2" in next(way["reason"] for way in report["tolerating"]["items"] if way["way"] == "each")
    # With the toleration no pod runs, either: what has the devices is next.
    following = shlex.split(ran.out.splitlines()[-1].removeprefix("Next: kubectl dra "))
    assert following == ["devices", "--class", "tpu.google.com", "--snapshot", saved]


@pytest.mark.parametrize(("part", "asked"), [("65", "65"), ("10Gi", "10Gi (10737418240)")])
def test_no_part_is_more_than_a_device_gives(dra: Dra, part: str, asked: str) -> None:
    saved = str(EXAMPLES / "shared-capacity-fits" / "cluster.yaml")
    words = ("share", "--class", "dra.cpu", "--pods", "4", "--snapshot", saved)
    error = f"a pod gets {asked} of dra.cpu/cpu, and no device gives a claim more than 64"
    ran = dra(*words, "--by", "capacity", "--part", part)
    assert ran.code == 2 and error in unwrapped(ran.err) and not ran.out
    ways = dra(*words, "--part", part)
    assert f"Not by capacity: {error}." in unwrapped(ways.out)
    assert "Without --part it proposes an amount with which all pods have room" in unwrapped(ways.out)
    some = dra(*words, "--by", "capacity", "--part", "63")
    assert "Insufficient cpu: needs 63, at most 39.9 left (2 nodes)" in unwrapped(some.err)


def test_a_policy_limits_what_a_device_gives() -> None:
    def device(**policy: Any) -> Device:
        capacity = {"cpu": {"value": "64", "requestPolicy": policy}}
        return Device(name="d", driver="dra.cpu", allow_multiple_allocations=True, capacity=capacity)

    assert most_of("cpu", [device()]) == "64" and most_of("cpu", []) == ""
    assert most_of("cpu", [device(validRange={"min": "1", "max": "32"})]) == "32"
    assert most_of("cpu", [device(validValues=["8", "16"]), device(validValues=["4"])]) == "16"


def test_a_manifest_that_can_stay_is_not_printed_again(dra: Dra) -> None:
    example = EXAMPLES / "shared-capacity-fits"
    ran = dra("share", "-f", str(example / "manifest.yaml"), "--snapshot", str(example / "cluster.yaml"))
    assert ran.code == 0 and ran.out.splitlines()[-1] == "To share, the manifest can stay as it is."
