"""Devices that take resources of their node: undetermined only for those who could get one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.cli.main import run

ROOT = Path(__file__).parent / "cases" / "clusters"


def cluster(path: Path, driver: str) -> str:
    objects: list[dict[str, Any]] = [
        entry for name in ("gpus", "pod", "claim") for entry in yaml.safe_load((ROOT / f"{name}.yaml").read_text())
    ]
    device = {"name": "ccx-0", "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "8"}}}}
    pool = {"name": "more", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": "n1", "pool": pool, "devices": [device]}
    objects.append({"kind": "ResourceSlice", "metadata": {"name": "more"}, "spec": spec})
    for entry in objects:
        entry["apiVersion"] = "v1" if entry["kind"] in ("Node", "Pod") else "resource.k8s.io/v1"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(path)


@pytest.mark.parametrize(
    ("driver", "flags", "code"),
    [
        ("gpu.example.com", [], 3),
        ("cpu.example.com", [], 0),
        ("gpu.example.com", ["--feature-gates", "DRANodeAllocatableResources=false"], 0),
    ],
)
def test_who_could_get_one(
    driver: str, flags: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["explain", "pod/train", "--kubernetes-version", "1.37", "--snapshot"]
    assert run([*words, cluster(tmp_path / "cluster.yaml", driver), *flags]) == code
    out = " ".join(capsys.readouterr().out.split())
    assert ("uses spec.devices[].nodeAllocatableResources, which is not modelled" in out) is (code == 3)
