"""Pods and pod templates: resource claims, containers and their resources.

Of a pod's many other rules it checks only those that concern every pod: names, images, restart policy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.admission.server.metadata import check_annotations, check_labels, check_metadata
from kubectl_dra.admission.server.model import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    ServerContext,
    Violation,
    Violations,
    field_text,
    missing,
    struct,
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
from kubectl_dra.admission.server.pod_placement import check_placement
from kubectl_dra.admission.server.pod_volumes import check_mounts, check_volumes
from kubectl_dra.admission.server.resources import check_amounts, check_pod_resources, container_amounts
from kubectl_dra.api.behaviour import RESTART_POLICIES_READ
from kubectl_dra.api.schema import FieldPath

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")

_PRIORITY: Final = "pod-priority"
_MIRROR: Final = "kubernetes.io/config.mirror"
_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")
_CHOICES: Final = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
}


def admission_code(spec: Mapping[str, Any], violations: Iterable[Violation]) -> int:
    """The HTTP code with which admission plugins refuse a Pod before it is validated; 0 if they let it pass.

    Only for what they refuse in every cluster: priorities beside the system's classes, and names that nothing can have.
    """
    wrong = {violation.path[1:] for violation in violations if violation.path[:1] == ("spec",)}
    if wrong & {("priority",), ("preemptionPolicy",), ("priorityClassName",)}:
        return 403
    if ("runtimeClassName",) not in wrong:
        return 0
    # The plugin asks for the class by a URL, of which this would be no part.
    name = text(spec, "runtimeClassName")
    return 500 if name in ("", ".", "..") or "/" in name or "%" in name else 403


def _check_priority(spec: Mapping[str, Any]) -> Violations:
    """What a Pod says of the priority that one of the system's classes gives it."""
    from kubectl_dra.admission.plugins import SYSTEM_CLASSES

    value = SYSTEM_CLASSES.get(text(spec, "priorityClassName"))
    if value is None:
        return
    priority, policy = spec.get("priority"), spec.get("preemptionPolicy")
    if priority is not None and priority != value:
        yield violation(("spec", "priority"), FORBIDDEN, _PRIORITY, f"the priority of its class is {value}")
    elif policy is not None and policy != "PreemptLowerPriority":
        message = "the preemption policy of its class is PreemptLowerPriority"
        yield violation(("spec", "preemptionPolicy"), FORBIDDEN, _PRIORITY, message)


def check_pod(pod: Mapping[str, Any], context: ServerContext) -> Violations:
    """A Pod to be created."""
    yield from check_metadata(pod.get("metadata"), subdomain_problems, namespaced=True, context=context)
    meta = pod.get("metadata") or {}
    spec = struct(pod, "spec")
    mirror = _MIRROR in (meta.get("annotations") or {})
    yield from check_pod_spec(spec, ("spec",), context, mirror=mirror, labels=meta.get("labels") or {})
    if text(spec, "priorityClassName"):
        yield from _check_priority(spec)
    for name in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            image = text(container, "image")
            if image != image.strip():
                message = "must not have blanks around it"
                yield violation(("spec", name, index, "image"), INVALID, "container-image", message)
    if spec.get("ephemeralContainers"):
        message = "cannot be set when a pod is created"
        yield violation(("spec", "ephemeralContainers"), FORBIDDEN, "ephemeral-containers", message)
    if text(spec, "nodeName") and spec.get("schedulingGates"):
        message = "cannot be set while there are schedulingGates"
        yield violation(("spec", "nodeName"), FORBIDDEN, "pod-node-name", message)


def check_template(
    template: Mapping[str, Any], at: FieldPath, context: ServerContext, extra_labels: Mapping[str, str] | None = None
) -> Violations:
    """A pod template. The server reports its labels without ``metadata`` and adds ``extra_labels`` itself."""
    meta = template.get("metadata") or {}
    labels = {**(extra_labels or {}), **(meta.get("labels") or {})}
    yield from check_labels(labels, (*at, "metadata", "labels"), (*at, "labels"))
    yield from check_annotations(meta.get("annotations"), (*at, "metadata", "annotations"), (*at, "annotations"))
    spec = struct(template, "spec")
    yield from check_pod_spec(spec, (*at, "spec"), context)
    if spec.get("ephemeralContainers"):
        message = "cannot be set in a template"
        yield violation((*at, "spec", "ephemeralContainers"), FORBIDDEN, "ephemeral-containers", message)


def check_pod_spec(
    spec: Mapping[str, Any],
    at: FieldPath,
    context: ServerContext,
    mirror: bool = False,
    labels: Mapping[str, Any] | None = None,
) -> Violations:
    """A pod's spec. ``mirror``: the pod represents a static pod of a kubelet. ``labels`` None: a template's spec."""
    is_pod = labels is not None
    wrong_volumes, volumes = check_volumes(spec, at, context)
    yield from wrong_volumes
    claims = spec.get("resourceClaims") or ()
    yield from _check_claims(claims, (*at, "resourceClaims"), mirror)
    names = frozenset(text(claim, "name") for claim in claims) - {""}
    yield from _check_containers(spec, at, names, volumes, is_pod, context)
    resources = spec.get("resources")
    if resources is not None:
        yield from check_pod_resources(spec, at, is_pod)
        yield from _check_container_claims(resources.get("claims") or (), (*at, "resources", "claims"), names)
    yield from check_choice(text(spec, "restartPolicy"), (*at, "restartPolicy"), "restart-policy", RESTART_POLICIES)
    yield from check_labels(spec.get("nodeSelector"), (*at, "nodeSelector"), rule="pod-node-selector")
    yield from check_host_ports(spec, at, is_pod=is_pod)
    yield from check_ids(spec.get("securityContext") or {}, (*at, "securityContext"))
    yield from check_placement(spec, at, context, labels or {})
    if spec.get("hostPID") and spec.get("shareProcessNamespace"):
        where = (*at, "shareProcessNamespace")
        yield violation(where, INVALID, "pod-process-namespace", "hostPID shares the node's processes already")
    if spec.get("hostUsers") is False:
        # A gate of its own lets them share the network.
        network = () if "UserNamespacesHostNetworkSupport" in context.features else (("hostNetwork", "hostNetwork"),)
        for name, reported in (*network, ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(name):
                field = field_text((*at, reported))
                yield violation((*at, name), FORBIDDEN, "pod-host-users", "needs the users of the host", field=field)
    # The old name of serviceAccountName counts where the new one is empty.
    named = {"serviceAccountName": text(spec, "serviceAccountName") or text(spec, "serviceAccount")}
    named |= {name: text(spec, name) for name in ("nodeName", "priorityClassName", "runtimeClassName")}
    for name, value in named.items():
        # An empty text counts as a name only here.
        if value or (name == "runtimeClassName" and spec.get(name) is not None):
            yield from check_format(value, (*at, name), "pod-reference-name", subdomain_problems)


def _check_claims(claims: Any, at: FieldPath, mirror: bool) -> Violations:
    if mirror:
        for index, _ in enumerate(claims):
            message = "static pods cannot use resource claims"
            yield violation((*at, index), FORBIDDEN, "static-pod-claims", message, field="[]")
        return
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        claim = claim or {}
        where = (*at, index)
        name = text(claim, "name")
        if name in seen:
            yield violation((*where, "name"), DUPLICATE, "pod-claim-name", f"{name!r} is already in the list")
        else:
            yield from check_required(name, (*where, "name"), ("pod-claim-name",) * 2, label_problems)
            seen |= {name} - {""}
        yield from _check_source(claim, where)


def _check_source(claim: Mapping[str, Any], at: FieldPath) -> Violations:
    given = [name for name in _SOURCES if claim.get(name) is not None]
    if len(given) > 1:
        yield violation(at, INVALID, "pod-claim-source-both", f"has {' and '.join(given)}; only one may be set")
    if not given:
        yield violation(at, INVALID, "pod-claim-source-none", f"must have {' or '.join(_SOURCES)}")
    for name in given:
        yield from check_format(claim[name], (*at, name), "pod-claim-source-name", subdomain_problems)


def _check_containers(
    spec: Mapping[str, Any],
    at: FieldPath,
    claims: frozenset[str],
    volumes: frozenset[str],
    is_pod: bool,
    context: ServerContext,
) -> Violations:
    """All containers. A name must be unique among the preceding containers of any kind."""
    containers = spec.get("containers") or ()
    if not containers:
        yield missing((*at, "containers"), "containers-missing", "must have at least one container")
    seen: set[str] = set()
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            container = container or {}
            where = (*at, kind, index)
            yield from _check_container(container, where, claims, is_pod)
            yield from check_mounts(container, where, volumes)
            yield from check_ports(container, where, on_host=bool(is_pod and spec.get("hostNetwork")))
            yield from check_env(container, where)
            if kind != "ephemeralContainers":
                yield from check_restart(container, where, context)
            yield from _check_security(container.get("securityContext") or {}, (*where, "securityContext"))
            if kind == "ephemeralContainers" and container.get("resources"):
                message = "cannot be set for an ephemeral container"
                yield violation((*where, "resources"), FORBIDDEN, "ephemeral-containers", message)
            name = text(container, "name")
            if name in seen:
                yield violation((*where, "name"), DUPLICATE, "container-name", f"{name!r} is already in the list")
            elif name or kind != "initContainers":
                seen.add(name)


def _check_container(container: Mapping[str, Any], at: FieldPath, claims: frozenset[str], is_pod: bool) -> Violations:
    yield from check_required(text(container, "name"), (*at, "name"), ("container-name",) * 2, label_problems)
    if not text(container, "image"):
        yield missing((*at, "image"), "container-image")
    for name, known in _CHOICES.items():
        yield from check_choice(text(container, name), (*at, name), "container-choice", known)
    resources = struct(container, "resources")
    is_ephemeral = "ephemeralContainers" in at
    limits = container_amounts(container, "limits", False)
    requests = container_amounts(container, "requests", is_pod and not is_ephemeral)
    yield from check_amounts(limits, requests, (*at, "resources"), for_pod=False)
    yield from _check_container_claims(resources.get("claims") or (), (*at, "resources", "claims"), claims)


def _check_security(security: Mapping[str, Any], at: FieldPath) -> Violations:
    """Security settings of a container, and those that conflict with ``allowPrivilegeEscalation: false``."""
    yield from check_ids(security, at)
    if security.get("allowPrivilegeEscalation") is not False:
        return
    if security.get("privileged"):
        message = "cannot have allowPrivilegeEscalation false and privileged true"
        yield violation(at, INVALID, "container-privileged", message)
    for capability in (security.get("capabilities") or {}).get("add") or ():
        if capability == "CAP_SYS_ADMIN":
            message = "cannot have allowPrivilegeEscalation false and the capability CAP_SYS_ADMIN"
            yield violation(at, INVALID, "container-privileged", message)


def _check_container_claims(used: Any, at: FieldPath, claims: frozenset[str]) -> Violations:
    """The claims that a container uses; ``claims`` are the names of the pod's."""
    # As the server keeps them: NAME for a whole claim, NAME/REQUEST for a part. A wrong name may have a slash, too.
    seen: set[str] = set()
    for index, claim in enumerate(used):
        where = (*at, index)
        name, request = text(claim, "name"), text(claim, "request")
        if not name:
            yield missing(where, "container-claim-name")
            continue
        key = f"{name}/{request}" if request else name
        if request and name not in seen:
            yield from check_format(request, (*where, "request"), "container-claim-request", label_problems)
        if name in seen or key in seen:
            what = f"the request {request!r} of {name!r}" if request and name not in seen else f"{name!r} as a whole"
            message = f"the container uses {what} already"
            yield violation(where, DUPLICATE, "container-claim-duplicate", message)
        elif not request:
            for part in sorted(each for each in seen if each.partition("/")[0] == name):
                message = f"the container uses the request {part.partition('/')[2]!r} of {name!r} already"
                yield violation(where, DUPLICATE, "container-claim-duplicate", message)
        if name not in seen:
            seen.add(key)
        if name not in claims:
            has = f"it has {', '.join(sorted(claims))}" if claims else "it has none"
            message = f"{name!r} is not in the pod's resourceClaims: {has}"
            yield violation(where, NOT_FOUND, "container-claim-unknown", message)


# Environment, ports and security settings of containers and pods, as far as pods with devices commonly set them.
#
# From ``ValidateEnv``, ``ValidateSecurityContext`` and ``ValidatePodSecurityContext`` of Kubernetes 1.36.

_ENV: Final = "container-env"
_SECURITY: Final = "container-security"
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_MAX: Final = 253
_ID_MAX: Final = 2**31 - 1
_IDS: Final = ("runAsUser", "runAsGroup", "fsGroup")
_CHANGES: Final = ("Always", "OnRootMismatch")
_PROFILES: Final = {"seccompProfile": ("Localhost", "RuntimeDefault", "Unconfined")}
_RESTARTS: Final = ("Always", "Never", "OnFailure")
_ENV_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
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
            yield from _check_env_source(variable, (*here, "valueFrom"))


def _check_env_source(variable: Mapping[str, Any], at: FieldPath) -> Violations:
    source = variable["valueFrom"]
    given = [name for name in _ENV_SOURCES if source.get(name) is not None]
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
        yield violation(at, INVALID, _ENV, f"must have one of {', '.join(_ENV_SOURCES)}")
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
