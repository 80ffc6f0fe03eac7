"""``metrics --listen`` as it is run: curled while a server changes, goes away and comes back."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from tests.metrics.test_follow import objects, pod, until
from tests.metrics.test_same_answers import counted
from tests.monitoring.files import FOLDER
from tools.watched_server import WatchedServer, collection

SCRAPE = "/metrics"
LISTEN = ("metrics", "--listen=127.0.0.1:9412")


class Serving:
    """The command, in a process of its own, at a free port in place of 9412."""

    def __init__(self, directory: Path, kubeconfig: str, words: Sequence[str] = LISTEN, **environment: str) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        command = [sys.executable, "-m", "kubectl_dra", *(word.replace("9412", str(self.port)) for word in words)]
        self.err = directory / "err"
        with self.err.open("w") as err:
            variables = {**(environment or os.environ), "KUBECONFIG": kubeconfig}
            self.process = subprocess.Popen(command, stderr=err, env=variables)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    def get(self, path: str = SCRAPE, accept: str = "text/plain") -> tuple[int, str]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except urllib.error.URLError:
            return 0, ""

    def waits(self) -> set[tuple[str, ...]]:
        """Namespace and cause of what waits."""
        return set(counted(self.get()[1], "pending_pods", "namespace", "cause"))

    def value(self, name: str) -> float:
        line = next(line for line in self.get()[1].splitlines() if line.startswith(f"kubectl_dra_{name} "))
        return float(line.split()[1])


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[[WatchedServer], Serving]]:
    running: list[tuple[Serving, WatchedServer]] = []

    def start(server: WatchedServer) -> Serving:
        running.append((Serving(tmp_path, server.kubeconfig(tmp_path)), server))
        return running[-1][0]

    yield start
    for run, server in running:
        run.end()
        server.close()


def test_a_day_in_short(serving: Callable[[WatchedServer], Serving]) -> None:
    server = WatchedServer(objects())
    server.refused[collection("Pod")] = 503
    run = serving(server)
    until(lambda: run.get("/livez")[0] == 200, 60)
    # Without the pods there is nothing to tell.
    assert run.get("/readyz")[0] == 503 and "kubectl_dra_devices" not in run.get()[1]
    server.refused.clear()
    until(lambda: run.get("/readyz")[0] == 200, 60)
    cause = {("ml", "selector-matches-nothing")}
    assert run.waits() == cause
    assert run.get("/nothing")[0] == 404
    text = run.get(accept="application/openmetrics-text; version=1.0.0")[1]
    assert text.endswith("# EOF\n") and list(openmetrics(text))  # type: ignore[no-untyped-call]
    assert "process_resident_memory_bytes" in text
    # The pod goes, and comes again.
    waiting = next(raw for raw in objects() if raw["kind"] == "Pod" and not raw["spec"].get("nodeName"))
    server.delete("Pod", waiting["metadata"]["name"], "ml")
    until(lambda: not run.waits())
    # The server goes away: what was known stays, and is said to be old.
    server.close()
    until(lambda: run.value("lag_seconds") > 1)
    assert "kubectl_dra_devices" in run.get()[1]
    assert 'kubectl_dra_watch_up{kind="Pod"} 0.0' in run.get()[1]
    server.put(waiting)
    server.put(pod("plain"))
    server.forget()
    server.open()
    until(lambda: run.waits() == cause, 60)
    until(lambda: run.value("lag_seconds") < 1)
    assert run.value("counts_total") >= 3
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(20) == 143
    assert "Traceback" not in run.err.read_text()


def test_scrapes_do_not_wait_for_a_server_that_hangs(serving: Callable[[WatchedServer], Serving]) -> None:
    server = WatchedServer(objects())
    run = serving(server)
    until(lambda: run.get("/readyz")[0] == 200, 60)
    # It accepts connections, and nothing more.
    with server._condition:
        began = time.monotonic()
        for _ in range(20):
            assert run.get()[0] == 200
        assert time.monotonic() - began < 10


def test_as_the_manifest_runs_it(serving: Callable[[WatchedServer], Serving]) -> None:
    """Its own command line, but for the port, and its probes and its scrape."""
    found = list(yaml.safe_load_all((FOLDER / "kubectl-dra-metrics.yaml").read_text()))
    (deployment,) = (raw for raw in found if raw["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["metrics", "--listen=:9412"]
    (service,) = (raw for raw in found if raw["kind"] == "Service")
    assert {port["containerPort"] for port in container["ports"]} == {port["port"] for port in service["spec"]["ports"]}
    run = serving(WatchedServer(objects()))
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        path = container[probe]["httpGet"]["path"]
        until(lambda path=path: run.get(path)[0] == 200, 60)  # type: ignore[misc]


def listening(address: str, config: str) -> subprocess.CompletedProcess[str]:
    words = ["metrics", "--listen", address, "--kubeconfig", config]
    return subprocess.run([sys.executable, "-m", "kubectl_dra", *words], capture_output=True, text=True, check=False)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = WatchedServer()
        words = [
            "metrics",
            "--listen",
            f"127.0.0.1:{taken.getsockname()[1]}",
            "--kubeconfig",
            server.kubeconfig(tmp_path),
        ]
        done = subprocess.run(
            [sys.executable, "-m", "kubectl_dra", *words], capture_output=True, text=True, check=False
        )
        server.close()
    assert done.returncode == 2 and "Address already in use" in done.stderr and "Traceback" not in done.stderr


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    server = WatchedServer()
    config = server.kubeconfig(tmp_path)
    server.close()
    done = listening("127.0.0.1:0", config)
    assert done.returncode == 2 and "no connection" in done.stderr and "Traceback" not in done.stderr
