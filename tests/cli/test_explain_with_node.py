"""``explain --with-node``: the pod on a node that is not there yet, and what an autoscaler makes of it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.data.clouds import autoscalers
from kubectl_dra.data.messages import AUTOSCALERS
from tests.cli.conftest import EXAMPLES, Dra, Ran, cluster_of, write_list
from tests.fit.worlds import CLASS, claim, node, running, write_cluster

JSON = dict[str, Any]


def pending(request: JSON | None = None, **spec: Any) -> list[JSON]:
    """A pod that waits for its claim, whose request has further fields."""
    waiting = claim("gpu")
    waiting["spec"]["devices"]["requests"][0]["exactly"] |= request or {}
    made = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "train", "namespace": "default", "uid": "u-train"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
            **spec,
        },
        "status": {"phase": "Pending"},
    }
    return [waiting, made]


def asked(dra: Dra, folder: Path, cluster: list[JSON], *flags: str, release: str = "1.36") -> JSON:
    """The diagnosis of the pod."""
    write_cluster(folder / "cluster.json", [CLASS, *cluster])
    ran = dra(
        *("explain", "pod/train", "--snapshot", str(folder / "cluster.json"), "--kubernetes-version", release),
        *(*flags, "-o", "json"),
    )
    found = ran.json
    assert isinstance(found, dict)
    return found


FULL = [*node("gpu-0", 1), *running("other", "gpu-0", [0])]


def test_it_fits_there(dra: Dra, tmp_path: Path) -> None:
    assert asked(dra, tmp_path, [*FULL, *pending()])["verdict"] == "cannot-be-scheduled"
    found = asked(dra, tmp_path, [*FULL, *pending()], "--with-node", "like=gpu-0")
    assert found["verdict"] == "can-be-scheduled"
    assert found["supposed"] == ["with-node=like=gpu-0"]
    assert [placement["node"] for placement in found["placements"]] == ["gpu-0-more"]


@pytest.mark.parametrize("words", ["gpu-0", "node/gpu-0", "gpu-0,count=1"])
def test_a_node_may_be_named_alone(dra: Dra, tmp_path: Path, words: str) -> None:
    found = asked(dra, tmp_path, [*FULL, *pending()], "--with-node", words)
    assert [placement["node"] for placement in found["placements"]] == ["gpu-0-more"]
    ran = dra("explain", "pod/train", "--snapshot", str(tmp_path / "cluster.json"), "--with-node", "gpu-9")
    said = 'error: --with-node "gpu-9": there is neither a file gpu-9 nor a Node of that name; did you mean gpu-0?\n'
    command = f"kubectl dra explain pod/train --with-node gpu-0 --snapshot {tmp_path / 'cluster.json'}"
    assert (ran.code, ran.err) == (2, f"{said}Write: {command}\n")


def test_it_does_not_fit_there_either(dra: Dra, tmp_path: Path) -> None:
    cluster = [*FULL, *pending({"count": 2})]
    found = asked(dra, tmp_path, cluster, "--with-node", "like=gpu-0,count=2")
    assert found["verdict"] == "cannot-be-scheduled"
    assert found["answer"].startswith("Pod default/train cannot be scheduled with this change: ")


def notes(found: JSON) -> str:
    return " ".join(found["notes"])


def test_cluster_autoscaler_comes_to_the_same_result(dra: Dra, tmp_path: Path) -> None:
    pod = pending(preemptionPolicy="Never")
    found = asked(dra, tmp_path, [*FULL, *pod], "--with-node", "like=gpu-0")
    assert (
        "cluster-autoscaler comes to the same result if node gpu-0 is of one of its groups, since it assumes that "
        "the next one is like it, with the same slices" in notes(found)
    )
    assert "not certain" not in notes(found)
    assert "karpenter" not in notes(found)


@pytest.mark.parametrize(
    ("request_", "release", "told"),
    [
        ({}, "1.34", "does not come to the same result: up to 1.34 it leaves claims out unless"),
        ({"tolerations": [{"operator": "Exists"}]}, "1.36", "not certain: that it counts taints of devices is not"),
        ({"adminAccess": True}, "1.34", "before 1.35 it does not know admin access"),
    ],
)
def test_limits_of_cluster_autoscaler(dra: Dra, tmp_path: Path, request_: JSON, release: str, told: str) -> None:
    found = asked(dra, tmp_path, [*FULL, *pending(request_)], "--with-node", "like=gpu-0", release=release)
    assert told in notes(found)


def test_admin_access_is_known_from_1_35_on(dra: Dra, tmp_path: Path) -> None:
    found = asked(dra, tmp_path, [*FULL, *pending({"adminAccess": True})], "--with-node", "like=gpu-0")
    assert "admin access" not in notes(found)


def test_of_a_group_without_nodes_it_knows_nothing(dra: Dra, tmp_path: Path) -> None:
    file = write_list(tmp_path / "node.json", node("new", 1))
    cluster = [*node("cpu"), *pending()]
    found = asked(dra, tmp_path, cluster, "--with-node", file)
    assert found["verdict"] == "can-be-scheduled"
    assert "of a group without nodes it usually knows no devices" in notes(found)
    cluster[0]["metadata"]["labels"]["cloud.google.com/gke-nodepool"] = "cpu"
    assert "cloud.google.com/gke-nvidia-gpu-dra-driver=true" in notes(
        asked(dra, tmp_path, cluster, "--with-node", file)
    )


def tainted(items: list[JSON], request: JSON | None = None) -> list[JSON]:
    """A node whose devices its driver taints, and a pod that waits."""
    (slice_,) = (item for item in items if item["kind"] == "ResourceSlice")
    for device in slice_["spec"]["devices"]:
        device["taints"] = [{"key": "example.com/conflict", "effect": "NoExecute"}]
    return [*items, *pending(request, preemptionPolicy="Never")]


def test_the_autoscaler_takes_over_the_taints_of_devices(dra: Dra, tmp_path: Path) -> None:
    """The answer leaves them out, since they tell the state of the devices that are there."""
    found = asked(dra, tmp_path, tainted(node("gpu-0", 1)), "--with-node", "like=gpu-0")
    assert found["verdict"] == "can-be-scheduled"
    assert (
        "cluster-autoscaler comes to another result: if node gpu-0 is of one of its groups, it assumes that the next "
        "one has the same slices, with the taints of their devices (example.com/conflict), and the scheduler's steps "
        "find no place on such a node; a new node is taken here not to have them" in notes(found)
    )
    assert "comes to the same result" not in notes(found)
    tolerating = {"tolerations": [{"key": "example.com/conflict", "operator": "Exists"}]}
    found = asked(dra, tmp_path, tainted(node("gpu-0", 1), tolerating), "--with-node", "like=gpu-0")
    assert "cluster-autoscaler comes to the same result" in notes(found)
    other = {"selectors": [{"cel": {"expression": "device.driver == 'other.example.com'"}}]}
    found = asked(dra, tmp_path, tainted(node("gpu-0", 1), other), "--with-node", "like=gpu-0")
    assert "cluster-autoscaler comes to the same result" in notes(found)


LEFT_OUT = "devices of gpu-0 have taints (example.com/conflict), which those of a new node are taken not to have"


@pytest.mark.parametrize("words", ["gpu-0", "gpu-0,count=2", "gpu-0,label:team=ml"])
def test_taints_of_devices_that_are_left_out_are_a_note_of_their_own(dra: Dra, tmp_path: Path, words: str) -> None:
    """In brief text as well; not where the claim tolerates them."""
    asked(dra, tmp_path, tainted(node("gpu-0", 1)), "--with-node", words)
    ran = dra("explain", "pod/train", "--snapshot", str(tmp_path / "cluster.json"), "--with-node", words)
    assert ran.code == 0 and f"Note: {LEFT_OUT}" in ran.flat
    tolerating = {"tolerations": [{"key": "example.com/conflict", "operator": "Exists"}]}
    found = asked(dra, tmp_path, tainted(node("gpu-0", 1), tolerating), "--with-node", words)
    assert LEFT_OUT not in notes(found)


def test_a_node_with_some_tainted_devices_is_tried(dra: Dra, tmp_path: Path) -> None:
    """A device without a taint is left for one pod; how many fit with those that are there is not said of several."""
    items = tainted(node("gpu-0", 2), {"count": 1})
    (slice_,) = (item for item in items if item["kind"] == "ResourceSlice")
    del slice_["spec"]["devices"][0]["taints"]
    items += running("a", "gpu-0", [0])
    found = asked(dra, tmp_path, items, "--with-node", "like=gpu-0")
    assert "cluster-autoscaler comes to the same result" in notes(found)
    found = asked(dra, tmp_path, items, "--with-node", "like=gpu-0", "--with-node", "like=gpu-0,count=2")
    assert "cluster-autoscaler may come to another result" in notes(found)


@pytest.mark.parametrize("what", ["device", "node"])
def test_copies_of_a_file_have_what_the_file_has(dra: Dra, tmp_path: Path, what: str) -> None:
    new = node("new", 1)
    if what == "device":
        new = [item for item in tainted(new) if item["kind"] in ("Node", "ResourceSlice")]
    else:
        new[0].setdefault("spec", {})["unschedulable"] = True
    write_list(tmp_path / "node.json", new)
    for count in ("1", "2"):
        found = asked(dra, tmp_path, [*FULL, *pending()], "--with-node", f"{tmp_path / 'node.json'},count={count}")
        assert found["verdict"] == "cannot-be-scheduled", count


def test_karpenter_is_told_where_it_is_seen(dra: Dra, tmp_path: Path) -> None:
    cluster = [*FULL, *pending()]
    cluster[0]["metadata"]["labels"]["karpenter.sh/nodepool"] = "gpu"
    found = asked(dra, tmp_path, cluster, "--with-node", "like=gpu-0")
    assert "Karpenter does not come to the same result: it leaves out pods with claims" in notes(found)
    assert "cluster-autoscaler" not in notes(found)


def test_a_pod_without_devices_is_told_of_no_autoscaler(dra: Dra, tmp_path: Path) -> None:
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "train", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Pending"},
    }
    assert "autoscaler" not in notes(asked(dra, tmp_path, [*FULL, pod], "--with-node", "like=gpu-0"))


@pytest.mark.parametrize("words", [("-A",), ("node/gpu-0",), ()])
def test_only_a_pod_or_claim_is_asked_with_it(dra: Dra, tmp_path: Path, words: tuple[str, ...]) -> None:
    write_cluster(tmp_path / "cluster.json", [CLASS, *FULL])
    ran = dra("explain", *words, "--snapshot", str(tmp_path / "cluster.json"), "--with-node", "like=gpu-0")
    assert ran.code == 2
    assert "--with-node needs" in ran.err


def test_each_limit_and_cloud_has_its_source() -> None:
    for limit in autoscalers().limits:
        assert limit.says in AUTOSCALERS
        assert limit.source
        assert not limit.why.endswith(".")
    for cloud in autoscalers().clouds:
        assert cloud.source
        assert not cloud.zero.endswith(".")
    assert [cloud.title for cloud in autoscalers().clouds][-1] == ""


def test_a_pod_that_has_its_devices_is_told_of_no_autoscaler(dra: Dra, tmp_path: Path) -> None:
    """Whether it runs already or only starts."""
    for phase in ("Running", "Pending"):
        there, held = running("train", "gpu-0", [0])
        there["status"] = {"phase": phase}
        found = asked(dra, tmp_path, [*node("gpu-0", 1), there, held], "--with-node", "like=gpu-0")
        assert found["verdict"] == "allocated"
        assert "autoscaler" not in notes(found)


def test_why_a_new_node_does_not_help_is_said_without_numbers_of_terms(dra: Dra, tmp_path: Path) -> None:
    """What its devices have, or how many of the kind there are."""
    text = 'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "{}"'
    there = node("gpu-0", 2)
    for device in there[1]["spec"]["devices"]:
        device["attributes"] = {"model": {"string": "A100"}}
    for model, count, told in (
        ("H100", 1, 'on gpu-0-more, request "gpu" wants model H100; both devices have A100; elsewhere, '),
        ("A100", 3, 'request "gpu" needs 3 devices on one node, and no eligible node has more than 2.'),
    ):
        request = {"selectors": [{"cel": {"expression": text.format(model)}}], "count": count}
        found = asked(dra, tmp_path, [*there, *pending(request)], "--with-node", "like=gpu-0")
        assert f"with this change: {told}" in found["answer"]
        # What the answer says is not said again.
        why = "new node gpu-0-more does not help: gpu: 2 devices of this kind, 3 needed"
        assert (why in notes(found)) == (count == 3)
        assert notes(found).count("does not help") == (count == 3)


def test_why_a_new_node_does_not_help_stays_a_note_where_the_pod_fits(dra: Dra, tmp_path: Path) -> None:
    """And where what stops the pod is no matter of nodes."""
    text = 'device.attributes["gpu.example.com"].model == "H100"'
    there, pod = [*node("gpu-0", 1), *node("gpu-1", 1)], pending({"selectors": [{"cel": {"expression": text}}]})
    for number, model in ((1, "A100"), (3, "H100")):
        there[number]["spec"]["devices"][0]["attributes"] = {"model": {"string": model}}
    found = asked(dra, tmp_path, [*there, *pod], "--with-node", "like=gpu-0")
    assert found["verdict"] == "can-be-scheduled"
    assert "new node gpu-0-more does not help: gpu: 0 of 1 devices match selectors[0]: model is A100 on 1" in notes(
        found
    )
    gated = pending({"selectors": [{"cel": {"expression": text}}]}, schedulingGates=[{"name": "wait"}])
    found = asked(dra, tmp_path, [*there[:2], *gated], "--with-node", "like=gpu-0")
    assert "on gpu-0-more" not in found["answer"] and "elsewhere" not in found["answer"]


def of_example(dra: Dra, example: str, *words: str) -> Ran:
    """What is said of the pod of an example, with these words more."""
    snapshot = cluster_of(example)
    return dra("explain", *words, "--snapshot", snapshot)


def nvidia(items: list[JSON]) -> list[JSON]:
    """The devices as the NVIDIA driver publishes them, in a class of its own."""
    for item in items:
        if item["kind"] == "ResourceSlice":
            item["spec"]["driver"] = "gpu.nvidia.com"
            for device in item["spec"]["devices"]:
                device["attributes"] = {"type": {"string": "gpu"}, "productName": {"string": "NVIDIA L4"}}
    return items


def first(dra: Dra, folder: Path, cluster: list[JSON], words: str) -> str:
    found = asked(dra, folder, cluster, "--with-node", words)
    return f"{found['verdict']}: {found['answer']}"


def test_a_node_in_words_has_the_taints_of_all_such_nodes(dra: Dra) -> None:
    words = ("pod/mistral-0", "-n", "serving", "--with-node")
    ran = of_example(dra, "devices-on-tainted-nodes", *words, "nvidia.com/gpu=1", "--full")
    assert ran.code == 1
    said = ran.flat
    assert "with this change: new-node would not take the pod: untolerated node taint sku=gpu:NoSchedule" in said
    assert "taint sku=gpu:NoSchedule as all nodes with such devices here" in said


def test_what_a_node_in_words_rests_on_is_said_first(dra: Dra, tmp_path: Path) -> None:
    pod = pending()
    pod[1]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "300", "memory": "16Gi"}
    said = first(dra, tmp_path, [*node("cpu"), *pod], "1xL4")
    assert said.startswith(
        "can-be-scheduled: Pod default/train could be scheduled with this change, if driver gpu.nvidia.com is "
        "installed, which nothing here shows, and new-node has room for the pod (cpu 300, memory 16Gi) and no taint: "
    )
    # Nodes that have such devices show the driver, and that such nodes have no taint.
    said = first(dra, tmp_path, [*nvidia(node("gpu-0", 1)), *running("other", "gpu-0", [0]), *pod], "1xL4")
    assert "with this change, if new-node has room for the pod (cpu 300, memory 16Gi): " in said
    # The CPUs of a machine type are known.
    said = first(dra, tmp_path, [*node("cpu"), *pod], "p5.48xlarge")
    assert said.startswith("cannot-be-scheduled: ") and "room for the pod" not in said
    pod[1]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "150"
    said = first(dra, tmp_path, [*node("cpu"), *pod], "p5.48xlarge")
    assert said.startswith("can-be-scheduled: ") and "and new-node has no taint: " in said


def test_a_driver_that_is_nowhere_is_a_condition(dra: Dra, tmp_path: Path) -> None:
    pod = str(EXAMPLES / "driver-not-installed" / "pod.yaml")
    ran = of_example(dra, "driver-not-installed", "-f", pod, "--with-node", "8xMI300X")
    assert ran.code == 0 and "if driver gpu.amd.com is installed, which nothing here shows" in ran.flat
    ran = of_example(dra, "driver-not-installed", "-f", pod, "--with-node", "mi300x-1")
    assert ran.code == 1 and "mi300x-1-more" not in ran.out.partition("Note")[0]


def test_a_driver_that_is_broken_everywhere_is_so_on_a_new_node(dra: Dra, tmp_path: Path) -> None:
    """As far as its pods tell: this one runs and publishes nothing."""
    image = {"name": "plugin", "image": "docker.io/rocm/k8s-gpu-dra-driver:v1.0.0", "command": ["gpu-kubeletplugin"]}
    folders = ("plugins_registry", "plugins")
    volumes = [{"name": name, "hostPath": {"path": f"/var/lib/kubelet/{name}"}} for name in folders]
    owner = {"kind": "DaemonSet", "name": "k8s-gpu-dra-driver-kubeletplugin", "apiVersion": "apps/v1"}
    (plugin,) = running("k8s-gpu-dra-driver-kubeletplugin-5x", "cpu", owner=owner, containers=[image], volumes=volumes)
    began = {"running": {"startedAt": "2026-03-01T08:00:10Z"}}
    plugin["status"]["containerStatuses"] = [{"name": "plugin", "ready": True, "restartCount": 0, "state": began}]
    plugin["metadata"]["creationTimestamp"] = "2026-03-01T08:00:00Z"
    own = {**CLASS, "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.amd.com"'}}]}}
    own["metadata"] = {"name": "gpu.amd.com"}
    cluster = [own, *node("cpu"), plugin, *pending({"deviceClassName": "gpu.amd.com"})]
    said = first(dra, tmp_path, cluster, "8xMI300X")
    assert said.startswith("cannot-be-scheduled: ") and "runs and publishes no devices" in said
    assert "driver-unhealthy" in json.dumps(asked(dra, tmp_path, cluster, "--with-node", "8xMI300X"))


def test_labels_that_nobody_knows_leave_it_open(dra: Dra, tmp_path: Path) -> None:
    cluster = [*node("cpu"), *pending(nodeSelector={"team": "ml"})]
    said = first(dra, tmp_path, cluster, "1xL4")
    assert said.startswith("undetermined: ")
    assert "whether new-node has label team=ml is not known; add label:team=ml if it has" in said
    assert first(dra, tmp_path, cluster, "1xL4,label:team=ml").startswith("can-be-scheduled: ")
    assert first(dra, tmp_path, cluster, "1xL4,label:team=web").startswith("cannot-be-scheduled: ")
    # What a node is like may have other labels, too.
    cluster = [*FULL, *pending(nodeSelector={"team": "ml"})]
    assert first(dra, tmp_path, cluster, "gpu-0").startswith("cannot-be-scheduled: ")
    assert first(dra, tmp_path, cluster, "gpu-0,label:team=ml").startswith("can-be-scheduled: ")


def test_a_node_of_which_a_label_is_unknown_is_none_that_fits(dra: Dra, tmp_path: Path) -> None:
    """Where others fit, whether they were there or are new, these are named alone."""
    zone = "topology.kubernetes.io/zone"
    cluster = [*nvidia([*node("gpu-0", 1, zone="b"), *node("gpu-1", 1, zone="a")]), *pending(nodeSelector={zone: "b"})]
    for words in ("1xL4", "1xL4,count=2"):
        found = asked(dra, tmp_path, cluster, "--with-node", words)
        assert found["verdict"] == "can-be-scheduled"
        assert [placement["node"] for placement in found["placements"]] == ["gpu-0"]
        assert "new-node" not in found["answer"]
        told = f"would fit as well with label {zone}=b, which is not known; add label:{zone}=b if it is there"
        assert told in notes(found)
    found = asked(dra, tmp_path, cluster, "--with-node", f"1xL4,label:{zone}=b")
    assert {placement["node"] for placement in found["placements"]} == {"gpu-0", "new-node"}
    assert "not known" not in notes(found)
    cluster = [*cluster[:-2], *pending({"count": 2}, nodeSelector={zone: "b"})]
    found = asked(dra, tmp_path, cluster, "--with-node", "2xL4", "--with-node", f"2xL4,label:{zone}=b")
    assert found["verdict"] == "can-be-scheduled"
    assert [placement["node"] for placement in found["placements"]] == ["new-node-3"]
    assert asked(dra, tmp_path, cluster, "--with-node", "2xL4")["verdict"] == "undetermined"


@pytest.mark.parametrize(
    ("value", "words", "verdict"),
    [
        ("nvidia-l4", "1xL4", "can-be-scheduled"),
        ("nvidia-tesla-t4", "1xL4", "cannot-be-scheduled"),
        # One of two that such nodes may have.
        ("nvidia-h100-80gb", "product=NVIDIA H100 80GB HBM3,devices=1", "undetermined"),
        ("nvidia-l4", "product=NVIDIA H100 80GB HBM3,devices=1", "cannot-be-scheduled"),
    ],
)
def test_gke_labels_a_node_by_its_product(dra: Dra, tmp_path: Path, value: str, words: str, verdict: str) -> None:
    cluster = [*node("cpu"), *pending(nodeSelector={"cloud.google.com/gke-accelerator": value})]
    assert first(dra, tmp_path, cluster, words).startswith(f"{verdict}: ")


@pytest.mark.parametrize(
    ("words", "label"),
    [
        ("p5.48xlarge", "labels node.kubernetes.io/instance-type=p5.48xlarge, "),
        (
            "1xL4,label:team=ml",
            "labels cloud.google.com/gke-accelerator=nvidia-l4, nvidia.com/gpu.product=NVIDIA-L4, team=ml",
        ),
    ],
)
def test_the_labels_that_a_node_in_words_is_tried_with_are_said(
    dra: Dra, tmp_path: Path, words: str, label: str
) -> None:
    there = node("cpu")
    there[0]["metadata"]["labels"]["cloud.google.com/gke-nodepool"] = "cpu"
    said = notes(asked(dra, tmp_path, [*there, *pending()], "--with-node", words))
    assert "new-node is taken to run driver gpu.nvidia.com and to have " in said
    assert f"Linux on amd64, no taints, {label}" in said and "; its other labels are unknown, and a file of" in said


def test_the_machine_type_is_a_label(dra: Dra, tmp_path: Path) -> None:
    for machine, verdict in (("p5.48xlarge", "can-be-scheduled"), ("p4d.24xlarge", "cannot-be-scheduled")):
        cluster = [*node("cpu"), *pending(nodeSelector={"node.kubernetes.io/instance-type": machine})]
        assert first(dra, tmp_path, cluster, "p5.48xlarge").startswith(f"{verdict}: ")
    assert first(dra, tmp_path, cluster, "8xH100").startswith("undetermined: ")


def test_tpus_have_their_label(dra: Dra) -> None:
    ran = of_example(dra, "tpu-all-one-held", "pod/gemma-tune-0", "-n", "ml", "--with-node", "4xv6e")
    assert ran.code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "4xL4",
            'on new-node, request "gpu" wants architecture Hopper; all 4 devices have Ada Lovelace; elsewhere, no',
        ),
        ("8xB200", 'on new-node, request "gpu" wants architecture Hopper; all 8 devices have Blackwell; elsewhere,'),
        ("8xGaudi3", "match class gpu.nvidia.com: driver is gaudi.intel.com on 8; elsewhere, no node has such devices"),
    ],
)
def test_why_a_new_node_does_not_help_is_said_before_the_autoscaler(dra: Dra, words: str, told: str) -> None:
    ran = of_example(dra, "scale-from-zero", "pod/pretrain-0", "-n", "ml", "--with-node", words)
    assert ran.code == 1 and told in ran.flat


def test_what_an_autoscaler_makes_of_it_stands_on_the_full_page(dra: Dra) -> None:
    words = ("pod/pretrain-0", "-n", "ml", "--with-node", "8xH100")
    assert "Karpenter does not come" not in of_example(dra, "scale-from-zero", *words).out
    assert "Karpenter does not come" in of_example(dra, "scale-from-zero", *words, "--full").out


def published(folder: Path, cluster: list[JSON], **device: Any) -> list[JSON]:
    """The cluster, whose devices have these fields."""
    for item in cluster:
        if item["kind"] == "ResourceSlice":
            item["spec"]["devices"] = [{**each, **device} for each in item["spec"]["devices"]]
    return cluster


def test_what_devices_here_publish_may_be_typed(dra: Dra, tmp_path: Path) -> None:
    """Though the catalogue does not have it, such as an attribute of a newer release, or one that all drivers share."""
    text = 'device.attributes["gpu.example.com"].{} == "whole"'
    cluster = published(tmp_path, [*node("gpu-0", 1), *running("other", "gpu-0", [0])], attributes={})
    cluster[1]["spec"]["devices"][0]["attributes"] = {"kind": {"string": "half"}}
    cluster += pending({"selectors": [{"cel": {"expression": text.format("kind")}}]})
    words = "driver=gpu.example.com,devices=1"
    for more, verdict in (("kind=whole", "can-be-scheduled"), ("kind=half", "cannot-be-scheduled")):
        assert first(dra, tmp_path, cluster, f"{words},{more}").startswith(f"{verdict}: ")
    more = "kind=whole,resource.kubernetes.io/pcieRoot=pci0000:00"
    assert first(dra, tmp_path, cluster, f"{words},{more}").startswith("can-be-scheduled: ")
    flags = ("explain", "pod/train", "--snapshot", str(tmp_path / "cluster.json"), "--with-node")
    # What the claims read is asked for, with a value that they take.
    ran = dra(*flags, words)
    assert ran.code == 2 and "read kind of devices" in ran.err and "kind=whole" in ran.err.splitlines()[-1]
    assert "did you mean kind?" in dra(*flags, f"{words},kidn=whole").err


def test_a_capacity_in_words_is_had_as_those_here(dra: Dra, tmp_path: Path) -> None:
    policy = {"default": "4Gi", "validRange": {"min": "4Gi", "max": "16Gi", "step": "4Gi"}}
    memory = {"value": "40Gi", "requestPolicy": policy}
    cluster = published(tmp_path, node("gpu-0", 1), capacity={"memory": memory}, allowMultipleAllocations=True)
    for amount, verdict in (("16Gi", "can-be-scheduled"), ("20Gi", "cannot-be-scheduled")):
        pod = pending({"capacity": {"requests": {"memory": amount}}})
        for words in ("driver=gpu.example.com,devices=1,memory=40Gi", "gpu-0"):
            assert first(dra, tmp_path, [*cluster, *pod], words).startswith(f"{verdict}: ")


def test_the_new_node_is_the_example(dra: Dra, tmp_path: Path) -> None:
    """On the one that is there, the pod would be evicted at once, which is said as well."""
    tolerating = {"tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}]}
    cluster = tainted(node("gpu-0", 1), tolerating)
    asked(dra, tmp_path, cluster, "--with-node", "gpu-0")
    words = ("pod/train", "--snapshot", str(tmp_path / "cluster.json"), "--kubernetes-version", "1.36")
    out = dra("explain", *words, "--with-node", "gpu-0").out
    assert "on gpu-0-more: gpu: " in out and "on gpu-0: gpu: " not in out
    assert "on gpu-0 the pod would be evicted at once" in out


def test_an_example_is_what_the_claims_take(dra: Dra) -> None:
    ran = of_example(dra, "mixed-fleet", "pod/serve-0", "-n", "ml", "--with-node", "8xMI300X")
    assert ran.code == 2 and "--with-node 8xMI300X,computePartition=spx" in ran.err


def test_a_copy_of_an_incomplete_pool_is_complete(dra: Dra, tmp_path: Path) -> None:
    """What is missing of it passes; of what nobody has seen, nothing is said."""
    cluster = node("gpu-0", 2)
    cluster[1]["spec"]["pool"]["resourceSliceCount"] = 2
    assert asked(dra, tmp_path, [*cluster, *pending()])["verdict"] == "cannot-be-scheduled"
    found = asked(dra, tmp_path, [*cluster, *pending()], "--with-node", "gpu-0")
    assert found["verdict"] == "can-be-scheduled"
    assert [placement["node"] for placement in found["placements"]] == ["gpu-0-more"]
    told = (
        "1 of 2 slices of pool gpu.example.com/gpu-0 are published, so a new node is taken to have the devices of these"
    )
    assert told in notes(found)
    # More devices than are published may be there.
    found = asked(dra, tmp_path, [*cluster, *pending({"count": 3})], "--with-node", "gpu-0")
    assert found["verdict"] == "undetermined" and told in found["answer"]
    assert "gpu-0-more is" not in json.dumps(found)
    tainted_node = [{**cluster[0], "spec": {"taints": [{"key": "team", "effect": "NoSchedule"}]}}, cluster[1]]
    found = asked(dra, tmp_path, [*tainted_node, *pending()], "--with-node", "gpu-0")
    assert found["verdict"] == "cannot-be-scheduled" and "gpu-0-more would not take the pod: " in found["answer"]


UNKNOWN = (
    ("8H100", ["gpu-1", "8xH100"]),
    ("DGX-H100", ["gpu-1", "8xH100"]),
    ("RTX 4090", ["gpu-1"]),
    ("MIG", ["gpu-1"]),
    ("-1xH100", ["gpu-1", "1xH100"]),
    ("trn2.48xlarge", ["gpu-1"]),
    ("node-7", ["gpu-1"]),
    ("p5.47xlarge", ["p5.48xlarge"]),
)


@pytest.mark.parametrize(("typed", "proposed"), UNKNOWN, ids=[typed for typed, _ in UNKNOWN])
def test_a_value_that_is_nothing_known_says_what_there_is(dra: Dra, typed: str, proposed: list[str]) -> None:
    """First the nodes of the cluster; of machine types only those of the same family."""
    words = ("pod/train-0", "-n", "ml", "--with-node")
    ran = of_example(dra, "no-device-matches", *words, typed)
    sentence, *more = ran.err.splitlines()
    assert ran.code == 2 and sentence.startswith("error: ")
    assert f"there is neither a file {typed} nor a Node of that name" in " ".join(ran.err.split())
    values = [shlex.split(line)[shlex.split(line).index("--with-node") + 1] for line in more if "kubectl dra" in line]
    assert values == proposed


@pytest.mark.parametrize(
    ("typed", "listed"),
    [
        ("8xnvidia", "it knows NVIDIA A100-SXM4-40GB, NVIDIA A10, "),
        ("8xtesla", "it knows Tesla P100-PCIE-16GB, Tesla T4, "),
        ("product=amd,devices=8", "it knows AMD_Instinct_MI300X_OAM"),
        ("driver=gpu.nvidia.com,product=nvidia,devices=8", "it knows NVIDIA A100-SXM4-40GB, NVIDIA A10, "),
        ("nvidia", "there is neither a file nvidia nor a Node of that name"),
    ],
)
def test_a_vendor_is_no_product(dra: Dra, typed: str, listed: str) -> None:
    ran = of_example(dra, "no-device-matches", "pod/train-0", "-n", "ml", "--with-node", typed)
    assert (ran.code, ran.out) == (2, "")
    assert listed in " ".join(ran.err.split()) and "product=nvidia," not in ran.err.partition("\n")[2]


def test_a_product_that_the_cluster_has_is_not_chosen_where_another_would_do(dra: Dra) -> None:
    """Which one is meant is asked, with a command for each, where the claims take only one that is not there."""
    words = ("pod/train-0", "-n", "ml", "--with-node")
    ran = of_example(dra, "no-device-matches", *words, "8xA100")
    sentence, *more = ran.err.splitlines()
    assert (ran.code, ran.out) == (2, "")
    assert sentence.endswith(
        "they may be NVIDIA A100-SXM4-40GB, which the cluster has, or NVIDIA A100 80GB PCIe, NVIDIA A100-SXM4-80GB; "
        "the claims of pod ml/train-0 take only the others, so name one"
    )
    values = [shlex.split(line)[shlex.split(line).index("--with-node") + 1] for line in more]
    codes = {value: of_example(dra, "no-device-matches", *words, value).code for value in values}
    assert codes == {
        "product=NVIDIA A100-SXM4-40GB,devices=8": 1,
        "product=NVIDIA A100 80GB PCIe,devices=8": 0,
        "product=NVIDIA A100-SXM4-80GB,devices=8": 0,
    }
    # The claims take the one that is there.
    smaller = "gpu:selector=device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0"
    assert of_example(dra, "no-device-matches", *words, "8xA100", "--what-if", smaller).code == 0


def test_a_resource_with_another_sign_is_understood_as_one(dra: Dra) -> None:
    words = ("pod/train-0", "-n", "ml", "--with-node")
    for typed in ("nvidia.com/gpu", "nvidia.com/gpu:8"):
        errors = of_example(dra, "no-device-matches", *words, typed).err
        assert "--with-node gpu-1 " in errors and "--with-node 'nvidia.com/gpu=8,product=" in errors


@pytest.mark.parametrize(
    ("typed", "count"), [("4xv5e", 4), ("TPU v5e x 4", 4), ("ct5lp-hightpu-4t", 4), ("ct5lp-hightpu-8t", 8)]
)
def test_tpu_v5e_is_known(dra: Dra, tmp_path: Path, typed: str, count: int) -> None:
    pod = pending({"allocationMode": "All"}) if count > 1 else pending()
    found = asked(dra, tmp_path, [*node("cpu"), *pod], "--with-node", typed)
    assert found["verdict"] == "can-be-scheduled"
    (placement,) = found["placements"]
    assert len(placement["devices"]) == count and "tpu.google.com" in json.dumps(placement)


def test_a_zone_that_nobody_knows_leaves_it_open(dra: Dra, tmp_path: Path) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "topology.kubernetes.io/zone"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    (cache,) = running("cache", "cpu")
    cache["metadata"]["labels"] = {"app": "cache"}
    cluster = [*node("cpu", zone="a"), cache, *pending(affinity=affinity)]
    said = first(dra, tmp_path, cluster, "1xL4")
    assert said.startswith("undetermined: ") and "add label:topology.kubernetes.io/zone=VALUE" in said
    for zone, verdict in (("a", "can-be-scheduled"), ("b", "cannot-be-scheduled")):
        said = first(dra, tmp_path, cluster, f"1xL4,label:topology.kubernetes.io/zone={zone}")
        assert said.startswith(f"{verdict}: ")
    assert "new-node would not take the pod: pod affinity: no pod that it wants is in" in said
