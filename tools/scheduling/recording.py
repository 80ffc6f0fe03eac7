"""One made-up cluster on a real control plane: the snapshot before the scheduler saw the pod, and what it then did."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tools.controlplane.client import Api, ApiError
from tools.controlplane.cluster import wait
from tools.controlplane.plane import ControlPlane
from tools.scheduling.world import DRIVER, World

Json = dict[str, Any]

KINDS: Final = (
    ("v1", "Node"),
    ("v1", "Namespace"),
    ("resource.k8s.io/v1", "ResourceSlice"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("storage.k8s.io/v1", "CSINode"),
    ("storage.k8s.io/v1", "CSIStorageCapacity"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("policy/v1", "PodDisruptionBudget"),
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
    ("v1", "PersistentVolume"),
    ("v1", "PersistentVolumeClaim"),
    ("storage.k8s.io/v1", "VolumeAttachment"),
    ("v1", "Service"),
    ("v1", "Pod"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
)
BOUND: Final = {"pv.kubernetes.io/bind-completed": "yes"}
PROTECTION: Final = "resource.kubernetes.io/delete-protection"
SELECTED: Final = "volume.kubernetes.io/selected-node"


def scheduler_pid(plane: ControlPlane) -> int:
    """The process of the plane's kube-scheduler."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == plane.pid and b"kube-scheduler" in words[:3]:
            return int(path.name)
    raise LookupError(f"no kube-scheduler below process {plane.pid}")


@contextmanager
def held_still(pid: int) -> Iterator[None]:
    """Stops a process for the length of the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        # A busy machine may let it run on for a moment.
        wait(lambda: _state(pid) == "T" or None, "the scheduler to stand still")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _state(pid: int) -> str:
    """The state of a process as ps writes it: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class Recording:
    """A cluster on the plane, from its creation to its removal."""

    def __init__(self, api: Api, world: World) -> None:
        self.api = api
        self.world = world
        self.made: list[Json] = []
        self._ephemeral: set[str] = set()

    def make(self) -> None:
        """Creates everything but the pod to schedule."""
        world = self.world
        for suffix, team in (("", "a"), ("-b", "b")):
            metadata = {"name": f"{world.prefix}{suffix}", "labels": {"team": team}}
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        for status in (*world.nodes, *world.objects):
            self.create(status)
        for status in world.objects:
            if status["kind"] == "PersistentVolumeClaim" and status["spec"].get("volumeName"):
                self._bind(status, f"{world.prefix}-{status['spec']['volumeName'].removeprefix(f'{world.prefix}-')}")
        for pod in world.bound:
            claim = f"hc-{pod['metadata']['name']}"
            devices = world.held.get(pod["metadata"]["name"], ())
            if devices:
                request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": len(devices)}}
                space = pod["metadata"]["namespace"]
                held = _claim(claim, space, {"devices": {"requests": [request]}})
                # As the scheduler does before it allocates a claim.
                held["metadata"]["finalizers"] = [PROTECTION]
                self.create(held)
            made = self.create(pod)
            if devices:
                self._allocate(claim, made, devices)
        for status in world.statuses:
            self.api.patch(status, {"status": status["status"]}, "status")

    def _allocate(self, claim: str, pod: Json, devices: list[tuple[str, str]] | tuple[()]) -> None:
        node = pod["spec"]["nodeName"]
        results = [{"request": "gpu", "driver": DRIVER, "pool": pool, "device": name} for pool, name in devices]
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation = {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
            # Without it the scheduler of 1.37 adds it for the next consumer, and the API server refuses that.
            "allocationTimestamp": "2026-01-02T03:04:05Z",
        }
        user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        status = {"allocation": allocation, "reservedFor": [] if claim in self.world.released else [user]}
        self.api.patch(_claim(claim, pod["metadata"]["namespace"], {}), {"status": status}, "status")

    def add_pod(self) -> Json:
        """Creates the pod to schedule, and what its controllers make for it. Raises ApiError where it is refused."""
        pod = self.create(self.world.pod)
        if any("ephemeral" in volume for volume in pod["spec"].get("volumes") or ()) and self.world.chance(0.8):
            self.make_ephemeral(pod)
        return self._until_claimed()

    def make_ephemeral(self, pod: Json) -> None:
        """Creates the claims of a pod's ephemeral volumes that are not there yet, as their controller does."""
        metadata = pod["metadata"]
        for volume in pod["spec"].get("volumes") or ():
            name = f"{metadata['name']}-{volume['name']}"
            if "ephemeral" in volume and name not in self._ephemeral:
                self._ephemeral.add(name)
                owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
                made = {"name": name, "namespace": self.world.prefix, "ownerReferences": [owner | {"controller": True}]}
                spec = volume["ephemeral"]["volumeClaimTemplate"]["spec"]
                self.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": made, "spec": spec})

    def _until_claimed(self) -> Json:
        """Waits until the claims of the pod's templates exist."""
        deadline = time.monotonic() + 20
        while True:
            pod = self.api.get("v1", "Pod", "pod", self.world.prefix)
            wanted = [
                resource_claim
                for resource_claim in pod["spec"].get("resourceClaims") or ()
                if "resourceClaimTemplateName" in resource_claim
            ]
            if len((pod.get("status") or {}).get("resourceClaimStatuses") or ()) >= len(wanted):
                return pod
            assert time.monotonic() < deadline, "the claims of the pod's templates were not made"
            time.sleep(0.02)

    def snapshot(self) -> Json:
        """All that is served, as a List; of pods and claims only this cluster's."""
        items = []
        for version, kind in KINDS:
            for item in self.api.list(version, kind):
                item["metadata"].pop("managedFields", None)
                space = item["metadata"].get("namespace", "")
                own = not space or space in (self.world.prefix, f"{self.world.prefix}-b")
                # The API server's own Service shows that Services are read.
                if kind in ("Namespace", "Service") or own:
                    items.append({"apiVersion": version, "kind": kind, **item})
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def outcome(self, seconds: float = 40, steady: float = 1.0) -> Json:
        """What the scheduler does with the pod, once it stays the same for ``steady`` seconds."""
        deadline = time.monotonic() + seconds
        last: Json = {}
        since = time.monotonic()
        while time.monotonic() < deadline:
            self.provision()
            found = self._decided()
            if found != last:
                last, since = found, time.monotonic()
            if found and (found["outcome"] == "scheduled" or time.monotonic() - since >= steady):
                return found
            time.sleep(0.05)
        raise AssertionError(f"the scheduler did not decide about {self.world.prefix}")

    def _decided(self) -> Json:
        pod = self.api.get("v1", "Pod", "pod", self.world.prefix)
        status = pod.get("status") or {}
        if node := pod["spec"].get("nodeName"):
            return {"outcome": "scheduled", "node": node, "allocations": self._allocations(pod)}
        for condition in status.get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition.get("reason") in ("Unschedulable", "SchedulerError"):
                told = {key: condition[key] for key in ("reason", "message")}
                found: Json = {"outcome": "unschedulable", **told}
                if nominated := status.get("nominatedNodeName"):
                    found |= {"nominated": nominated, "victims": self._victims()}
                return found
        return {}

    def _victims(self) -> list[str]:
        spaces = (self.world.prefix, f"{self.world.prefix}-b")
        pods = [pod for space in spaces for pod in self.api.list("v1", "Pod", space)]
        left = {pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")}
        return sorted({pod["metadata"]["name"] for pod in self.world.bound} - left)

    def _allocations(self, pod: Json) -> Json:
        made = {
            status["name"]: status.get("resourceClaimName")
            for status in pod["status"].get("resourceClaimStatuses") or ()
        }
        out: Json = {}
        for entry in pod["spec"].get("resourceClaims") or ():
            name = entry.get("resourceClaimName") or made[entry["name"]]
            claim = self.api.get("resource.k8s.io/v1", "ResourceClaim", name, self.world.prefix)
            results = claim["status"]["allocation"]["devices"]["results"]
            out[entry["name"]] = [f"{result['driver']}/{result['pool']}/{result['device']}" for result in results]
        return out

    def provision(self) -> None:
        """Does what volume controllers do once the scheduler has chosen: binds what it reserved, or makes a volume."""
        for claim in self.api.list("v1", "PersistentVolumeClaim", self.world.prefix):
            if claim["spec"].get("volumeName"):
                continue
            claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}
            for volume in self.api.list("v1", "PersistentVolume"):
                if (volume["spec"].get("claimRef") or {}).get("uid") == claim["metadata"]["uid"]:
                    self._bind(claim, volume["metadata"]["name"])
                    break
            else:
                if SELECTED in (claim["metadata"].get("annotations") or {}) and not self._selected_before(claim):
                    self._bind(claim, self._new_volume(claim))

    def _selected_before(self, claim: Json) -> bool:
        """Whether a claim had its node from the beginning; nobody makes its volume."""
        return any(
            raw["kind"] == claim["kind"]
            and raw["metadata"]["name"] == claim["metadata"]["name"]
            and SELECTED in raw["metadata"].get("annotations", {})
            for raw in self.world.objects
        )

    def _new_volume(self, claim: Json) -> str:
        name = f"{self.world.prefix}-made-{claim['metadata']['name']}"
        keep = ("name", "namespace", "uid")
        reference = {key: claim["metadata"][key] for key in keep} | {"kind": "PersistentVolumeClaim"}
        spec = {
            "capacity": claim["spec"]["resources"]["requests"],
            "accessModes": claim["spec"]["accessModes"],
            "storageClassName": claim["spec"]["storageClassName"],
            "claimRef": reference,
            "csi": {"driver": "disk.example.com", "volumeHandle": name},
        }
        self.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
        return name

    def _bind(self, claim: Json, volume: str) -> None:
        """Binds a claim to a volume as the PersistentVolume controller does."""
        bare = {key: claim[key] for key in ("apiVersion", "kind")}
        bare["metadata"] = {key: claim["metadata"][key] for key in ("name", "namespace")}
        self.api.patch(bare, {"metadata": {"annotations": BOUND}, "spec": {"volumeName": volume}})
        self.api.patch(bare, {"status": {"phase": "Bound"}}, "status")
        persistent = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}}
        uid = self.api.get("v1", bare["kind"], bare["metadata"]["name"], bare["metadata"]["namespace"])["metadata"][
            "uid"
        ]
        self.api.patch(persistent, {"spec": {"claimRef": {"uid": uid}}})
        self.api.patch(persistent, {"status": {"phase": "Bound"}}, "status")

    def create(self, obj: Json) -> Json:
        """Creates an object that is removed with the cluster."""
        made = self.api.create(obj)
        if obj["kind"] != "Pod":
            self.made.append(obj)
        if obj["kind"] == "PersistentVolume":
            # As its controller does; binding follows where it is bound.
            self.api.patch(obj, {"status": {"phase": "Available"}}, "status")
        return made

    def remove(self) -> None:
        """Deletes all of the cluster, so that the next one is alone. Finalizers that nobody serves are dropped."""
        spaces = (self.world.prefix, f"{self.world.prefix}-b")
        for space in spaces:
            for pod in self.api.list("v1", "Pod", space):
                self.api.delete({"apiVersion": "v1", "kind": "Pod", **pod}, grace_seconds=0)
        for space in spaces:
            for version, kind in (("resource.k8s.io/v1", "ResourceClaim"), ("v1", "PersistentVolumeClaim")):
                for item in self.api.list(version, kind, space):
                    self._drop({"apiVersion": version, "kind": kind, **item})
        for obj in reversed(self.made):
            if obj["kind"] not in ("ResourceClaim", "PersistentVolumeClaim"):
                self._drop(obj)

    def _drop(self, obj: Json) -> None:
        if obj["kind"] in ("ResourceClaim", "PersistentVolumeClaim", "PersistentVolume"):
            try:
                self.api.patch(obj, {"metadata": {"finalizers": None}})
            except ApiError as error:
                if error.status != 404:
                    raise
        self.api.delete(obj)


def _claim(name: str, namespace: str, spec: Json) -> Json:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
