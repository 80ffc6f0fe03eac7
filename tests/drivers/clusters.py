"""Small clusters with drivers, as the API has their objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.snapshot import EVERY_KIND, Snapshot

JSON = dict[str, Any]
AT = "2026-10-01T12:00:00Z"
LONG_AGO = "2026-10-01T08:00:00Z"
DRIVER = "npu.vendor.test"


def snapshot_of(items: Sequence[JSON], unread: Sequence[str] = ()) -> Snapshot:
    """The objects as all that a cluster has, but for the kinds that nobody read."""
    builder = SnapshotBuilder()
    builder.read_at(AT)
    for kind in EVERY_KIND:
        if kind not in unread:
            builder.present(kind)
    for number, item in enumerate(items):
        builder.add(item, Place("test", item=number))
    return builder.build()


def node(name: str, kind: str = "", *, ready: bool = True, **labels: str) -> JSON:
    own = {"kubernetes.io/hostname": name, **labels}
    if kind:
        own["node.kubernetes.io/instance-type"] = kind
    status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": own}, "status": status}


def slices(on: str, devices: int, driver: str = DRIVER, *, count: int = 1, generation: int = 1) -> JSON:
    """One slice of a pool of ``count``."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{on}-{driver}-{generation}", "creationTimestamp": LONG_AGO},
        "spec": {
            "driver": driver,
            "nodeName": on,
            "pool": {"name": on, "generation": generation, "resourceSliceCount": count},
            "devices": [{"name": f"dev-{number}"} for number in range(devices)],
        },
    }


RUNS: JSON = {"running": {"startedAt": LONG_AGO}}
CRASHES: JSON = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}}
ENDED: JSON = {
    "terminated": {"reason": "Error", "exitCode": 1, "message": "no such device", "finishedAt": "2026-10-01T11:58:00Z"}
}


def status(name: str = "plugin", state: JSON = RUNS, **more: Any) -> JSON:
    return {"name": name, "ready": "running" in state, "restartCount": 0, "image": "x", "state": state, **more}


def plugin(
    on: str,
    statuses: Sequence[JSON] = (),
    *,
    root: str = "/var/lib/kubelet",
    containers: Sequence[JSON] = (),
    daemon: str = "npu-driver",
    phase: str = "Running",
    **more: Any,
) -> JSON:
    """A driver's pod on a node, known by its folders."""
    own = containers or [
        {"name": "plugin", "image": "registry.test/npu:v1.2.3", "env": [{"name": "DRIVER_NAME", "value": DRIVER}]}
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{daemon}-{on}",
            "namespace": "drivers",
            "uid": f"uid-{daemon}-{on}",
            "creationTimestamp": LONG_AGO,
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon, "uid": "uid-daemon", "controller": True}
            ],
            **more.pop("metadata", {}),
        },
        "spec": {
            "nodeName": on,
            "containers": own,
            "volumes": [
                {"name": "registry", "hostPath": {"path": f"{root}/plugins_registry"}},
                {"name": "plugins", "hostPath": {"path": f"{root}/plugins"}},
            ],
            **more,
        },
        "status": {
            "phase": phase,
            "containerStatuses": list(statuses or [status(one["name"]) for one in own]),
        },
    }


def daemon_set(
    name: str = "npu-driver", desired: int = 1, current: int = 1, selector: Mapping[str, str] | None = None
) -> JSON:
    pod = plugin("none", daemon=name)["spec"]
    del pod["nodeName"]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "drivers", "uid": "uid-daemon"},
        "spec": {"template": {"spec": {**pod, "nodeSelector": dict(selector or {})}}},
        "status": {"desiredNumberScheduled": desired, "currentNumberScheduled": current, "numberReady": current},
    }


def event(about: str, name: str, reason: str, message: str) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1", "namespace": "drivers"},
        "involvedObject": {"kind": about, "namespace": "drivers", "name": name},
        "reason": reason,
        "message": message,
        "type": "Warning",
        "firstTimestamp": LONG_AGO,
        "lastTimestamp": AT,
    }
