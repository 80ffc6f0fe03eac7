"""The extended resources that a pod's containers ask for, and the classes that serve such resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from kubectl_dra.allocation.extended_resources import IMPLICIT_PREFIX
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lint.analysis.slips import is_slip, meant
from kubectl_dra.lint.context import Context, items
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Rename, fields_at
from kubectl_dra.manifests.workloads import SINGLE_CONTAINERS


class ExtendedRequest(Struct, frozen=True):
    """A resource that a container asks for: ``path`` leads to its limit, or to its request if there is no limit.

    ``paths`` are those of both; ``others`` are the container's other names.
    """

    path: FieldPath
    name: str
    amount: Any
    paths: tuple[FieldPath, ...]
    others: frozenset[str]

    @property
    def device_class(self) -> str:
        """The class that the resource names; empty if it is another kind of name."""
        return self.name.removeprefix(IMPLICIT_PREFIX) if self.name.startswith(IMPLICIT_PREFIX) else ""

    def renamed(self, title: str, name: str) -> Fix:
        """The change to another name, wherever the container has this one."""
        if name in self.others:
            return Fix(title)
        return Fix(title, tuple(Rename(path, name) for path in self.paths), "unsafe")


def extended_requests(spec: Any) -> Iterator[ExtendedRequest]:
    """What the containers of a pod spec ask for that is not nothing, each name once for each container."""
    for place, container in _containers(spec):
        found: dict[str, list[tuple[FieldPath, Any]]] = {}
        for kind in ("limits", "requests"):
            for name, amount in fields_at(container, "resources", kind).items():
                if str(amount) != "0" and "/" in str(name):
                    path: FieldPath = ("spec", *place, "resources", kind, name)
                    found.setdefault(str(name), []).append((path, amount))
        for name, places in found.items():
            others = frozenset(found) - {name}
            yield ExtendedRequest(places[0][0], name, places[0][1], tuple(path for path, _ in places), others)


def _containers(spec: Any) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    for list_name in ("initContainers", "containers"):
        for index, container in enumerate(items(spec, list_name)):
            yield (list_name, index), container
    for key in SINGLE_CONTAINERS.keys() & spec.keys() if isinstance(spec, dict) else ():
        if isinstance(spec[key], dict):
            yield (key,), spec[key]


def offered(context: Context) -> Mapping[str, str]:
    """The extended resources that classes of the manifests and of the cluster offer, each with a class."""
    given = {item.spec_field("extendedResourceName"): item.name for item in context.given.of_kind("DeviceClass")}
    known = {name: owner for name, owner in given.items() if isinstance(name, str) and name}
    classes = context.snapshot.classes.values() if context.snapshot is not None else ()
    return {**{each.extended_resource_name: each.name for each in classes if each.extended_resource_name}, **known}


def meant_resource(context: Context, request: ExtendedRequest) -> str:
    """The name that a resource probably has that no class offers; empty if there is none, or a device plugin may."""
    prefix, _, name = request.name.partition("/")
    right = IMPLICIT_PREFIX.removesuffix("/")
    if prefix != right and (is_slip(prefix, right) or (prefix.startswith("deviceclass") and "resource" in prefix)):
        return f"{IMPLICIT_PREFIX}{name}"
    nodes = context.snapshot.nodes.values() if context.snapshot is not None else ()
    names = offered(context)
    if request.name in names or catalogue().of_resource(request.name) is not None:
        return ""
    return "" if any(request.name in node.allocatable for node in nodes) else meant(request.name, tuple(names))
