"""Real nodes for a control plane: a kubelet, a container runtime that only pretends, and DRA drivers told what to do.

A node is a directory and processes, each tied to this one by its standard input: none outlives it. What the driver
does stands in a file that it reads again and again (`node/behaviour.go`), so that it can change while a call of the
kubelet waits for its answer, and so that a driver that is started again goes on as before.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.controlplane.client import ApiError, Json
from tools.controlplane.cluster import wait
from tools.controlplane.guard import guard
from tools.controlplane.plane import ControlPlane, gates_of
from tools.controlplane.program import Program

READY_SECONDS = 90
DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"
CONTROLLERS = ("node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector-controller")


class Nodes:
    """The nodes of one control plane; `nodes` makes one and ends everything."""

    def __init__(self, plane: ControlPlane, binary: Path, directory: Path) -> None:
        self.plane = plane
        self.binary = binary
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self.all: list[Node] = []

    def node(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        gates: str = "",
        config: Json | None = None,
        wait_ready: bool = True,
    ) -> Node:
        """Start a node and wait until it is Ready.

        `gates` are for the kubelet, `A=true,B=false`; `config` are further fields of its KubeletConfiguration.
        """
        made = Node(self, name, self._directory / str(len(self.all)), labels or {}, gates, config or {})
        self.all.append(made)
        made.start_runtime()
        made.start()
        if wait_ready:
            made.wait_ready()
        return made

    def lifecycle(self, program: Program, grace_seconds: int = 10) -> subprocess.Popen[bytes]:
        """Start the controllers that say that a node is not ready, and end its pods; the plane runs without them."""
        return self.launch(
            self._directory / "lifecycle.log",
            [program.command[0], "kube-controller-manager"],
            f"--kubeconfig={self.plane.kubeconfig}",
            "--leader-elect=false",
            f"--secure-port={_free_port()}",
            f"--cert-dir={self._directory / 'lifecycle'}",
            f"--controllers={','.join(CONTROLLERS)}",
            f"--node-monitor-grace-period={grace_seconds}s",
            "--node-monitor-period=1s",
        )

    def scheduler(self, program: Program, config: Json) -> subprocess.Popen[bytes]:
        """Start one more scheduler, with this KubeSchedulerConfiguration, for pods that name one of its profiles.

        It has the gates of the control plane: its configuration is refused where one of them is off.
        """
        own = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.plane.kubeconfig)},
        }
        path = self._directory / "scheduler.json"
        path.write_text(json.dumps({**own, **config}))
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in gates_of(self.plane).items())
        command = [program.command[0], "kube-scheduler", f"--config={path}", "--secure-port=0"]
        command.append(f"--feature-gates={gates}")
        return self.launch(self._directory / "scheduler.log", command)

    def launch(self, log: Path, command: Sequence[str], *arguments: str) -> subprocess.Popen[bytes]:
        """Start a process that ends with this one; what it says is added to `log`."""
        with log.open("ab") as output:
            started = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=self._directory,
                env={**os.environ, "CONTROLPLANE_FOLLOW_PARENT": "1"},
                start_new_session=True,
            )
        self._processes.append(started)
        return started

    def stop(self) -> None:
        """Kill everything that was started."""
        while self._processes:
            end(self._processes.pop())


class Node:
    """A machine: its runtime, its kubelet and its drivers."""

    def __init__(
        self, nodes: Nodes, name: str, root: Path, labels: Mapping[str, str], gates: str, config: Json
    ) -> None:
        self.name = name
        self.root = root
        self.drivers: list[Driver] = []
        self._nodes = nodes
        self._labels = labels
        self._gates = gates
        self._config = config
        self._runtime: subprocess.Popen[bytes] | None = None
        self._kubelet: subprocess.Popen[bytes] | None = None
        root.mkdir(parents=True)
        self.end_containers({})

    @property
    def _plugins(self) -> Path:
        return self.root / "p"

    @property
    def nodes(self) -> Nodes:
        """Where it belongs."""
        return self._nodes

    def start_runtime(self) -> None:
        """Start the container runtime; containers run as long as it does."""
        # That of one which was killed stays.
        (self.root / "cri.sock").unlink(missing_ok=True)
        command = [str(self._nodes.binary), "runtime"]
        files = (f"--socket={self.root / 'cri.sock'}", f"--control={self.root / 'containers.json'}")
        self._runtime = self._nodes.launch(self.root / "runtime.log", command, *files)
        wait(lambda: (self.root / "cri.sock").exists() or None, "the container runtime")

    def start(self) -> None:
        """Start the kubelet, the first time or again."""
        kubelet = self.root / "k"
        config = self.root / "kubelet.json"
        config.write_text(json.dumps(self._configuration()))
        labels = ",".join(f"{key}={value}" for key, value in self._labels.items())
        self._plugins.mkdir(exist_ok=True)
        # Its mounts are its own, and gone with it: the directory of device plugins is the same for every kubelet.
        mounted = f'mkdir -p {DEVICE_PLUGINS} && mount --bind {self._plugins} {DEVICE_PLUGINS} && exec "$@"'
        own_mounts = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mounted, "kubelet"]
        self._kubelet = self._nodes.launch(
            self.root / "kubelet.log",
            [*own_mounts, str(self._nodes.binary), "kubelet"],
            f"--config={config}",
            f"--kubeconfig={self._nodes.plane.kubeconfig}",
            f"--root-dir={kubelet}",
            f"--cert-dir={kubelet / 'pki'}",
            f"--hostname-override={self.name}",
            *([f"--node-labels={labels}"] if labels else []),
            *([f"--feature-gates={self._gates}"] if self._gates else []),
        )

    def stop(self) -> None:
        """Kill the kubelet. Containers and drivers run on."""
        assert self._kubelet is not None
        end(self._kubelet)

    def restart(self, *, forget: bool = False) -> None:
        """Kill the kubelet and start it again; with `forget` without its checkpoint of the claims it has prepared."""
        self.stop()
        if forget:
            (self.root / "k" / "dra_manager_state").unlink()
        self.start()

    def fail(self) -> None:
        """Everything on the machine ends at once."""
        self.stop()
        for driver in self.drivers:
            driver.crash()
        self.end_runtime()

    def end_runtime(self) -> None:
        """Kill the container runtime, and with it all containers."""
        assert self._runtime is not None
        end(self._runtime)

    def wait_ready(self) -> None:
        """Wait until the API says that the node is Ready."""
        api = self._nodes.plane.api()

        def ready() -> bool | None:
            assert self._kubelet is not None
            if self._kubelet.poll() is not None:
                raise RuntimeError(f"the kubelet of {self.name} ended:\n{self.log()[-3000:]}")
            try:
                found = api.get("v1", "Node", self.name)
            except ApiError:
                return None
            conditions = {status["type"]: status["status"] for status in found["status"].get("conditions", [])}
            return True if conditions.get("Ready") == "True" else None

        wait(ready, f"node {self.name} to be ready", READY_SECONDS)
        api.close()

    def pids(self) -> list[int]:
        """The processes of the machine itself: the runtime and the kubelet."""
        return [process.pid for process in (self._runtime, self._kubelet) if process is not None]

    def log(self) -> str:
        """What the kubelet wrote."""
        return (self.root / "kubelet.log").read_text(errors="replace")

    def end_containers(self, codes: Mapping[str, int]) -> None:
        """From now on the containers named `namespace/pod/container` end as soon as they run, with these codes."""
        _replace(self.root / "containers.json", dict(codes))

    def driver(
        self,
        name: str,
        *,
        instance: str = "",
        services: Sequence[str] = (),
        health: bool = True,
        elsewhere: bool = False,
    ) -> Driver:
        """Start a driver that publishes nothing yet; see `Driver.start` for its flags."""
        made = Driver(self, name)
        self.drivers.append(made)
        made.start(instance=instance, services=services, health=health, elsewhere=elsewhere)
        return made

    def plugin(self, resource: str, *, error: str = "") -> None:
        """Start a device plugin that offers one device of an extended resource; with `error` it gives it to nobody."""
        behaviour = self.root / "plugin.json"
        _replace(behaviour, {"prepare": {"error": error}})
        self._nodes.launch(
            self.root / "plugin.log",
            [str(self._nodes.binary), "plugin"],
            f"--resource={resource}",
            f"--directory={self._plugins}",
            f"--behaviour={behaviour}",
        )

    def _configuration(self) -> Json:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "failSwapOn": False,
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "containerRuntimeEndpoint": f"unix://{self.root / 'cri.sock'}",
            "port": _free_port(),
            "readOnlyPort": 0,
            "healthzPort": 0,
            "address": "127.0.0.1",
            "localStorageCapacityIsolation": False,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "syncFrequency": "5s",
            "nodeStatusUpdateFrequency": "5s",
            "makeIPTablesUtilChains": False,
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            # Every pod would get a warning without.
            "clusterDNS": ["10.0.0.10"],
            "clusterDomain": "cluster.local",
            **self._config,
        }


class Driver:
    """A DRA driver on a node. Its methods change what it does from now on, also when it is started again later."""

    def __init__(self, node: Node, name: str) -> None:
        self.node = node
        self.name = name
        self._directory = node.root / f"d-{secrets.token_hex(2)}"
        self._directory.mkdir()
        self.behaviour = self._directory / "behaviour.json"
        """The file that says what it does."""
        self._now: Json = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._change({})

    def start(
        self, *, instance: str = "", services: Sequence[str] = (), health: bool = True, elsewhere: bool = False
    ) -> None:
        """Start the process.

        `instance` is the UID of its pod, where two may run side by side. `services` are registered instead of those
        it serves, as a driver of another age would. With `elsewhere` it registers where no kubelet looks.
        """
        root = self.node.root
        registry = self._directory / "registry" if elsewhere else root / "k" / "plugins_registry"
        self._process = self.node.nodes.launch(
            root / "driver.log",
            [str(self.node.nodes.binary), "driver"],
            f"--name={self.name}",
            f"--node={self.node.name}",
            f"--kubeconfig={self.node.nodes.plane.kubeconfig}",
            f"--registry={registry}",
            f"--data={root / 'k' / 'plugins' / self.name}",
            f"--behaviour={self.behaviour}",
            f"--calls={self._directory / 'calls.jsonl'}",
            f"--instance={instance}",
            f"--services={','.join(services)}",
            f"--health={str(health).lower()}",
        )

    def stop(self) -> None:
        """Ask it to end, as the kubelet asks a pod: it takes its sockets away."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)

    def crash(self) -> None:
        """Kill it: its sockets stay."""
        assert self._process is not None
        end(self._process)

    def publish(self, devices: Sequence[Json], *, pool: str = "", **more: object) -> None:
        """Publish these devices as one pool, called after the node; `more` are fields of its only slice."""
        self._change({"pools": {pool or self.node.name: {"slices": [{"devices": list(devices), **more}]}}})

    def prepare(self, *, error: str = "", hang: bool = False, seconds: float = 0) -> None:
        """How it answers when a pod's claims are to be prepared; with no argument, well."""
        self._change({"prepare": {"error": error, "hang": hang, "seconds": seconds}})

    def unprepare(self, *, error: str = "", hang: bool = False, seconds: float = 0) -> None:
        """How it answers when claims are to be unprepared; with no argument, well."""
        self._change({"unprepare": {"error": error, "hang": hang, "seconds": seconds}})

    def health(self, device: str, status: str, message: str = "") -> None:
        """Report a device as `Healthy`, `Unhealthy` or `Unknown`."""
        known = self._now.get("health", {})
        self._change({"health": {**known, device: {"status": status, "message": message}}})

    def calls(self) -> list[Json]:
        """What the kubelet asked, in order: `time`, `call` (`prepare NAMESPACE/CLAIM`), `error`."""
        path = self._directory / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _change(self, change: Json) -> None:
        self._now = {**self._now, **change}
        _replace(self.behaviour, self._now)


@contextmanager
def nodes(plane: ControlPlane, binary: Path) -> Iterator[Nodes]:
    """Nodes for a control plane; when the block has ended they have too, and their objects stay in its API."""
    # The path of a socket may have 108 bytes.
    directory = Path(tempfile.mkdtemp(prefix="kdn-"))
    with guard(directory):
        made = Nodes(plane, binary, directory)
        try:
            yield made
        finally:
            made.stop()
            for _ in range(50):
                shutil.rmtree(directory, ignore_errors=True)
                if not directory.exists():
                    break
                time.sleep(0.1)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, if it runs."""
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _replace(path: Path, content: Json) -> None:
    """Write a file so that whoever reads it sees it whole."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(content))
    fresh.replace(path)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
