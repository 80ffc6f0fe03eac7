"""The objects of a run as they are now, the names that are taken, and what was added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from kubectl_dra.api.releases import GROUP
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import EditRefused, fields_at, items_at, value_at
from kubectl_dra.manifests.objects import ObjectKey, object_key, readable, title
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.workloads import CLAIM_SPECS, containers
from kubectl_dra.migrate.device_plugins.asks import is_zero
from kubectl_dra.migrate.device_plugins.claim_wiring import requested_classes
from kubectl_dra.migrate.device_plugins.pods import claimless, pods_of
from kubectl_dra.migrate.model import NamespaceDemand, PlanSurroundings
from kubectl_dra.migrate.new_objects import namespace_of, template_key
from kubectl_dra.migrate.other_texts import requested
from kubectl_dra.migrate.reading import File
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, is_extended


class _Objects(Iterable[Mapping[str, Any]]):
    """The current objects of all files; listed only on demand."""

    def __init__(self, files: Sequence[File]) -> None:
        self._files = files
        self._listed: list[Mapping[str, Any]] | None = None

    def forget(self) -> None:
        self._listed = None

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        if self._listed is None:
            self._listed = [manifest.object for file in self._files for manifest in file.objects]
        return iter(self._listed)


class RunObjects:
    """The current objects of all files, and the names that are taken."""

    def __init__(self, files: Sequence[File], catalogue: VendorCatalogue) -> None:
        self._objects = _Objects(files)
        self._catalogue = catalogue
        self._demand: NamespaceDemand | None = None
        self._read = {object_key(manifest.object) for file in files for manifest in file.objects}
        self._taken = set(self._read)
        self._added: dict[ObjectKey, list[tuple[ObjectKey, str, Mapping[str, Any]]]] = {}
        self._added_by: dict[ObjectKey, dict[str, list[ObjectKey]]] = {}
        self._shared = shared_resources(manifest.object for file in files for manifest in file.objects)
        self._alike: dict[tuple[str, str], dict[str, str]] = {}
        self._made: set[tuple[str, ObjectKey]] = set()
        self._offered: list[Mapping[str, Any]] = []

    def around(self, owner: Mapping[str, Any], file: str, patch: bool = False) -> PlanSurroundings:
        """The objects that a migration may use. Copies of the owner in other files, as in overlays, take no names."""
        mine = object_key(owner)
        free = {
            key
            for other, keys in self._added_by.get(mine, {}).items()
            if other != file
            for key in keys
            if all(by == mine and at != file for by, at, _ in self._added[key])
        }
        names = self._taken - free if free else self._taken
        alike = self._alike.get((file, mine[1]), {}) if _is_pod(mine) else {}
        return PlanSurroundings(self._objects, names, patch, self._shared, alike, self._demanded)

    def _demanded(self) -> NamespaceDemand:
        """What the objects ask for now, with those that are set aside for another file."""
        if self._demand is None:
            new = (raw for key, made in self._added.items() for _, at, raw in made if (at, key) in self._made)
            self._demand = demand_of(chain(self._objects, new), self._catalogue, self._offered)
        return self._demand

    def is_new(self, raw: Mapping[str, Any], owner: Mapping[str, Any], file: str) -> bool:
        """Whether an object must be added: it is not there, or another one of the file wants the same one.

        Raises:
            EditRefused: another object has that name.
        """
        key, mine = object_key(raw), object_key(owner)
        for by, at, other in self._added.get(key, ()):
            if other == raw and (at == file or by != mine):
                return at == file and (file, key) not in self._made
            if at == file or by != mine:
                raise EditRefused(f"another {title(raw)} is added already")
        if key in self._read:
            raise EditRefused(f"there is a {title(raw)} already")
        return True

    def add(self, raw: Mapping[str, Any], owner: Mapping[str, Any], file: str) -> None:
        """Record an added object."""
        key, mine = object_key(raw), object_key(owner)
        self._added.setdefault(key, []).append((mine, file, raw))
        self._added_by.setdefault(mine, {}).setdefault(file, []).append(key)
        self._taken.add(key)
        if _is_pod(mine) and key[0] == "ResourceClaimTemplate":
            self._alike.setdefault((file, mine[1]), {}).setdefault(template_key(raw), key[2])

    def offer(self, objects: Sequence[Mapping[str, Any]]) -> None:
        """Record objects that only --unsafe adds."""
        if objects:
            self._demand = None
            self._offered += objects

    def changed(self, file: str, objects: Iterable[Mapping[str, Any]]) -> None:
        """Record that a file's objects have changed, and the new ones among them."""
        self._objects.forget()
        self._demand = None
        self._made.update((file, object_key(raw)) for raw in objects)


def _is_pod(key: ObjectKey) -> bool:
    """Whether it is a Pod: those of a file are siblings, while the pods of workloads are set apart from one another."""
    return key[0] == "Pod"


# Shares of devices, which claims do not keep.

_SHARED: Final = re.compile(r"^\s*(timeSlicing|mps)\s*:", re.MULTILINE)


def shared_resources(objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The resources that a device plugin's configuration lets several pods share, and the object that says so."""
    out: dict[str, str] = {}
    for raw in objects:
        data = raw.get("data")
        if raw.get("kind") != "ConfigMap" or not isinstance(data, Mapping):
            continue
        for text in data.values():
            if isinstance(text, str) and _SHARED.search(text):
                for name in _replicated(text):
                    out.setdefault(name, title(raw))
    return out


def _replicated(text: str) -> Iterator[str]:
    try:
        documents = [document.object for document in readable(Source("<text>", text))]
    except (FileError, RecursionError):
        return
    for document in documents:
        for strategy in ("timeSlicing", "mps"):
            for resource in items_at(document, "sharing", strategy, "resources"):
                name = value_at(resource, ("name",))
                if isinstance(name, str) and not resource.get("rename"):
                    replicas = resource.get("replicas")
                    if isinstance(replicas, int) and replicas > 1:
                        yield name


# Demand for devices in a namespace: the remaining requests of device plugins, and the classes of claims.


def demand_of(
    objects: Iterable[Mapping[str, Any]], catalogue: VendorCatalogue, offered: Iterable[Mapping[str, Any]] = ()
) -> NamespaceDemand:
    """What objects ask for; ``offered`` are those that only --unsafe adds."""
    asking: dict[str, dict[str, str]] = {}
    claims: list[Mapping[str, Any]] = []
    for raw in objects:
        if raw.get("kind") in CLAIM_SPECS and str(raw.get("apiVersion")).startswith(f"{GROUP}/"):
            claims.append(raw)
            continue
        for name in _asked(raw, catalogue):
            asking.setdefault(namespace_of(raw), {}).setdefault(name, title(raw))
    return NamespaceDemand(asking, _classes(claims), _classes(raw for raw in offered if raw.get("kind") in CLAIM_SPECS))


def _classes(claims: Iterable[Mapping[str, Any]]) -> Mapping[str, frozenset[str]]:
    """The DeviceClasses that claims and claim templates ask for, by namespace."""
    out: dict[str, set[str]] = {}
    for raw in claims:
        requests = value_at(raw, (*CLAIM_SPECS[str(raw["kind"])], "devices", "requests"))
        out.setdefault(namespace_of(raw), set()).update(requested_classes(requests))
    return {namespace: frozenset(classes) for namespace, classes in out.items()}


def _asked(raw: Mapping[str, Any], catalogue: VendorCatalogue) -> Iterator[str]:
    """The resources that the pods of an object ask device plugins for."""
    barred = claimless(raw)
    if barred is not None and not barred.partly:
        yield from requested(raw.get("spec"), catalogue)
        return
    for spec in pods_of(raw, catalogue).specs:
        for container in containers(spec):
            for field in ("limits", "requests"):
                for name, amount in fields_at(container.content, "resources", field).items():
                    if is_extended(name) and not is_zero(amount):
                        yield name
