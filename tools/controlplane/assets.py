"""Start a control plane from ready-made programs, with the same habits as ours (see main.go).

    python -m tools.controlplane.assets DIRECTORY [--profile full|defaults]

DIRECTORY is laid out as envtest does: `etcd` and `kube-apiserver`; `kube-scheduler` and `kube-controller-manager`
are started too where they exist. Prints the path of a kubeconfig when ready; ends when standard input closes.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import secrets
import select
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from tools.controlplane.client import Json
from tools.controlplane.guard import guard
from tools.controlplane.scratch import scratch_directory

START_SECONDS = 120
PROFILES = {"full": ("v1beta1", "v1beta2", "v1alpha3"), "defaults": ()}
# Gates and controllers by the first version that has them: earlier programs refuse to start with an unknown name.
FULL_GATES = {"DRADeviceTaints": (1, 33), "DRADeviceTaintRules": (1, 35), "DRAResourcePoolStatus": (1, 36)}
CONTROLLERS_SINCE = {"resourcepoolstatusrequest-controller": (1, 36)}
CONTROLLERS = (
    "cronjob-controller,daemonset-controller,deployment-controller,device-taint-eviction-controller,"
    "garbage-collector-controller,job-controller,namespace-controller,replicaset-controller,"
    "replicationcontroller-controller,resourceclaim-controller,resourcequota-controller,statefulset-controller"
)
GROUPS = {
    "admin": "system:masters",
    "restricted": "restricted",
    "system:kube-scheduler": "",
    "system:kube-controller-manager": "system:masters",
}


class Assets:
    """Components started one after the other in one directory."""

    def __init__(self, assets: Path, profile: str, directory: Path, lock: int, watch: Callable[[int], None]) -> None:
        """Components write to `directory`, inherit the descriptor `lock`, and are reported to `watch`."""
        self._assets = assets
        self._directory = directory
        self._lock = lock
        self._watch = watch
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._tokens = {user: secrets.token_hex(16) for user in GROUPS}
        self._served: list[str] = []
        self._gates: list[str] = []
        version = self._version()
        controllers = [name for name, since in CONTROLLERS_SINCE.items() if version >= since]
        self._controllers = ",".join([CONTROLLERS, *controllers])
        if profile == "full":
            versions = ",".join(f"resource.k8s.io/{version}=true" for version in PROFILES[profile])
            self._served = [f"--runtime-config={versions}"]
            if gates := [f"{name}=true" for name, since in FULL_GATES.items() if version >= since]:
                self._gates = [f"--feature-gates={','.join(gates)}"]

    def start(self) -> Path:
        """Return the path of the kubeconfig when all components are ready."""
        etcd, peer, server, scheduler, manager = _free_ports(5)
        self._launch(
            "etcd",
            f"--name=controlplane --data-dir={self._directory / 'etcd'} --unsafe-no-fsync=true --log-level=warn "
            f"--listen-client-urls=http://127.0.0.1:{etcd} --advertise-client-urls=http://127.0.0.1:{etcd} "
            f"--listen-peer-urls=http://127.0.0.1:{peer} --initial-advertise-peer-urls=http://127.0.0.1:{peer} "
            f"--initial-cluster=controlplane=http://127.0.0.1:{peer}",
        )
        self._wait_ready(f"http://127.0.0.1:{etcd}/health")

        tokens = self._directory / "tokens.csv"
        tokens.write_text("".join(f'{self._tokens[user]},{user},{user},"{GROUPS[user]}"\n' for user in GROUPS))
        # kube-apiserver makes its serving certificate and key in this directory before it reads the other keys.
        certificates = self._directory / "certificates"
        self._launch(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{etcd} --bind-address=127.0.0.1 --advertise-address=127.0.0.1 "
            f"--secure-port={server} --cert-dir={certificates} --token-auth-file={tokens} "
            "--authorization-mode=RBAC --service-account-issuer=https://kubernetes.default.svc "
            f"--service-account-signing-key-file={certificates / 'apiserver.key'} "
            f"--service-account-key-file={certificates / 'apiserver.key'} "
            "--service-cluster-ip-range=10.0.0.0/24 --endpoint-reconciler-type=none "
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            *self._served,
            *self._gates,
        )
        address = f"https://127.0.0.1:{server}"
        self._wait_ready(f"{address}/readyz")
        authority = (certificates / "apiserver.crt").read_bytes()

        for name, port, more in (
            ("kube-scheduler", scheduler, []),
            ("kube-controller-manager", manager, [f"--controllers={self._controllers}"]),
        ):
            if (self._assets / name).exists():
                config = self._kubeconfig(name, address, authority, [f"system:{name}"])
                self._launch(
                    name,
                    f"--kubeconfig={config} --leader-elect=false --bind-address=127.0.0.1 --secure-port={port} "
                    f"--cert-dir={certificates} --kube-api-qps=500 --kube-api-burst=1000",
                    *more,
                    *self._gates,
                )
                self._wait_ready(f"https://127.0.0.1:{port}/healthz")
        return self._kubeconfig("kubeconfig", address, authority, ["admin", "restricted"])

    def stop(self) -> None:
        """Kill all components; their state is thrown away."""
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait()

    def ended(self) -> str | None:
        """The name of a component that ended by itself, with the end of its log."""
        for name, process in self._running.items():
            if process.poll() is not None:
                log = (self._directory / f"{name}.log").read_text(errors="replace")
                return f"{name} ended unexpectedly; the end of its log:\n{log[-4000:]}"
        return None

    def _version(self) -> tuple[int, int]:
        asked = subprocess.run([self._assets / "kube-apiserver", "--version"], capture_output=True, text=True)
        found = re.search(r"v(\d+)\.(\d+)", asked.stdout)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def _launch(self, name: str, arguments: str, *more: str) -> None:
        with (self._directory / f"{name}.log").open("wb") as log:
            self._running[name] = subprocess.Popen(
                [self._assets / name, *arguments.split(), *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                pass_fds=[self._lock],
            )
        self._watch(self._running[name].pid)

    def _wait_ready(self, url: str) -> None:
        # These answer only on loopback, to us, and nothing secret is sent.
        unverified = ssl._create_unverified_context()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if failure := self.ended():
                raise RuntimeError(failure)
            try:
                with urllib.request.urlopen(url, timeout=2, context=unverified):
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"{url} was not ready in {START_SECONDS} s")

    def _kubeconfig(self, name: str, server: str, authority: bytes, users: list[str]) -> Path:
        certificate = base64.b64encode(authority).decode()
        config: Json = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": users[0],
            "clusters": [
                {
                    "name": "controlplane",
                    "cluster": {"server": server, "certificate-authority-data": certificate},
                }
            ],
            "contexts": [{"name": u, "context": {"cluster": "controlplane", "user": u}} for u in users],
            "users": [{"name": u, "user": {"token": self._tokens[u]}} for u in users],
        }
        path = self._directory / name
        path.write_text(json.dumps(config, indent=2))
        path.chmod(0o600)
        return path


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _stop_on_signal(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run a control plane until standard input closes, a signal comes or a component ends."""
    parser = argparse.ArgumentParser(prog="controlplane")
    parser.add_argument("assets", type=Path)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="full")
    chosen = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop_on_signal)
    failure = None
    with scratch_directory() as (directory, lock), guard(directory) as watch:
        components = Assets(chosen.assets, chosen.profile, directory, lock, watch)
        try:
            print(components.start(), flush=True)
            while (failure := components.ended()) is None:
                readable, _, _ = select.select([sys.stdin], [], [], 0.2)
                if readable and not os.read(sys.stdin.fileno(), 1):
                    break
        except KeyboardInterrupt:
            pass
        except RuntimeError as error:
            failure = str(error)
        finally:
            (directory / "kubeconfig").unlink(missing_ok=True)
            components.stop()
    if failure:
        sys.exit(failure)


if __name__ == "__main__":
    main()
