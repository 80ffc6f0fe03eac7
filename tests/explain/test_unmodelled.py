"""A feature that the assumed release does not have makes the answer undetermined, by the name of its field."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.cli.main import run

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "explain" / "amd-partitions-in-use"
WORDS = ["explain", "pod/llama-train-0", "-n", "ml", "-o", "json", "--snapshot"]


def explained(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = run([*WORDS, str(path)])
    return code, json.loads(capsys.readouterr().out)


def test_compatibility_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(shutil.copy(EXAMPLE / "cluster.yaml", tmp_path))
    assert explained(path, capsys)[0] == 1

    documents = list(yaml.safe_load_all(path.read_text()))
    objects = [item for document in documents for item in document.get("items", [document])]
    slices = [entry for entry in objects if entry["kind"] == "ResourceSlice"]
    changed, consumer = next(
        (entry, one) for entry in slices for one in entry["spec"].get("devices", ()) if "consumesCounters" in one
    )
    consumer["consumesCounters"][0]["compatibilityGroups"] = ["vfio"]
    path.write_text(yaml.safe_dump_all(documents))

    code, result = explained(path, capsys)
    assert code == 3
    assert result["verdict"] == "undetermined"
    field = "spec.devices[].consumesCounters[].compatibilityGroups"
    name = changed["metadata"]["name"]
    text = f"ResourceSlice {name} uses {field}, which came with Kubernetes 1.37, and 1.36 is assumed"
    assert f"{text}: if the cluster runs it, add --kubernetes-version 1.37" in result["answer"]

    # A field without a value restricts nothing.
    consumer["consumesCounters"][0]["compatibilityGroups"] = []
    path.write_text(yaml.safe_dump_all(documents))
    assert explained(path, capsys)[0] == 1
