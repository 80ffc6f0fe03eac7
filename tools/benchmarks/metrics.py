"""`kubectl dra metrics --listen` on a large cluster that changes: `python -m tools.benchmarks.metrics [--rate N]`.

A process of its own serves the cluster of `tools.benchmarks.paged` and tells changes of it: ordinary pods come and go,
and now and then a pod comes that waits for a device no node has. Printed are the time of scrapes, the lag of that pod's
cause from the change to the metric, memory, and CPU while it changes and at rest.
"""

from __future__ import annotations

import argparse
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tools.benchmarks.paged import GROUP, PLURALS, Lists, compact, kubeconfig
from tools.benchmarks.pods import ordinary_pods

CORE = {"nodes": "Node", "pods": "Pod", "namespaces": "Namespace", "resourcequotas": "ResourceQuota", "events": "Event"}
WAITING = "selector-matches-nothing"
SPACE = "probe"


class Changes:
    """What the server tells of pods: a change each so many milliseconds, while ``rate`` is not 0."""

    def __init__(self, nodes: int, pods: int) -> None:
        self.rate = 0.0
        self.version = 10
        self._nodes, self._pods = nodes, pods
        self._random = random.Random(1)
        self._told: list[str] = []
        self._condition = threading.Condition()
        threading.Thread(target=self._play, daemon=True).start()

    def _play(self) -> None:
        fresh = self._pods
        while True:
            time.sleep(1 / self.rate if self.rate else 0.05)
            if not self.rate:
                continue
            if self._random.random() < 0.5:
                number, kind = self._random.randrange(self._pods), "MODIFIED"
                text = next(ordinary_pods([number], self._nodes)).replace('"Running"', '"Pending"', 1)
            else:
                number, kind = fresh, "ADDED"
                text = next(ordinary_pods([number], self._nodes))
                if self._random.random() < 0.5 and fresh > self._pods:
                    fresh -= 1
                    number, kind = fresh, "DELETED"
                    text = next(ordinary_pods([number], self._nodes))
                else:
                    fresh += 1
            self.tell(kind, text)

    def tell(self, kind: str, text: str) -> None:
        """Tell a change of a pod."""
        with self._condition:
            self.version += 1
            text = re.sub(r'"resourceVersion":"\d+"', f'"resourceVersion":"{self.version}"', text, count=1)
            item = f'{{"apiVersion":"v1","kind":"Pod",{text[1:]}'
            self._told.append(f'{{"type":"{kind}","object":{item}}}\n')
            self._condition.notify_all()

    def after(self, position: int) -> tuple[int, list[str]]:
        """The changes from a position on; waits for one, a second at most."""
        with self._condition:
            if position >= len(self._told):
                self._condition.wait(1)
            return len(self._told), self._told[position:]


def waiting_pod() -> str:
    """A pod that asks for a device that there is not."""
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "probe"}], "containers": [{"name": "main"}]}
    meta = {"name": "probe", "namespace": SPACE, "uid": "probe", "resourceVersion": "1"}
    return compact({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})


def claim() -> dict[str, Any]:
    selector = {"cel": {"expression": 'device.driver == "nobody.example.com"'}}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "selectors": [selector]}}
    meta = {"name": "probe", "namespace": SPACE, "uid": "probe-claim"}
    return {"metadata": meta, "spec": {"devices": {"requests": [request]}}}


def serve(nodes: int, pods: int) -> None:
    """Serves the cluster; prints the port. POST /rate/N and /probe/ADDED or DELETED tell what happens."""
    lists, changes = Lists(nodes, pods), Changes(nodes, pods)
    kinds = {f"{GROUP}/v1/{plural}": kind for kind, plural in PLURALS.items()}
    kinds |= {f"/api/v1/{plural}": kind for plural, kind in CORE.items()} | {"/apis/apps/v1/daemonsets": "DaemonSet"}
    fixed: dict[str, Any] = {
        "/version": {"gitVersion": "v1.36.3"},
        GROUP: {"kind": "APIGroup", "versions": [{"version": "v1"}]},
        f"{GROUP}/v1": {"kind": "APIResourceList", "resources": [{"name": plural} for plural in PLURALS.values()]},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            _, what, value = self.path.split("/")
            if what == "rate":
                changes.rate = float(value)
            else:
                changes.tell(value, waiting_pod())
            self._send(200, b"{}")

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query)
            kind = kinds.get(parts.path)
            if kind is not None and "watch" in query:
                self._watch(kind)
            elif kind is not None:
                start, limit = int(query.get("continue", ["0"])[0]), int(query.get("limit", ["500"])[0])
                body = lists.page(kind, start, limit)
                if kind == "ResourceClaim" and not start:
                    body = body.replace(b'"items":[', b'"items":[' + compact(claim()).encode() + b",", 1)
                self._send(200, body)
            elif parts.path in fixed:
                self._send(200, compact(fixed[parts.path]).encode())
            else:
                self._send(404, b'{"kind":"Status","code":404}')

        def _watch(self, kind: str) -> None:
            self.send_response(200)
            self.end_headers()
            position = 0
            while True:
                told: list[str] = []
                if kind == "Pod":
                    position, told = changes.after(position)
                else:
                    time.sleep(1)
                self.wfile.write("".join(told).encode())
                self.wfile.flush()

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


class Measured:
    """The command, and what its metrics say."""

    def __init__(self, path: Path, server: str) -> None:
        self._server = server
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "kubectl_dra", "metrics", "--listen", f"127.0.0.1:{port}"]
        self.process = subprocess.Popen([*command, "--kubeconfig", str(path)], stderr=subprocess.DEVNULL)

    def tell(self, what: str) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self._server}/{what}", method="POST")).close()

    def ready(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/readyz").close()
        except OSError:
            return False
        return True

    def scrape(self) -> tuple[float, str]:
        """Seconds, and the text."""
        began = time.monotonic()
        with urllib.request.urlopen(f"{self.url}/metrics") as answer:
            text = answer.read().decode()
        return time.monotonic() - began, text

    def value(self, name: str) -> float:
        return float(re.search(rf"^{name} (\S+)$", self.scrape()[1], re.MULTILINE)[1])  # type: ignore[index]

    def peak(self) -> int:
        """The most memory so far, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) >> 10  # type: ignore[index]

    def busy(self, seconds: float) -> float:
        """The share of a core that it takes for so long."""
        before = self.value("process_cpu_seconds_total")
        time.sleep(seconds)
        return (self.value("process_cpu_seconds_total") - before) / seconds

    def lag(self, there: bool) -> tuple[float, list[float]]:
        """How long the pod's cause takes to come (or go), and the times of the scrapes meanwhile."""
        self.tell(f"probe/{'ADDED' if there else 'DELETED'}")
        began, scrapes = time.monotonic(), list[float]()
        while time.monotonic() - began < 120:
            took, text = self.scrape()
            scrapes.append(took)
            found = any(
                f'cause="{WAITING}",namespace="{SPACE}"' in line
                for line in text.splitlines()
                if "pending_pods{" in line
            )
            if found is there:
                break
            time.sleep(0.2)
        return time.monotonic() - began, scrapes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=150_000, help="ordinary pods of 6 KB")
    parser.add_argument("--rate", type=float, default=50, help="changes a second")
    parser.add_argument("--probes", type=int, default=10, help="how often the lag is measured")
    parser.add_argument("--rest", type=float, default=90, help="seconds at rest")
    parser.add_argument("--serve", action="store_true", help="only serve, and print the port")
    options = parser.parse_args()
    if options.serve:
        serve(options.nodes, options.pods)
        return
    command = [sys.executable, "-m", "tools.benchmarks.metrics", "--serve", "--nodes", str(options.nodes)]
    server = subprocess.Popen([*command, "--pods", str(options.pods)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        port = int(server.stdout.readline())
        with tempfile.TemporaryDirectory(prefix="kubectl-dra-") as directory:
            measured = Measured(kubeconfig(Path(directory), port), f"http://127.0.0.1:{port}")
            try:
                report(measured, options)
            finally:
                measured.process.kill()
                measured.process.wait()
    finally:
        server.kill()
        server.wait()


def report(measured: Measured, options: argparse.Namespace) -> None:
    """Prints the numbers."""
    began = time.monotonic()
    while not measured.ready():
        time.sleep(0.2)
    print(f"{options.nodes:,} nodes, {options.pods:,} pods; ready after {time.monotonic() - began:.1f} s", flush=True)
    print(f"at rest: {measured.busy(options.rest):.3f} of a core, {measured.peak()} MB", flush=True)
    measured.tell(f"rate/{options.rate}")
    before = measured.value("process_cpu_seconds_total"), measured.value("kubectl_dra_counts_total")
    busy = measured.busy(20)
    lags: list[float] = []
    scrapes: list[float] = []
    for number in range(options.probes):
        lag, times = measured.lag(there=number % 2 == 0)
        lags.append(lag)
        print(f"lag {lag:.1f} s, a count {measured.value('kubectl_dra_count_duration_seconds'):.1f} s", flush=True)
        scrapes += times
    scrapes.sort()
    print(f"{options.rate:g} changes a second: {busy:.2f} of a core, {measured.peak()} MB at most")
    spent = measured.value("process_cpu_seconds_total") - before[0]
    counts = measured.value("kubectl_dra_counts_total") - before[1]
    print(f"{spent / max(counts, 1):.1f} s of CPU for each of {counts:.0f} counts, changes included")
    print(f"lag of a cause: {min(lags):.1f} to {max(lags):.1f} s of {len(lags)}")
    ranks = (len(scrapes) // 2, len(scrapes) * 99 // 100, -1)
    middle, late, longest = (1000 * scrapes[rank] for rank in ranks)
    print(f"{len(scrapes)} scrapes: median {middle:.0f} ms, 99% {late:.0f} ms, longest {longest:.0f} ms")


if __name__ == "__main__":
    main()
