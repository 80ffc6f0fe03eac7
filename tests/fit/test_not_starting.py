"""Pods that the scheduler places on a node where they do not start: ``fit`` and ``explain`` place them, and say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubectl_dra.fit.result import NodesNeeded
from kubectl_dra.report.fit_stop_words import needed
from tests.fit import worlds
from tests.fit.worlds import DRIVER, JSON, SCHEMA, deployment, files, item, node, template
from tests.ran import ran, unwrapped

READY: Final = [{"type": "Ready", "status": "True"}]
EVENT: Final[JSON] = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "old.1", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "old"},
    "reason": "FailedPrepareDynamicResources",
    "message": f"prepare dynamic resources: DRA driver {DRIVER} is not registered",
    "type": "Warning",
}


def _not_registered() -> list[JSON]:
    """A pod waits on node b for a driver that the kubelet does not know."""
    pod, claim = worlds.running("old", "b", [0])
    pod["status"] = {"phase": "Pending"}
    return [pod, claim, EVENT]


def _crashing() -> list[JSON]:
    """The driver's pods of both nodes, of which that of node b crashes."""
    from tests.drivers.clusters import CRASHES, ENDED, plugin, status

    env = [{"name": "DRIVER_NAME", "value": DRIVER}]
    container = [{"name": "plugin", "image": "registry.test/gpu:v1", "env": env}]
    crash = status(state=CRASHES, lastState=ENDED)
    return [plugin("a", containers=container), plugin("b", [crash], containers=container)]


def _cluster(what: str) -> list[JSON]:
    objects = [*node("a", 2), *node("b", 3), worlds.CLASS]
    for raw in objects:
        if raw["kind"] == "Node":
            down = what == "away" and raw["metadata"]["name"] == "b"
            raw["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}] if down else READY
    return [*objects, *{"not-registered": _not_registered, "crashing": _crashing, "away": list[JSON]}[what]()]


WHY: Final = {
    "not-registered": ("not-registered", f"driver {DRIVER} is not registered"),
    "crashing": ("crashing", f"driver {DRIVER} crashes there"),
    "away": ("node-not-ready", "node b is not ready"),
}


@pytest.mark.parametrize("what", WHY)
def test_placed_and_told(what: str, tmp_path: Path) -> None:
    """The scheduler takes the node all the same, so the answer is no yes: some pods do not start there, and why.

    Of the same cluster ``explain -f`` says it with the same values.
    """
    state, why = WHY[what]
    found = item(tmp_path, _cluster(what), [deployment(4), template(1)])
    on = next(each["podCount"] for each in found["byNode"] if each["node"] == "b")
    assert (found["verdict"], found["podCounts"]["fit"], found["podCounts"]["starting"]) == ("does-not-start", 4, 2)
    assert found["notStarting"] == [{"node": "b", "driver": DRIVER, "state": state, "text": why, "podCount": on}]
    assert found["answer"] == f"2 of 4 replicas of Deployment default/web start: the other 2 go to b, where {why}."
    flags = files(tmp_path)
    code, out, _ = ran("explain", *flags, "-o", "json")
    explained = json.loads(out)
    assert code == 1
    assert explained["notStarting"] == [{"node": "b", "driver": DRIVER, "state": state, "text": why}]
    assert explained["verdict"] == "undetermined"
    assert explained["answer"].endswith(f"the scheduler may take b, where it does not start: {why}.")
    groups = {tuple(group["nodes"]): group["reason"] for group in explained["nodeGroups"]}
    assert groups == {("a",): "all claims fit", ("b",): f"all claims fit, but pods do not start here: {why}"}
    assert "kubectl dra explain node/b" in explained["next"]["text"]
    code, text, _ = ran("fit", *flags)
    assert code == 1
    assert "What is wrong on b: kubectl dra explain node/b" in text


def test_healthy_nodes_first(tmp_path: Path) -> None:
    """Where the scheduler may take either node the working one is named, and the answer is open."""
    found = item(tmp_path, _cluster("crashing"), [deployment(2), template(1)])
    why = f"driver {DRIVER} crashes there"
    assert [each["node"] for each in found["byNode"]] == ["a"]
    assert (found["verdict"], found["podCounts"]["starting"]) == ("undetermined", 2)
    assert [each["node"] for each in found["mayNotStart"]] == ["b"]
    assert found["undetermined"] == [f"the scheduler may as well take b, where {why}"]
    flags = files(tmp_path)
    assert ran("fit", *flags)[0] == ran("explain", *flags)[0] == 3


def test_as_many_as_fit_have_to_start(tmp_path: Path) -> None:
    """Of as many as fit two go to the broken node: the answer counts them, and neither verdict nor code is a yes."""
    found = item(tmp_path, _cluster("crashing"), [deployment(1), template(1)], "--max")
    code, out, _ = ran("fit", *files(tmp_path), "--max")
    assert (code, found["verdict"], found["replicaCounts"]["fit"], found["podCounts"]["starting"]) == (
        *(1, "does-not-start"),
        *(5, 2),
    )
    said = "At most 5 replicas of Deployment default/web fit, but 3 of them go to b, where they do not start: driver"
    assert found["answer"].startswith(said)
    assert unwrapped(out).startswith(said)


def test_no_other_node(tmp_path: Path) -> None:
    """A pod that fits on the broken node alone does not start: no command says a plain yes, and none a copy of it."""
    found = item(tmp_path, _cluster("crashing"), [deployment(1, gpus=3), template(3)])
    assert (found["verdict"], found["podCounts"]["starting"]) == ("does-not-start", 0)
    why = f"driver {DRIVER} crashes there"
    assert found["answer"] == f"Deployment default/web does not start: it goes to b, where {why}."
    flags = files(tmp_path)
    code, out, _ = ran("explain", *flags, "-o", "json")
    explained = json.loads(out)
    assert (code, explained["verdict"]) == (1, "does-not-start")
    assert explained["answer"].endswith(f"it fits on b, where pods do not start: {why}.")
    code, out, _ = ran("fit", *flags, "--replicas", "2", "-o", "json")
    (found,) = json.loads(out)["items"]
    assert (code, found["verdict"]) == (1, "can-be-scheduled-in-part")
    assert [change for change in found["changes"] if change["kind"] == "add-node"] == []


def test_the_list_of_what_waits_says_the_same(tmp_path: Path) -> None:
    """A pod that waits and fits on the broken node alone: ``explain -A`` and ``explain POD`` have one verdict."""
    waits = {**worlds.running("new", "", [])[0], "status": {"phase": "Pending"}}
    waits["spec"] = {
        "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "new"}],
    }
    worlds.write_cluster(tmp_path / "cluster.json", [*_cluster("crashing"), waits, worlds.claim("new", 3)])
    flags = ("--snapshot", str(tmp_path / "cluster.json"), "-o", "json")
    code, out, _ = ran("explain", "pod/new", *flags)
    assert (code, json.loads(out)["verdict"]) == (1, "does-not-start")
    code, out, _ = ran("explain", "-A", *flags)
    assert (code, [workload["verdict"] for workload in json.loads(out)["items"]]) == (1, ["does-not-start"])


def test_what_was_not_read_is_said(tmp_path: Path) -> None:
    """``fit`` and ``explain -f`` say the same of Services that were not read: they decide about the node."""
    cluster = [*node("a", 2), *node("b", 3), worlds.CLASS]
    worlds.write_cluster(tmp_path / "cluster.json", cluster, unseen=("Service",))
    items = [deployment(2), template(1)]
    (tmp_path / "manifest.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    flags = (*files(tmp_path), "-o", "json")
    _, out, _ = ran("fit", *flags)
    assert [note for note in json.loads(out)["notes"] if "Services, which were not read" in note]
    _, out, _ = ran("explain", *flags)
    assert [note for note in json.loads(out)["notes"] if "Services, which were not read" in note]


def test_a_part_of_a_node_is_refused(tmp_path: Path) -> None:
    """Pods with one TPU each get devices that their driver refuses: they do not start, and the claims are named."""
    cluster = Path(__file__).parents[2] / "examples" / "explain" / "tpu-all-one-held" / "cluster.yaml"
    one = template(1)
    one["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "tpu.google.com"
    web = deployment(3)
    web["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    (tmp_path / "manifest.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [web, one]}))
    flags = ("--snapshot", str(cluster), "--complete", "-f", str(tmp_path / "manifest.json"))
    code, out, _ = ran("fit", *flags, "-o", "json")
    (found,) = json.loads(out)["items"]
    SCHEMA.validate(json.loads(out))
    assert (code, found["verdict"], found["podCounts"]["starting"]) == (1, "does-not-start", 0)
    assert [(each["deviceCount"], each["ofDevices"]) for each in found["refusedClaims"]] == [(1, 4)] * 3
    assert found["answer"].startswith("None of the 3 replicas of Deployment default/web starts: driver tpu.google.com")
    code, out, _ = ran("explain", *flags, "-o", "json")
    explained = json.loads(out)
    assert (code, explained["verdict"]) == (1, "does-not-start")
    code, out, _ = ran("fit", *flags, "--max", "-o", "json")
    (found,) = json.loads(out)["items"]
    assert (code, found["verdict"], found["changes"]) == (1, "does-not-start", [])


GATED: Final = Path(__file__).parents[2] / "examples" / "explain" / "prepare-fails" / "cluster.yaml"


def _gated(folder: Path, replicas: int, cluster: str) -> tuple[str, ...]:
    """The flags for a Deployment whose claims need a gate of the driver that is off in the cluster."""
    web = deployment(replicas)
    web["metadata"]["namespace"] = "dev"
    web["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "shared-gpu"
    (folder / "manifest.json").write_text(json.dumps(web))
    (folder / "cluster.yaml").write_text(cluster)
    return "--snapshot", str(folder / "cluster.yaml"), "--complete", "-f", str(folder / "manifest.json")


def _of_class(text: str) -> str:
    """The cluster with the configuration of its claims in their class instead."""
    cluster = yaml.load(text, yaml.CSafeLoader)
    (spec,) = (item["spec"] for item in cluster["items"] if item["metadata"]["name"] == "gpu.nvidia.com")
    for each in cluster["items"]:
        if each["kind"] in ("ResourceClaim", "ResourceClaimTemplate"):
            devices = each["spec"].get("spec", each["spec"])["devices"]
            spec["config"] = [{"opaque": config["opaque"]} for config in devices.pop("config")]
    return json.dumps(cluster)


@pytest.mark.parametrize("device_class", [None, "gpu.nvidia.com"], ids=("of-the-claim", "of-its-class"))
@pytest.mark.parametrize("more", [(), ("--max",)], ids=("written", "max"))
def test_a_gate_of_the_driver_is_off(more: tuple[str, ...], device_class: str | None, tmp_path: Path) -> None:
    """Claims need a gate that the driver's pods have off: no pod starts, and no further node of that sort helps."""
    flags = _gated(tmp_path, 3, _of_class(GATED.read_text()) if device_class else GATED.read_text())
    code, out, _ = ran("fit", *flags, *more, "-o", "json")
    SCHEMA.validate(json.loads(out))
    (found,) = json.loads(out)["items"]
    assert (code, found["verdict"], found["podCounts"]["starting"], found["changes"]) == (1, "does-not-start", 0, [])
    reasons = {
        (each["reason"], each["gate"], each["needing"], each.get("deviceClass")) for each in found["refusedClaims"]
    }
    assert reasons == {("gate-off", "TimeSlicingSettings", "sharing.strategy", device_class)}
    assert "starts: driver gpu.nvidia.com has gate TimeSlicingSettings off on l40s-2, l40s-1" in found["answer"]
    if not more:
        code, out, _ = ran("explain", *flags, "-o", "json")
        explained = json.loads(out)
        assert (code, explained["verdict"]) == (1, "does-not-start")
        assert [(each["node"], each["reason"]) for each in explained["refusedClaims"]] == [
            ("l40s-1", "gate-off"),
            ("l40s-2", "gate-off"),
        ]
        assert not [note for note in explained["notes"] if "TimeSlicingSettings" in note]
        # The next pod that is written so: there is no room for it, and none that would help it.
        code, out, _ = ran("fit", *flags, "--replicas", "8", "-o", "json")
        assert (code, json.loads(out)["items"][0]["changes"]) == (1, [])


@pytest.mark.parametrize("seen", ["other-gate-on", "gate-on", "gates-elsewhere", "pods-unseen", "other-request"])
def test_a_gate_that_is_on_or_not_known_or_not_needed_is_no_refusal(seen: str, tmp_path: Path) -> None:
    """Only a gate known to be off on the node refuses, and only where the configuration applies to what it got."""
    text, code = GATED.read_text(), 0
    image = "- image: nvcr.io/nvidia/k8s-dra-driver-gpu:v25.12.0\n"
    assert text.count(image) == 2
    gates = {
        "gate-on": "value: TimeSlicingSettings=true",
        "other-gate-on": "value: MPSSupport=true",
        "gates-elsewhere": "valueFrom: {configMapKeyRef: {name: gates, key: gpu}}",
    }
    if seen in gates:
        code = 1 if seen == "other-gate-on" else 0
        text = text.replace(image, f"{image}      env: [{{name: FEATURE_GATES, {gates[seen]}}}]\n")
    elif seen == "pods-unseen":
        kept = [each for each in text.split("\n- apiVersion") if "nvidia-dra-driver-gpu-kubelet-plugin-" not in each]
        text = "\n- apiVersion".join(kept)
    else:
        text = text.replace("requests:\n          - gpu\n", "requests:\n          - other\n")
    flags = _gated(tmp_path, 3, text)
    for command in ("fit", "explain"):
        assert ran(command, *flags)[0] == code, command


def test_a_claim_of_several_pods_is_refused_to_all_but_one(tmp_path: Path) -> None:
    """A driver that gives a claim's devices to one pod: of three pods that name the claim two do not start."""
    driver = "sriovnetwork.k8snetworkplumbingwg.io"
    text = json.dumps([*node("a", 2), worlds.CLASS]).replace(DRIVER, driver)
    one = {**template(1), "kind": "ResourceClaim"}
    one["spec"] = one["spec"]["spec"]
    web = deployment(3)
    entry = web["spec"]["template"]["spec"]["resourceClaims"][0]
    entry["resourceClaimName"] = entry.pop("resourceClaimTemplateName")
    items = json.loads(json.dumps([web, one]))
    found = item(tmp_path, json.loads(text), items)
    assert (found["verdict"], found["podCounts"]["starting"]) == ("does-not-start", 1)
    assert [(each["reason"], len(each["otherPods"])) for each in found["refusedClaims"]] == [
        ("several-pods", 1),
        ("several-pods", 2),
    ]


def test_nothing_told_where_all_start(tmp_path: Path) -> None:
    """No word of it where drivers run, or only nothing is known of them."""
    cluster = [each for each in _cluster("crashing") if each["metadata"]["name"] != "npu-driver-b"]
    for objects in (cluster[:3] + cluster[4:], [*node("a", 2), *node("b", 3), worlds.CLASS]):
        found = item(tmp_path, [raw for raw in objects if raw["kind"] != "Pod"], [deployment(4), template(1)])
        assert "notStarting" not in found


def test_the_sample_of_a_new_node_works(tmp_path: Path) -> None:
    """Of two nodes alike the one whose driver is gone is no sample, in ``fit`` and in ``explain``."""
    objects = [*node("b", 3), *node("c", 3), worlds.CLASS, *_not_registered()]
    for raw in objects:
        if raw["kind"] == "Node":
            raw["status"]["conditions"] = READY
    found = item(tmp_path, objects, [deployment(9), template(1)])
    likes: list[Any] = [change["like"] for change in found["changes"] if change["kind"] == "add-node"]
    assert likes == ["c"]
    whole = [deployment(1, gpus=4), template(4)]
    worlds.write_cluster(tmp_path / "cluster.json", [*objects, *node("d", 4), *worlds.running("r", "d", [0, 1, 2, 3])])
    (tmp_path / "manifest.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": whole}))
    _, out, _ = ran("explain", *files(tmp_path), "-o", "json")
    fixes = json.loads(out)["fixes"]
    assert "b" not in [fix["proof"].get("newNodeLike") for fix in fixes]


def test_a_fix_says_where_it_fits(tmp_path: Path) -> None:
    """A fix names all nodes that take the pod with it, and first one on which it starts; more than one is a number."""
    worlds.write_cluster(tmp_path / "cluster.json", _cluster("not-registered"))
    items = [deployment(1, gpus=4), template(4)]
    (tmp_path / "manifest.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    flags = files(tmp_path)
    _, out, _ = ran("explain", *flags, "-o", "json")
    explained = json.loads(out)
    causes = explained["causes"]
    proofs = [*(cause["fix"].get("proof") for cause in causes), *(fix["proof"] for fix in explained.get("fixes", ()))]
    (proof,) = [each for each in proofs if each and each.get("nodes") == ["a", "b"]]
    assert proof["node"] == "a"
    assert not proof["moreNodesMayFit"]
    assert [each["node"] for each in proof["notStarting"]] == ["b"]
    _, text, _ = ran("explain", *flags, "--full")
    assert "it fits on 2 nodes (a, b)" in unwrapped(text)


def test_new_nodes_are_counted_by_pods_that_start() -> None:
    """Where some fit on nodes on which they do not start, the count says that it is not theirs."""
    known = ("h100-2", 1, 3, 3, (0, 1), 1)
    assert (
        needed(NodesNeeded(*known, idle=True)) == "It takes 1 new node (h100-2); with none, 1 of 3 pods fit and start"
    )
    assert needed(NodesNeeded(*known)) == "It takes 1 new node (h100-2); with none, 1 of 3 pods fit"


def test_ways_of_sharing_say_whether_the_pods_start() -> None:
    """The headline, the table and the exit code say the same where a node's driver is gone."""
    cluster = Path(__file__).parents[2] / "examples" / "explain" / "driver-gone-from-node" / "cluster.yaml"
    words = ("share", "--class", "gpu.nvidia.com", "--snapshot", str(cluster), "--pods")
    code, out, _ = ran(*words, "4")
    assert code == 3 and "whether all of them start is undetermined" in out and "h100-1, where driver" in out
    assert [line.split()[1:4] for line in out.splitlines() if line.startswith(("each", "claim"))] == [
        ["3", "of", "4"],
        ["4", "of", "4"],
    ]
    code, _, errors = ran(*words, "3", "--by", "claim")
    assert code == 3 and "note: whether all pods start is undetermined: the scheduler may as well take h100-1" in errors
