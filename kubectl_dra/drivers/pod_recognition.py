"""Which drivers run in a pod, told by its structure: folders of the kubelet, names in what it runs, known looks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from kubectl_dra.api.plugins import NAMES_DRIVER, PLUGINS, REGISTRY, PluginContainer, PluginSpec
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.data.drivers import PodLook, catalogue

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


def container_of(spec: PluginSpec, name: str) -> PluginContainer | None:
    """The container of a name."""
    return next((container for container in spec.containers if container.name == name), None)
