"""A pod's volumes, and where its containers mount them.

From ``ValidateVolumes`` and ``ValidateVolumeMounts`` of Kubernetes 1.36. Rules of a single volume type are
checked only for the types that nearly all pods use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.lint.server.model import (
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
from kubectl_dra.lint.server.names import check_required, label_problems
from kubectl_dra.lint.server.taints import unsupported

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
    path = volume.get("hostPath") or {}
    if path.get("type") is not None and path["type"] not in _PATHS and kinds[0] == "hostPath":
        yield unsupported(path["type"], (*at, "hostPath", "type"), _RULE, _PATHS)
    for kind in kinds[:1]:
        for name in _REQUIRED.get(kind, ()):
            if not text(volume[kind], name):
                yield missing((*at, kind, name), _RULE)


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
            value = text(mount, field)
            if value and value not in known:
                # As below, the server leaves out which of the mounts it is.
                where, message = field_text((*at, "volumeMounts", field)), f"{value!r} is none of {', '.join(known)}"
                yield violation((*here, field), NOT_SUPPORTED, _MOUNT, message, field=where)
        for field in ("subPath", "subPathExpr"):
            for problem in _path_problems(text(mount, field)):
                # The server leaves out which of the mounts it is.
                where = field_text((*at, "volumeMounts", field))
                yield violation((*here, field), INVALID, _MOUNT, problem, field=where)


def _path_problems(path: str) -> list[str]:
    out = []
    if path.startswith("/"):
        out.append("must be a relative path")
    if ".." in path.split("/"):
        out.append("must not contain '..'")
    return out
