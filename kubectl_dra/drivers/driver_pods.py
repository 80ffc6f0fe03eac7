"""The pods in which drivers run: which pod serves which driver on which node, and how it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec.structs import replace

from kubectl_dra.api.pods import Pod, version_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.time_read import moment
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.drivers.daemons import node_of
from kubectl_dra.drivers.health import DriverPod, pod_health
from kubectl_dra.drivers.pod_recognition import (
    Looks,
    Served,
    container_of,
    gates_of,
    is_storage,
    kubelet_root,
    registers,
)


def pods_of_drivers(
    snapshot: Snapshot,
    plugins: Sequence[Pod],
    published: Collection[tuple[str, str]],
    looks: Looks,
) -> dict[tuple[str, str], DriverPod]:
    """The pod of each driver on each node; of several, the newest that is not being deleted."""
    at = moment(snapshot)
    pods_served: dict[tuple[str, str], tuple[Pod, Served]] = {}
    unnamed: dict[str, list[Pod]] = defaultdict(list)
    called: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in plugins:
        assert pod.plugin is not None
        owner = pod.metadata.controller()
        name = owner.name if owner is not None else ""
        served = looks.of(pod.plugin.spec, name)
        if not served and looks.called_like(pod.plugin.spec, name):
            called[pod.metadata.namespace, name].append(pod)
        elif not served and registers(pod.plugin.spec) and not is_storage(pod.plugin.spec):
            unnamed[f"{pod.metadata.namespace}/{name or pod.metadata.name}"].append(pod)
        for driver_served in served:
            _keep(pods_served, driver_served, pod)
    for driver, pods in (*_by_name(called, published, looks), *_by_nodes(pods_served, published, unnamed)):
        for pod in pods:
            _keep(pods_served, looks.serving(driver), pod)
    out: dict[tuple[str, str], DriverPod] = {}
    for key, (pod, driver_served) in pods_served.items():
        assert pod.plugin is not None
        spec = pod.plugin.spec
        health = pod_health(pod, pod.plugin, driver_served.container, at)
        container = container_of(spec, driver_served.container or health.container)
        image = container.image if container is not None else health.image
        gates = gates_of(container, driver_served.gates) if container is not None else None
        out[key] = replace(
            health,
            image=image,
            version=version_of(image),
            api_version=_api_version(key[0], version_of(image)),
            gates=tuple(gates.items()) if gates is not None else (),
            gates_known=gates is not None,
            kubelet_root=kubelet_root(spec),
        )
    return out


def _keep(pods: dict[tuple[str, str], tuple[Pod, Served]], served: Served, pod: Pod) -> None:
    key = served.driver, node_of(pod)
    if not key[1]:
        return
    known = pods.get(key)
    if known is None or _rank(pod) > _rank(known[0]):
        pods[key] = pod, served


def _rank(pod: Pod) -> tuple[bool, str]:
    return not pod.metadata.deletion_timestamp, pod.metadata.creation_timestamp


def _by_name(
    called: Mapping[tuple[str, str], Sequence[Pod]], published: Collection[tuple[str, str]], looks: Looks
) -> Iterator[tuple[str, Sequence[Pod]]]:
    """The pods of a DaemonSet whose name or image several drivers have: they serve the only one of these that publishes
    for their nodes.
    """
    for (_, owner), pods in called.items():
        drivers = {name for pod in pods if pod.plugin is not None for name in looks.called_like(pod.plugin.spec, owner)}
        nodes = {node_of(pod) for pod in pods}
        serving = {driver for driver, node in published if driver in drivers and node in nodes}
        if len(serving) == 1:
            yield serving.pop(), pods


def _by_nodes(
    pods_served: Mapping[tuple[str, str], tuple[Pod, Served]],
    published: Collection[tuple[str, str]],
    unnamed: Mapping[str, Sequence[Pod]],
) -> Iterator[tuple[str, Sequence[Pod]]]:
    """A driver whose pods nothing names: the only plugin without a name that runs on all nodes of the only such one."""
    served = {driver for driver, _ in pods_served}
    nodes: dict[str, set[str]] = defaultdict(set)
    for driver, node in published:
        if driver not in served:
            nodes[driver].add(node)
    if len(nodes) != 1 or len(unnamed) != 1:
        return
    (driver, own), (pods,) = next(iter(nodes.items())), unnamed.values()
    if own <= {pod.node_name for pod in pods}:
        yield driver, pods


@lru_cache(256)
def _api_version(driver: str, version: str) -> str:
    known = catalogue().driver(driver) if version else None
    return known.api_version(version) if known is not None else ""
