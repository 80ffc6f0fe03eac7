"""Environment and security settings of containers and pods.

From ``ValidateEnv``, ``ValidateSecurityContext`` and ``ValidatePodSecurityContext`` of Kubernetes 1.36: the parts that
pods with devices commonly set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.model import INVALID, Path, Violations, missing, text, violation
from kubectl_dra.admission.server.names import check_format, subdomain_problems
from kubectl_dra.admission.server.taints import unsupported
from kubectl_dra.api.behaviour import RESTART_POLICIES_READ

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
            elif kind not in known:
                yield unsupported(kind, (*at, name, "type"), _SECURITY, known)


def check_restart(container: Mapping[str, Any], at: Path, context: ServerContext) -> Violations:
    """``restartPolicy`` of a container. Up to 1.34 the server drops all but Always of an init container."""
    policy = container.get("restartPolicy")
    if policy is None or context.release not in RESTART_POLICIES_READ:
        return
    where, rule = (*at, "restartPolicy"), "container-restart-policy"
    if not policy:
        yield missing(where, rule)
    elif policy not in _RESTARTS:
        yield unsupported(policy, where, rule, _RESTARTS)
