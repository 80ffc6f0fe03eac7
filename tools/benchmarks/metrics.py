"""`kubectl dra metrics --listen` on a large cluster that changes: `tools.benchmarks.metrics [--rate N] [--day]`.

A process of its own serves the cluster of `tools.benchmarks.paged` and tells changes of it: ordinary pods come and go,
and now and then a pod comes that waits for a device no node has. Printed are the time of scrapes, the lag of that pod's
cause from the change to the metric, memory, and CPU while it changes and at rest. With --day a day of such changes goes
by as fast as they are taken, and each hour something happens to the server; printed are memory and objects each hour.
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
FIRST = 10
"""The version of the cluster before its first change."""
KEPT = 50_000
"""Changes that the server remembers."""
EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'
DAY, HOURS = 24 * 3600, 24
FAULTS = ("cut", "gone", "away", "gone")
SPACE = "probe"


class Changes:
    """What the server tells of pods: a change each so many milliseconds, while ``rate`` is not 0."""

    def __init__(self, nodes: int, pods: int) -> None:
        self.rate = 0.0
        self.version = FIRST
        self._nodes, self._pods = nodes, pods
        self._random = random.Random(1)
        self._told: list[str] = []
        self._condition = threading.Condition()
        self.forgotten = 0
        """Changes that a stream can no longer begin with."""
        self.epoch = 0
        """Streams of an earlier one end."""
        self.away_until = 0.0
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
            if len(self._told) > KEPT:
                self.forgotten += KEPT // 2
                del self._told[: KEPT // 2]
            self._condition.notify_all()

    def after(self, position: int) -> tuple[int, list[str]]:
        """The changes from a position on; waits for one, a second at most. Raises LookupError if they are forgotten."""
        with self._condition:
            if position >= self.forgotten + len(self._told):
                self._condition.wait(1)
            if position < self.forgotten:
                raise LookupError(position)
            return self.forgotten + len(self._told), self._told[position - self.forgotten :]

    def suffer(self, fault: str) -> None:
        """``cut`` ends all streams, ``gone`` forgets all changes too, ``away`` answers nothing for five seconds."""
        with self._condition:
            self.epoch += 1
            if fault == "gone":
                # One that nobody was told, too.
                self.version += 1
                self.forgotten += len(self._told) + 1
                self._told.clear()
            if fault == "away":
                self.away_until = time.monotonic() + 5
            self._condition.notify_all()


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
            elif what == "fault":
                changes.suffer(value)
            else:
                changes.tell(value, waiting_pod())
            self._send(200, b"{}")

        def do_GET(self) -> None:
            if self.path == "/told":
                self._send(200, str(changes.version - FIRST).encode())
                return
            parts = urlsplit(self.path)
            query = parse_qs(parts.query)
            kind = kinds.get(parts.path)
            if time.monotonic() < changes.away_until:
                self.close_connection = True
            elif kind is not None and "watch" in query:
                self._watch(kind, int(query.get("resourceVersion", ["0"])[0]))
            elif kind is not None:
                start, limit = int(query.get("continue", ["0"])[0]), int(query.get("limit", ["500"])[0])
                version = changes.version
                body = lists.page(kind, start, limit)
                body = body.replace(b'"resourceVersion":"1"', b'"resourceVersion":"%d"' % version, 1)
                if kind == "ResourceClaim" and not start:
                    body = body.replace(b'"items":[', b'"items":[' + compact(claim()).encode() + b",", 1)
                self._send(200, body)
            elif parts.path in fixed:
                self._send(200, compact(fixed[parts.path]).encode())
            else:
                self._send(404, b'{"kind":"Status","code":404}')

        def _watch(self, kind: str, version: int) -> None:
            self.send_response(200)
            self.end_headers()
            epoch, position = changes.epoch, max(version - FIRST, 0)
            while epoch == changes.epoch:
                told: list[str] = []
                if kind == "Pod":
                    try:
                        position, told = changes.after(position)
                    except LookupError:
                        self.wfile.write(EXPIRED)
                        return
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
        request_queue_size = 128

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
        return self._memory("VmHWM")

    def now(self) -> int:
        """The memory now, in MB."""
        return self._memory("VmRSS")

    def _memory(self, name: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+)", status)[1]) >> 10  # type: ignore[index]

    def told(self) -> float:
        """The changes of the server so far."""
        with urllib.request.urlopen(f"{self._server}/told") as answer:
            return float(answer.read())

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
    parser.add_argument("--day", action="store_true", help=f"{DAY * 50:,} changes at this rate, with a fault each hour")
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
                (day if options.day else report)(measured, options)
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


def day(measured: Measured, options: argparse.Namespace) -> None:
    """Prints a row each hour of the day; at its end the metrics are those of a new read."""
    while not measured.ready():
        time.sleep(0.2)
    # What the server was at first is what it lists after a fault, too.
    first = fleet(measured.scrape()[1])
    measured.tell(f"rate/{options.rate}")
    for hour in range(1, HOURS + 1):
        began, told = time.monotonic(), 0.0
        while told < DAY * 50 / HOURS * hour:
            time.sleep(1)
            told = measured.told()
        measured.tell(f"fault/{FAULTS[hour % len(FAULTS)]}")
        numbers = ", ".join(
            f"{measured.value(f'kubectl_dra_{name}'):.0f} {name}" for name in ("counts_total", "lag_seconds")
        )
        pods = '{kind="Pod"}'
        known, lists = (measured.value(re.escape(f"kubectl_dra_{name}{pods}")) for name in ("objects", "lists_total"))
        print(
            f"hour {hour}: {told:,.0f} changes told, {numbers}, {known:,.0f} pods known, {lists:.0f} lists, "
            f"{measured.now()} MB ({measured.peak()} at most), {time.monotonic() - began:.0f} s",
            flush=True,
        )
    measured.tell("rate/0")
    measured.tell("fault/gone")
    end = time.monotonic() + 120
    while fleet(measured.scrape()[1]) != first and time.monotonic() < end:
        time.sleep(1)
    print("the metrics are " + ("as at first" if fleet(measured.scrape()[1]) == first else "NOT as at first"))


def fleet(text: str) -> list[str]:
    """What the metrics say of the cluster, without times."""
    own = ("kubectl_dra_devices", "kubectl_dra_device_class", "kubectl_dra_pending", "kubectl_dra_claims")
    return [line for line in text.splitlines() if line.startswith(own) and "timestamp" not in line]


if __name__ == "__main__":
    main()
