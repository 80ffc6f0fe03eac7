"""The pod templates of a stored workload after a manifest was applied to it: whether they are other ones.

What the manifest leaves out and the server has filled in is no change. Sources: SetDefaults of core/v1 (pods), and
EqualIgnoreHash of the Deployment's controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.api.labels import JOB_NAME_LABELS, JOB_UID_LABELS
from kubectl_dra.api.meta import EMPTY
from kubectl_dra.cluster.merge import JSON, canonical, last_applied, merged
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.workloads import pod_templates

HASH_LABEL: Final = "pod-template-hash"
_DEFAULTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "restartPolicy": ("Always",),
    "dnsPolicy": ("ClusterFirst",),
    "schedulerName": ("default-scheduler",),
    "terminationGracePeriodSeconds": (30,),
    "enableServiceLinks": (True,),
    "preemptionPolicy": ("PreemptLowerPriority",),
    "terminationMessagePath": ("/dev/termination-log",),
    "terminationMessagePolicy": ("File",),
    "protocol": ("TCP",),
    "scheme": ("HTTP",),
    "timeoutSeconds": (1,),
    "periodSeconds": (10,),
    "successThreshold": (1,),
    "failureThreshold": (3,),
    "defaultMode": (420,),
    "procMount": ("Default",),
    "operator": ("Equal",),
}
"""What the server fills in, by the name of the field."""
_OF_PLACE: Final[Mapping[tuple[str, str], tuple[Any, ...]]] = {
    ("fieldRef", "apiVersion"): ("v1",),
    ("httpGet", "path"): ("/",),
    ("hostPath", "type"): ("",),
}
"""The same of fields that mean something else elsewhere, with the field around them."""


def templates_of(workload: JSON) -> list[JSON]:
    """The pod templates of an object, as far as it says any."""
    return [template.content for template in pod_templates(workload)]


def applied_workload(stored: JSON, written: JSON) -> JSON:
    """A stored workload after an apply: what the manifest leaves out stays as it is."""
    last = last_applied(fields_at(stored, "metadata", "annotations"))
    before, now = stored.get("spec"), written.get("spec")
    spec = merged(before, now, last.get("spec"), "spec") if isinstance(before, dict) and isinstance(now, dict) else now
    return {**written, "spec": spec}


def same_templates(some: list[JSON], others: list[JSON]) -> bool:
    """Whether pods from these templates are the same, but for the hash that a controller adds to labels."""
    return list(map(_essence, some)) == list(map(_essence, others))


def has_template(stored: JSON, written: JSON) -> bool:
    """Whether the template of a stored object says all that the written one says."""
    return same_templates([merged(stored, written, name="template")], [stored])


def _essence(template: JSON) -> Any:
    metadata = fields_at(template, "metadata")
    labels = {name: value for name, value in fields_at(metadata, "labels").items() if name != HASH_LABEL}
    annotations = fields_at(metadata, "annotations")
    return _said({"labels": labels, "annotations": annotations, "spec": template.get("spec") or EMPTY}, "template")


def _said(value: Any, name: str) -> Any:
    """What a part of a template says beside the defaults; None where that is nothing."""
    if isinstance(value, Mapping):
        fields = canonical(dict(value), name)
        if name in ("containers", "initContainers"):
            fields = _container(fields)
        if name == "spec" and fields.get("serviceAccount") == fields.get("serviceAccountName"):
            fields.pop("serviceAccount", None)
        said = {field: _said(item, field) for field, item in fields.items() if not _is_default(name, field, item)}
        return {field: item for field, item in said.items() if item is not None} or None
    if isinstance(value, list):
        return [_said(item, name) for item in value] or None
    return value


def _is_default(around: str, field: str, value: Any) -> bool:
    if around in ("labels", "annotations", "nodeSelector", "matchLabels"):
        return False
    known = _OF_PLACE.get((around, field)) or _DEFAULTS.get(field, ())
    return any(value == default and type(value) is type(default) for default in known)


def _container(fields: dict[str, Any]) -> dict[str, Any]:
    """A container without the pull policy that follows from its image, and the requests that follow from limits."""
    image = str(fields.get("image") or "")
    tag = image.rpartition("/")[2].partition(":")[2]
    pulled = "IfNotPresent" if "@" in image or tag not in ("", "latest") else "Always"
    out = {name: value for name, value in fields.items() if (name, value) != ("imagePullPolicy", pulled)}
    resources = fields_at(out, "resources")
    limits, requests = fields_at(resources, "limits"), fields_at(resources, "requests")
    own = {name: value for name, value in requests.items() if limits.get(name) != value}
    return {**out, "resources": {**resources, "requests": own}} if requests else out


def without_generated(written: Mapping[str, Any], stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """A Job as its owner wrote it: without the selector and labels that the API server gave the stored one.

    Whoever saves a Job from the cluster has them; an apply of them changes nothing.
    """
    spec, kept = fields_at(written, "spec"), fields_at(stored, "spec")
    if spec.get("manualSelector") or not spec:
        return written
    spec = {name: value for name, value in spec.items() if name != "selector" or value != kept.get("selector")}
    labels = fields_at(spec, "template", "metadata", "labels")
    given = fields_at(kept, "template", "metadata", "labels")
    own = {
        name: value
        for name, value in labels.items()
        if name not in (*JOB_UID_LABELS, *JOB_NAME_LABELS) or value != given.get(name)
    }
    if own == labels:
        return {**written, "spec": spec}
    template = fields_at(spec, "template")
    metadata = {**fields_at(template, "metadata"), "labels": own}
    return {**written, "spec": {**spec, "template": {**template, "metadata": metadata}}}
