"""What each README says would help: the snapshot with that change, and the pod can be scheduled."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.examples import EXAMPLES, run

Objects = list[dict[str, Any]]
Change = Callable[[Objects], None]


def _of(objects: Objects, kind: str, start: str = "") -> Iterator[dict[str, Any]]:
    for entry in objects:
        if entry["kind"] == kind and entry["metadata"]["name"].startswith(start):
            yield entry


def _without_claim(start: str) -> Change:
    def change(objects: Objects) -> None:
        gone = list(_of(objects, "ResourceClaim", start))
        assert len(gone) == 1
        objects.remove(gone[0])

    return change


def _requests(objects: Objects, start: str) -> Iterator[dict[str, Any]]:
    for kind in ("ResourceClaim", "ResourceClaimTemplate"):
        for entry in _of(objects, kind, start):
            spec = entry["spec"] if kind == "ResourceClaim" else entry["spec"]["spec"]
            yield from spec["devices"]["requests"]


def _expression(start: str, old: str, new: str) -> Change:
    def change(objects: Objects) -> None:
        changed = 0
        for request in _requests(objects, start):
            for selector in request["exactly"].get("selectors", ()):
                changed += old in selector["cel"]["expression"]
                selector["cel"]["expression"] = selector["cel"]["expression"].replace(old, new)
        assert changed

    return change


def _class(start: str, name: str) -> Change:
    def change(objects: Objects) -> None:
        for request in _requests(objects, start):
            request["exactly"]["deviceClassName"] = name

    return change


def _cpus(amount: str) -> Change:
    def change(objects: Objects) -> None:
        for request in _requests(objects, "upf-2"):
            request["exactly"]["capacity"]["requests"]["dra.cpu/cpu"] = amount

    return change


def _two_halves(objects: Objects) -> None:
    for entry in _of(objects, "ResourceClaim", "upf-2"):
        request = entry["spec"]["devices"]["requests"][0]
        request["exactly"]["capacity"]["requests"]["dra.cpu/cpu"] = "16"
        entry["spec"]["devices"]["requests"].append({**request, "name": "more"})


def _devices(objects: Objects) -> Iterator[dict[str, Any]]:
    for entry in _of(objects, "ResourceSlice"):
        yield from entry["spec"].get("devices", ())


def _without_taints(objects: Objects) -> None:
    for device in _devices(objects):
        device.pop("taints", None)


def _without_conflict_on_idle_gpus(objects: Objects) -> None:
    """What the driver does when the last nps4 partition of the node is released."""
    for index in range(3):
        _without_claim(f"rerank-{index}")(objects)
    _without_taints(objects)


def _memory_reported(objects: Objects) -> None:
    for device in _devices(objects):
        device["capacity"]["memory"]["value"] = "14248Mi"


def _newest_generation(objects: Objects) -> None:
    slices = [entry["spec"]["pool"] for entry in _of(objects, "ResourceSlice", "a30-1")]
    for pool in slices:
        pool["generation"] = max(other["generation"] for other in slices)


def _tolerating(objects: Objects) -> None:
    for pod in _of(objects, "Pod", "mistral-0"):
        pod["spec"]["tolerations"].append({"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"})


def _without_affinity(objects: Objects) -> None:
    for pod in _of(objects, "Pod", "ide-noah"):
        del pod["spec"]["affinity"]


def _without_constraint(objects: Objects) -> None:
    for template in _of(objects, "ResourceClaimTemplate", "gpu-with-nic"):
        del template["spec"]["spec"]["devices"]["constraints"]


def _rewired(objects: Objects) -> None:
    """The cards of dgx-2 in the slots that dgx-1 has."""
    for device in _devices(objects):
        root = device["attributes"]["resource.kubernetes.io/pcieRoot"]
        root["string"] = {"pci0000:c7": "pci0000:97"}.get(root["string"], root["string"])


def _without_rule(objects: Objects) -> None:
    (rule,) = _of(objects, "DeviceTaintRule")
    objects.remove(rule)


def _both_terms(objects: Objects) -> None:
    _expression("fp8", "590.0.0", "580.0.0")(objects)
    _expression("fp8", "9.0.0", "8.0.0")(objects)


def _one_gpu(objects: Objects) -> None:
    for pod in _of(objects, "Pod", "render-2"):
        resources = pod["spec"]["containers"][0]["resources"]
        resources["requests"]["nvidia.com/gpu"] = resources["limits"]["nvidia.com/gpu"] = "1"


def _less_memory_of_flex(objects: Objects) -> None:
    for request in _requests(objects, "serve-0"):
        selector = request["firstAvailable"][3]["selectors"][0]["cel"]
        selector["expression"] = selector["expression"].replace("16Gi", "12Gi")


def _one(objects: Objects, kind: str, start: str) -> dict[str, Any]:
    (found,) = _of(objects, kind, start)
    return found


def _like(objects: Objects, kind: str, old: str, new: str) -> dict[str, Any]:
    """A copy of an object under another name, added to the others."""
    made: dict[str, Any] = json.loads(json.dumps(_one(objects, kind, old)).replace(old, new))
    made["metadata"]["uid"] = f"uid-{kind}-{new}"
    objects.append(made)
    return made


def _made_claim(objects: Objects, pod: str, entry: str, template: str) -> None:
    """What the controller does once it can: the claim of a pod's entry."""
    owner = _one(objects, "Pod", pod)
    meta = owner["metadata"]
    name = f"{meta['name']}-{entry}-made"
    objects.append(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": name,
                "namespace": meta["namespace"],
                "uid": f"uid-{name}",
                "annotations": {"resource.kubernetes.io/pod-claim-name": entry},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
                ],
            },
            "spec": _one(objects, "ResourceClaimTemplate", template)["spec"]["spec"],
        }
    )
    owner["status"]["resourceClaimStatuses"] = [{"name": entry, "resourceClaimName": name}]


def _made_anew(objects: Objects, pod: str) -> None:
    """The pod's successor: without node, its claims without devices."""
    owner = _one(objects, "Pod", pod)
    owner["spec"].pop("nodeName", None)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        owner["metadata"].pop(name, None)
    owner["status"] = {
        "phase": "Pending",
        "resourceClaimStatuses": owner["status"].get("resourceClaimStatuses", []),
    }
    for claim in _of(objects, "ResourceClaim", pod):
        claim.pop("status", None)


def _gpu_part_on(objects: Objects) -> None:
    """The chart with resources.gpus.enabled=true: its class, and a slice of each node."""
    objects.append(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu.nvidia.com", "uid": "uid-class"},
            "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]},
        }
    )
    for entry in list(_of(objects, "ResourceSlice")):
        made = _like(objects, "ResourceSlice", entry["metadata"]["name"], f"{entry['spec']['nodeName']}-gpus")
        made["spec"]["driver"] = "gpu.nvidia.com"


def _one_more_kind(objects: Objects) -> None:
    """A node with eight H100, its driver's pod, and what that publishes."""
    old, new = "ip-10-0-52-40.eu-west-1.compute.internal", "ip-10-0-53-77.eu-west-1.compute.internal"
    _like(objects, "Node", old, new)
    (plugin,) = (pod for pod in _of(objects, "Pod") if "kubelet-plugin" in pod["metadata"]["name"])
    pod = json.loads(json.dumps(plugin).replace(old, new))
    pod["metadata"] |= {"name": f"{plugin['metadata']['name']}-2", "uid": "uid-plugin-2"}
    objects.append(pod)
    made = _like(objects, "ResourceSlice", old, new)
    for device in made["spec"]["devices"]:
        device["attributes"]["architecture"] = {"string": "Hopper"}
    devices = made["spec"]["devices"]
    devices += [{**device, "name": f"gpu-{number}"} for number, device in enumerate(devices, 4)]


def _newer_release(objects: Objects) -> None:
    for node in _of(objects, "Node"):
        node["status"]["nodeInfo"]["kubeletVersion"] = "v1.36.2"


def _template_named(objects: Objects) -> None:
    (entry,) = _one(objects, "Pod", "sft")["spec"]["resourceClaims"]
    entry["resourceClaimTemplateName"] = "single-gpu"
    _made_claim(objects, "sft", "gpu", "single-gpu")


def _left_over_slice_deleted(objects: Objects) -> None:
    objects.remove(_one(objects, "ResourceSlice", "h100-1"))
    _made_anew(objects, "rollout-3")


def _claim_renewed(objects: Objects) -> None:
    """The old pod has ended, so that the claim goes; somebody creates it again."""
    objects.remove(_one(objects, "Pod", "notebook-old"))
    claim = _one(objects, "ResourceClaim", "team-gpu")
    claim.pop("status")
    claim["metadata"] = {name: claim["metadata"][name] for name in ("name", "namespace", "uid")}


def _rule_for_one_device(objects: Objects) -> None:
    rule = _one(objects, "DeviceTaintRule", "h100-2-swap")
    rule["spec"]["deviceSelector"] = {"driver": "gpu.nvidia.com", "pool": "h100-2", "device": "gpu-3"}
    _made_anew(objects, "train-0")


def _namespace_labelled(objects: Objects) -> None:
    _made_claim(objects, "gpu-metrics-8xk2d", "gpus", "every-gpu")


def _without_channel(objects: Objects) -> None:
    pod = _one(objects, "Pod", "nccl-0")
    pod["spec"]["resourceClaims"] = pod["spec"]["resourceClaims"][:1]
    pod["status"]["resourceClaimStatuses"] = pod["status"]["resourceClaimStatuses"][:1]
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]


def _one_claim_for_all(objects: Objects) -> None:
    """The Deployment names a claim: its first replica has a GPU, the others share it."""
    claim = _like(objects, "ResourceClaim", "rank-5d8c7f9b66-4kq7t-gpu", "shared-gpu")
    claim["metadata"]["name"] = "shared-gpu"
    claim["metadata"].pop("ownerReferences")
    objects.remove(_one(objects, "ResourceClaim", "rank-5d8c7f9b66-4kq7t-gpu"))
    (entry,) = _one(objects, "Pod", "rank-5d8c7f9b66-xv8mc")["spec"]["resourceClaims"]
    entry["resourceClaimName"] = "shared-gpu"
    entry.pop("resourceClaimTemplateName")


WAYS: list[tuple[str, str, Change]] = [
    ("no-device-matches", "less memory", _expression("", "80Gi", "40Gi")),
    ("class-missing", "the right class", _class("whisper", "gpu.nvidia.com")),
    (
        "attribute-absent",
        "a guard",
        _expression("finetune", ".addressingMode ==", '.?addressingMode.orValue("") =='),
    ),
    (
        "attribute-absent-other-kind",
        "the kind first",
        _expression("rdma-port", "device.", 'device.attributes["dra.net"].rdma && device.'),
    ),
    ("mig-profile-missing", "a profile that exists", _expression("mig-3g", "3g.40gb", "3g.20gb")),
    ("all-tainted", "repaired GPUs", _without_taints),
    ("all-held", "without the orphan", _without_claim("scratch-gpu")),
    ("pool-incomplete", "the third slice", _newest_generation),
    ("different-reason-per-node", "the third slice", _newest_generation),
    ("different-reason-per-node", "without the holder", _without_claim("bench-0")),
    ("amd-partitions-in-use", "one partition less", _without_claim("embed-0")),
    ("amd-partitions-in-use", "another memory mode", _without_conflict_on_idle_gpus),
    ("intel-memory-unreported", "memory reported", _memory_reported),
    ("gaudi-too-few", "one evaluation less", _without_claim("eval-hpu-0")),
    ("tpu-all-one-held", "without the probe", _without_claim("probe")),
    ("nic-gpu-pcie-root", "without the constraint", _without_constraint),
    ("nic-gpu-pcie-root", "other slots", _rewired),
    ("cpu-capacity-exhausted", "24 CPUs", _cpus("24")),
    ("cpu-capacity-exhausted", "two requests of 16", _two_halves),
    ("devices-on-tainted-nodes", "a toleration", _tolerating),
    ("every-alternative-fails", "one A100 more", _without_claim("eval-0")),
    ("shared-claim-elsewhere", "any zone", _without_affinity),
    ("taint-rule-maintenance", "without the rule", _without_rule),
    ("extended-resource", "one GPU", _one_gpu),
    ("extended-resource", "without the other pod", _without_claim("render-0")),
    ("mixed-fleet", "less memory", _less_memory_of_flex),
    ("mixed-fleet", "without the training", _without_claim("pretrain-0")),
    ("two-changes-needed", "both terms", _both_terms),
    ("gpu-part-switched-off", "with its class and slices", _gpu_part_on),
    ("scale-from-zero", "a node of that kind", _one_more_kind),
    ("extended-resource-gate-off", "1.36", _newer_release),
    ("webhook-drops-template", "the name back", _template_named),
    ("driver-gone-from-node", "without the left-over slice", _left_over_slice_deleted),
    ("claim-kept-by-finalizer", "the claim made again", _claim_renewed),
    ("taint-rule-evicts-all", "a rule for one device", _rule_for_one_device),
    ("admin-access-unlabelled", "the label", _namespace_labelled),
    ("priority-does-not-preempt", "without the sweep", _without_claim("sweep-4")),
    ("compute-domain-one-per-node", "without the other channel", _without_claim("moe-1-channel")),
    ("compute-domain-one-per-node", "without a channel", _without_channel),
    ("one-claim-per-replica", "one claim for all", _one_claim_for_all),
]


def _forget_the_past(objects: Objects) -> None:
    """The scheduler has not looked at the pods yet: what it said of them before the change does not stand."""
    objects[:] = [entry for entry in objects if entry["kind"] != "Event" or entry["reason"] != "FailedScheduling"]
    for pod in _of(objects, "Pod"):
        pod.get("status", {}).pop("conditions", None)


@pytest.mark.parametrize(
    ("name", "change"), [(name, change) for name, _, change in WAYS], ids=[f"{name}: {what}" for name, what, _ in WAYS]
)
def test_way_out(name: str, change: Change, tmp_path: Path) -> None:
    example = tmp_path / name
    shutil.copytree(EXAMPLES / name, example)
    documents: dict[Path, list[Any]] = {}
    objects: Objects = []
    for path in sorted(example.iterdir()):
        if path.suffix in (".yaml", ".json"):
            documents[path] = list(yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader))
    for found in documents.values():
        for document in found:
            objects.extend(document["items"] if document["kind"] == "List" else [document])
    change(objects)
    _forget_the_past(objects)
    manifests = [document for found in documents.values() for document in found if document["kind"] != "List"]
    for path, found in documents.items():
        for document in found:
            if document["kind"] == "List":
                document["items"] = [entry for entry in objects if all(entry is not other for other in manifests)]
        path.write_text("\n---\n".join(json.dumps(document) for document in found))
    outcome = run(example)
    assert outcome.code == 0, outcome.stdout + outcome.stderr
