"""One node's story at a time: what somebody does to it, and what the API then serves."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from kubectl_dra.cli.main import run
from kubectl_dra.cluster.files import METADATA_KEY
from tools.controlplane.client import Api, ApiError, Json
from tools.controlplane.cluster import wait
from tools.controlplane.node import Driver, Node, Nodes
from tools.controlplane.objects import RESOURCE_API, cel_selectors, device, request, resource_object
from tools.controlplane.program import Program

DRIVER = "gpu.example.com"
CLASS = "gpu.example.com"
NAMESPACE = "ml"
SYSTEM = "gpu-system"
DAEMON_SET = "gpu-driver"
KINDS = {
    "v1": ("Namespace", "Node", "Pod", "Event", "ResourceQuota"),
    "apps/v1": ("DaemonSet",),
    RESOURCE_API: ("ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"),
    "resource.k8s.io/v1beta2": ("DeviceTaintRule",),
    "resource.k8s.io/v1alpha3": ("DeviceTaintRule",),
}
"""What a recording holds, by API version; the first that serves a kind counts."""
_CLEARED = ("Pod", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass", "DeviceTaintRule", "Node")


@dataclass(frozen=True, slots=True)
class Truth:
    """What is really the case, said by who caused it."""

    what: str
    """In a sentence."""
    station: str
    """Where the pod stands: `scheduling`, `preparation`, `running`, `ending`, …; empty where there is no pod."""
    fault: str = ""
    """`KIND/NAME` of the thing at fault, `driver/NODE/NAME` for a driver on a node; empty: nothing is wrong."""
    ends: str = ""
    """The step that ends it; empty where it ends by itself, or nothing is wrong."""
    pod: str = "train"
    """The pod in question, in the namespace `ml`."""


class Stage:
    """A control plane that is cleared after each state, and the nodes of the state."""

    def __init__(self, machines: Nodes, program: Program, gates: str = "", *, records: bool = True) -> None:
        self.machines = machines
        self.api: Api = machines.plane.api()
        self.gates = gates
        """Feature gates of the kubelets."""
        self.minor = int(str(self.api.request("GET", "/version")["minor"]))
        self._program = program
        self._records = records
        self.drivers: dict[str, Driver] = {}
        """The driver of each node."""
        self.made: list[Node] = []
        """The nodes of the state, in the order in which they were started."""
        self._lifecycle = False
        for name in (NAMESPACE, SYSTEM):
            with contextlib.suppress(ApiError):
                self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    # The machines

    def node(self, name: str = "gpu-1", *, gates: str = "", config: Json | None = None) -> Node:
        """A Ready node without a driver."""
        node = self.machines.node(name, gates=gates or self.gates, config=config)
        self.made.append(node)
        return node

    def node_with_driver(
        self,
        name: str = "gpu-1",
        devices: int = 2,
        *,
        gates: str = "",
        config: Json | None = None,
        health: bool = True,
        device_fields: Json | None = None,
        **start: Any,
    ) -> tuple[Node, Driver]:
        """A node on which the pod of the driver's DaemonSet runs, and the driver publishes devices."""
        node = self.node(name, gates=gates, config=config)
        self.class_()
        self.daemon_set()
        self.driver_pod(name)
        driver = node.driver(DRIVER, health=health, **start)
        self.drivers[name] = driver
        fields = device_fields or {}
        driver.publish([device(f"gpu-{index}", {"model": "A100"}, **fields) for index in range(devices)])
        self.slices(name)
        return node, driver

    def scheduler(self, name: str, binding_seconds: int) -> Popen[bytes]:
        """Start a scheduler of this name that waits so long for binding conditions; it ends with the state.

        That of 1.34 cannot be told: it always waits ten minutes.
        """
        arguments = {"name": "DynamicResources", "args": {"bindingTimeout": f"{binding_seconds}s"}}
        profile = {"schedulerName": name, "pluginConfig": [arguments] if self.minor >= 35 else []}
        return self.machines.scheduler(self._program, {"profiles": [profile]})

    def lifecycle(self) -> None:
        """Start the controllers that judge nodes; they stay until the state is over."""
        self.machines.lifecycle(self._program)
        self._lifecycle = True

    # The driver's workload

    def daemon_set(self) -> None:
        """The DaemonSet that stands for the driver: its containers only pretend, the driver runs beside them."""
        plugins = {"registry": "/var/lib/kubelet/plugins_registry", "plugins": f"/var/lib/kubelet/plugins/{DRIVER}"}
        labels = {"app": DAEMON_SET}
        spec = {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [
                        {
                            "name": "plugin",
                            "image": "example.com/gpu-driver:1.2",
                            "env": [{"name": "DRIVER_NAME", "value": DRIVER}],
                            "volumeMounts": [{"name": key, "mountPath": path} for key, path in plugins.items()],
                        }
                    ],
                    "tolerations": [{"operator": "Exists"}],
                    "volumes": [{"name": key, "hostPath": {"path": path}} for key, path in plugins.items()],
                },
            },
        }
        metadata = {"name": DAEMON_SET, "namespace": SYSTEM}
        with contextlib.suppress(ApiError):
            self.api.create({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec})

    def driver_pod(self, node: str, phase: str = "Running") -> Json:
        """Wait for the DaemonSet's pod on a node."""

        def there() -> Json | None:
            pods = self.api.list("v1", "Pod", SYSTEM)
            return next((p for p in pods if p["spec"].get("nodeName") == node and p["status"]["phase"] == phase), None)

        return wait(there, f"the driver's pod on {node}")

    def remove_driver(self, *names: str) -> None:
        """Uninstall the driver: its DaemonSet, its pods, and the process on each node."""
        for name in names or tuple(self.drivers):
            self.drivers[name].stop()
        metadata = {"name": DAEMON_SET, "namespace": SYSTEM}
        self.api.delete({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata})
        wait(lambda: None if self.api.list("v1", "Pod", SYSTEM) else True, "the end of the driver's pods", 90)

    def break_driver(self, node: str) -> None:
        """The driver crashes at each start, and so does its container."""
        pod = self.driver_pod(node)["metadata"]["name"]
        self.drivers[node].crash()
        next(each for each in self.made if each.name == node).end_containers({f"{SYSTEM}/{pod}/plugin": 1})

        def crashing() -> bool | None:
            statuses = self.api.get("v1", "Pod", pod, SYSTEM)["status"].get("containerStatuses", [])
            reason = statuses[0]["state"].get("waiting", {}).get("reason") if statuses else None
            return True if reason == "CrashLoopBackOff" else None

        wait(crashing, "CrashLoopBackOff of the driver's pod", 60)

    # What users make

    def class_(self) -> None:
        """The class that takes the driver's devices."""
        spec = {"selectors": cel_selectors([f'device.driver == "{DRIVER}"'])}
        with contextlib.suppress(ApiError):
            self.api.create(resource_object("DeviceClass", CLASS, spec))

    def claim(self, name: str = "shared", count: int = 1) -> str:
        """A claim that pods name."""
        made = resource_object("ResourceClaim", name, {"devices": {"requests": [request(CLASS, count=count)]}})
        self.api.create({**made, "metadata": {"name": name, "namespace": NAMESPACE}})
        return name

    def pod(
        self, name: str = "train", *, claim: str = "", count: int = 1, node: str = "", grace: int = 2, **spec: Any
    ) -> str:
        """A pod with a claim of its own from a template, or with `claim`; `node` binds it by hand."""
        reference: Json = {"name": "gpu", "resourceClaimName": claim}
        if not claim:
            template = f"gpu-{count}"
            requests = {"devices": {"requests": [request(CLASS, count=count)]}}
            made = resource_object("ResourceClaimTemplate", template, {"spec": requests})
            with contextlib.suppress(ApiError):
                self.api.create({**made, "metadata": {"name": template, "namespace": NAMESPACE}})
            reference = {"name": "gpu", "resourceClaimTemplateName": template}
        container: Json = {"name": "main", "image": "example.com/train:1", "resources": {"claims": [{"name": "gpu"}]}}
        whole: Json = {
            "containers": [container],
            "resourceClaims": [reference],
            "terminationGracePeriodSeconds": grace,
            **({"nodeName": node} if node else {}),
            **spec,
        }
        whole = {key: value for key, value in whole.items() if value is not None}
        metadata = {"name": name, "namespace": NAMESPACE}
        self.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole})
        return name

    def get_pod(self, name: str = "train") -> Json:
        """The pod as it is now."""
        return self.api.get("v1", "Pod", name, NAMESPACE)

    def claim_of(self, pod: str = "train") -> str:
        """The name of a pod's claim."""
        statuses = self.get_pod(pod)["status"].get("resourceClaimStatuses")
        if statuses:
            return str(statuses[0]["resourceClaimName"])
        return str(self.get_pod(pod)["spec"]["resourceClaims"][0]["resourceClaimName"])

    def get_claim(self, name: str) -> Json:
        """A claim as it is now."""
        return self.api.get(RESOURCE_API, "ResourceClaim", name, NAMESPACE)

    def delete(self, name: str = "train", grace_seconds: int | None = None) -> None:
        """Delete a pod."""
        self.api.delete(self.get_pod(name), grace_seconds=grace_seconds)

    # Waiting

    def settle(self, seconds: float) -> None:
        """Let what follows from the state be written down, for a recording; the state itself does not need it."""
        if self._records:
            time.sleep(seconds)

    def nudge(self, name: str = "train") -> None:
        """Change a pod, so that the kubelet looks at it now, and not after its pause of 10 to 15 s."""
        whole = {"apiVersion": "v1", "kind": "Pod", **self.get_pod(name)}
        self.api.patch(whole, {"metadata": {"annotations": {"example.com/looked-at": str(time.time())}}})

    def until(self, check: Callable[[], object], what: str, seconds: float = 60) -> None:
        """Wait until `check` answers something true; an object that is not there does not."""

        def safe() -> bool | None:
            try:
                return True if check() else None
            except ApiError:
                return None

        wait(safe, what, seconds)

    def running(self, *names: str) -> None:
        """Wait until pods run."""
        for name in names or ("train",):
            self.phase("Running", name)

    def phase(self, phase: str, name: str = "train") -> None:
        """Wait until a pod is in a phase."""
        self.until(lambda: self.get_pod(name)["status"]["phase"] == phase, f"{name} to be {phase}")

    def bound(self, name: str = "train") -> None:
        """Wait until a pod has a node."""
        self.until(lambda: self.get_pod(name)["spec"].get("nodeName"), f"{name} to be bound")

    def unschedulable(self, name: str = "train") -> None:
        """Wait until the scheduler has said that a pod fits nowhere."""

        def said() -> bool:
            conditions = self.get_pod(name)["status"].get("conditions", [])
            return any(condition.get("reason") == "Unschedulable" for condition in conditions)

        self.until(said, f"{name} to be unschedulable")

    def event(self, reason: str, text: str = "", pod: str = "train", seconds: float = 120) -> None:
        """Wait for an event about a pod."""

        def there() -> bool:
            events = self.api.list("v1", "Event", NAMESPACE)
            about = (each for each in events if each["involvedObject"]["name"] == pod and each["reason"] == reason)
            return any(text in each["message"] for each in about)

        self.until(there, f"an event {reason} {text}", seconds)

    def slices(self, node: str, count: int = 1, seconds: float = 90) -> None:
        """Wait until a node has so many slices."""

        def there() -> bool:
            all_slices = self.api.list(RESOURCE_API, "ResourceSlice")
            return len([slice_ for slice_ in all_slices if slice_["spec"].get("nodeName") == node]) == count

        self.until(there, f"{count} slices of {node}", seconds)

    def terminated(self, name: str = "train") -> None:
        """Wait until the containers of a pod that is being deleted have ended."""

        def ended() -> bool:
            statuses = self.get_pod(name)["status"].get("containerStatuses", [])
            return bool(statuses) and all("terminated" in status["state"] for status in statuses)

        self.until(ended, f"the containers of {name} to end")

    def gone(self, name: str = "train", seconds: float = 90) -> None:
        """Wait until there is no such pod."""

        def gone() -> bool:
            return all(each["metadata"]["name"] != name for each in self.api.list("v1", "Pod", NAMESPACE))

        self.until(gone, f"the end of {name}", seconds)

    # What is left

    def served(self, directory: Path) -> Json:
        """What `kubectl dra snapshot` says of the cluster, with the objects whole."""
        path = directory / "snapshot.json"
        # It says where it wrote, which nobody asks for.
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            kubeconfig = str(self.machines.plane.kubeconfig)
            code = run(["snapshot", "--kubeconfig", kubeconfig, "-o", str(path), "--force"])
        if code not in (0, 3):
            raise RuntimeError(f"kubectl dra snapshot ended with {code}")
        said = json.loads(path.read_text())[METADATA_KEY]
        return {"apiVersion": "v1", "kind": "List", METADATA_KEY: said, "items": [*self._objects()]}

    def _objects(self) -> list[Json]:
        found: dict[str, list[Json]] = {}
        for api_version, kinds in KINDS.items():
            try:
                served = self.api.kinds(api_version)
            except ApiError:
                continue
            for kind in kinds:
                if kind in served and kind not in found:
                    objects = self.api.list(api_version, kind)
                    found[kind] = [{"apiVersion": api_version, "kind": kind, **_bare(raw)} for raw in objects]
        return [raw for objects in found.values() for raw in objects]

    def clear(self) -> None:
        """End the nodes and delete everything of the state."""
        self.machines.stop()
        self.made.clear()
        self.drivers.clear()
        with contextlib.suppress(ApiError):
            metadata = {"name": DAEMON_SET, "namespace": SYSTEM}
            self.api.delete({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata})
        # What controllers make while it goes is deleted with the next look.
        for _ in range(30):
            left = [self._delete_all(kind) for kind in _CLEARED]
            if not any(left):
                break
            time.sleep(0.1)
        for event in self.api.list("v1", "Event"):
            self.api.delete({"apiVersion": "v1", "kind": "Event", **event})

    def _delete_all(self, kind: str) -> int:
        """Delete the objects of a kind, and return how many there were."""
        for api_version, kinds in KINDS.items():
            with contextlib.suppress(ApiError):
                if kind in kinds and kind in self.api.kinds(api_version):
                    there = self.api.list(api_version, kind)
                    for each in there:
                        whole = {"apiVersion": api_version, "kind": kind, **each}
                        with contextlib.suppress(ApiError):
                            if each["metadata"].get("finalizers"):
                                self.api.patch(whole, {"metadata": {"finalizers": None}})
                            self.api.delete(whole, grace_seconds=0)
                    return len(there)
        return 0


def _bare(obj: Mapping[str, Any]) -> Json:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def names(devices: Sequence[str]) -> list[Json]:
    """Devices by name alone."""
    return [device(name, {"model": "A100"}) for name in devices]
