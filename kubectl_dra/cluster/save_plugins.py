"""What a saved pod keeps if a driver runs in it: enough to find the driver and to tell how it fares.

Commands, arguments and variables can hold anything, so only those are kept that name the driver, a mode or a gate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import structs

from kubectl_dra.api.meta import builtins
from kubectl_dra.api.plugins import (
    PLUGINS,
    REGISTRY,
    DaemonPodSpec,
    DaemonSet,
    DaemonTemplate,
    EnvVar,
    HostVolume,
    NodePlugin,
    PluginContainer,
    PluginStatus,
    ValueFrom,
)

_TELLING: Final = re.compile(r"(?i)gates|driver[-_]?name|plugin[-_]?name|mode$|^(driver|plugin)$")
"""Names of variables and flags that say which driver it is, and how it is set."""
_HARMLESS: Final = re.compile(r"[\w.,=/:*-]{0,500}")
_LONGEST: Final = 2_000
"""Of a container's last words, which the kubelet cuts at 4 KiB itself."""


def with_plugin(pod: dict[str, Any], plugin: NodePlugin) -> None:
    """Add to a reduced pod what it keeps of its plugin."""
    spec, status = pod["spec"], pod["status"]
    for key, containers in (
        ("initContainers", plugin.spec.init_containers),
        ("containers", plugin.spec.containers),
    ):
        kept = {container.name: builtins(_kept(container)) for container in containers}
        spec[key] = [{**container, **kept.get(container.get("name"), {})} for container in spec.get(key) or ()]
        if not spec[key]:
            del spec[key]
    volumes = [builtins(host_volume) for host_volume in _folders(plugin.spec.volumes)]
    if volumes:
        named = [{"name": f"host-{number}", **volume} for number, volume in enumerate(volumes)]
        spec["volumes"] = [*(spec.get("volumes") or ()), *named]
    for key, statuses in (
        ("initContainerStatuses", plugin.init_statuses),
        ("containerStatuses", plugin.statuses),
    ):
        if statuses:
            before = {container_status.get("name"): container_status for container_status in status.get(key) or ()}
            status[key] = [
                {**before.get(container_status.name, {}), **builtins(_short(container_status))}
                for container_status in statuses
            ]


def slim(daemon: DaemonSet) -> DaemonSet:
    """A DaemonSet without unread parts; of those that are no drivers, without their containers."""
    spec = daemon.spec.template.spec
    plugin = daemon.is_plugin
    kept = DaemonPodSpec(
        containers=tuple(map(_kept, spec.containers)) if plugin else (),
        init_containers=tuple(map(_kept, spec.init_containers)) if plugin else (),
        volumes=tuple(_folders(spec.volumes)) if plugin else (),
        node_selector=spec.node_selector,
        affinity=spec.affinity,
        tolerations=spec.tolerations,
    )
    return structs.replace(daemon, spec=structs.replace(daemon.spec, template=DaemonTemplate(kept)))


def _kept(container: PluginContainer) -> PluginContainer:
    return structs.replace(
        container,
        command=tuple(_words(container.command)),
        args=tuple(_words(container.args)),
        env=tuple(
            env_var if _HARMLESS.fullmatch(env_var.value) else EnvVar(env_var.name, value_from=ValueFrom())
            for env_var in container.env
            if _TELLING.search(env_var.name) and (env_var.value or env_var.value_from is not None)
        ),
    )


def _words(words: Sequence[str]) -> Iterable[str]:
    """The program, and the flags that tell something, each with its value."""
    for number, word in enumerate(words):
        flag, _, value = word.partition("=")
        first = not number and not word.startswith("-")
        if _HARMLESS.fullmatch(word) and (first or (value and _TELLING.search(flag))):
            yield word


def _folders(volumes: Iterable[HostVolume]) -> Iterable[HostVolume]:
    """The kubelet's folders for plugins."""
    for host_volume in volumes:
        path = host_volume.host_path.path.rstrip("/") if host_volume.host_path is not None else ""
        if path.endswith((f"/{REGISTRY}", f"/{PLUGINS}")) or f"/{PLUGINS}/" in path:
            yield host_volume


def _short(status: PluginStatus) -> PluginStatus:
    state, last = status.state, status.last_state
    if last.terminated is not None and len(last.terminated.message) > _LONGEST:
        ended = structs.replace(last.terminated, message=last.terminated.message[-_LONGEST:])
        last = structs.replace(last, terminated=ended)
    return structs.replace(status, state=state, last_state=last)
