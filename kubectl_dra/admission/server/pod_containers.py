"""Environment and security settings of containers and pods.

From ``ValidateEnv``, ``ValidateSecurityContext`` and ``ValidatePodSecurityContext`` of Kubernetes 1.36: the parts that
pods with devices commonly set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.admission.server.model import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    NOT_SUPPORTED,
    Path,
    ServerContext,
    Violation,
    Violations,
    field_text,
    missing,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    check_choice,
    check_format,
    check_required,
    label_problems,
    subdomain_problems,
    unsupported,
)
from kubectl_dra.api.behaviour import RESTART_POLICIES_READ
from kubectl_dra.api.quantity import Quantity

_ENV: Final = "container-env"
_SECURITY: Final = "container-security"
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_MAX: Final = 253
_ID_MAX: Final = 2**31 - 1
_IDS: Final = ("runAsUser", "runAsGroup", "fsGroup")
_CHANGES: Final = ("Always", "OnRootMismatch")
_PROFILES: Final = {"seccompProfile": ("Localhost", "RuntimeDefault", "Unconfined")}
_RESTARTS: Final = ("Always", "Never", "OnFailure")
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_KEYS: Final = ("configMapKeyRef", "secretKeyRef")


def check_env(container: Mapping[str, Any], at: Path) -> Violations:
    """``env`` of the container ``at``."""
    for index, variable in enumerate(container.get("env") or ()):
        variable, here = variable or {}, (*at, "env", index)
        name = text(variable, "name")
        if not name:
            yield missing((*here, "name"), _ENV)
        elif "=" in name or not (name.isascii() and name.isprintable()):
            yield violation((*here, "name"), INVALID, _ENV, f"{name!r} must be printable ASCII without '='")
        if variable.get("valueFrom") is not None:
            yield from _check_source(variable, (*here, "valueFrom"))


def _check_source(variable: Mapping[str, Any], at: Path) -> Violations:
    source = variable["valueFrom"]
    given = [name for name in _SOURCES if source.get(name) is not None]
    for name in _KEYS:
        if source.get(name) is not None:
            yield from check_format(text(source[name], "name"), (*at, name, "name"), _ENV, subdomain_problems)
            key = text(source[name], "key")
            if not key:
                yield missing((*at, name, "key"), _ENV)
            elif len(key) > _KEY_MAX or not _KEY.fullmatch(key) or key in (".", "..") or key.startswith(".."):
                message = f"{key!r} must be letters, digits, '-', '_' and '.'"
                yield violation((*at, name, "key"), INVALID, _ENV, message)
    if not given:
        yield violation(at, INVALID, _ENV, f"must have one of {', '.join(_SOURCES)}")
    elif text(variable, "value"):
        yield violation(at, INVALID, _ENV, "cannot be set together with value")
    elif len(given) > 1:
        yield violation(at, INVALID, _ENV, f"has {' and '.join(given)}; only one may be set")


def check_ids(security: Mapping[str, Any], at: Path) -> Violations:
    """User, groups and profiles of a security context."""
    for name in _IDS:
        value = security.get(name)
        if value is not None and not 0 <= value <= _ID_MAX:
            yield violation((*at, name), INVALID, _SECURITY, f"must be between 0 and {_ID_MAX}")
    policy = security.get("fsGroupChangePolicy")
    if policy is not None and policy not in _CHANGES:
        yield unsupported(policy, (*at, "fsGroupChangePolicy"), _SECURITY, _CHANGES)
    for name, known in _PROFILES.items():
        profile = security.get(name)
        if profile is not None:
            kind = text(profile, "type")
            if not kind:
                yield missing((*at, name, "type"), _SECURITY)
            yield from check_choice(kind, (*at, name, "type"), _SECURITY, known)


def check_restart(container: Mapping[str, Any], at: Path, context: ServerContext) -> Violations:
    """``restartPolicy`` of a container. Up to 1.34 the server drops all but Always of an init container."""
    policy = container.get("restartPolicy")
    if policy is None or context.release not in RESTART_POLICIES_READ:
        return
    if policy not in _RESTARTS:
        yield unsupported(policy, (*at, "restartPolicy"), "container-restart-policy", _RESTARTS)


# Ports of containers, and the host ports that they request.
#
# From ``validateContainerPorts`` and ``AccumulateUniqueHostPorts`` of Kubernetes 1.36.

_RULE: Final = "container-port"
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_NAME: Final = re.compile(r"[a-z0-9-]{1,15}")


def check_ports(container: Mapping[str, Any], at: Path, *, on_host: bool) -> Violations:
    """``ports`` of one container. ``on_host``: of a pod in the host's network, where they are also host ports."""
    names: set[str] = set()
    for index, port in enumerate(container.get("ports") or ()):
        port = port or {}
        here = (*at, "ports", index)
        name = text(port, "name")
        if name:
            problems = tuple(_name_problems(name))
            for problem in problems:
                yield violation((*here, "name"), INVALID, _RULE, problem)
            if not problems and name in names:
                yield violation((*here, "name"), DUPLICATE, _RULE, f"{name!r} is already in the list")
            names.add(name)
        number = port.get("containerPort") or 0
        host = port.get("hostPort") or (number if on_host else 0)
        if not number:
            yield missing((*here, "containerPort"), _RULE)
        for field, value in (("containerPort", number), ("hostPort", host)):
            if value and not 1 <= value <= 65_535:
                yield violation((*here, field), INVALID, _RULE, "must be between 1 and 65535")
        yield from check_choice(text(port, "protocol"), (*here, "protocol"), _RULE, _PROTOCOLS)


def _name_problems(name: str) -> Sequence[str]:
    """What is wrong with the name of a port (an IANA service name)."""
    problems = (
        (len(name) > 15, "must not have more than 15 characters"),
        (not _NAME.fullmatch(name[:15]), "must be lower case letters, digits and '-'"),
        (not re.search("[a-z]", name), "must have a letter"),
        ("--" in name, "must not have '--'"),
        (name.startswith("-") or name.endswith("-"), "must not begin or end with '-'"),
    )
    return [message for is_wrong, message in problems if is_wrong]


def check_host_ports(spec: Mapping[str, Any], at: Path, *, is_pod: bool) -> Violations:
    """Host ports of a pod's containers: each only once, and with hostNetwork equal to the container port."""
    used: set[tuple[str, str, int]] = set()
    for number, container in enumerate(spec.get("containers") or ()):
        for index, port in enumerate((container or {}).get("ports") or ()):
            port = port or {}
            here = (*at, "containers", number, "ports", index, "hostPort")
            host, own = port.get("hostPort") or 0, port.get("containerPort") or 0
            if is_pod and spec.get("hostNetwork"):
                host = host or own
            if spec.get("hostNetwork") and host and host != own:
                yield violation(here, INVALID, _RULE, "must be the containerPort with hostNetwork")
            if not host:
                continue
            key = (text(port, "hostIP"), text(port, "protocol") or "TCP", host)
            if key in used:
                yield violation(here, DUPLICATE, _RULE, f"{host} is taken by another container")
            used.add(key)


# A pod's volumes, and where its containers mount them.
#
# From ``ValidateVolumes`` and ``ValidateVolumeMounts`` of Kubernetes 1.36. Rules of a single volume type are
# checked only for the types that nearly all pods use.

_POD_VOLUMES_RULE: Final = "pod-volume"
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
    violations: list[Violation] = []
    sound: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        volume = volume or {}
        here = (*at, "volumes", index)
        name = text(volume, "name")
        own = [
            *_pod_volumes_check_source(volume, here),
            *check_required(name, (*here, "name"), (_POD_VOLUMES_RULE,) * 2, label_problems),
        ]
        if name in sound:
            own.append(violation((*here, "name"), DUPLICATE, _POD_VOLUMES_RULE, f"{name!r} is already in the list"))
        if not own:
            sound.add(name)
        violations.extend(own)
    return violations, frozenset(sound)


def _pod_volumes_check_source(volume: Mapping[str, Any], at: Path) -> Violations:
    kinds = [kind for kind in _KINDS if volume.get(kind) is not None]
    for kind in kinds[1:]:
        field = field_text((*at, _REPORTED.get(kind, kind)))
        yield violation((*at, kind), FORBIDDEN, _POD_VOLUMES_RULE, "a volume must be of one kind only", field=field)
    for kind in kinds[:1]:
        for name in _REQUIRED.get(kind, ()):
            if not text(volume[kind], name):
                yield missing((*at, kind, name), _POD_VOLUMES_RULE)
        if kind in _CHECKS:
            yield from _CHECKS[kind](volume[kind], (*at, kind))


def _check_empty_dir(source: Mapping[str, Any], at: Path) -> Violations:
    limit = source.get("sizeLimit")
    if limit is not None and Quantity.from_json(limit).sign() < 0:
        yield violation((*at, "sizeLimit"), FORBIDDEN, _POD_VOLUMES_RULE, "must not be negative")


def _check_host_path(source: Mapping[str, Any], at: Path) -> Violations:
    path, kind = text(source, "path"), source.get("type")
    if path and ".." in path.split("/"):
        yield violation((*at, "path"), INVALID, _POD_VOLUMES_RULE, "must not contain '..'")
    if path and kind is not None and kind not in _PATHS:
        yield unsupported(kind, (*at, "type"), _POD_VOLUMES_RULE, _PATHS)


def _check_nfs(source: Mapping[str, Any], at: Path) -> Violations:
    if not text(source, "path").startswith("/"):
        yield violation((*at, "path"), INVALID, _POD_VOLUMES_RULE, "must be an absolute path")


def _check_files(source: Mapping[str, Any], at: Path) -> Violations:
    """The files of a Secret or ConfigMap in a volume."""
    yield from _check_mode(source, "defaultMode", at)
    for index, item in enumerate(source.get("items") or ()):
        here = (*at, "items", index)
        if not text(item, "key"):
            yield missing((*here, "key"), _POD_VOLUMES_RULE)
        yield from _check_file(item or {}, here)


def _check_downward(source: Mapping[str, Any], at: Path) -> Violations:
    """The files of the downward API; the server leaves out which of them it is."""
    yield from _check_mode(source, "defaultMode", at)
    for item in source.get("items") or ():
        yield from _check_file(item or {}, at)
        given = [name for name in ("fieldRef", "resourceFieldRef") if (item or {}).get(name) is not None]
        if not given:
            yield missing(at, _POD_VOLUMES_RULE, "must have a fieldRef or a resourceFieldRef")
        elif len(given) == 2:
            yield violation(at, INVALID, _POD_VOLUMES_RULE, "cannot have both a fieldRef and a resourceFieldRef")


def _check_file(item: Mapping[str, Any], at: Path) -> Violations:
    path = text(item, "path")
    if not path:
        yield missing((*at, "path"), _POD_VOLUMES_RULE)
    problems = _path_problems(path)
    if path.startswith("..") and not path.startswith("../"):
        problems.append("must not start with '..'")
    for problem in problems:
        yield violation((*at, "path"), INVALID, _POD_VOLUMES_RULE, problem)
    yield from _check_mode(item, "mode", at)


def _check_mode(owner: Mapping[str, Any], name: str, at: Path) -> Violations:
    mode = owner.get(name)
    if mode is not None and not 0 <= mode <= 0o777:
        yield violation((*at, name), INVALID, _POD_VOLUMES_RULE, "must be a number from 0 to 0777 (octal)")


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
