"""A control plane whose components can be scraped, in which something has happened.

The control plane of the tests lets nobody read the metrics of its scheduler and controllers. So these are halted, and
a scheduler and a controller manager of the same program, that allow it, run in their place.
"""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.controlplane.plane import ControlPlane
from tools.controlplane.program import Program

START_SECONDS = 60
CONTROLLERS = "resourceclaim-controller,device-taint-eviction-controller"
CONFIGS = {"kube-scheduler": "scheduler.kubeconfig", "kube-controller-manager": "controllers.kubeconfig"}


@contextmanager
def open_components(program: Program, plane: ControlPlane, directory: Path) -> Iterator[dict[str, str]]:
    """The address of ``/metrics`` of a scheduler and a controller manager, by name; they end with the block.

    ``plane`` is nobody else's: its own are halted meanwhile.
    """
    home = plane.kubeconfig.parent
    halted = [pid for pid in _children(plane.pid) if _component(pid) in CONFIGS]
    assert len(halted) == len(CONFIGS)
    running: list[subprocess.Popen[bytes]] = []
    addresses: dict[str, str] = {}
    try:
        for pid in halted:
            os.kill(pid, signal.SIGSTOP)
        for name, config in CONFIGS.items():
            port = _free_port()
            arguments = [
                f"--kubeconfig={home / config}",
                "--leader-elect=false",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--cert-dir={directory / name}",
                "--authorization-always-allow-paths=/healthz,/metrics",
                "--feature-gates=DRADeviceTaintRules=true",
            ]
            if name == "kube-controller-manager":
                arguments.append(f"--controllers={CONTROLLERS}")
            log = (directory / f"{name}.log").open("wb")
            running.append(subprocess.Popen([*program.command, name, *arguments], stdout=log, stderr=log))
            log.close()
            addresses[name] = f"https://127.0.0.1:{port}/metrics"
        for (name, address), process in zip(addresses.items(), running, strict=True):
            _wait_ready(address, process, directory / f"{name}.log")
        yield addresses
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()
        for pid in halted:
            os.kill(pid, signal.SIGCONT)


def read(address: str) -> str:
    """The text that a component of this machine answers."""
    # It answers on loopback only, with a certificate that it made itself.
    unverified = ssl._create_unverified_context()
    with urllib.request.urlopen(address, timeout=10, context=unverified) as answer:
        text: str = answer.read().decode()
    return text


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def _component(pid: int) -> str:
    """Which component a process of the program is."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return words[1].decode() if len(words) > 1 else ""


def _wait_ready(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            read(address)
            return
        except (OSError, urllib.error.URLError):
            time.sleep(0.2)
    raise RuntimeError(f"{address} does not answer:\n{log.read_text(errors='replace')[-3000:]}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port
