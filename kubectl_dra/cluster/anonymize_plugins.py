"""What a copy keeps of the pods in which drivers run: which driver it is, its release, and its feature gates.

Images, arguments and variables hold anything, so what stays is written anew from names that our own data has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from kubectl_dra.api.meta import builtins, convert
from kubectl_dra.api.plugins import NAMES_DRIVER, DaemonSet, EnvVar, PluginContainer, PluginSpec, plugin_in
from kubectl_dra.api.pods import version_of
from kubectl_dra.cluster.identities import Identities, Json
from kubectl_dra.data.drivers import catalogue

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


def with_plugin(out: Json, raw: Mapping[str, Any], new: Identities) -> None:
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
