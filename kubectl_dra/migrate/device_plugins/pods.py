"""The pod specs of an object: of known kinds, of kinds that a file of the user names, and by their shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.workload_kinds import WorkloadKind, workload_kinds
from kubectl_dra.manifests.changes import Change, Delete, Set, value_at
from kubectl_dra.manifests.workloads import (
    SPECS,
    TEMPLATES,
    WorkloadPodSpec,
    containers,
    evident_specs,
    key_of,
    known_kind,
    pod_specs,
    specs_at,
)
from kubectl_dra.migrate.codes import Safety
from kubectl_dra.migrate.device_plugins.asks import Ask, by_name, read_asks
from kubectl_dra.migrate.device_plugins.environment import environment, of_driver
from kubectl_dra.migrate.device_plugins.placement import PlacementPlan, placement
from kubectl_dra.migrate.model import MigrationSettings, ObjectPlan, PlanRefusal, Step
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue
from kubectl_dra.migrate.vendors.model import Resource

# A deletion that would leave an empty mapping or list deletes that as well.

# Only these may go when they are empty: an empty one of any other kind can mean something.
_GOES: Final = frozenset(("limits", "requests", "resources", "nodeSelector", "env", "annotations", "metadata"))


def tidied(raw: Mapping[str, Any], changes: Iterable[Change]) -> tuple[Change, ...]:
    """The changes without repeats, which also delete what they leave empty. Paths lead from ``raw``."""
    at: dict[FieldPath, list[Change]] = {}
    out: list[Change] = []
    for change in changes:
        known = at.setdefault(change.path, [])
        if change not in known:
            known.append(change)
            out.append(change)
    gone = {change.path for change in out if isinstance(change, Delete)}
    kept = {change.path[:length] for change in out if isinstance(change, Set) for length in range(len(change.path) + 1)}
    parents = list(dict.fromkeys(change.path[:-1] for change in out if isinstance(change, Delete)))
    for path in parents:
        if path not in kept and path not in gone and _emptied(raw, path, gone):
            gone.add(path)
            out.append(Delete(path))
            parents.append(path[:-1])
    return tuple(change for change in out if not _inside(change, gone))


def _emptied(raw: Mapping[str, Any], path: FieldPath, gone: set[FieldPath]) -> bool:
    if not path or path[-1] not in _GOES:
        return False
    value = value_at(raw, path)
    keys: Iterable[str | int] = value if isinstance(value, Mapping) else range(len(value or ()))
    return bool(value) and all((*path, key) in gone for key in keys)


def _inside(change: Change, gone: set[FieldPath]) -> bool:
    """Whether something above the change goes as a whole."""
    return any(change.path[:length] in gone for length in range(1, len(change.path)))


# Workloads that are kustomize patches: laid over the object of the same kind and name.

_GROUPS: Final = ("apps", "batch")


def is_patch(raw: Mapping[str, Any]) -> bool:
    """Whether no container of the workload has an image, which every container needs in the end."""
    if key_of(raw)[0] not in _GROUPS:
        return False
    contents = [container.content for spec in pod_specs(raw) for container in containers(spec)]
    return bool(contents) and not any("image" in container for container in contents)


def base_claims(raw: Mapping[str, Any], around: Iterable[Mapping[str, Any]], catalogue: VendorCatalogue) -> bool:
    """Whether the patched object is available and has claims or will get them, so that they can be patched as well."""
    return any(
        spec.content.get("resourceClaims") or read_asks(spec, catalogue).asks
        for base in _bases(raw, around)
        for spec in pod_specs(base)
    )


def _bases(raw: Mapping[str, Any], around: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The objects that a patch may be for: of its kind and name, and no patches."""
    name = value_at(raw, ("metadata", "name"))
    for other in around:
        if other is raw or key_of(other) != key_of(raw) or value_at(other, ("metadata", "name")) != name:
            continue
        if not is_patch(other):
            yield other


def plan_patch(raw: Mapping[str, Any], around: Iterable[Mapping[str, Any]], settings: MigrationSettings) -> ObjectPlan:
    """Remove the requests of device plugins from a patch, and change nothing else.

    The build shows what the patched object needs instead. Lists in a patch, such as tolerations, would
    replace the base's.
    """
    refusals: list[PlanRefusal] = []
    gone: list[FieldPath] = []
    moved: dict[str, Resource] = {}
    for spec in pod_specs(raw):
        asks = read_asks(spec, settings.catalogue, patch=True)
        refusals += asks.refusals
        moving = [ask for ask in asks.asks if ask.resource.vendor not in asks.held]
        if moving and by_name(moving, _placements(raw, spec, moving, around, settings), settings):
            continue
        gone += [*(path for ask in moving for path in ask.keys), *asks.zeros]
        users = {ask.container.path for ask in moving}
        vendors = tuple(dict.fromkeys(ask.resource.vendor for ask in moving))
        gone += [change.path for change in environment(spec, users, vendors, settings.catalogue).changes]
        moved.update((ask.resource.name, ask.resource) for ask in moving)
    if not gone:
        return ObjectPlan(refusals=tuple(refusals))
    reason, safety = request_gone(moved)
    changes = tidied(raw, (Delete(path) for path in gone))
    return ObjectPlan((Step("MIG109", gone[0], reason, changes, safety),), refusals=tuple(refusals))


def request_gone(moved: Mapping[str, Resource]) -> tuple[str, Safety]:
    """Why a patch no longer asks for these resources, in words for people, and how safe that is."""
    reason = f"a patch asks for {', '.join(moved) or 'no device'}; what it patches claims devices"
    doubts = of_driver(moved)
    return (f"{reason}; unsafe, because {' and '.join(doubts)}", "unsafe") if doubts else (reason, "safe")


def _placements(
    raw: Mapping[str, Any],
    spec: WorkloadPodSpec,
    asks: Iterable[Ask],
    around: Iterable[Mapping[str, Any]],
    settings: MigrationSettings,
) -> dict[str, PlacementPlan]:
    """What the labels of the patched pods mean for the requests; those of the patch alone if nothing else is known."""
    contents = [
        pod_spec.content for base in _bases(raw, around) for pod_spec in pod_specs(base) if pod_spec.path == spec.path
    ]
    return {
        ask.resource.name: placement(content, ask.resource, settings.catalogue, settings.release, {})
        for content in (spec.content, *contents)
        for ask in asks
    }


NEVER: Final[frozenset[str]] = frozenset(
    (
        "ClusterPolicy",
        "ConfigMap",
        "DeviceClass",
        "NicClusterPolicy",
        "Node",
        "NodeClaim",
        "NodeFeatureRule",
        "NodePool",
        "Provisioner",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceSlice",
        "Secret",
        "CustomResourceDefinition",
    )
)
"""Kinds that may name such resources without requesting any: settings of administrators, and texts."""


def claimless(raw: Mapping[str, Any]) -> WorkloadKind | None:
    """Why requests of an object cannot be moved to claims; None if they can, or if its kind is unknown."""
    known = known_kind(raw)
    return known if known is not None and known.why else None


# Their values are the input of other programs, whatever they look like.
_VALUES: Final = frozenset(("values", "valuesObject", "parameters"))


class PodsFound(NamedTuple):
    """Pod specs, and with ``guessed`` only by what they look like."""

    specs: tuple[WorkloadPodSpec, ...]
    guessed: bool = False


def pods_of(raw: Mapping[str, Any], catalogue: VendorCatalogue) -> PodsFound:
    """The pod specs of an object."""
    key = key_of(raw)
    said = [path for kind, path in catalogue.workloads if kind == key]
    if said:
        return PodsFound(tuple(spec for path in said for spec in specs_at(raw, path)))
    known = key in TEMPLATES or key in SPECS or key in workload_kinds() or key[1] in NEVER
    if known or key[0] == "" or key[0].endswith(".k8s.io") or "apiVersion" not in raw:
        return PodsFound(tuple(pod_specs(raw)))
    specs = [spec for spec in evident_specs(raw) if not _VALUES.intersection(map(str, spec.path))]
    return PodsFound(tuple(specs), bool(specs))
