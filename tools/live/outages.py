"""Commands that run for long, while the API server is stopped, restarted, frozen or without its watch cache.

    python -m tools.live.outages

``explain --watch``, ``top --watch`` and ``taint --wait`` run when the fault begins, and ``snapshot`` begins with it.
They go on when it is over, and see what has changed meanwhile; a snapshot is whole, or not there and said not to be.
Exit code 0 only where nothing was wrong.
"""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.objects import device, request
from tools.controlplane.plane import ControlPlane, own_plane
from tools.controlplane.program import find_program
from tools.live.gate import Gate
from tools.live.second_server import ApiServer

ROOT: Final = Path(__file__).parents[2]
AWAY: Final = 4.0
"""Seconds that a fault lasts."""
LONGEST: Final = 120.0
KEY: Final = "example.com/maintenance"


class Way:
    """A way to a server of its own, on which faults happen."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.server = ApiServer(plane, folder)
        self.server.start()
        self.gate = Gate(self.server)
        self.proxy = Gate(self.server, proxy=True)

    def close(self) -> None:
        """Ends."""
        self.gate.close()
        self.proxy.close()
        self.server.kill()


def _restarted(way: Way, *more: str) -> None:
    way.server.kill()
    time.sleep(AWAY)
    way.server.start(*more)


def _frozen(way: Way) -> None:
    way.server.freeze(on=True)
    time.sleep(AWAY)
    way.server.freeze(on=False)


def _cut(gate: Gate) -> None:
    gate.close()
    time.sleep(AWAY)
    gate.open()


FAULTS: Final[Mapping[str, Callable[[Way], None]]] = {
    "killed and restarted": _restarted,
    "restarted without its watch cache": lambda way: _restarted(way, "--watch-cache=false"),
    "frozen": _frozen,
    "the network is cut": lambda way: _cut(way.gate),
    "the proxy in between is cut": lambda way: _cut(way.proxy),
}


class Running:
    """A command that runs, and what it has written so far."""

    def __init__(self, *words: str) -> None:
        self._words = words
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", "kubectl_dra", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
        )
        self._lines: list[str] = []
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._lines.extend, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    @property
    def text(self) -> str:
        """Both outputs in one, lines joined."""
        return " ".join("".join(self._lines).split())

    def until(self, text: str) -> None:
        """Waits until the text is written."""
        wait(lambda: True if text in self.text else None, f'{self._words[0]}: "{text}"', LONGEST, lambda: self.text)

    def ended(self, number: int = 0) -> int:
        """The exit code, after a signal if one is given."""
        if number:
            self._process.send_signal(number)
        try:
            code = self._process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self._words[0]} does not end: {self.text[-600:]}") from None
        self._reader.join(10)
        return code

    def kill(self) -> None:
        """Ends it whatever it does."""
        self._process.kill()
        self._process.wait()


@contextmanager
def running(*words: str) -> Iterator[Running]:
    command = Running(*words)
    try:
        yield command
    finally:
        command.kill()


def tried(plane: ControlPlane, fault: str, folder: Path) -> list[str]:
    """What is wrong with commands during a fault."""
    cluster = Cluster(plane, f"outage-{secrets.token_hex(3)}")
    way = Way(plane, folder)
    try:
        gate = way.proxy if "proxy" in fault else way.gate
        return _tried(cluster, way, FAULTS[fault], str(gate.kubeconfig(folder)), folder / "saved.json")
    finally:
        way.close()
        cluster.remove()


def _tried(cluster: Cluster, way: Way, fault: Callable[[Way], None], config: str, saved: Path) -> list[str]:
    where = ("--kubeconfig", config, "--context", "admin")
    node, gpu = cluster.node("early"), cluster.device_class()
    cluster.publish([device("gpu-0")], pool="early", node=node)
    cluster.pod("held", claims={"gpu": cluster.claim([request(gpu)], "held-claim")})
    cluster.scheduled("held")
    cluster.pod("waits", claims={"gpu": cluster.claim([request(gpu)], "waits-claim")})
    tainted = f"{cluster.driver}/early/gpu-0"
    with (
        running("explain", "pod/waits", "-n", cluster.namespace, "--watch", *where) as explain,
        running("top", "--watch", *where) as top,
        running("taint", tainted, f"{KEY}:NoExecute", "--yes", f"--wait={LONGEST:.0f}s", *where) as taint,
    ):
        explain.until("cannot be scheduled")
        top.until(node)
        wait(lambda: cluster.get("Pod", "held", "v1")["metadata"].get("deletionTimestamp"), "the eviction", LONGEST)
        snapshot = Running("snapshot", "-o", str(saved), "--request-timeout", "20s", *where)
        fault(way)
        late = cluster.node("late")
        cluster.publish([device("gpu-1")], pool="late", node=late)
        held = cluster.get("Pod", "held", "v1")
        cluster.api.delete({"apiVersion": "v1", "kind": "Pod", **held}, grace_seconds=0)
        wrong = [] if (code := taint.ended()) == 0 else [f"taint ended with {code}: {taint.text[-400:]}"]
        wrong += [] if (code := explain.ended()) == 0 else [f"explain ended with {code}: {explain.text[-400:]}"]
        top.until(late)
        wrong += [] if (code := top.ended(signal.SIGINT)) == 130 else [f"top ended with {code}: {top.text[-400:]}"]
        code = snapshot.ended()
    if code == 0:
        kinds = {item["kind"] for item in json.loads(saved.read_text())["items"]}
        wrong += [] if {"Pod", "ResourceSlice"} <= kinds else [f"the snapshot has only {sorted(kinds)}"]
    elif code != 2 or [*saved.parent.glob("*saved.json*")]:
        wrong.append(f"snapshot ended with {code}: {snapshot.text[-400:]}")
    texts = explain.text + top.text + taint.text + snapshot.text
    return wrong + (["a defect is told"] if "Traceback" in texts or "a defect of" in texts else [])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.live.outages", description=__doc__)
    parser.add_argument("--fault", action="append", choices=[*FAULTS], help="may be repeated; default: all")
    given = parser.parse_args()
    problems = 0
    with tempfile.TemporaryDirectory() as top, own_plane(find_program(), ["--profile=full"], Path(top)) as plane:
        for number, fault in enumerate(given.fault or FAULTS):
            folder = Path(top) / str(number)
            folder.mkdir()
            try:
                wrong = tried(plane, fault, folder)
            except (TimeoutError, AssertionError) as error:
                wrong = [str(error)]
            problems += len(wrong)
            sys.stdout.write(f"{fault}: {'; '.join(wrong) or 'nothing lost, nothing false'}\n")
            sys.stdout.flush()
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
