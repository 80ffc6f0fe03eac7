"""A second API server of a control plane that a test can really kill and start again."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

from tools.controlplane.client import Api
from tools.controlplane.cluster import wait
from tools.controlplane.plane import ControlPlane


class ApiServer:
    """Runs with the arguments of the first one, on the same etcd, at an address of its own that stays."""

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        arguments = _arguments(plane.pid)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._command = [re.sub(r"^--secure-port=.*", f"--secure-port={self.port}", word) for word in arguments]
        config = json.loads(plane.kubeconfig.read_text())
        for cluster in config["clusters"]:
            cluster["cluster"]["server"] = f"https://127.0.0.1:{self.port}"
        self.kubeconfig = directory / "second.json"
        self.kubeconfig.write_text(json.dumps(config))
        self._log = directory / "apiserver.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        """Starts it, with ``more`` flags, and waits until it is ready."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*self._command, *more], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        wait(lambda: True if self._ready() else None, "the second API server", 60, lambda: self._log.read_text()[-800:])

    def kill(self) -> None:
        """Ends it as a crash does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(10)
            self._process = None

    def freeze(self, *, on: bool) -> None:
        """It takes connections and answers nothing, until it is turned off again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP if on else signal.SIGCONT)

    def _ready(self) -> bool:
        try:
            Api(self.kubeconfig, "admin").text("/readyz")
        except Exception:
            return False
        return True


def _arguments(parent: int) -> list[str]:
    """The command line of the API server among the children of a process."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _parent(entry) == parent:
            words = [os.fsdecode(word) for word in (entry / "cmdline").read_bytes().split(b"\0")[:-1]]
            if "kube-apiserver" in words[:2]:
                return words
    raise LookupError(f"process {parent} has no API server")


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
