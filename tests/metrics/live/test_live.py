"""``metrics`` as examples/monitoring starts it, with the role that it gets there, on a real control plane."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.metrics.test_follow import until
from tests.metrics.test_same_answers import counted
from tests.metrics.test_serving import Serving
from tests.monitoring.files import FOLDER
from tools.api_server import kubeconfig
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import device, request
from tools.live.gate import Gate
from tools.live.second_server import ApiServer

OBJECTS = {entry["kind"]: entry for entry in yaml.safe_load_all((FOLDER / "kubectl-dra-metrics.yaml").read_text())}
(CONTAINER,) = OBJECTS["Deployment"]["spec"]["template"]["spec"]["containers"]
RBAC = "rbac.authorization.k8s.io"
Json = dict[str, Any]


@pytest.fixture
def server(cluster: Cluster, tmp_path: Path) -> Iterator[ApiServer]:
    started = ApiServer(cluster.plane, tmp_path)
    started.start()
    yield started
    started.kill()


@pytest.fixture
def gate(server: ApiServer) -> Iterator[Gate]:
    opened = Gate(server)
    yield opened
    opened.close()


@pytest.fixture
def deployed(cluster: Cluster, gate: Gate, tmp_path: Path) -> Iterator[Serving]:
    """The command of the Deployment, as its ServiceAccount, through the gate."""
    through = json.loads(gate.kubeconfig(tmp_path).read_text())["clusters"][0]["cluster"]
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(kubeconfig(through.pop("server"), {"token": token(cluster)}, **through)))
    run = Serving(tmp_path, str(path), CONTAINER["args"], PATH="/usr/bin:/bin", HOME="/nonexistent")
    yield run
    run.end()


def token(cluster: Cluster) -> str:
    """Makes the ServiceAccount with its role; returns a token of it."""
    name, namespace = cluster.name("metrics"), cluster.namespace
    cluster.create({**OBJECTS["ServiceAccount"], "metadata": {"name": "metrics", "namespace": namespace}})
    cluster.create({**OBJECTS["ClusterRole"], "metadata": {"name": name}})
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": "metrics", "namespace": namespace}
    binding = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}}
    cluster.create({**binding, "roleRef": reference, "subjects": [subject]})
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/metrics/token"
    wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made: str = cluster.api.request("POST", path, wanted)["status"]["token"]
    return made


def test_causes_come_and_go_whatever_happens_to_the_server(
    cluster: Cluster, deployed: Serving, gate: Gate, server: ApiServer
) -> None:
    def causes() -> Counter[tuple[str, ...]]:
        found = counted(deployed.get()[1], "pending_pods", "namespace", "cause")
        return Counter({key[1:]: count for key, count in found.items() if key[0] == cluster.namespace})

    until(lambda: deployed.get(CONTAINER["startupProbe"]["httpGet"]["path"])[0] == 200, 60)
    node, gpu = cluster.node(), cluster.device_class()
    cluster.publish([device("gpu-0"), device("gpu-1")], pool="gpus", node=node)
    template = cluster.template([request(gpu, count=9)], "many")
    cluster.pod("first", templates={"gpu": template})
    until(lambda: causes().total() == 1, 60)
    (cause,) = causes()
    assert cause != ("none",)

    # Connections are cut: told again from where it was, and nothing is read anew.
    lists = counted(deployed.get()[1], "lists_total", "kind")
    gate.close()
    gate.open()
    cluster.pod("second", templates={"gpu": template})
    until(lambda: causes() == {cause: 2}, 60)
    assert counted(deployed.get()[1], "lists_total", "kind") == lists

    # The server is killed: what was known stays, and the lag says how old it is.
    server.kill()
    cluster.pod("third", templates={"gpu": template})
    until(lambda: deployed.value("lag_seconds") > 3, 60)
    assert causes() == {cause: 2} and deployed.get("/livez") == (200, "ok\n")
    server.start()
    until(lambda: causes() == {cause: 3}, 90)
    until(lambda: deployed.value("lag_seconds") < 10, 60)

    # It takes connections and answers none.
    server.freeze(on=True)
    cluster.api.delete({"apiVersion": "v1", "kind": "Pod", **cluster.get("Pod", "first", "v1")}, grace_seconds=0)
    time.sleep(3)
    assert causes() == {cause: 3}
    server.freeze(on=False)
    until(lambda: causes() == {cause: 2}, 90)

    # The role suffices.
    assert not [key for key in counted(deployed.get()[1], "unread", "kind", "reason") if "forbidden" in key]
