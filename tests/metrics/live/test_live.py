"""``metrics`` as examples/monitoring starts it, with the role that it gets there, on a real control plane."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.metrics.live.front import Front
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import device, request

MANIFEST = Path(__file__).parents[3] / "examples" / "monitoring" / "kubectl-dra-metrics.yaml"
RBAC = "rbac.authorization.k8s.io"
Json = dict[str, Any]


class Deployed:
    """The command of the Deployment, as its ServiceAccount; it reaches the server through a front."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        objects = {entry["kind"]: entry for entry in yaml.safe_load_all(MANIFEST.read_text())}
        server = urlsplit(cluster.api.server)
        assert server.hostname and server.port
        self.cluster = cluster
        self.front = Front(server.hostname, server.port)
        token = self._service_account(objects)
        config = json.loads(cluster.plane.kubeconfig.read_text())
        authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
        path = directory / "kubeconfig"
        path.write_text(json.dumps(kubeconfig(f"https://127.0.0.1:{self.front.port}", authority, token)))
        (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        # Another port than the manifest's, because others on this machine may have it.
        arguments = [argument.replace("9412", str(port)) for argument in container["args"]]
        assert arguments != container["args"]
        self.url = f"http://127.0.0.1:{port}"
        self.probes = container
        self.errors = directory / "stderr"
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "KUBECONFIG": str(path)}
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kubectl_dra", *arguments], stderr=errors, env=environment
            )

    def _service_account(self, objects: dict[str, Json]) -> str:
        """Makes the account with its role; returns a token of it."""
        name, namespace = self.cluster.name("metrics"), self.cluster.namespace
        self.cluster.create({**objects["ServiceAccount"], "metadata": {"name": "metrics", "namespace": namespace}})
        self.cluster.create({**objects["ClusterRole"], "metadata": {"name": name}})
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
        subject = {"kind": "ServiceAccount", "name": "metrics", "namespace": namespace}
        binding = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}}
        self.cluster.create({**binding, "roleRef": reference, "subjects": [subject]})
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/metrics/token"
        wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token: str = self.cluster.api.request("POST", path, wanted)["status"]["token"]
        return token

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.front.go_away()

    def text(self, path: str = "/metrics") -> str:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as answer:
            found: str = answer.read().decode()
        return found

    def ready(self) -> bool:
        assert self.process.poll() is None, self.errors.read_text()
        try:
            return bool(self.text(self.probes["startupProbe"]["httpGet"]["path"]))
        except OSError:
            return False

    def causes(self) -> dict[str, float]:
        """The pods that wait in the test's namespace, by cause."""
        own = f'namespace="{self.cluster.namespace}"'
        found: dict[str, float] = {}
        for line in self.text().splitlines():
            if line.startswith("kubectl_dra_pending_pods{") and own in line:
                found[line.partition('cause="')[2].partition('"')[0]] = float(line.split()[-1])
        return found

    def value(self, name: str) -> float:
        """The sum of a metric over its labels."""
        rows = [line.split() for line in self.text().splitlines() if line.partition("{")[0].split()[0] == name]
        return sum(float(row[-1]) for row in rows)


def kubeconfig(server: str, authority: str, token: str) -> Json:
    cluster = {"server": server, "certificate-authority-data": authority}
    context = {"cluster": "one", "user": "metrics"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "one", "cluster": cluster}],
        "users": [{"name": "metrics", "user": {"token": token}}],
        "contexts": [{"name": "one", "context": context}],
        "current-context": "one",
    }


@pytest.fixture
def deployed(cluster: Cluster, tmp_path: Path) -> Iterator[Deployed]:
    made = Deployed(cluster, tmp_path)
    yield made
    made.end()


def until(done: Callable[[], bool], deployed: Deployed, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, deployed.text() + deployed.errors.read_text()
        time.sleep(0.2)


def test_causes_come_and_go_whatever_happens_to_the_server(deployed: Deployed) -> None:
    cluster = deployed.cluster
    until(deployed.ready, deployed)
    node, gpu = cluster.node(), cluster.device_class()
    cluster.publish([device("gpu-0"), device("gpu-1")], pool="gpus", node=node)
    template = cluster.template([request(gpu, count=9)], "many")
    cluster.pod("first", templates={"gpu": template})
    until(lambda: sum(deployed.causes().values()) == 1, deployed)
    (cause,) = deployed.causes()
    assert cause not in {"none", ""}

    # Connections are cut: told again from where it was, and nothing is read anew.
    lists = deployed.value("kubectl_dra_lists_total")
    deployed.front.cut()
    cluster.pod("second", templates={"gpu": template})
    until(lambda: deployed.causes() == {cause: 2}, deployed)
    assert deployed.value("kubectl_dra_lists_total") == lists

    # The server is away: what was known stays, the lag says how old it is, and the pod still lives.
    deployed.front.go_away()
    cluster.pod("third", templates={"gpu": template})
    until(lambda: deployed.value("kubectl_dra_lag_seconds") > 3, deployed)
    assert deployed.causes() == {cause: 2} and deployed.text("/livez") == "ok\n"
    deployed.front.come_back()
    until(lambda: deployed.causes() == {cause: 3}, deployed, 90)
    until(lambda: deployed.value("kubectl_dra_lag_seconds") < 10, deployed)

    # A server that takes requests and answers none, and then the connections end.
    deployed.front.silent = True
    cluster.api.delete({"apiVersion": "v1", "kind": "Pod", **cluster.get("Pod", "first", "v1")}, grace_seconds=0)
    time.sleep(3)
    assert deployed.causes() == {cause: 3}
    deployed.front.silent = False
    deployed.front.cut()
    until(lambda: deployed.causes() == {cause: 2}, deployed, 90)

    # The role suffices: nothing that is served was refused.
    refused = [line for line in deployed.text().splitlines() if line.startswith("kubectl_dra_unread{")]
    assert not [line for line in refused if "forbidden" in line and not line.endswith(" 0.0")], refused
