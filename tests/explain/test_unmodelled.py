"""A feature that the assumed release does not have makes the answer undetermined, by the name of its field."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from tests.ran import ran
from tools.examples import EXAMPLES

EXAMPLE = EXAMPLES / "amd-partitions-in-use"
WORDS = ["explain", "pod/llama-train-0", "-n", "ml", "-o", "json", "--snapshot"]


def explained(path: Path) -> tuple[int, dict[str, Any]]:
    code, out, _ = ran(*WORDS, str(path))
    return code, json.loads(out)


def test_compatibility_groups(tmp_path: Path) -> None:
    path = Path(shutil.copy(EXAMPLE / "cluster.yaml", tmp_path))
    assert explained(path)[0] == 1

    documents = list(yaml.safe_load_all(path.read_text()))
    objects = [item for document in documents for item in document.get("items", [document])]
    slices = [entry for entry in objects if entry["kind"] == "ResourceSlice"]
    changed, consumer = next(
        (entry, one) for entry in slices for one in entry["spec"].get("devices", ()) if "consumesCounters" in one
    )
    consumer["consumesCounters"][0]["compatibilityGroups"] = ["vfio"]
    path.write_text(yaml.safe_dump_all(documents))

    code, result = explained(path)
    assert code == 3
    assert result["verdict"] == "undetermined"
    field = "spec.devices[].consumesCounters[].compatibilityGroups"
    name = changed["metadata"]["name"]
    text = f"ResourceSlice {name} uses {field}, which came with Kubernetes 1.37, and 1.36 is assumed"
    assert f"{text}: if the cluster runs it, add --kubernetes-version 1.37" in result["answer"]

    # A field without a value restricts nothing.
    consumer["consumesCounters"][0]["compatibilityGroups"] = []
    path.write_text(yaml.safe_dump_all(documents))
    assert explained(path)[0] == 1
