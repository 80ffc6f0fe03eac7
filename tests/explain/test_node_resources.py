"""What devices take of their node as 1.36 writes it: undetermined only for those who could get such a device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ran import ran

ROOT = Path(__file__).parent / "cases" / "clusters"
OF_136 = {"nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "8"}}}
OF_137 = {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}}


def cluster(path: Path, driver: str, taken: dict[str, Any]) -> str:
    objects: list[dict[str, Any]] = [
        entry for name in ("gpus", "pod", "claim") for entry in yaml.safe_load((ROOT / f"{name}.yaml").read_text())
    ]
    device = {"name": "ccx-0", **taken}
    pool = {"name": "more", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": "n1", "pool": pool, "devices": [device]}
    objects.append({"kind": "ResourceSlice", "metadata": {"name": "more"}, "spec": spec})
    for entry in objects:
        entry["apiVersion"] = "v1" if entry["kind"] in ("Node", "Pod") else "resource.k8s.io/v1"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(path)


@pytest.mark.parametrize(
    ("release", "driver", "taken", "flags", "said"),
    [
        ("1.36", "gpu.example.com", OF_136, [], "nodeAllocatableResourceMappings, which is not modelled"),
        ("1.36", "cpu.example.com", OF_136, [], ""),
        ("1.36", "gpu.example.com", OF_136, ["--feature-gates", "DRANodeAllocatableResources=false"], ""),
        ("1.36", "gpu.example.com", OF_137, [], "nodeAllocatableResources, which came with Kubernetes 1.37"),
        ("1.37", "gpu.example.com", OF_137, [], ""),
    ],
)
def test_who_could_get_one(
    release: str,
    driver: str,
    taken: dict[str, Any],
    flags: list[str],
    said: str,
    tmp_path: Path,
) -> None:
    words = ["explain", "pod/train", "--kubernetes-version", release, "--complete", "--snapshot"]
    code, out, _ = ran(*words, cluster(tmp_path / "cluster.yaml", driver, taken), *flags)
    assert (code, said in " ".join(out.split())) == (3 if said else 0, True)
