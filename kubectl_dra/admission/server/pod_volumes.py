"""Volumes of pods, and where containers mount them.

From ``ValidateVolumes`` and ``ValidateVolumeMounts`` of Kubernetes 1.37. Rules of a single volume type are checked only
for the types that nearly all pods use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubectl_dra.admission.server.model import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    NOT_SUPPORTED,
    TOO_LONG,
    ServerContext,
    Violation,
    Violations,
    field_text,
    missing,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    check_format,
    check_required,
    label_key_problems,
    label_problems,
    subdomain_problems,
    unsupported,
)
from kubectl_dra.admission.server.selectors import check_label_selector
from kubectl_dra.api.behaviour import CERTIFICATES_PROJECTED
from kubectl_dra.api.limits import MAX_SUBDOMAIN
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.schema import FieldPath

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
_PROJECTED: Final = (
    "secret",
    "configMap",
    "downwardAPI",
    "serviceAccountToken",
    "clusterTrustBundle",
    "podCertificate",
)
"""What a projected volume may have as a source; the last two only in some releases."""
_PATH_FIELDS: Final = ("path", "credentialBundlePath", "keyPath", "certificateChainPath")
_TOKEN_SECONDS: Final = (600, 2**32)
_CERTIFICATE_SECONDS: Final = (3_600, 7_862_400)
_KUBERNETES_SECONDS: Final = 86_400
"""The longest that Kubernetes' own signers sign for."""
_KEY_TYPES: Final = ("ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519", "RSA3072", "RSA4096")
_FIELDS: Final = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_SUBSCRIPT: Final = re.compile(r"(?<=^metadata\.labels)\['.+'\]$|(?<=^metadata\.annotations)\['.+'\]$")
_ONLY_IN_ENV: Final = (
    *("spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
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


def check_volumes(
    spec: Mapping[str, Any], at: FieldPath, context: ServerContext
) -> tuple[list[Violation], frozenset[str]]:
    """What is wrong with ``volumes`` of a pod spec, and the names of the valid ones."""
    violations: list[Violation] = []
    sound: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        volume = volume or {}
        here = (*at, "volumes", index)
        name = text(volume, "name")
        own = [
            *_check_source(volume, here, context),
            *check_required(name, (*here, "name"), (_RULE,) * 2, label_problems),
        ]
        if name in sound:
            own.append(violation((*here, "name"), DUPLICATE, _RULE, f"{name!r} is already in the list"))
        if not own:
            sound.add(name)
        violations.extend(own)
    return violations, frozenset(sound)


def _check_source(volume: Mapping[str, Any], at: FieldPath, context: ServerContext) -> Violations:
    kinds = [kind for kind in _KINDS if volume.get(kind) is not None]
    for kind in kinds[1:]:
        field = field_text((*at, _REPORTED.get(kind, kind)))
        yield violation((*at, kind), FORBIDDEN, _RULE, "a volume must be of one kind only", field=field)
    for kind in kinds[:1]:
        for name in _REQUIRED.get(kind, ()):
            if not text(volume[kind], name):
                yield missing((*at, kind, name), _RULE)
        if kind == "projected":
            yield from _check_projected(volume[kind], (*at, kind), context)
        elif kind in _CHECKS:
            yield from _CHECKS[kind](volume[kind], (*at, kind))


def _check_empty_dir(source: Mapping[str, Any], at: FieldPath) -> Violations:
    limit = source.get("sizeLimit")
    if limit is not None and Quantity.from_json(limit).sign() < 0:
        yield violation((*at, "sizeLimit"), FORBIDDEN, _RULE, "must not be negative")


def _check_host_path(source: Mapping[str, Any], at: FieldPath) -> Violations:
    path, kind = text(source, "path"), source.get("type")
    if path and ".." in path.split("/"):
        yield violation((*at, "path"), INVALID, _RULE, "must not contain '..'")
    if path and kind is not None and kind not in _PATHS:
        yield unsupported(kind, (*at, "type"), _RULE, _PATHS)


def _check_nfs(source: Mapping[str, Any], at: FieldPath) -> Violations:
    if not text(source, "path").startswith("/"):
        yield violation((*at, "path"), INVALID, _RULE, "must be an absolute path")


def _check_files(source: Mapping[str, Any], at: FieldPath) -> Violations:
    """The files of a Secret or ConfigMap in a volume."""
    yield from _check_mode(source, "defaultMode", at)
    for index, item in enumerate(source.get("items") or ()):
        here = (*at, "items", index)
        if not text(item, "key"):
            yield missing((*here, "key"), _RULE)
        yield from _check_file(item or {}, here)


def _check_downward(source: Mapping[str, Any], at: FieldPath) -> Violations:
    """The files of the downward API; the server leaves out which of them it is."""
    yield from _check_mode(source, "defaultMode", at)
    for item in source.get("items") or ():
        yield from _check_file(item or {}, at)
        given = [name for name in ("fieldRef", "resourceFieldRef") if (item or {}).get(name) is not None]
        if not given:
            yield missing(at, _RULE, "must have a fieldRef or a resourceFieldRef")
        elif len(given) == 2:
            yield violation(at, INVALID, _RULE, "cannot have both a fieldRef and a resourceFieldRef")
        for name in given[:1]:
            yield from _check_reference(item[name], name, (*at, name))


def _check_reference(reference: Mapping[str, Any], name: str, at: FieldPath) -> Violations:
    """The field of the pod, or the resource of a container, that a file of the downward API has."""
    if name == "resourceFieldRef":
        if not text(reference, "containerName"):
            yield missing((*at, "containerName"), _RULE)
        return
    field, version = text(reference, "fieldPath"), text(reference, "apiVersion")
    known = _SUBSCRIPT.sub("", field)
    if not field:
        yield missing((*at, "fieldPath"), _RULE)
    elif version not in ("", "v1") or known not in (*_FIELDS, *_ONLY_IN_ENV):
        yield violation((*at, "fieldPath"), INVALID, _RULE, f"a pod of v1 has no field {field!r} here")
    elif known in _ONLY_IN_ENV:
        yield unsupported(field, (*at, "fieldPath"), _RULE, _FIELDS)


def _check_file(item: Mapping[str, Any], at: FieldPath) -> Violations:
    yield from _check_path(text(item, "path"), (*at, "path"))
    yield from _check_mode(item, "mode", at)


def _check_path(path: str, at: FieldPath) -> Violations:
    """The path of a file in a volume."""
    if not path:
        yield missing(at, _RULE)
    problems = _path_problems(path)
    if path.startswith("..") and not path.startswith("../"):
        problems.append("must not start with '..'")
    for problem in problems:
        yield violation(at, INVALID, _RULE, problem)


def _check_mode(owner: Mapping[str, Any], name: str, at: FieldPath) -> Violations:
    mode = owner.get(name)
    if mode is not None and not 0 <= mode <= 0o777:
        yield violation((*at, name), INVALID, _RULE, "must be a number from 0 to 0777 (octal)")


def _check_projected(source: Mapping[str, Any], at: FieldPath, context: ServerContext) -> Violations:
    """Files of several sources in one volume, each source of one kind."""
    yield from _check_mode(source, "defaultMode", at)
    seen: set[str] = set()
    kinds = _PROJECTED if context.release in CERTIFICATES_PROJECTED else _PROJECTED[:4]
    for index, part in enumerate(source.get("sources") or ()):
        here = (*at, "sources", index)
        given = [kind for kind in kinds if (part or {}).get(kind) is not None]
        for kind in given:
            content, inside = part[kind], (*here, kind)
            yield from _PARTS[kind](content, inside)
            if kind == "serviceAccountToken":
                # The server leaves out which source it is, and lets other files have the same path.
                for wrong in _check_path(text(content, "path"), (*inside, "path")):
                    yield violation(wrong.path, wrong.reason, _RULE, wrong.message, field=field_text((*at, "path")))
                continue
            for path in _projected_paths(kind, content):
                if path in seen:
                    below = inside[len(at) :]
                    yield violation(at, INVALID, _RULE, f"two files have the path {path!r}", below=below)
                seen.add(path)
        if len(given) > 1:
            yield violation(here, FORBIDDEN, _RULE, "a source must be of one kind only")


def _projected_paths(kind: str, content: Mapping[str, Any]) -> Iterator[str]:
    """The paths of the files of a source. The server counts a trust bundle's even if it is empty."""
    if kind == "clusterTrustBundle":
        yield text(content, "path")
        return
    for owner in (content, *(content.get("items") or ())):
        yield from filter(None, (text(owner, name) for name in _PATH_FIELDS))


def _check_named_files(source: Mapping[str, Any], at: FieldPath) -> Violations:
    if not text(source, "name"):
        yield missing((*at, "name"), _RULE)
    yield from _check_files(source, at)


def _check_token(source: Mapping[str, Any], at: FieldPath) -> Violations:
    seconds = source.get("expirationSeconds")
    if seconds is not None and not _TOKEN_SECONDS[0] <= seconds <= _TOKEN_SECONDS[1]:
        message = f"must be from {_TOKEN_SECONDS[0]} to {_TOKEN_SECONDS[1]}"
        yield violation((*at, "expirationSeconds"), INVALID, _RULE, message)


def _check_trust_bundle(source: Mapping[str, Any], at: FieldPath) -> Violations:
    name, signer = source.get("name"), source.get("signerName")
    if name is not None and signer is not None:
        yield violation(at, INVALID, _RULE, "only one of name and signerName may be set")
    elif name is not None:
        if not name:
            yield missing((*at, "name"), _RULE)
        yield from check_format(name.rpartition(":")[2], (*at, "name"), _RULE, subdomain_problems)
        if source.get("labelSelector") is not None:
            yield violation((*at, "labelSelector"), INVALID, _RULE, "cannot be set together with name")
    elif signer is not None:
        yield from _check_signer(signer, (*at, "signerName"))
        yield from check_label_selector(source.get("labelSelector"), (*at, "labelSelector"))
    else:
        yield missing(at, _RULE, "must have a name or a signerName")
    yield from _check_path(text(source, "path"), (*at, "path"))


def _check_pod_certificate(source: Mapping[str, Any], at: FieldPath) -> Violations:
    signer, kind, seconds = text(source, "signerName"), text(source, "keyType"), source.get("maxExpirationSeconds")
    yield from _check_signer(signer, (*at, "signerName"))
    if kind not in _KEY_TYPES:
        yield unsupported(kind, (*at, "keyType"), _RULE, _KEY_TYPES)
    most = _KUBERNETES_SECONDS if signer.startswith("kubernetes.io/") else _CERTIFICATE_SECONDS[1]
    if seconds is not None and not _CERTIFICATE_SECONDS[0] <= seconds <= most:
        message = f"must be from {_CERTIFICATE_SECONDS[0]} to {most}"
        yield violation((*at, "maxExpirationSeconds"), INVALID, _RULE, message)
    given = [name for name in _PATH_FIELDS if name != "path" and text(source, name)]
    if not given:
        yield missing(at, _RULE, "must have a credentialBundlePath, keyPath or certificateChainPath")
    for name in given:
        yield from _check_path(text(source, name), (*at, name))
    for key in source.get("userAnnotations") or ():
        if "/" not in key:
            where, message = (*at, "userAnnotations"), f"{key!r} must have a domain, as in 'example.com/name'"
            yield violation(where, INVALID, _RULE, message) if key else missing(where, _RULE)
        else:
            yield from check_format(key, (*at, "userAnnotations"), _RULE, label_key_problems)


def _check_signer(signer: str, at: FieldPath) -> Violations:
    """The name of a signer: a domain, and a path behind a slash."""
    domain, slash, path = signer.partition("/")
    if not signer:
        yield missing(at, _RULE)
    elif not slash or "/" in path:
        yield violation(at, INVALID, _RULE, f"{signer!r} must be a domain and a name, as in 'example.com/name'")
    else:
        if len(domain) > MAX_SUBDOMAIN:
            yield violation(at, TOO_LONG, _RULE, f"its domain is longer than {MAX_SUBDOMAIN} characters")
        for label in domain.split("."):
            yield from check_format(label, at, _RULE, label_problems)
        if "." not in domain:
            yield violation(at, INVALID, _RULE, f"{domain!r} must be a domain of at least two parts")
        for part in path.split("."):
            yield from check_format(part, at, _RULE, subdomain_problems)


_CHECKS: Final[Mapping[str, Callable[[Mapping[str, Any], FieldPath], Violations]]] = {
    "configMap": _check_files,
    "downwardAPI": _check_downward,
    "emptyDir": _check_empty_dir,
    "hostPath": _check_host_path,
    "nfs": _check_nfs,
    "secret": _check_files,
}
"""What is checked of the volume types that nearly all pods use, besides what they require."""
_PARTS: Final[Mapping[str, Callable[[Mapping[str, Any], FieldPath], Violations]]] = {
    "clusterTrustBundle": _check_trust_bundle,
    "configMap": _check_named_files,
    "downwardAPI": _check_downward,
    "podCertificate": _check_pod_certificate,
    "secret": _check_named_files,
    "serviceAccountToken": _check_token,
}


def check_mounts(container: Mapping[str, Any], at: FieldPath, volumes: frozenset[str]) -> Violations:
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
    """Modes of a mount that require other fields, and these fields."""
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
