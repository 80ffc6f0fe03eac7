"""DeviceTaintRules that keep devices from pods that would fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.ran import ran

JSON = dict[str, Any]
CLUSTER = Path(__file__).parents[2] / "examples" / "explain" / "taint-rule-maintenance" / "cluster.yaml"


def _deployment(replicas: int) -> list[JSON]:
    claim = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one", "namespace": "ml"},
        "spec": {"spec": claim},
    }
    container = {"name": "c", "image": "example.com/none", "resources": {"claims": [{"name": "gpu"}]}}
    entries = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container], "resourceClaims": entries}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    meta = {"name": "web", "namespace": "ml"}
    return [template, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}]


def _fitting(manifest: Path, cluster: JSON, folder: Path) -> JSON:
    file = folder / "cluster.json"
    file.write_text(json.dumps(cluster))
    _, out, _ = ran("fit", "-f", str(manifest), "--snapshot", str(file), "-o", "json")
    found: JSON = json.loads(out)["items"][0]
    return found


def test_a_rule_that_is_deleted_makes_as_much_room_as_is_said(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(yaml.safe_dump_all(_deployment(9)))
    cluster = yaml.safe_load(CLUSTER.read_text())
    before = _fitting(manifest, cluster, tmp_path)
    (change,) = [known_change for known_change in before["changes"] if known_change["kind"] == "delete-taint-rule"]
    assert change["commands"][0]["argv"] == ["kubectl", "delete", f"devicetaintrule/{change['rule']}"]
    assert change["commands"][0]["effect"] == "destroys"
    cluster["items"] = [each for each in cluster["items"] if each["metadata"]["name"] != change["rule"]]
    after = _fitting(manifest, cluster, tmp_path)
    assert change["morePods"] == len(after["placements"]) - len(before["placements"]) > 0
