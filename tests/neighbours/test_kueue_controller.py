"""Where Kueue's configuration is read, and what is known of its release and of the gate by which it counts claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.neighbours.kueue_controller import ClaimGate, claim_gate, configuration, controller
from tests.neighbours.test_foundation import GATED, Dra, explained, pod, serve, snapshot_of
from tests.neighbours.test_kueue_quota import KUEUE, SETTINGS, SETTINGS_PATH, workload
from tools.api_server import APIServer

JSON = dict[str, Any]
ELSEWHERE = "/api/v1/namespaces/queueing/configmaps"
KEY = ("queueing", "batch-kueue-manager-config")


def running(name: str = "batch-kueue", image: str = "registry.k8s.io/kueue/kueue:v0.19.2", **labels: str) -> JSON:
    """The pod of Kueue's controller, as its chart names and labels it."""
    made_by = f"{name}-controller-manager-5d4f"
    meta: JSON = {
        "name": f"{made_by}-x7k2p",
        "namespace": "queueing",
        "labels": {"control-plane": "controller-manager", "pod-template-hash": "5d4f", **labels},
        "ownerReferences": [{"kind": "ReplicaSet", "name": made_by, "uid": "r", "controller": True}],
    }
    spec: JSON = {"nodeName": "n1", "containers": [{"name": "manager", "image": image}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}


CHART = {"app.kubernetes.io/name": "kueue"}


def settings(gates: JSON | None = None, key: tuple[str, str] = KEY) -> JSON:
    text = json.dumps({"apiVersion": "config.kueue.x-k8s.io/v1beta2", "featureGates": gates or {}})
    return {**SETTINGS, "metadata": {"namespace": key[0], "name": key[1]}, "data": {"config.yaml": text}}


@pytest.mark.parametrize("name", ["batch-kueue", "kueue-prod", "queues"])
def test_the_configuration_is_asked_for_where_kueue_runs(
    name: str, server: APIServer, dra: Dra, tmp_path: Path
) -> None:
    held = workload("3")
    serve(server, *[one for one in KUEUE if one["kind"] != "Workload"], held)
    pods = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod(GATED), running(name, **CHART)]}
    server.routes["/api/v1/pods"] = pods
    key = (KEY[0], f"{name}-manager-config")
    own = [settings(key=key)]
    server.routes[ELSEWHERE] = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": own}
    _, paths = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml")
    assert ELSEWHERE in paths and SETTINGS_PATH not in paths
    (asked,) = (one.query for one in server.asked if one.path == ELSEWHERE)
    assert asked["fieldSelector"] == f"metadata.name={key[1]}"
    ran, paths = explained(server, dra, tmp_path, "snapshot", "-o", str(tmp_path / "saved.json"))
    assert ELSEWHERE in paths and SETTINGS_PATH not in paths, ran.err
    known = configuration(read_snapshot([str(tmp_path / "saved.json")]))
    assert known is not None and known[0] == key
    ran = dra("snapshot", "--snapshot", str(tmp_path / "saved.json"), "-o", str(tmp_path / "copy.json"), "--anonymize")
    assert ran.code == 0 and configuration(read_snapshot([str(tmp_path / "copy.json")])) is not None


def test_which_pod_is_kueue() -> None:
    assert controller(snapshot_of(running(**CHART))) is not None
    # Its own manifests, and an operator's, without the label of the chart.
    own = controller(snapshot_of(running("kueue")))
    assert own is not None and own.release == "v0.19.2" and own.settings == ("queueing", "kueue-manager-config")
    assert controller(snapshot_of(running("jobset"))) is None
    assert controller(snapshot_of({**running(**CHART), "status": {"phase": "Failed"}})) is None


@pytest.mark.parametrize(
    ("gates", "image", "known"),
    [
        ({"KueueDRAIntegration": False}, "kueue:v0.19.2", ClaimGate("KueueDRAIntegration", False, KEY)),
        ({"DynamicResourceAllocation": True}, "kueue:v0.17.1", ClaimGate("DynamicResourceAllocation", True, KEY)),
        ({"LendingLimit": True}, "kueue:v0.19.2", ClaimGate("KueueDRAIntegration", True, None)),
        ({"LendingLimit": True}, "kueue:v0.17.1", ClaimGate("DynamicResourceAllocation", False, None)),
        # The command line may have gates where the configuration has none, and no image says "main" of which release.
        ({}, "kueue:v0.19.2", None),
        ({"LendingLimit": True}, "kueue:main", None),
    ],
)
def test_whether_it_counts_claims(gates: JSON, image: str, known: ClaimGate | None) -> None:
    assert claim_gate(snapshot_of(running(image=image, **CHART), settings(gates))) == known
