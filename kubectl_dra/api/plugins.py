"""The part of a pod that tells whether a driver runs in it, and how it fares (core/v1); and DaemonSets (apps/v1).

Few pods are kept with it: those that look like a plugin of the kubelet. Nobody reads it of all the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Raw, field, json

from kubectl_dra.api.meta import Amount, ApiObject, Wire, without_nulls
from kubectl_dra.api.nodes import Affinity, Toleration

REGISTRY: Final = "plugins_registry"
"""The kubelet's folder in which each plugin announces itself, whatever the folder is in that the kubelet uses."""
PLUGINS: Final = "plugins"
"""The kubelet's folder with a folder for each plugin, called like the driver."""
NAMES_DRIVER: Final = ("DRIVER_NAME", "DRA_DRIVER_NAME", "--driver-name", "--driver")
"""Variables and flags whose value is the name of a driver, known or not."""
_REGISTRY: Final = REGISTRY.encode()
_NAMED: Final = re.compile(rb'"name"\s*:\s*"[^"]*(?:kubelet-?plugin|resource-driver|dra-?driver|dranet|dracpu)')
"""Names of drivers' DaemonSets, for pods of which only a part was written down."""


class HostPath(Wire, frozen=True):
    """``hostPath`` of a volume."""

    path: str = ""


class HostVolume(Wire, frozen=True):
    """A volume, as far as it is a folder of the node."""

    host_path: HostPath | None = None


class ValueFrom(Wire, frozen=True):
    """Where the value of a variable comes from, of which nothing is kept."""


class EnvVar(Wire, frozen=True):
    """A variable of a container; ``value_from``: its value comes from somewhere else, and is not known."""

    name: str = ""
    value: str = ""
    value_from: ValueFrom | None = None


class PluginContainer(Wire, frozen=True):
    """What a container runs."""

    name: Annotated[str, "container"] = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()

    @property
    def settings(self) -> Iterator[tuple[str, str]]:
        """Its variables, and the flags of its command with their values."""
        for variable in self.env:
            yield variable.name, variable.value
        words = (*self.command, *self.args)
        for number, word in enumerate(words, 1):
            flag, equals, value = word.partition("=")
            if flag.startswith("-"):
                yield flag, value if equals else "".join(words[number : number + 1])


class PluginSpec(Wire, frozen=True):
    """``spec`` of a pod, as far as it says what runs there. Pods of one owner share it."""

    containers: tuple[PluginContainer, ...] = ()
    init_containers: tuple[PluginContainer, ...] = ()
    volumes: tuple[HostVolume, ...] = ()

    @property
    def host_paths(self) -> tuple[str, ...]:
        """The folders of the node that the pod uses, without a slash at the end."""
        return tuple(volume.host_path.path.rstrip("/") for volume in self.volumes if volume.host_path is not None)


class ContainerWaiting(Wire, frozen=True):
    """``state.waiting`` of a container."""

    reason: Annotated[str, "reason"] = ""
    message: Annotated[str, "drop"] = ""


class Running(Wire, frozen=True):
    """``state.running`` of a container."""

    started_at: str = ""


class Terminated(Wire, frozen=True):
    """``state.terminated`` of a container; ``message`` are its last words, if it left any."""

    reason: Annotated[str, "reason"] = ""
    message: Annotated[str, "drop"] = ""
    exit_code: int = 0
    finished_at: Annotated[str, "time"] = ""


class PluginState(Wire, frozen=True):
    """``state`` or ``lastState`` of a container."""

    waiting: ContainerWaiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class PluginStatus(Wire, frozen=True):
    """One entry of ``status.containerStatuses``."""

    name: Annotated[str, "container"] = ""
    ready: bool = False
    restart_count: int = 0
    image: str = ""
    state: PluginState = PluginState()
    last_state: PluginState = PluginState()


class NodePlugin(Wire, frozen=True):
    """What a pod tells that looks like a plugin of the kubelet."""

    spec: PluginSpec = PluginSpec()
    init_statuses: tuple[PluginStatus, ...] = ()
    statuses: tuple[PluginStatus, ...] = ()


class _PluginStatuses(Wire, frozen=True):
    container_statuses: tuple[PluginStatus, ...] = ()
    init_container_statuses: tuple[PluginStatus, ...] = ()


_spec: Final = json.Decoder(PluginSpec)
_statuses: Final = json.Decoder(tuple[PluginStatus, ...])


def named_like_plugin(name: str) -> bool:
    """Whether a DaemonSet is called as those of drivers are."""
    return _NAMED.search(b'"name":"%b' % name.encode()) is not None


def plugin_spec(spec: bytes, owners: bytes) -> PluginSpec | None:
    """What runs in a pod whose ``spec`` and ``ownerReferences`` are these texts; None if it is no such plugin."""
    if _REGISTRY not in spec and not (b'"DaemonSet"' in owners and _NAMED.search(owners)):
        return None
    try:
        return _spec.decode(spec)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None


def node_plugin(spec: PluginSpec | None, first: Raw, others: Raw) -> NodePlugin | None:
    """The plugin with how its init containers and its containers are; None without a ``spec``."""
    if spec is None:
        return None
    try:
        return NodePlugin(spec, _statuses.decode(first), _statuses.decode(others))
    except (msgspec.ValidationError, msgspec.DecodeError):
        return NodePlugin(spec)


def plugin_in(pod: Mapping[str, Any]) -> NodePlugin | None:
    """The plugin in a pod as the API has it."""
    spec, meta = pod.get("spec"), pod.get("metadata")
    owners = meta.get("ownerReferences") if isinstance(meta, dict) else None
    try:
        plugin = plugin_spec(json.encode(without_nulls(spec or {})), json.encode(owners or []))
    except (OverflowError, TypeError, ValueError):
        return None
    if plugin is None:
        return None
    try:
        status = msgspec.convert(without_nulls(pod.get("status") or {}), _PluginStatuses)
    except msgspec.ValidationError:
        status = _PluginStatuses()
    return NodePlugin(plugin, status.init_container_statuses, status.container_statuses)


class RollingUpdate(Wire, frozen=True):
    """``spec.updateStrategy.rollingUpdate``: how many pods may be there besides the old one of a node."""

    max_surge: Amount = 0
    max_unavailable: Amount = 1


class UpdateStrategy(Wire, frozen=True):
    """``spec.updateStrategy``."""

    type: Annotated[str, "keep"] = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class DaemonPodSpec(PluginSpec, frozen=True):
    """``spec.template.spec`` of a DaemonSet: what runs, and on which nodes."""

    node_selector: Annotated[dict[str, str], "labels"] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()


class DaemonTemplate(Wire, frozen=True):
    """``spec.template``."""

    spec: DaemonPodSpec = DaemonPodSpec()


class DaemonSetSpec(Wire, frozen=True):
    template: DaemonTemplate = DaemonTemplate()
    update_strategy: UpdateStrategy = UpdateStrategy()


class DaemonSetStatus(Wire, frozen=True):
    """``status`` of a DaemonSet: the nodes that should have its pod, and those that have it."""

    desired: int | None = field(default=None, name="desiredNumberScheduled")
    current: int = field(default=0, name="currentNumberScheduled")
    ready: int = field(default=0, name="numberReady")


class DaemonSet(ApiObject, frozen=True):
    """An apps/v1 DaemonSet."""

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()

    @property
    def is_plugin(self) -> bool:
        """Whether its pods look like plugins of the kubelet."""
        if any(path.endswith(f"/{REGISTRY}") for path in self.spec.template.spec.host_paths):
            return True
        return named_like_plugin(self.metadata.name)
