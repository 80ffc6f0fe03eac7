"""A pod's volumes, and where its containers mount them.

From ``ValidateVolumes`` and ``ValidateVolumeMounts`` of Kubernetes 1.36. Rules of a single volume type are
checked only for the types that nearly all pods use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubectl_dra.admission.server.model import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    NOT_SUPPORTED,
    Path,
    Violation,
    Violations,
    field_text,
    missing,
    text,
    violation,
)
from kubectl_dra.admission.server.names import check_required, label_problems
from kubectl_dra.admission.server.taints import unsupported
from kubectl_dra.api.quantity import Quantity

_RULE: Final = "pod-volume"
_MOUNT: Final = "pod-volume-mount"
_KINDS: Final = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi"),
    *("glusterfs", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "flocker", "downwardAPI", "fc", "azureFile"),
    *("configMap", "vsphereVolume", "quobyte", "azureDisk", "storageos", "photonPersistentDisk", "projected"),
    *("portworxVolume", "scaleIO", "csi", "ephemeral", "image"),
)
"""The volume types in the order in which the server checks them; the first one set is the volume's."""
_REPORTED: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""The volume types that the server spells otherwise when a volume has another type, too."""
_PATHS: Final = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_MODES: Final = {
    "mountPropagation": ("Bidirectional", "HostToContainer", "None"),
    "recursiveReadOnly": ("Disabled", "Enabled", "IfPossible"),
}
_REQUIRED: Final = {
    "configMap": ("name",),
    "csi": ("driver",),
    "hostPath": ("path",),
    "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName",),
    "secret": ("secretName",),
}
"""The name fields that a volume type requires."""


def check_volumes(spec: Mapping[str, Any], at: Path) -> tuple[list[Violation], frozenset[str]]:
    """What is wrong with ``volumes`` of a pod spec, and the names of the valid ones."""
    found: list[Violation] = []
    sound: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        volume = volume or {}
        here = (*at, "volumes", index)
        name = text(volume, "name")
        own = [
            *_check_source(volume, here),
            *check_required(name, (*here, "name"), (_RULE,) * 2, label_problems),
        ]
        if name in sound:
            own.append(violation((*here, "name"), DUPLICATE, _RULE, f"{name!r} is already in the list"))
        if not own:
            sound.add(name)
        found.extend(own)
    return found, frozenset(sound)


def _check_source(volume: Mapping[str, Any], at: Path) -> Violations:
    kinds = [kind for kind in _KINDS if volume.get(kind) is not None]
    for kind in kinds[1:]:
        field = field_text((*at, _REPORTED.get(kind, kind)))
        yield violation((*at, kind), FORBIDDEN, _RULE, "a volume must be of one kind only", field=field)
    for kind in kinds[:1]:
        for name in _REQUIRED.get(kind, ()):
            if not text(volume[kind], name):
                yield missing((*at, kind, name), _RULE)
        if kind in _CHECKS:
            yield from _CHECKS[kind](volume[kind], (*at, kind))


def _check_empty_dir(source: Mapping[str, Any], at: Path) -> Violations:
    limit = source.get("sizeLimit")
    if limit is not None and Quantity.from_json(limit).sign() < 0:
        yield violation((*at, "sizeLimit"), FORBIDDEN, _RULE, "must not be negative")


def _check_host_path(source: Mapping[str, Any], at: Path) -> Violations:
    path, kind = text(source, "path"), source.get("type")
    if path and ".." in path.split("/"):
        yield violation((*at, "path"), INVALID, _RULE, "must not contain '..'")
    if path and kind is not None and kind not in _PATHS:
        yield unsupported(kind, (*at, "type"), _RULE, _PATHS)


def _check_nfs(source: Mapping[str, Any], at: Path) -> Violations:
    if not text(source, "path").startswith("/"):
        yield violation((*at, "path"), INVALID, _RULE, "must be an absolute path")


def _check_files(source: Mapping[str, Any], at: Path) -> Violations:
    """The files of a Secret or ConfigMap in a volume."""
    yield from _check_mode(source, "defaultMode", at)
    for index, item in enumerate(source.get("items") or ()):
        here = (*at, "items", index)
        if not text(item, "key"):
            yield missing((*here, "key"), _RULE)
        yield from _check_file(item or {}, here)


def _check_downward(source: Mapping[str, Any], at: Path) -> Violations:
    """The files of the downward API; the server leaves out which of them it is."""
    yield from _check_mode(source, "defaultMode", at)
    for item in source.get("items") or ():
        yield from _check_file(item or {}, at)
        given = [name for name in ("fieldRef", "resourceFieldRef") if (item or {}).get(name) is not None]
        if not given:
            yield missing(at, _RULE, "must have a fieldRef or a resourceFieldRef")
        elif len(given) == 2:
            yield violation(at, INVALID, _RULE, "cannot have both a fieldRef and a resourceFieldRef")


def _check_file(item: Mapping[str, Any], at: Path) -> Violations:
    path = text(item, "path")
    if not path:
        yield missing((*at, "path"), _RULE)
    problems = _path_problems(path)
    if path.startswith("..") and not path.startswith("../"):
        problems.append("must not start with '..'")
    for problem in problems:
        yield violation((*at, "path"), INVALID, _RULE, problem)
    yield from _check_mode(item, "mode", at)


def _check_mode(owner: Mapping[str, Any], name: str, at: Path) -> Violations:
    mode = owner.get(name)
    if mode is not None and not 0 <= mode <= 0o777:
        yield violation((*at, name), INVALID, _RULE, "must be a number from 0 to 0777 (octal)")


_CHECKS: Final[Mapping[str, Callable[[Mapping[str, Any], Path], Violations]]] = {
    "configMap": _check_files,
    "downwardAPI": _check_downward,
    "emptyDir": _check_empty_dir,
    "hostPath": _check_host_path,
    "nfs": _check_nfs,
    "secret": _check_files,
}
"""What is checked of the volume types that nearly all pods use, besides what they require."""


def check_mounts(container: Mapping[str, Any], at: Path, volumes: frozenset[str]) -> Violations:
    """``volumeMounts`` of a container; ``volumes`` are the names of its pod's volumes."""
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        mount = mount or {}
        here = (*at, "volumeMounts", index)
        name, path = text(mount, "name"), text(mount, "mountPath")
        if not name:
            yield missing((*here, "name"), _MOUNT)
        if name not in volumes:
            yield violation((*here, "name"), NOT_FOUND, _MOUNT, f"the pod has no valid volume {name!r}")
        if not path:
            yield missing((*here, "mountPath"), _MOUNT)
        if path in seen:
            yield violation((*here, "mountPath"), INVALID, _MOUNT, "must be unique in the container")
        seen.add(path)
        if text(mount, "subPath") and text(mount, "subPathExpr"):
            yield violation((*here, "subPathExpr"), INVALID, _MOUNT, "cannot be set together with subPath")
        for field, known in _MODES.items():
            value = mount.get(field)
            if value is not None and value not in known:
                # As below, the server leaves out which of the mounts it is.
                where, message = field_text((*at, "volumeMounts", field)), f"{value!r} is none of {', '.join(known)}"
                yield violation((*here, field), NOT_SUPPORTED, _MOUNT, message, field=where)
        for field, message in _misplaced(mount, container):
            where = field_text((*at, "volumeMounts", field))
            yield violation((*here, field), FORBIDDEN, _MOUNT, message, field=where)
        for field in ("subPath", "subPathExpr"):
            for problem in _path_problems(text(mount, field)):
                # The server leaves out which of the mounts it is.
                where = field_text((*at, "volumeMounts", field))
                yield violation((*here, field), INVALID, _MOUNT, problem, field=where)


def _misplaced(mount: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Modes of a mount that need something else, with what they need."""
    propagation = mount.get("mountPropagation")
    if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        yield "mountPropagation", "Bidirectional needs a privileged container"
    if mount.get("recursiveReadOnly") in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield "recursiveReadOnly", "needs readOnly: true"
        if propagation not in (None, "None"):
            yield "recursiveReadOnly", "needs mountPropagation None"


def _path_problems(path: str) -> list[str]:
    out = []
    if path.startswith("/"):
        out.append("must be a relative path")
    if ".." in path.split("/"):
        out.append("must not contain '..'")
    return out
