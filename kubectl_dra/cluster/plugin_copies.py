"""What a saved pod, or an anonymized copy, keeps of the driver in it: which it is, how it is set and how it fares.

Commands, arguments and variables can hold anything, so only those are saved that name the driver, a mode or a gate. In
an anonymized copy what stays is written anew from names that our own data has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from msgspec import structs

from kubectl_dra.api.meta import builtins, convert
from kubectl_dra.api.plugins import (
    NAMES_DRIVER,
    PLUGINS,
    REGISTRY,
    DaemonPodSpec,
    DaemonSet,
    DaemonTemplate,
    EnvVar,
    HostVolume,
    NodePlugin,
    PluginContainer,
    PluginSpec,
    PluginStatus,
    ValueFrom,
    plugin_in,
)
from kubectl_dra.api.pods import version_of
from kubectl_dra.cluster.identities import Identities, Json
from kubectl_dra.data.drivers import catalogue

_TELLING: Final = re.compile(r"(?i)gates|driver[-_]?name|plugin[-_]?name|mode$|^(driver|plugin)$")
"""Names of variables and flags that say which driver it is, and how it is set."""
_HARMLESS: Final = re.compile(r"[\w.,=/:*-]{0,500}")
_LONGEST: Final = 2_000
"""Of a container's last words, which the kubelet cuts at 4 KiB itself."""


def save_plugin(pod: dict[str, Any], plugin: NodePlugin) -> None:
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


# What an anonymized copy keeps.

_RELEASE: Final = re.compile(r"v?\d{1,4}(?:\.\d{1,4})+")


class _Known(NamedTuple):
    """Of the drivers in our data: how their images and programs are called, and where gates of which names are set."""

    signs: tuple[str, ...]
    places: frozenset[str]
    gates: frozenset[str]


@cache
def _known() -> _Known:
    looks = catalogue().looks
    drivers = filter(None, map(catalogue().driver, {look.driver for look in looks}))
    return _Known(
        tuple(sorted({sign for look in looks for sign in look.signs})),
        frozenset(look.gates for look in looks if look.gates),
        frozenset(gate.name for driver in drivers for gate in driver.gates),
    )


def known_gates() -> Iterable[str]:
    """The feature gates of drivers in our data."""
    return _known().gates


def anonymize_plugin(out: Json, raw: Mapping[str, Any], new: Identities) -> None:
    """Add to the copy of a pod or DaemonSet what it keeps of the driver in ``raw``."""
    meta = raw.get("metadata") or {}
    if raw["kind"] == "DaemonSet":
        # Of other DaemonSets a snapshot keeps nothing of what runs there.
        spec = convert(raw, DaemonSet).spec.template.spec
        _with_spec(out["spec"].get("template", {}).get("spec", {}), spec, meta.get("name") or "", new)
    elif (plugin := plugin_in(raw)) is not None:
        owners = meta.get("ownerReferences") or ()
        owner = next((str(reference.get("name") or "") for reference in owners if reference.get("controller")), "")
        _with_spec(out["spec"], plugin.spec, owner, new)


def _with_spec(out: Json, spec: PluginSpec, owner: str, new: Identities) -> None:
    both = (("initContainers", spec.init_containers), ("containers", spec.containers))
    for key, containers in both:
        for kept, container in zip(out.get(key) or (), containers, strict=False):
            for field in ("image", "command", "args", "env"):
                kept.pop(field, None)
            kept |= _container(container, owner if key == "containers" else "", new)
    folders = [{"hostPath": {"path": _folder(path, new)}} for path in spec.host_paths]
    others = [volume for volume in out.get("volumes") or () if "hostPath" not in volume]
    if volumes := [*others, *({"name": f"host-{number}", **folder} for number, folder in enumerate(folders))]:
        out["volumes"] = volumes


def _container(container: PluginContainer, owner: str, new: Identities) -> Json:
    flags, variables = list[str](), list[EnvVar]()
    for name, value in _settings(container, new):
        if name.startswith("-"):
            flags.append(f"{name}={value}")
            new.names.gave(flags[-1])
        else:
            variables.append(EnvVar(name, value))
            new.names.gave(name)
            new.names.gave(value)
    image = _image(container, owner)
    new.names.gave(image)
    kept: Json = builtins(PluginContainer(image=image, args=tuple(flags), env=tuple(variables)))
    return kept


def _settings(container: PluginContainer, new: Identities) -> Iterator[tuple[str, str]]:
    """What a container sets of the names of drivers and of the gates that we know."""
    known = _known()
    for name, value in container.settings:
        if name in known.places:
            pairs = (part.partition("=") for part in value.split(","))
            gates = [
                f"{gate}={on.lower()}"
                for gate, _, on in pairs
                if gate in known.gates and on.lower() in ("true", "false")
            ]
            if gates:
                yield name, ",".join(gates)
        elif (name in NAMES_DRIVER and "." in value) or new.is_driver(value):
            yield name if name in NAMES_DRIVER else NAMES_DRIVER[0], new.driver(value)


def _image(container: PluginContainer, owner: str) -> str:
    """The parts of the names of image, program and owner that tell a driver, and the release."""
    said = (container.image, owner, *_programs(container))
    signs = [sign for sign in _known().signs if any(sign in text for text in said)]
    release = _RELEASE.match(version_of(container.image))
    return "/".join(signs or ("plugin",)) + (f":{release[0]}" if release is not None else "")


def _programs(container: PluginContainer) -> Sequence[str]:
    if container.command[:1] == ("bash",):
        return (*container.command, *container.args)
    return (*container.command[:1], *container.args[:1])


def _folder(path: str, new: Identities) -> str:
    head, slash, name = path.rpartition("/")
    folder = f"{new.names.embedded(head)}{slash}{new.driver(name) if new.is_driver(name) else new.names.embedded(name)}"
    new.names.gave(folder)
    return folder
