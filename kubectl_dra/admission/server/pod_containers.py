"""Environment, ports and security settings of containers and pods.

From ``ValidateEnv``, ``ValidateSecurityContext`` and ``ValidatePodSecurityContext`` of Kubernetes 1.36: the parts that
pods with devices commonly set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_dra.admission.server.model import (
    DUPLICATE,
    INVALID,
    ServerContext,
    Violations,
    missing,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    check_choice,
    check_format,
    subdomain_problems,
    unsupported,
)
from kubectl_dra.api.behaviour import RESTART_POLICIES_READ
from kubectl_dra.api.schema import FieldPath

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


def check_env(container: Mapping[str, Any], at: FieldPath) -> Violations:
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


def _check_source(variable: Mapping[str, Any], at: FieldPath) -> Violations:
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


def check_ids(security: Mapping[str, Any], at: FieldPath) -> Violations:
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


def check_restart(container: Mapping[str, Any], at: FieldPath, context: ServerContext) -> Violations:
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


def check_ports(container: Mapping[str, Any], at: FieldPath, *, on_host: bool) -> Violations:
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


def check_host_ports(spec: Mapping[str, Any], at: FieldPath, *, is_pod: bool) -> Violations:
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
