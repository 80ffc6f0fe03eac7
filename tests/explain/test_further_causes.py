"""Two causes that each keep a pod pending by themselves are both named, in the text as well: mending one of them must
not leave the pod stuck on another that nobody mentioned.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.asked import Asked
from tools.cases import Case, asked

Json = dict[str, Any]
NODES = ("n1", "n2")
CLASS = "gpu.example.com"


class Small:
    """Two nodes with two devices each, and a pod that asks for one of them; each cause is an edit of it."""

    def __init__(self) -> None:
        allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        self.nodes: list[Json] = [
            {"kind": "Node", "metadata": {"name": name}, "spec": {"taints": []}, "status": {"allocatable": allocatable}}
            for name in NODES
        ]
        self.slices: list[Json] = [_slice(name) for name in NODES]
        self.exactly: Json = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1}
        self.claim: Json = _claim("gpu", self.exactly)
        self.resources: Json = {"requests": {"cpu": "1"}, "limits": {}, "claims": [{"name": "gpu"}]}
        self.spec: Json = {
            "nodeSelector": {},
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
            "containers": [{"name": "main", "resources": self.resources}],
        }
        self.more: list[Json] = []

    def question(self) -> Asked:
        """The question why the pod is pending."""
        pod = {"kind": "Pod", "metadata": {"name": "train", "uid": "train"}, "spec": self.spec}
        selectors = [{"cel": {"expression": f'device.driver == "{CLASS}"'}}]
        device_class = {"kind": "DeviceClass", "metadata": {"name": CLASS}, "spec": {"selectors": selectors}}
        objects = [*self.nodes, *self.slices, device_class, self.claim, pod, *self.more]
        whole = [{"apiVersion": _version(entry["kind"]), **entry} for entry in objects]
        return asked(Case("pair", "of causes", whole, {"explain": "pod/train"}))


def _version(kind: str) -> str:
    return "resource.k8s.io/v1" if kind in ("ResourceSlice", "ResourceClaim", "DeviceClass") else "v1"


def _slice(node: str) -> Json:
    devices = [{"name": f"gpu-{number}", "attributes": {"model": {"string": "A100"}}} for number in range(2)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": CLASS, "nodeName": node, "pool": pool, "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}


def _claim(name: str, exactly: Json) -> Json:
    requests = [{"name": name, "exactly": exactly}]
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "uid": name},
        "spec": {"devices": {"requests": requests}},
    }


def _resource(small: Small) -> None:
    small.resources["requests"]["nvidia.com/gpuu"] = small.resources["limits"]["nvidia.com/gpuu"] = "1"


def _tainted(key: str) -> Callable[[Small], None]:
    def taint(small: Small) -> None:
        for node in small.nodes:
            node["spec"]["taints"].append({"key": key, "value": "x", "effect": "NoSchedule"})

    return taint


def _cordoned(small: Small) -> None:
    for node in small.nodes:
        node["spec"]["unschedulable"] = True


def _beside_another(small: Small) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    small.spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _volume(small: Small) -> None:
    small.spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def _port(small: Small) -> None:
    small.spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    for node in NODES:
        container = {"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}
        spec = {"nodeName": node, "containers": [container]}
        pod = {"kind": "Pod", "metadata": {"name": f"web-{node}", "uid": f"web-{node}"}, "spec": spec}
        small.more.append({**pod, "status": {"phase": "Running"}})


def _names(field: str) -> Callable[[Small], None]:
    def add(small: Small) -> None:
        small.spec["resourceClaims"].append({"name": field.lower(), field: "lost"})

    return add


def _class_of_request(small: Small) -> None:
    requests = small.claim["spec"]["devices"]["requests"]
    requests.append({"name": "other", "exactly": {**small.exactly, "deviceClassName": "nic", "selectors": []}})


def _class_of_claim(small: Small) -> None:
    small.more.append(_claim("fpga", {**small.exactly, "deviceClassName": "fpga", "selectors": []}))
    small.spec["resourceClaims"].append({"name": "fpga", "resourceClaimName": "fpga"})


def _gated(small: Small) -> None:
    small.spec["schedulingGates"] = [{"name": "example.com/quota"}]


def _selected(small: Small) -> None:
    expression = f'device.attributes["{CLASS}"].model == "H100"'
    small.exactly["selectors"] = [{"cel": {"expression": expression}}]


def _too_many(small: Small) -> None:
    small.exactly["count"] = 3


def _devices_tainted(small: Small) -> None:
    for slice_ in small.slices:
        for device in slice_["spec"]["devices"]:
            device["taints"] = [{"key": "ecc", "effect": "NoSchedule"}]


def _held(small: Small) -> None:
    for node in NODES:
        name = f"held-{node}"
        results = [{"request": name, "driver": CLASS, "pool": node, "device": f"gpu-{at}"} for at in range(2)]
        holder = {"resource": "pods", "name": name, "uid": name}
        status = {"allocation": {"devices": {"results": results}}, "reservedFor": [holder]}
        wanted = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 2}
        small.more.append({**_claim(name, wanted), "status": status})
        spec = {
            "nodeName": node,
            "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
            "containers": [{"name": "main"}],
        }
        pod = {"kind": "Pod", "metadata": {"name": name, "uid": name}, "spec": spec}
        small.more.append({**pod, "status": {"phase": "Running"}})


def _of_spec(field: str, **values: str) -> Callable[[Small], None]:
    return lambda small: small.spec[field].update(values)


def _of_requests(**values: str) -> Callable[[Small], None]:
    return lambda small: small.resources["requests"].update(values)


CAUSES: dict[str, tuple[Callable[[Small], None], str]] = {
    "an extended resource that nothing offers": (_resource, "nvidia.com/gpuu"),
    "an entry of nodeSelector": (_of_spec("nodeSelector", zone="c"), "zone=c"),
    "another entry of nodeSelector": (_of_spec("nodeSelector", disk="fast"), "disk=fast"),
    "cpu": (_of_requests(cpu="99"), "Insufficient cpu"),
    "memory": (_of_requests(memory="9Ti"), "Insufficient memory"),
    "a node taint": (_tainted("dedicated"), "dedicated=x"),
    "another node taint": (_tainted("maintenance"), "maintenance=x"),
    "a cordon": (_cordoned, "cordoned"),
    "pod affinity": (_beside_another, "pod affinity"),
    "a volume": (_volume, "PersistentVolumeClaim data"),
    "a host port": (_port, "host port taken"),
    "a claim that is missing": (_names("resourceClaimName"), "ResourceClaim default/lost"),
    "a template that is missing": (_names("resourceClaimTemplateName"), "ResourceClaimTemplate default/lost"),
    "a class of the same claim": (_class_of_request, "DeviceClass nic"),
    "a class of another claim": (_class_of_claim, "DeviceClass fpga"),
    "a scheduling gate": (_gated, "example.com/quota"),
    "a selector": (_selected, "H100"),
    "a count": (_too_many, "3 devices on one node"),
    "tainted devices": (_devices_tainted, "ecc:NoSchedule"),
    "held devices": (_held, "held by other claims"),
}
"""The causes, each with the words that name it."""
PAIRS = list(itertools.combinations(CAUSES, 2))
_TOGETHER = ({"cpu", "memory"},)
"""What one plugin of the scheduler says at once is one cause."""


def _answers(tmp_path: Path, *causes: str) -> tuple[list[str], str]:
    """The codes of the causes in JSON, and the text; each cause has to be named in both, not only by Kubernetes."""
    small = Small()
    for cause in causes:
        CAUSES[cause][0](small)
    question = small.question()
    found = json.loads(question.ask("-o", "json", folder=tmp_path).out)
    assert found["verdict"] == "cannot-be-scheduled"
    said = question.ask(folder=tmp_path).out
    told = " ".join(said.partition("kube-scheduler would say")[0].split())
    for cause in causes:
        assert CAUSES[cause][1] in told, said
        assert CAUSES[cause][1] in json.dumps(found["causes"])
    assert len(said.splitlines()) <= 16, said
    return [cause["code"] for cause in found["causes"]], said


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=[" and ".join(pair) for pair in PAIRS])
def test_both_causes_are_named(one: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    both, said = _answers(tmp_path, one, other)
    assert len(both) == (1 if {one, other} in _TOGETHER else 2), said
    # Whoever mends one of them is told of the other again, and of nothing new.
    for left in (one, other):
        alone, _ = _answers(tmp_path, left)
        assert len(alone) == 1
        assert set(alone) <= set(both)


def test_three_causes_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    small = Small()
    for cause in ("an extended resource that nothing offers", "memory", "held devices"):
        CAUSES[cause][0](small)
    said = small.question().ask(folder=tmp_path).out
    assert "nvidia.com/gpuu" in said
    assert "no-eligible-node: none of the 2 nodes may run the pod: Insufficient memory" in said
    assert "and 1 more: devices-held" in said
    # Its fix does not end the others, and says so.
    whole = " ".join(small.question().ask("--full", folder=tmp_path).out.split())
    assert "(once extended-resource-unknown and no-eligible-node are fixed too)" in whole


def test_what_a_proved_fix_ends_is_one_cause(tmp_path: Path) -> None:
    small = Small()
    CAUSES["held devices"][0](small)
    codes = json.loads(small.question().ask("-o", "json", folder=tmp_path).out)["causes"]
    assert [cause["code"] for cause in codes] == ["devices-held"]
    assert "proof" in codes[0]["fix"]


def test_behind_a_gate_devices_are_looked_at_twice(tmp_path: Path) -> None:
    small = Small()
    for cause in ("a scheduling gate", "a selector", "held devices"):
        CAUSES[cause][0](small)
    found = json.loads(small.question().ask("-o", "json", folder=tmp_path).out)
    codes = [cause["code"] for cause in found["causes"]]
    assert codes == ["scheduling-gated", "selector-matches-nothing", "devices-held"]


def test_a_claim_alone_has_several_causes(tmp_path: Path) -> None:
    small = Small()
    for cause in ("a class of the same claim", "a selector"):
        CAUSES[cause][0](small)
    whole = small.question()
    arguments = tuple("claim/gpu" if word == "pod/train" else word for word in whole.arguments)
    question = Asked(whole.name, whole.files, arguments, whole.cluster)
    causes = json.loads(question.ask("-o", "json", folder=tmp_path).out)["causes"]
    assert [cause["code"] for cause in causes] == ["class-missing", "selector-matches-nothing"]
