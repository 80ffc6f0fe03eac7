"""Pods and pod templates: resource claims, containers and their resources.

Of a pod's many other rules it checks only those that concern every pod: names, images, restart policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
)
from kubectl_dra.admission.server.pod_containers import (
    check_env,
    check_host_ports,
    check_ids,
    check_ports,
    check_restart,
)
from kubectl_dra.admission.server.pod_placement import check_placement
from kubectl_dra.admission.server.pod_volumes import check_mounts, check_volumes
from kubectl_dra.admission.server.resources import check_amounts, check_pod_resources, container_amounts
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
