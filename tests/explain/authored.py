"""Objects of a cluster as their authors would have applied them: without all that servers and controllers write."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

JSON = dict[str, Any]

OF_CONTROLLERS = (
    "kubernetes.io/",
    "beta.kubernetes.io/",
    "topology.kubernetes.io/",
    "node.kubernetes.io/",
    "pv.kubernetes.io/",
    "volume.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "resource.kubernetes.io/",
    "batch.kubernetes.io/",
    "apps.kubernetes.io/",
    "csi.volume.kubernetes.io/",
    "storage.alpha.kubernetes.io/",
    "pod-template-hash",
    "controller-",
)
"""How labels and annotations begin that no author writes."""
CLASS = "volume.beta.kubernetes.io/storage-class"
"""The exception."""
CONTAINER_DEFAULTS: JSON = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "Always",
}
POD_DEFAULTS: JSON = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
    "terminationGracePeriodSeconds": 30,
    "preemptionPolicy": "PreemptLowerPriority",
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "securityContext": {},
}
NOT_FOR_AUTHORS = frozenset(("Event",))


def authored(raw: Mapping[str, Any], *, labels: bool = True) -> JSON:
    """The manifest of an object. Without ``labels``, all of them are somebody else's."""
    out = {key: copy.deepcopy(value) for key, value in raw.items() if key != "status"}
    meta = out.get("metadata") or {}
    out["metadata"] = {key: meta[key] for key in ("name", "namespace") if key in meta}
    for field in ("labels", "annotations") if labels else ("annotations",):
        own = {key: value for key, value in (meta.get(field) or {}).items() if _is_own(key)}
        if own:
            out["metadata"][field] = own
    if raw["kind"] in _SPECS:
        _SPECS[raw["kind"]](out)
    return out


def _is_own(key: str) -> bool:
    return key == CLASS or not key.startswith(OF_CONTROLLERS)


def _pod(pod: JSON) -> None:
    spec = pod.get("spec") or {}
    for field in ("nodeName", "priority"):
        # An author names the class; the server knows its value.
        if field == "nodeName" or spec.get("priorityClassName") or not spec.get("priority"):
            spec.pop(field, None)
    _drop(spec, POD_DEFAULTS)
    for field in ("volumes",):
        kept = [each for each in spec.get(field) or () if not each["name"].startswith("kube-api-access-")]
        _keep(spec, field, kept)
    kept = [toleration for toleration in spec.get("tolerations") or () if toleration.get("tolerationSeconds") != 300]
    _keep(spec, "tolerations", kept)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        _drop(container, CONTAINER_DEFAULTS)
        resources = container.get("resources") or {}
        if resources.get("limits") and resources.get("requests") == resources["limits"]:
            resources.pop("requests")
        if not resources:
            container.pop("resources", None)
        mounts = [
            volume_mount
            for volume_mount in container.get("volumeMounts") or ()
            if "serviceaccount" not in volume_mount["mountPath"]
        ]
        _keep(container, "volumeMounts", mounts)


def _drop(fields: JSON, defaults: Mapping[str, Any]) -> None:
    for field, default in defaults.items():
        if fields.get(field) == default:
            fields.pop(field)


def _keep(fields: JSON, name: str, kept: list[JSON]) -> None:
    if kept:
        fields[name] = kept
    else:
        fields.pop(name, None)


def _requests(spec: JSON | None) -> Iterator[JSON]:
    for entry in ((spec or {}).get("devices") or {}).get("requests") or ():
        yield entry.get("exactly") or entry
        yield from entry.get("firstAvailable") or ()


def _claim_spec(spec: JSON | None) -> None:
    for request in _requests(spec):
        if request.get("allocationMode") == "ExactCount":
            request.pop("allocationMode")
            if request.get("count") == 1:
                request.pop("count")
        for toleration in request.get("tolerations") or ():
            if toleration.get("operator") == "Equal":
                toleration.pop("operator")


def _volume_claim(claim: JSON) -> None:
    spec = claim.get("spec") or {}
    spec.pop("volumeName", None)
    _drop(spec, {"volumeMode": "Filesystem"})


def _node(node: JSON) -> None:
    # People taint and cordon with kubectl; the rest is of the kubelet and of the cloud.
    node.pop("spec", None)


def _without(*fields: str) -> Callable[[JSON], None]:
    def strip(raw: JSON) -> None:
        for field in fields:
            (raw.get("spec") or {}).pop(field, None)

    return strip


def _rule(rule: JSON) -> None:
    ((rule.get("spec") or {}).get("taint") or {}).pop("timeAdded", None)


_SPECS: Mapping[str, Callable[[JSON], None]] = {
    "Pod": _pod,
    "ResourceClaim": lambda raw: _claim_spec(raw.get("spec")),
    "ResourceClaimTemplate": lambda raw: _claim_spec((raw.get("spec") or {}).get("spec")),
    "PersistentVolumeClaim": _volume_claim,
    "PersistentVolume": _without("claimRef"),
    "Node": _node,
    "DeviceTaintRule": _rule,
    "Namespace": _without("finalizers"),
}
