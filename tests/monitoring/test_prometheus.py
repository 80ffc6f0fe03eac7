"""A Prometheus scrapes ``kubectl dra metrics --listen``, as the ServiceMonitor says, and evaluates the alerts."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.metrics.test_follow import objects, until
from tests.metrics.test_serving import Serving
from tests.metrics.test_serving import serving as serving
from tests.monitoring.files import FOLDER, RULE
from tests.packaging import toolbox
from tools.watched_server import WatchedServer, collection

Start = Callable[[WatchedServer], Serving]
WAITS = {"alertname": "DRAPodsPending", "namespace": "ml", "cause": "selector-matches-nothing"}


class Prometheus:
    """The server, in a process of its own, that scrapes one target each second.

    Its rules are those of the example, but alerts have only to hold for a second.
    """

    def __init__(self, program: Path, folder: Path, target: int) -> None:
        groups = yaml.safe_load(RULE.read_text(encoding="utf-8"))["spec"]["groups"]
        for rule in (rule for group in groups for rule in group["rules"]):
            rule["for"] = "1s"
        (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
        monitor = yaml.safe_load((FOLDER / "service-monitor.yaml").read_text(encoding="utf-8"))
        (endpoint,) = monitor["spec"]["endpoints"]
        job = {
            "job_name": "kubectl-dra-metrics",
            "honor_labels": endpoint["honorLabels"],
            "static_configs": [{"targets": [f"127.0.0.1:{target}"], "labels": {"namespace": "monitoring"}}],
        }
        intervals = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config = {"global": intervals, "rule_files": ["rules.yaml"], "scrape_configs": [job]}
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        words = [f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'data'}"]
        words.append(f"--web.listen-address=127.0.0.1:{self._port}")
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen([program, *words], stdout=log, stderr=log, cwd=folder)

    def ask(self, path: str, **query: str) -> Any:
        """What its HTTP API answers; nothing where it does not yet."""
        url = f"http://127.0.0.1:{self._port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except (urllib.error.URLError, ConnectionError):
            return {}

    def series(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The labels and values of a query, as of now."""
        found = self.ask("query", query=expression).get("result", ())
        return [(each["metric"], float(each["value"][1])) for each in found]

    def alerts(self, state: str, **labels: str) -> list[dict[str, Any]]:
        """The alerts in a state that have these labels."""
        found = self.ask("alerts").get("alerts", ())
        return [each for each in found if each["state"] == state and labels.items() <= each["labels"].items()]


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Callable[[Serving], Prometheus]]:
    try:
        program = toolbox.prometheus()
    except toolbox.Unavailable as reason:
        pytest.skip(str(reason))
    running: list[Prometheus] = []

    def start(target: Serving) -> Prometheus:
        folder = tmp_path / "prometheus"
        folder.mkdir()
        running.append(Prometheus(program, folder, target.port))
        return running[-1]

    yield start
    for each in running:
        each.process.kill()
        each.process.wait()


def test_it_is_scraped_and_alerts_come_and_go(serving: Start, prometheus: Callable[[Serving], Prometheus]) -> None:
    server = WatchedServer(objects())
    target = serving(server)
    until(lambda: target.get("/readyz")[0] == 200, 60)
    scraper = prometheus(target)
    until(lambda: bool(scraper.alerts("firing", **WAITS)), 60)
    (alert,) = scraper.alerts("firing", **WAITS)
    # The namespace is the pod's, not the target's, and the text names both.
    assert alert["annotations"]["summary"].startswith("A pod in ml has waited")
    assert alert["annotations"]["runbook_url"].endswith("/docs/causes/selector-matches-nothing.md")
    (state,) = scraper.ask("targets")["activeTargets"]
    assert (state["health"], state["lastError"]) == ("up", "")
    # Every series of a scrape is there, and none besides.
    (waiting,) = scraper.series(f'kubectl_dra_pending_pods{{cause="{WAITS["cause"]}"}}')
    assert waiting[0]["verdict"] == "cannot-be-scheduled" and waiting[1] == 1
    names = {line.split()[2] for line in target.get()[1].splitlines() if line.startswith("# TYPE kubectl_dra_")}
    told = {labels["__name__"] for labels, _ in scraper.series('{__name__=~"kubectl_dra_.+"}')}
    empty = {name for name in names if f"\n{name}" not in target.get()[1]}
    assert told == names - empty and len(told) > 20
    assert not scraper.alerts("firing", alertname="DRAMetricsIncomplete")
    assert not scraper.alerts("firing", alertname="DRAMetricsStale")
    # The pod goes: nothing waits, and the alert ends.
    pod = next(raw for raw in objects() if raw["kind"] == "Pod" and not raw["spec"].get("nodeName"))
    server.delete("Pod", pod["metadata"]["name"], "ml")
    until(lambda: not scraper.alerts("firing", **WAITS), 60)
    # What may not be read any more is missing, and somebody is told.
    claims = collection("ResourceClaim")
    server.refused |= {claims: 403, f"{claims}?watch": 410}
    server.end_watches()
    until(lambda: bool(scraper.alerts("firing", alertname="DRAMetricsIncomplete", kind="ResourceClaim")), 60)
    assert not scraper.series("kubectl_dra_claims")
