"""The objects of a run as they are now, the names that are taken, and what was added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, overload

from kubectl_dra.manifests.changes import EditRefused
from kubectl_dra.manifests.objects import ObjectKey, object_key, title
from kubectl_dra.migrate.demand import demand_of
from kubectl_dra.migrate.landing import shared_resources
from kubectl_dra.migrate.model import NamespaceDemand, PlanSurroundings
from kubectl_dra.migrate.new_objects import template_key
from kubectl_dra.migrate.reading import File
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue


class _Objects(Sequence[Mapping[str, Any]]):
    """The current objects of all files; listed only on demand."""

    def __init__(self, files: Sequence[File]) -> None:
        self._files = files
        self._listed: list[Mapping[str, Any]] | None = None

    def forget(self) -> None:
        self._listed = None

    def _all(self) -> list[Mapping[str, Any]]:
        if self._listed is None:
            self._listed = [manifest.object for file in self._files for manifest in file.objects]
        return self._listed

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        return self._all()[index]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


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
