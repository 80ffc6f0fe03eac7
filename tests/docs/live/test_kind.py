"""docs/kind.md, command by command, as far as a control plane without kubelets goes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.objects import resource_object
from tools.controlplane.plane import own_plane
from tools.controlplane.program import Program
from tools.docs import console
from tools.docs.links import DOCS
from tools.live.command import Command

PAGE = (DOCS / "kind.md").read_text(encoding="utf-8")
_SAVED = re.compile(r"Save this as `([^`]+)`.*?^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OFFLINE = ("lint",)
DRIVER, NODE, NAMESPACE = "gpu.example.com", "dra-worker", "demo"
"""As on the page; no other test uses them."""


def gpu(index: int) -> dict[str, Any]:
    """A device as the example driver publishes it."""
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "index": {"int": index},
            "uuid": {"string": f"gpu-18db0e85-99e9-c746-8531-ffeb8632{index:04}"},
            "model": {"string": "LATEST-GPU-MODEL"},
            "driverVersion": {"version": "1.0.0"},
        },
        "capacity": {"memory": {"value": "80Gi"}, "compute": {"value": "100"}},
    }


class Walk:
    """The cluster of the page, and its reader, who types commands."""

    def __init__(self, cluster: Cluster, command: Command) -> None:
        self._cluster, self._command = cluster, command
        self._connection = ("--kubeconfig", str(cluster.plane.kubeconfig), "--context", "admin")
        resources = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        status = {"capacity": resources, "allocatable": resources, "conditions": ready}
        cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "status": status})
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
        cluster.create(resource_object("DeviceClass", DRIVER, {"selectors": [selector]}))
        pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
        slice = {"driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": [gpu(index) for index in range(8)]}
        cluster.create(resource_object("ResourceSlice", f"{NODE}-{DRIVER}", slice))

    def apply(self, text: str) -> None:
        """What ``kubectl apply`` does with new objects; waits until the scheduler has said something of the pod."""
        for each in yaml.safe_load_all(text):
            self._cluster.create(each)
        wait(self._conditions, "the scheduler's word")

    def delete_pods(self) -> None:
        """What ``kubectl delete`` and a kubelet do."""
        for pod in self._cluster.api.list("v1", "Pod", NAMESPACE):
            self._cluster.api.delete({"apiVersion": "v1", "kind": "Pod", **pod}, grace_seconds=0)

    def delete(self, text: str) -> None:
        """The same with all objects of a file; waits until the pod's claim is gone, too."""
        self.delete_pods()
        for each in yaml.safe_load_all(text):
            if each["kind"] != "Pod":
                self._cluster.api.delete(each)
        wait(lambda: None if self._claims() else True, "the claim to go")

    def message(self) -> str:
        """What the scheduler says of the pod."""
        return str(self._conditions()[0].get("message", ""))

    def _claims(self) -> list[Any]:
        return self._cluster.api.list("resource.k8s.io/v1", "ResourceClaim", NAMESPACE)

    def _conditions(self) -> Any:
        (pod,) = self._cluster.api.list("v1", "Pod", NAMESPACE)
        return pod.get("status", {}).get("conditions")

    def complaint(self, block: console.Block) -> str:
        """What a block prints otherwise than the page says; empty where nothing is."""
        ((line, expected),) = block.steps
        words = shlex.split(line.removeprefix("kubectl dra "))
        answer = self._command(*words, *(() if words[0] in _OFFLINE else self._connection))
        printed = answer.out.replace(f" {shlex.join(self._connection)}", "")
        # Nodes of other tests may be there as well.
        printed = re.sub(r"\b[1-9][0-9]*(?= nodes are | cannot allocate | Preemption is\s)", "1", printed)
        if console.matches(expected, printed) and answer.code == block.code:
            return ""
        return f"$ {line}\n{printed}{answer.err}(exit code {answer.code})\nthe page says:\n{expected}"


@pytest.fixture
def walk(
    control_plane_program: Program,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Walk]:
    """On a control plane of its own: rules and nodes of other tests would be told of."""
    with own_plane(control_plane_program, ["--profile=full"], tmp_path) as plane:
        folder = tmp_path / "reader"
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", str(console.COLUMNS))
        reader = Walk(Cluster(plane, "reader"), Command(capsys))
        yield reader
        reader.delete_pods()


def test_the_page(walk: Walk) -> None:
    files = dict(_SAVED.findall(PAGE))
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    blocks = list(console.blocks(PAGE))
    assert len(blocks) == 7
    wrong = []
    for block in blocks:
        assert block.where == console.CLUSTER
        line = block.steps[0].line
        if line.startswith("kubectl dra explain pod/train"):
            walk.apply(files["train.yaml"])
            # Nodes of other tests may be there as well.
            assert re.search(r"\d cannot allocate all claims", walk.message())
        if line.startswith("kubectl dra claims"):
            walk.delete(files["train.yaml"])
            walk.apply(files["train.yaml"].replace("96Gi", "80Gi"))
        wrong.append(walk.complaint(block))
    assert not any(wrong), "\n".join(wrong)
    # By now a device is in use, so the first block is not true any more: a difference is noticed.
    assert "7 free, 1 held" in walk.complaint(blocks[0])
