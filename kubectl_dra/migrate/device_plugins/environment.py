"""What controls devices besides requests: variables, annotations, runtime classes, host paths."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.manifests.changes import Change, Delete, Path
from kubectl_dra.manifests.workloads import WorkloadPodSpec, containers
from kubectl_dra.migrate.device_plugins.asks import within
from kubectl_dra.migrate.model import Note, PlanRefusal
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue
from kubectl_dra.migrate.vendors.model import Flag

_CODES: Final[Mapping[str, str]] = {
    "env": "MIG401",
    "runtimeClassName": "MIG402",
    "annotation": "MIG403",
    "hostPath": "MIG404",
    "schedulerName": "MIG405",
}


class EnvironmentPlan(NamedTuple):
    """Changes that accompany the requests, notes, and what needs a decision first (by vendor)."""

    changes: tuple[Change, ...] = ()
    notes: tuple[Note, ...] = ()
    refusals: tuple[tuple[str, PlanRefusal], ...] = ()


def environment(
    spec: WorkloadPodSpec, users: Collection[Path], vendors: Sequence[str], catalogue: VendorCatalogue
) -> EnvironmentPlan:
    """What to do about the surroundings of a pod's requests. ``users`` are the paths of containers that will
    have claims.
    """
    changes: list[Change] = []
    notes: list[Note] = []
    refusals: list[tuple[str, PlanRefusal]] = []
    for where, name, path, removable in _found(spec, users):
        flag = catalogue.flag(where, name, vendors)
        if flag is None or flag.action == "quiet":
            continue
        code = _CODES[where]
        if flag.action == "ask":
            refusals.append((flag.vendor, PlanRefusal("MIG112", path, _said(name, flag), flag.way_out)))
            continue
        if flag.action == "remove" and removable:
            changes.append(Delete(path))
            notes.append(Note(code, path, f"{name} goes with the request: {within(flag.message)}"))
        else:
            notes.append(Note(code, path, _said(name, flag)))
    for container in containers(spec):
        security = container.content.get("securityContext")
        if container.path in users and isinstance(security, Mapping) and security.get("privileged") is True:
            path = (*container.path, "securityContext", "privileged")
            message = f"container {container.name} is privileged and sees every device of the node, claimed or not"
            notes.append(Note("MIG404", path, message))
    return EnvironmentPlan(tuple(changes), tuple(notes), tuple(refusals))


def _said(name: str, flag: Flag) -> str:
    return f"{name}: {within(flag.message)}"


def _found(spec: WorkloadPodSpec, users: Collection[Path]) -> list[tuple[str, str, Path, bool]]:
    """Everything that a flag may concern: kind of place, name, path, and whether it may be removed."""
    out: list[tuple[str, str, Path, bool]] = []
    for container in containers(spec):
        variables = container.content.get("env")
        for index, variable in enumerate(variables if isinstance(variables, list) else ()):
            if isinstance(variable, Mapping) and isinstance(variable.get("name"), str):
                out.append(("env", variable["name"], (*container.path, "env", index), container.path in users))
        # Values of charts have them by name.
        for name in variables if isinstance(variables, Mapping) else ():
            out.append(("env", str(name), (*container.path, "env", name), container.path in users))
    annotations = spec.metadata.get("annotations")
    for name in annotations if isinstance(annotations, Mapping) else ():
        # Those of the object itself may be about more than these pods.
        removable = spec.metadata_path != ("metadata",) or spec.path == ("spec",)
        out.append(("annotation", str(name), (*spec.metadata_path, "annotations", name), removable))
    for field in ("runtimeClassName", "schedulerName"):
        value = spec.content.get(field)
        if isinstance(value, str) and value:
            out.append((field, value, (*spec.path, field), True))
    volumes = spec.content.get("volumes")
    for index, volume in enumerate(volumes if isinstance(volumes, list) else ()):
        host = _path(volume)
        if host:
            out.append(("hostPath", host, (*spec.path, "volumes", index, "hostPath"), False))
    return out


def _path(volume: Any) -> str:
    host = volume.get("hostPath") if isinstance(volume, Mapping) else None
    path = host.get("path") if isinstance(host, Mapping) else None
    return path if isinstance(path, str) else ""
