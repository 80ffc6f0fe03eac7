"""``--with-node``: how many nodes that are not there yet a workload needs, and what is refused."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.fit.test_workloads import gang
from tests.fit.worlds import bare, claim, deployment, fitted, node, running, said, template, waiting
from tests.ran import ran, unwrapped

JSON = dict[str, Any]
WITH = "--with-node"


class ScaleUp(NamedTuple):
    """A node ``group`` of ``gpus`` devices each, what runs on its node, the pods that wait, and the nodes they need.

    These are the cases "scale-up" of cluster-autoscaler's own test of Dynamic Resource Allocation, and what it expects:
    core/static_autoscaler_dra_test.go, TestStaticAutoscalerDynamicResources (kubernetes/autoscaler at 16c271a3,
    Apache-2.0), in our words.
    """

    name: str
    gpus: int
    runs: Sequence[Sequence[int]]
    pods: int
    each: int
    nodes: int
    daemons: int = 0


SCALE_UPS = (
    ScaleUp("one pod per node, one device per node", 1, [[0]], 3, 1, 3),
    ScaleUp("multiple pods per node, pods requesting one device", 3, [[0], [1]], 10, 1, 3),
    ScaleUp("multiple pods per node, pods requesting multiple identical devices", 3, [[0]], 4, 2, 3),
    ScaleUp("multiple devices in one slice work correctly", 3, [[0, 1]], 5, 1, 2),
    ScaleUp("with pods on the template nodes consuming DRA resources", 3, [[0], [1], [2]], 3, 1, 3, daemons=2),
)


def group(case: ScaleUp) -> list[JSON]:
    """The one node of a group, with what runs there; the first pods are those of a DaemonSet."""
    found = node("group-0", case.gpus, cpu="1")
    for number, held in enumerate(case.runs):
        owner = {"kind": "DaemonSet", "name": "daemon", "apiVersion": "apps/v1"} if number < case.daemons else None
        made = running(f"scheduled-{number}", "group-0", held, owner=owner)
        if owner is not None:
            # Each daemon has a claim that was made for it.
            pod, held_claim = made
            held_claim["metadata"]["ownerReferences"] = [
                {"kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"], "controller": True}
            ]
        found += made
    return found


@pytest.mark.parametrize("case", SCALE_UPS, ids=lambda case: case.name)
def test_cluster_autoscaler_estimates_the_same(tmp_path: Path, case: ScaleUp) -> None:
    manifest = [template(case.each), deployment(case.pods, gpus=case.each, cpu="100m")]
    code, report = fitted(tmp_path, group(case), manifest, "--with-node", "like=group-0")
    needed = report["newNodes"]
    # What still fits on the node that is there needs no new one; cluster-autoscaler's pods are unschedulable already.
    assert (code, needed["number"], needed["enough"], needed["podCount"]) == (0, case.nodes, True, case.pods)


def test_cluster_autoscaler_estimates_the_same_from_zero(tmp_path: Path) -> None:
    """Scale from 0 nodes: three pods want a device each, a node has one."""
    file = tmp_path / "node.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": node("template", 1, cpu="1")}))
    manifest = [template(), deployment(3, cpu="100m")]
    code, report = fitted(tmp_path, node("cpu", cpu="1"), manifest, "--with-node", str(file))
    assert (code, report["newNodes"]["number"], report["newNodes"]["fewer"]) == (0, 3, {"number": 2, "podCount": 2})


def test_cluster_autoscaler_estimates_the_same_for_a_shared_claim(tmp_path: Path) -> None:
    """13 pods share a claim: it is for one node, which has room for 10 of them by CPU. 3 pods need nothing more."""
    shared = claim("shared")
    spec: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]}
    pods = deployment(13, gpus=0, cpu="100m", **spec)
    pods["spec"]["template"]["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    cluster = [*node("group-0", 1, cpu="1"), *running("scheduled-0", "group-0", [0]), shared]
    code, report = fitted(tmp_path, cluster, [pods], "--with-node", "like=group-0")
    needed = report["newNodes"]
    assert (code, needed["number"], needed["enough"], needed["podCount"]) == (1, 1, False, 10)


def test_no_such_node_helps(tmp_path: Path) -> None:
    cluster = [*node("gpu", 1), *node("cpu"), *running("other", "gpu", [0])]
    code, report = fitted(tmp_path, cluster, [template(), deployment(2)], "--with-node", "like=cpu")
    assert (code, report["newNodes"]["number"], report["newNodes"]["enough"]) == (1, 0, False)
    assert report["newNodes"]["text"] == "New nodes (like=cpu) do not help: up to 64 were tried"
    assert report["newNodesRefuse"] == "gpu: no devices published for it"


@pytest.mark.parametrize(("pods", "each", "number"), [(150, 1, 149), (140, 2, 69)])
def test_as_many_are_found_as_each_one_helps(tmp_path: Path, pods: int, each: int, number: int) -> None:
    """Though that is more than are tried in vain: 300 nodes of which each brings pods are not too many."""
    code, report = fitted(tmp_path, node("gpu", each), [template(), deployment(pods)], WITH, "like=gpu")
    found = report["newNodes"]
    assert (code, found["number"], found["fewer"]["number"]) == (0, number, number - 1)


def test_a_group_of_many_needs_all_its_nodes_at_once(tmp_path: Path) -> None:
    """With fewer none of its pods has a node."""
    code, report = fitted(tmp_path, node("gpu", 1), [template(), *gang(70, 70)], WITH, "like=gpu")
    assert (code, report["newNodes"]["number"]) == (0, 69)


def test_where_each_one_helps_no_more_than_the_most_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_dra.fit.nodes_needed.MOST", 20)
    code, report = fitted(tmp_path, node("gpu", 1), [template(), deployment(30)], WITH, "like=gpu")
    told = "With 20 new nodes (like=gpu) 21 of 30 pods fit; each more helps, but no more are tried"
    assert (code, report["newNodes"]["text"]) == (1, told)


def test_a_new_node_that_takes_none_of_as_many_as_fit_is_said(tmp_path: Path) -> None:
    cluster = [*node("gpu", 2), *node("cpu")]
    code, report = fitted(tmp_path, cluster, [template(), deployment(4)], "--max", WITH, "cpu")
    assert (code, report["newNodesRefuse"]) == (0, "gpu: no devices published for it")
    _, report = fitted(tmp_path, cluster, [template(), deployment(4)], "--max", WITH, "gpu")
    assert "newNodesRefuse" not in report


def test_none_is_needed(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, node("gpu", 2), [template(), deployment(2)], "--with-node", "like=gpu")
    assert (code, report["newNodes"]["number"]) == (0, 0)
    assert report["newNodes"]["text"] == "No new node (like=gpu) is needed"


def test_a_count_is_not_searched(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, node("gpu", 1), [template(), deployment(4)], "--with-node", "like=gpu,count=2")
    assert code == 1
    assert "newNodes" not in report
    assert report["items"][0]["podCounts"]["fit"] == 3


def test_a_later_flag_is_like_a_node_of_an_earlier_one(tmp_path: Path) -> None:
    file = tmp_path / "node.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": node("big", 4)}))
    flags = ("--with-node", f"{file},count=2", "--with-node", "like=big,count=1")
    code, report = fitted(tmp_path, node("gpu", 1), [template(), deployment(13)], *flags)
    assert code == 0
    assert {each["node"] for each in report["items"][0]["byNode"]} == {"gpu", "big", "big-more", "big-more-2"}


def test_what_is_said_first(tmp_path: Path) -> None:
    code, out, _ = said(tmp_path, node("gpu", 1), [template(), deployment(6)], "--with-node", "like=gpu")
    assert code == 0
    assert out.startswith("It takes 5 new nodes (like=gpu); with 4, 5 of 6 pods fit.\nAll 6 replicas of Deployment")
    assert "--with-node like=gpu" in out


def test_a_new_node_has_no_taint_of_the_moment(tmp_path: Path) -> None:
    """What says that a node starts, drains or is cordoned says nothing of the next one; other taints do."""
    made, published = node("gpu", 1)
    passing = ("node.kubernetes.io/not-ready", "startup-taint.cluster-autoscaler.kubernetes.io/gpu")
    made["spec"] = {"unschedulable": True, "taints": [{"key": key, "effect": "NoSchedule"} for key in passing]}
    code, report = fitted(tmp_path, [made, published], [template(), deployment(2)], "--with-node", "like=gpu")
    assert (code, report["newNodes"]["number"]) == (0, 2)
    made["spec"]["taints"].append({"key": "team", "value": "ml", "effect": "NoSchedule"})
    code, report = fitted(tmp_path, [made, published], [template(), deployment(2)], "--with-node", "like=gpu")
    assert (code, report["newNodes"]["enough"]) == (1, False)


GPU = "driver=gpu.nvidia.com"
WRONG = (
    ("lik=gpu", 'is not understood (did you mean "like="?)'),
    ("like=gpu,count=0", "count is a number from 1 to 1,000"),
    ("like=gpu,count=1,count=2", '"count" is there twice'),
    ("like=gpu,devices=3", "only count=N goes with like="),
    ("gpu,memory=much", "memory is an amount such as 80Gi, not"),
    ("gpu,colour=red", "devices of gpu have no colour"),
    ("cpu,memory=1Gi", "node cpu has no devices"),
    ("gpu,product=H100", 'product "H100" is of the NVIDIA GPU driver, which has no devices on gpu'),
    ("{folder}/other.json,memory=1Gi", "only count=N goes with a file, not memory="),
    ("2xgpu,count=3", "write gpu,count=2 for 2 nodes like gpu"),
    ("8xH900", 'product "H900" is not in the catalogue; the nearest are: NVIDIA H100 80GB HBM3'),
    ("H100", "say how many devices a node has: devices=N"),
    ("a3-highgpu-16g", "nor a Node of that name; as a machine type, did you mean a3-highgpu-8g"),
    ("example.org/gpu=8", "no driver is known for the devices of example.org/gpu"),
    ("nvidia.com/mig-1g.10gb=7", "nvidia.com/mig-1g.10gb is no whole device"),
    ("gpu.nvidia.com=8", "is not understood"),
    ("8xgpus", 'product "gpus" is not in the catalogue; it knows'),
    ("nvidia.com/gpu=8,devices=4", "it says twice how many devices a node has"),
    ("example.org/gpu=900", "example.org/gpu is a number from 1 to 128"),
    ("driver=nvidia,devices=1", "the catalogue does not know it (did you mean gpu.nvidia.com?)"),
    ("driver=gpu.nvidia.com,devices=1,vram=1Gi", "have no vram (did you mean memory?)"),
    ("gpu-1,gpu-2", '"gpu-2" is not NAME=VALUE (another node needs a --with-node of its own)'),
    ("like=", '"like=" is not NAME=VALUE'),
    ("1xL4,label:=ml", '"label:=ml" is not NAME=VALUE'),
    ("like=gpv", "there is no Node gpv; did you mean gpu?"),
    ("{folder}/none.yaml", "there is no such file"),
    ("{folder}/cluster.json", "it holds a DeviceClass; it has to hold Nodes and their ResourceSlices alone"),
    ("{folder}/slices.json", "it holds no Node"),
    ("{folder}/taken.json", "Node gpu is there already; rename it, or write like=gpu"),
    ("{folder}/pool.json", "pool gpu.example.com/gpu is there already; rename it"),
    ("{folder}/astray.json", "ResourceSlice other is of node other, which is not in the file"),
    ("{folder}/two.json,count=2", "holds 2 nodes; count=N goes with one"),
    (GPU, "say how many devices a node has: devices=N"),
    (f"{GPU},devices=200", "say how many devices a node has: devices=N, from 1 to 128"),
    ("driver=gpu.nvidia.co,devices=1", "the catalogue does not know it (did you mean gpu.nvidia.com?)"),
    (f"{GPU},devices=1,product=H900", 'product "H900" is not in the catalogue'),
    (f"{GPU},devices=1,memori=1Gi", "devices of driver gpu.nvidia.com have no memori (did you mean memory?)"),
    (f"{GPU},devices=1,memory=much", "memory is an amount such as 80Gi, not"),
    (f"{GPU},devices=1,numa=zero", 'numa is of type int, not "zero"'),
    (f"{GPU},devices=1,type=tpu", "driver gpu.nvidia.com has no such kind of device; it has: type=gpu"),
)


@pytest.mark.parametrize(("typed", "told"), WRONG, ids=[typed for typed, _ in WRONG])
def test_bad_input_gets_one_sentence(tmp_path: Path, typed: str, told: str) -> None:
    files = {
        "slices": node("gpu", 1)[1:],
        "other": node("other"),
        "taken": node("gpu", 1),
        "pool": [*node("other"), node("gpu", 1)[1]],
        "astray": [*node("here"), node("other", 1)[1]],
        "two": [*node("one"), *node("two")],
    }
    for name, objects in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    # The slice of "pool" is of a node that is in the file.
    pool = json.loads((tmp_path / "pool.json").read_text())
    pool["items"][1]["spec"]["nodeName"] = "other"
    (tmp_path / "pool.json").write_text(json.dumps(pool))
    flag = typed.format(folder=tmp_path)
    cluster = [*node("gpu", 1), *node("cpu")]
    code, out, errors = said(tmp_path, cluster, [template(), deployment(2)], "--with-node", flag)
    assert (code, out) == (2, "")
    sentence, *more = errors.splitlines()
    assert sentence.startswith("error: --with-node ")
    assert told in sentence
    for line in more:
        # What follows is to be pasted, and answers.
        label, command = line.split(": kubectl dra ", 1)
        assert label and ":" not in label
        assert ran(*shlex.split(command))[0] in (0, 1), command


def nvidia(*selectors: str) -> list[JSON]:
    """The NVIDIA driver's class, and a template with selectors of its own."""
    own = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
    device_class = {
        "kind": "DeviceClass",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "gpu.nvidia.com"},
        "spec": {"selectors": [{"cel": {"expression": own}}]},
    }
    made = template()
    made["spec"]["spec"]["devices"]["requests"][0]["exactly"] = {
        "deviceClassName": "gpu.nvidia.com",
        "selectors": [{"cel": {"expression": text}} for text in selectors],
    }
    return [device_class, made]


HOPPER = 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"'
LARGE = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("70Gi")) >= 0'
NAMED = 'device.attributes["gpu.nvidia.com"].productName.contains("NVL")'


def test_a_node_in_words(tmp_path: Path) -> None:
    device_class, made = nvidia()
    flag = f"{GPU},product=H100,devices=4"
    code, report = fitted(tmp_path, [device_class, *node("cpu")], [made, deployment(6)], "--with-node", flag)
    assert (code, report["newNodes"]["number"]) == (0, 2)
    assert any("only the devices are known" in note for note in report["notes"])


NEW_DRIVER = 'device.attributes["gpu.nvidia.com"].driverVersion.isGreaterThan(semver("570.0.0"))'


@pytest.mark.parametrize(
    ("selector", "words", "code"),
    [
        (HOPPER, "product=L4,devices=1", 1),
        (HOPPER, "1xH100", 0),
        (HOPPER, "product=NVIDIA H100 NVL,devices=1", 0),
        (HOPPER, "driver=gpu.nvidia.com,devices=1,productName=NVIDIA H100 NVL", 0),
        (HOPPER, "1xL4,architecture=Hopper", 0),
        # Each of the products that may be meant has enough.
        (LARGE, "H100 x 1", 0),
        (LARGE, "nvidia.com/gpu=1,product=H100", 0),
        (LARGE, "1xL4", 1),
        (LARGE, "nvidia-a100-80gb:1", 0),
        (NAMED, "product=H100_NVL,devices=1", 0),
        (NAMED, "Standard_NC40ads_H100_v5", 0),
        (NAMED, "p5.48xlarge", 1),
        (HOPPER, "a3-highgpu-8g", 0),
        (NEW_DRIVER, "nvidia.com/gpu=1,driverVersion=580.0.0", 0),
    ],
)
def test_a_product_has_what_the_catalogue_says(tmp_path: Path, selector: str, words: str, code: int) -> None:
    device_class, made = nvidia(selector)
    cluster, manifest = [device_class, *node("cpu")], [made, deployment(1)]
    assert fitted(tmp_path, cluster, manifest, "--with-node", words)[0] == code


@pytest.mark.parametrize(
    ("selector", "words", "missing", "with_each"),
    [
        (NEW_DRIVER, "1xL4", "read driverVersion of devices", {"1xL4,driverVersion=580.126.20": 0}),
        (
            NAMED,
            "product=H100,devices=1",
            "they may be NVIDIA H100 80GB HBM3, NVIDIA H100 NVL, NVIDIA H100 PCIe; the claims of pod",
            {
                "product=NVIDIA H100 80GB HBM3,devices=1": 1,
                "product=NVIDIA H100 NVL,devices=1": 0,
                "product=NVIDIA H100 PCIe,devices=1": 1,
            },
        ),
        (
            NAMED,
            "nvidia.com/gpu=1",
            "read productName of devices",
            {
                "nvidia.com/gpu=1,product=NVIDIA H100 NVL": 0,
                "nvidia.com/gpu=1,product=NVIDIA H200 NVL": 0,
            },
        ),
    ],
)
def test_what_is_asked_for_has_to_be_known(
    tmp_path: Path, selector: str, words: str, missing: str, with_each: dict[str, int]
) -> None:
    """The error has a whole command for each way to say it."""
    device_class, made = nvidia(selector)
    cluster, manifest = [device_class, *node("cpu")], [made, deployment(1)]
    ended, out, errors = said(tmp_path, cluster, manifest, "--with-node", words)
    assert (ended, out) == (2, "")
    sentence, *more = errors.splitlines()
    assert missing in sentence
    found = {}
    for line in more:
        command = shlex.split(line.split(": kubectl dra ", 1)[1])
        found[command[command.index("--with-node") + 1]] = ran(*command)[0]
    assert found == with_each


def test_what_a_device_of_the_product_publishes_wins(tmp_path: Path) -> None:
    """The memory that NVML reports there, and which of the products that may be meant it is."""
    device_class, made = nvidia('device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("90Gi")) >= 0')
    there = [*node("gpu", 1), *node("cpu")]
    there[1]["spec"]["driver"] = "gpu.nvidia.com"
    (device,) = there[1]["spec"]["devices"]
    device["attributes"] = {
        "type": {"string": "gpu"},
        "productName": {"string": "NVIDIA H100 NVL"},
        "uuid": {"string": "u"},
    }
    for memory, code in (("80Gi", 1), ("91Gi", 0)):
        device["capacity"] = {"memory": {"value": memory}}
        manifest = [made, deployment(2)]
        ended, report = fitted(tmp_path, [device_class, *there], manifest, "--with-node", "1xH100,count=2")
        assert ended == code
        assert any(
            "what gpu/gpu-0 publishes: " in note and "productName NVIDIA H100 NVL" in note for note in report["notes"]
        )


def test_a_node_like_one_with_other_devices(tmp_path: Path) -> None:
    selector = {"cel": {"expression": 'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'}}
    made = template()
    made["spec"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [selector]
    there = node("gpu", 2)
    for device in there[1]["spec"]["devices"]:
        device["capacity"] = {"memory": {"value": "40Gi"}}
    for words, number in (("gpu", 0), ("gpu,memory=79Gi", 0), ("gpu,memory=80Gi", 2), ("like=gpu,memory=81Gi", 2)):
        _, report = fitted(tmp_path, there, [made, deployment(4)], "--with-node", words)
        assert report["newNodes"]["number"] == number, words
    assert fitted(tmp_path, there, [made, deployment(4)], "--with-node", "gpu,memory=80Gi,count=2")[0] == 0


def test_a_machine_type_is_that_of_a_node_that_is_there(tmp_path: Path) -> None:
    there = node("gpu", 3)
    there[0]["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "a3-highgpu-8g"
    _, report = fitted(tmp_path, there, [template(), deployment(9)], "--with-node", "a3-highgpu-8g")
    assert report["newNodes"]["number"] == 2
    assert {each["node"] for each in report["items"][0]["byNode"]} == {"gpu", "gpu-more", "gpu-more-2"}


HOPPER = "driver=gpu.nvidia.com,product=H100,devices=8,architecture=Hopper,memory=80Gi"
AMPERES = str(Path(__file__).parents[2] / "examples" / "explain" / "no-device-matches" / "cluster.yaml")


@pytest.mark.parametrize("count", ["", ",count=1"])
def test_why_a_new_node_does_not_help_is_said(tmp_path: Path, count: str) -> None:
    """In one line, and where the pod is explained its devices are among those that were refused."""
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "a100-80gb"}]
    spec = {"containers": [container], "resourceClaims": claims}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "one", "namespace": "ml"}, "spec": spec}
    (file := tmp_path / "pod.json").write_text(json.dumps(pod))
    words = ("fit", "-f", str(file), "--snapshot", AMPERES, "--with-node", HOPPER + count)
    code, out, _ = ran(*words)
    why = 'A new node takes none of the pods: request "gpu" wants architecture Ampere; all 8 devices have Hopper.'
    assert code == 1 and why in unwrapped(out)
    _, explained, _ = ran(*words, "--explain")
    assert "refused: architecture is Hopper on 8" in explained and "1 node rejected (new-node)" in explained
    helped = HOPPER.replace("Hopper", "Ampere") + count
    _, out, _ = ran(*words[:-1], helped)
    assert "takes none" not in out and "fits on new-node" in out


def test_a_pod_is_said_once_not_to_fit(tmp_path: Path) -> None:
    manifest = [bare("web", 2), template(2)]
    _, out, _ = said(tmp_path, node("a", 1), manifest)
    assert out.startswith("Pod default/web does not fit.\n\nWhy\n  ") and out.count("default/web does not fit") == 1
    _, out, _ = said(
        tmp_path, [*node("a", 1), *node("b", 2), *running("other", "b", [0])], manifest, "--with-node", "b"
    )
    assert out.startswith("It takes 1 new node (b); with none, the pod does not fit.\n")


def test_an_unknown_release_names_no_other_command(tmp_path: Path) -> None:
    _, _, errors = said(tmp_path, node("a", 1), [deployment(1), template()], "--kubernetes-version", "1.33")
    assert errors == "error: --kubernetes-version 1.33: the scheduler is modelled for 1.34 to 1.37\n"


def test_a_command_beside_a_note_asks_the_same_cluster(tmp_path: Path) -> None:
    """One claim for all pods would do: the command that writes it stands on a line of its own."""
    _, out, _ = said(tmp_path, node("a", 1), [deployment(2), template()], "--full")
    share = f"$ kubectl dra share -f {tmp_path / 'manifest.json'} --snapshot {tmp_path / 'cluster.json'}"
    assert share in out.splitlines()


def test_others_that_wait_may_take_new_nodes_first(tmp_path: Path) -> None:
    cluster = [*node("gpu", 1), *waiting("other")]
    code, report = fitted(tmp_path, cluster, [template(), deployment(2)], "--with-node", "like=gpu")
    found = report["newNodes"]
    assert (code, found["number"]) == (0, 1)
    assert found["othersFirst"] == {
        "pods": [{"namespace": "default", "name": "other"}],
        "enough": True,
        "number": 2,
    }
    assert found["text"].endswith("If pod default/other, which waits already, is placed first, it takes 2")


FROM_ZERO = str(Path(__file__).parents[2] / "examples" / "explain" / "scale-from-zero" / "cluster.yaml")


def hoppers(tmp_path: Path, replicas: int = 3) -> tuple[str, str]:
    """A workload whose pods ask for eight of them, and a file of a node that is not there, with eight."""
    made = template(8)
    made["metadata"]["namespace"] = "ml"
    request = made["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    request |= {"deviceClassName": "gpu.nvidia.com", "selectors": [{"cel": {"expression": HOPPER_ONLY}}]}
    wanted = deployment(replicas, gpus=8)
    wanted["metadata"]["namespace"] = "ml"
    new = node("big", 8)
    new[0]["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    new[1]["spec"]["driver"] = "gpu.nvidia.com"
    for device in new[1]["spec"]["devices"]:
        device["attributes"] = {"type": {"string": "gpu"}, "architecture": {"string": "Hopper"}}
    paths = []
    for name, objects in (("manifest", [made, wanted]), ("big", new)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
        paths.append(str(tmp_path / f"{name}.json"))
    return paths[0], paths[1]


HOPPER_ONLY = 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"'


@pytest.mark.parametrize("count", ["", ",count=3"])
def test_the_driver_runs_on_a_node_of_a_file(tmp_path: Path, count: str) -> None:
    """Its DaemonSet has no pod on a node that is only supposed, as on none that a cluster is about to get."""
    manifest, file = hoppers(tmp_path)
    code, out, errors = ran("fit", "-f", manifest, "--snapshot", FROM_ZERO, "--with-node", file + count)
    assert (code, errors) == (0, "")
    assert "has no pod there" not in out and "node/big" not in out and "All 3 replicas" in out


def test_supposed_nodes_are_not_counted_as_existing(tmp_path: Path) -> None:
    """And one more of them is a change that is enough."""
    manifest, _ = hoppers(tmp_path)
    code, out, _ = ran("fit", "-f", manifest, "--snapshot", FROM_ZERO, "--with-node", "p5.48xlarge,count=2")
    assert code == 1 and "Add one more node like new-node: 1 more replica fits, and so all 3" in unwrapped(out)
    assert "No single change" not in out


def test_what_is_supposed_of_each_new_node_is_said_first(tmp_path: Path) -> None:
    manifest = [template(), deployment(2, gpus=1, cpu="100m", nodeSelector={"team": "ml"})]
    code, report = fitted(tmp_path, node("cpu"), manifest, "--with-node", "1xL4")
    # As ``explain`` says of one of the pods, whether it fits is open.
    assert (code, report["newNodes"]["number"]) == (3, 2)
    assert report["newNodes"]["text"].startswith(
        "It takes 2 new nodes (1xL4), if driver gpu.nvidia.com is installed, which nothing here shows, and each has "
        "room for the pod (cpu 100m), no taint and label team=ml; with 1, "
    )
    assert any("whether a new node has label team=ml is not known" in note for note in report["notes"])
    _, report = fitted(tmp_path, node("cpu"), manifest, "--with-node", "1xL4,label:team=ml")
    assert "team=ml" not in report["newNodes"]["text"].partition("), ")[2]


def test_a_new_node_has_room_for_all_pods_that_it_gets(tmp_path: Path) -> None:
    """The most of any node, of all workloads together."""
    manifest = [template(), deployment(3, cpu="100")]
    for words, room in (("8xL4", "3 pods (cpu 300)"), ("2xL4", "2 pods (cpu 200)"), ("1xL4", "the pod (cpu 100)")):
        _, report = fitted(tmp_path, node("cpu"), manifest, "--with-node", words)
        assert f" and each has room for {room} and no taint; with " in report["newNodes"]["text"], words
    other = deployment(1, cpu="7")
    other["metadata"]["name"] = "other"
    _, report = fitted(tmp_path, node("cpu"), [*manifest, other], "--with-node", "8xL4")
    assert " and each has room for 4 pods (cpu 307) and no taint; with " in report["newNodes"]["text"]


@pytest.mark.parametrize(("cpu", "memory"), [("100", ""), ("500", ""), ("1M", "1Pi")])
def test_the_room_of_a_node_in_words_has_no_bound(tmp_path: Path, cpu: str, memory: str) -> None:
    made = deployment(16, cpu=cpu)
    if memory:
        made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = memory
    code, report = fitted(tmp_path, node("cpu"), [template(), made], "--with-node", "16xL4")
    assert (code, report["newNodes"]["number"]) == (0, 1)


@pytest.mark.parametrize("words", ["8xL4", "gpu"])
@pytest.mark.parametrize(
    ("more", "what"),
    [("cpu=4", "cpu of the node is"), ("pods=10", "pods of the node is"), ("taint:foo=bar", "a taint of the node is")],
)
def test_what_is_of_the_node_needs_a_file(tmp_path: Path, words: str, more: str, what: str) -> None:
    code, out, errors = said(tmp_path, node("gpu", 1), [template(), deployment(1)], "--with-node", f"{words},{more}")
    told = f"{what} not said in words; write a file with the Node and its ResourceSlices (https://"
    assert (code, out) == (2, "") and told in errors
    assert "docs/fit.md#nodes-that-nobody-has-yet shows one)" in errors


def test_the_file_that_the_page_shows_is_a_node(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "fit.md").read_text()
    section = page.partition("## Nodes that nobody has yet\n")[2]
    (file := tmp_path / "h100-new.yaml").write_text(section.partition("```yaml\n")[2].partition("```\n")[0])
    device_class, made = nvidia(HOPPER_ONLY)
    tolerating = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    for tolerations, code in ((tolerating, 0), ([], 1)):
        manifest = [made, deployment(3, cpu="48", tolerations=tolerations)]
        ended, report = fitted(tmp_path, [device_class, *node("cpu")], manifest, "--with-node", str(file))
        assert ended == code and (code or report["newNodes"]["number"] == 2)


@pytest.mark.parametrize("unseen", ["Pod", "ResourceSlice", "ResourceClaim"])
def test_no_number_of_nodes_rests_on_what_was_not_read(tmp_path: Path, unseen: str) -> None:
    cluster = [each for each in node("n1", 2) if each["kind"] != unseen]
    code, out, errors = said(tmp_path, cluster, [template(), deployment(3)], "--with-node", "n1", unseen=(unseen,))
    assert code in (2, 3) and "new node (n1)" not in (out + errors).lower(), out
    assert "New nodes" not in out, out


@pytest.mark.parametrize("first", ["gpu", "8xL4"])
@pytest.mark.parametrize(("typed", "meant"), [("cuont=2", "count=2"), ("lable:zone=c", "label:zone=c")])
def test_a_misspelt_word_of_the_flag_is_corrected(tmp_path: Path, first: str, typed: str, meant: str) -> None:
    words = f"{first},{typed}"
    code, _, errors = said(tmp_path, node("gpu", 1), [template(), deployment(1)], "--with-node", words)
    told = unwrapped(errors)
    assert code == 2 and f"(did you mean {meant.partition('=')[0]}?)" in told
    assert f"--with-node {first},{meant} " in told
