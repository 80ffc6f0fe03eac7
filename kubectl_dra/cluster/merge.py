"""Merges what an author wrote into the object that the server has, as ``kubectl apply`` does.

What is not written stays. What was written at the last apply and no longer is goes. Lists whose entries have a key
are merged entry by entry; all others are replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import DecodeError, json

from kubectl_dra.api.labels import JOB_NAME_LABELS, JOB_UID_LABELS
from kubectl_dra.api.meta import EMPTY
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.workloads import pod_templates

JSON = Mapping[str, Any]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which ``kubectl apply`` keeps the manifest."""
_KEYS: Final[Mapping[str, JSON]] = {
    **{
        name: {"name": ""}
        for name in ("containers", "initContainers", "volumes", "resourceClaims", "schedulingGates", "podGroups")
    },
    "ports": {"containerPort": 0, "protocol": "TCP"},
    "topologySpreadConstraints": {"topologyKey": "", "whenUnsatisfiable": "DoNotSchedule"},
    "env": {"name": ""},
    "imagePullSecrets": {"name": ""},
    "hostAliases": {"ip": ""},
    "volumeMounts": {"mountPath": ""},
    "volumeDevices": {"devicePath": ""},
}
"""By the name of a list, the fields that tell its entries apart (listMapKey), with their defaults."""
_WHOLE_ENTRIES: Final = frozenset(("volumes", "resourceClaims"))
"""Lists of which an entry is one of several alternatives: what its author does not write goes (retainKeys)."""
_AMOUNTS: Final = frozenset(
    (
        *("requests", "limits", "overhead", "podFixed", "capacity", "hard", "used"),
        *("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"),
    )
)
"""Tables of quantities, of which 1 and 1000m are the same."""


def last_applied(annotations: Mapping[str, str]) -> JSON:
    """The manifest that was applied last; empty if that is not known."""
    try:
        manifest = json.decode(annotations.get(LAST_APPLIED) or "{}")
    except DecodeError:
        return EMPTY
    return manifest if isinstance(manifest, dict) else EMPTY


def merged(live: Any, written: Any, last: Any = None, name: str = "") -> Any:
    """A part of an object after an apply: the part that the server has, is written now, and was written last.

    ``name`` is the field that it is in.
    """
    if isinstance(live, dict) and isinstance(written, dict):
        return _merged_fields(live, written, last if isinstance(last, dict) else EMPTY, name)
    if isinstance(live, list) and isinstance(written, list):
        if name in _KEYS and _are_told_apart(live, name) and _are_told_apart(written, name):
            known = last if isinstance(last, list) and _are_told_apart(last, name) else ()
            return _merged_entries(live, written, known, name)
        # The server fills the entries of a list that is replaced as it filled them before.
        return live if _filled(live, written) and last in (None, written) else written
    return written


def _merged_fields(live: JSON, written: JSON, last: JSON, name: str) -> dict[str, Any]:
    out = dict(live)
    for field in last:
        if field not in written:
            out.pop(field, None)
    for field, value in written.items():
        if value is None:
            out.pop(field, None)
        elif field not in live:
            out[field] = value
        elif not (name in _AMOUNTS and same_amount(live[field], value)):
            out[field] = merged(live[field], value, last.get(field), field)
    return out


def _are_told_apart(entries: Sequence[Any], name: str) -> bool:
    return all(isinstance(item, dict) for item in entries) and len(_by_key(entries, name)) == len(entries)


def _by_key(entries: Iterable[JSON], name: str) -> dict[tuple[Any, ...], JSON]:
    return {tuple(item.get(field, default) for field, default in _KEYS[name].items()): item for item in entries}


def _merged_entries(live: Sequence[JSON], written: Sequence[JSON], last: Sequence[JSON], name: str) -> list[Any]:
    before, now, known = (_by_key(entries, name) for entries in (live, written, last))
    new: dict[Any, Any] = {}
    for key, item in now.items():
        value = merged(before.get(key, EMPTY), item, known.get(key), name)
        new[key] = {field: value[field] for field in item if field in value} if name in _WHOLE_ENTRIES else value
    kept = [new.get(key, item) for key, item in before.items() if key in new or key not in known]
    return [*kept, *(item for key, item in new.items() if key not in before)]


def _filled(live: Any, written: Any, name: str = "") -> bool:
    """Whether a value is the written one, in which the server has filled in what is not written."""
    if isinstance(live, dict) and isinstance(written, dict):
        return all(
            value is None or (field in live and _filled(live[field], value, name if name in _AMOUNTS else field))
            for field, value in written.items()
        )
    if isinstance(live, list) and isinstance(written, list):
        return len(live) == len(written) and all(map(_filled, live, written))
    return bool(live == written) or (name in _AMOUNTS and same_amount(live, written))


def canonical(value: Any, name: str = "") -> Any:
    """A part of an object with its amounts as the server prints them."""
    if isinstance(value, dict):
        if name in _AMOUNTS:
            return {field: _printed(amount) for field, amount in value.items()}
        return {field: canonical(item, field) for field, item in value.items()}
    return [canonical(item) for item in value] if isinstance(value, list) else value


def same_amount(value: Any, other: Any) -> bool:
    """Whether two values are one quantity."""
    return bool(_printed(value) == _printed(other))


def _printed(amount: Any) -> Any:
    try:
        return str(Quantity.from_json(amount))
    except (TypeError, ValueError, ArithmeticError):
        return amount


# The pod templates of a stored workload: whether an apply makes other ones.

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
