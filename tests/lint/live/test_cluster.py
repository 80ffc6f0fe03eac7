"""``lint --live``: classes, devices, namespaces and releases of a real cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import device, request, resource_object
from tools.live.command import Command

Json = dict[str, Any]


class Lint:
    """Lints manifests against one test's share of the cluster."""

    def __init__(self, cluster: Cluster, command: Command, folder: Path) -> None:
        self.cluster = cluster
        self._command = command
        self._file = folder / "manifest.yaml"

    def __call__(self, *manifests: Json, user: str = "") -> tuple[int, dict[str, str], Json]:
        """Exit code, messages by code, and the whole report."""
        self._file.write_text(yaml.safe_dump_all(manifests))
        words = ["lint", str(self._file), "--live", "-n", self.cluster.namespace, "-o", "json"]
        connection = ["--kubeconfig", str(self.cluster.plane.kubeconfig), "--context", "admin"]
        answer = self._command(*words, *connection, *(["--as", user] if user else []))
        report = json.loads(answer.out)
        return answer.code, {one["code"]: one["message"] for one in report["findings"]}, report


@pytest.fixture
def live(cluster: Cluster, command: Command, tmp_path: Path) -> Lint:
    return Lint(cluster, command, tmp_path)


def claim(cluster: Cluster, *requests: Json) -> Json:
    found = resource_object("ResourceClaim", "gpu", {"devices": {"requests": list(requests)}})
    found["metadata"]["namespace"] = cluster.namespace
    return found


def test_classes_and_selectors_are_checked_against_the_devices_there_are(live: Lint) -> None:
    cluster = live.cluster
    node, gpu = cluster.node(), cluster.device_class()
    cluster.publish(
        [device("gpu-0", {"model": "a1", "slot": 3}), device("gpu-1", {"model": "a1"})], pool="p", node=node
    )
    read = f'device.attributes["{cluster.driver}"].'
    code, found, report = live(claim(cluster, request(gpu, selectors=[f'{read}model == "a1"'])))
    assert code == 0 and set(found) <= {"DRA211"}
    assert report["assumed"]["kubernetesVersion"].startswith("1.3")
    code, found, _ = live(claim(cluster, request(gpu, selectors=[f'{read}model == "z9"'])))
    assert code == 1 and "DRA221" in found
    code, found, _ = live(claim(cluster, request(gpu, selectors=[f"{read}slot == 3"])))
    assert (code == 1 and "gpu-1" in found["DRA222"]) or "1 of" in found["DRA222"]
    code, found, _ = live(claim(cluster, request(f"{gpu}x")))
    assert code == 1 and f"{gpu}x" in found["DRA421"]


def test_what_a_pod_names_has_to_be_in_its_namespace(live: Lint) -> None:
    cluster = live.cluster
    gpu = cluster.device_class()
    made = cluster.template([request(gpu)], "one-gpu")
    spec = {
        "containers": [{"name": "a", "image": "registry.example.com/a:1", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": made}],
    }
    manifest: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "trainer", "namespace": cluster.namespace},
        "spec": spec,
    }
    assert "DRA422" not in live(manifest)[1]
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "two-gpus"}]
    assert "two-gpus" in live(manifest)[1]["DRA422"]


def test_the_label_for_admin_access_is_read_from_the_cluster(live: Lint) -> None:
    cluster = live.cluster
    asked = claim(cluster, request(cluster.device_class(), adminAccess=True))
    code, found, report = live(asked)
    assert code == 1 and f"namespace {cluster.namespace} has no label" in found["DRA803"]
    assert [one["severity"] for one in report["findings"] if one["code"] == "DRA803"] == ["error"]
    cluster.allow_admin_access()
    assert "DRA803" not in live(asked)[1]


def test_a_user_who_may_read_nothing_learns_what_the_files_show(live: Lint) -> None:
    cluster = live.cluster
    code, found, _ = live(claim(cluster, request("nowhere"), request("nowhere")), user="nobody")
    assert code == 1 and set(found) == {"DRA107"}


def test_a_server_that_does_not_answer_is_one_sentence(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a}\n")
    answer = command("lint", str(tmp_path), "--live", "--server", "https://127.0.0.1:1", "--request-timeout", "2s")
    assert answer.code == 2 and not answer.out
    assert len([line for line in answer.err.splitlines() if line.startswith("error: ")]) == 1
