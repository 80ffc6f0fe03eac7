"""The pods in which drivers run: which pod serves which driver on which node, and how it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.plugins import NAMES_DRIVER, PLUGINS, REGISTRY, PluginContainer, PluginSpec
from kubectl_dra.api.pods import Pod, version_of
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.time_read import moment
from kubectl_dra.data.drivers import PodLook, catalogue
from kubectl_dra.drivers.daemons import node_of
from kubectl_dra.drivers.health import DriverPod, pod_health

_STORAGE: Final = ("csi", "registrar")
"""Parts of names of what serves volumes: it uses the same folders as drivers of devices."""


class Served(NamedTuple):
    """A driver in a pod, and the container that serves it; empty if that is not known."""

    driver: str
    container: str = ""
    gates: str = ""


class Looks:
    """Tells the drivers of pods. ``known`` are the names of drivers that publish devices or that classes ask for."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = frozenset((*known, *catalogue().names))
        # By owner; the pods of a DaemonSet share the spec.
        self._found: dict[str, ByIdentity[PluginSpec, tuple[Served, ...]]] = {}

    def of(self, spec: PluginSpec, owner: str) -> tuple[Served, ...]:
        """The drivers of a pod whose DaemonSet is called ``owner``; none if its structure does not tell."""
        by_identity = self._found.setdefault(owner, ByIdentity())
        return by_identity.of(spec, lambda spec: tuple(self._served(spec, owner)))

    def called_like(self, spec: PluginSpec, owner: str) -> tuple[str, ...]:
        """The drivers of which a pod has the name or the image, whatever its containers are called."""
        return tuple(look.driver for look in catalogue().looks if _signed(look, spec, owner))

    def _served(self, spec: PluginSpec, owner: str) -> Iterator[Served]:
        served: dict[str, str] = {}
        for container in spec.containers:
            for name in self._named(container):
                served.setdefault(name, container.name)
        for path in spec.host_paths:
            head, _, name = path.rpartition("/")
            if head.endswith(f"/{PLUGINS}") and name in self._known:
                served.setdefault(name, "")
        for look in catalogue().looks:
            if look.driver not in served and (serves := _fits(look, spec, owner)) is not None:
                served[look.driver] = serves
        alone = spec.containers[0].name if len(spec.containers) == 1 else ""
        for name, serves in served.items():
            yield self.serving(name, serves or alone)

    def serving(self, driver: str, container: str = "") -> Served:
        """A driver that a container serves, with where that has its gates."""
        gates = {look.driver: look.gates for look in catalogue().looks}
        return Served(driver, container, gates.get(driver, ""))

    def _named(self, container: PluginContainer) -> Iterator[str]:
        """The drivers that a container's variables and flags name."""
        for name, value in container.settings:
            if value in self._known or (name in NAMES_DRIVER and "." in value):
                yield value


def _fits(look: PodLook, spec: PluginSpec, owner: str) -> str | None:
    """The driver's container if the pod looks like one of this driver; None if it does not."""
    names = [container.name for container in spec.containers]
    if (look.required and look.container not in names) or not _signed(look, spec, owner):
        return None
    return look.container if look.container in names else names[0] if len(names) == 1 else ""


def _signed(look: PodLook, spec: PluginSpec, owner: str) -> bool:
    """Whether a pod's DaemonSet, an image or a program of it is called like this driver's."""
    said = [owner]
    for container in spec.containers:
        said += [container.image, *container.command[:1], *container.args[:1]]
        if container.command[:1] == ("bash",):
            said += container.args
    return any(sign in text for sign in look.signs for text in said)


def is_storage(spec: PluginSpec) -> bool:
    """Whether a plugin of the kubelet serves volumes rather than devices."""
    names = (*(container.name for container in spec.containers), *spec.host_paths)
    return any(part in name for name in names for part in _STORAGE)


def registers(spec: PluginSpec) -> bool:
    """Whether a pod uses the folder in which plugins of the kubelet announce themselves."""
    return any(path.endswith(f"/{REGISTRY}") for path in spec.host_paths)


def gates_of(container: PluginContainer, where: str) -> Mapping[str, bool] | None:
    """The feature gates that a container sets in the variable or flag ``where``; None where something else sets it."""
    if not where or any(variable.name == where and variable.value_from is not None for variable in container.env):
        return None
    text = next((value for name, value in container.settings if name == where), "")
    pairs = (part.partition("=") for part in text.split(","))
    return {name.strip(): value.strip().lower() == "true" for name, _, value in pairs if name.strip() and value}


def kubelet_root(spec: PluginSpec) -> str:
    """The kubelet's folder that a plugin assumes; empty if it does not say."""
    roots = [path.removesuffix(f"/{REGISTRY}") for path in spec.host_paths if path.endswith(f"/{REGISTRY}")]
    return roots[0] if roots else ""


def _called(name: str, containers: Sequence[PluginContainer]) -> PluginContainer | None:
    return next((container for container in containers if container.name == name), None)


# Which pod serves which driver on which node, and how it is.


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
        name = driver_served.container or health.container
        container = _called(name, spec.containers)
        own = container or _called(name, spec.init_containers)
        image = own.image if own is not None else ""
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
