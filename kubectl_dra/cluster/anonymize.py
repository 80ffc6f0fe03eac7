"""Removes names that identify the owner, so that ``explain`` still gives the same answers.

Which fields stay is decided in the rows of ``api.dra_fields``, and of other kinds in the annotations of their structs,
such as those of ``api.pods``. Nothing stays that ``pseudonyms`` does not know to be harmless: ``Identities`` says per
kind of name what it becomes, and a last look at every text of the result replaces what they left. Left out: opaque
configuration, driver data, comments in selectors, unknown fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from kubectl_dra.allocation.extended_resources import MADE_FOR_EXTENDED
from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.meta import DEVICE_EVENTS, OUT_OF
from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS, kind_here
from kubectl_dra.api.releases import GROUP
from kubectl_dra.api.schema import Field, change_items
from kubectl_dra.cluster.identities import KEPT_NAMESPACES, Identities, Json
from kubectl_dra.cluster.kueue_settings import renamed_settings
from kubectl_dra.cluster.plugin_copies import anonymize_plugin, known_gates
from kubectl_dra.cluster.pseudonyms import is_harmless
from kubectl_dra.cluster.snapshot import EVERY_KIND
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.errors import InputError

_SELECTED = "volume.kubernetes.io/selected-node"
_ANNOTATIONS = (
    *(MADE_FOR_EXTENDED, "pv.kubernetes.io/bind-completed"),
    "storage.alpha.kubernetes.io/migrated-plugins",
)
_KEPT_METADATA = (
    *("resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds"),
)
_LABELLED = frozenset(("Node", "Namespace", "Pod", "PersistentVolume", "PodDisruptionBudget"))
_CATEGORIES = (
    "node namespace pod claim template class pool slice rule quota podgroup volumeclaim volume storageclass csidriver "
    "workload localqueue clusterqueue cohort flavor queue nodepool nodeclaim admissioncheck "
    "provisioningrequest "
    "priorityclass kubelet-plugin owner scheduler driver podclaim request key value"
)

CATEGORIES: Final[Mapping[str, str]] = {
    **{kind: kind.lower() for kind in EVERY_KIND},
    "ResourceSlice": "slice",
    "DeviceClass": "class",
    "ResourceClaim": "claim",
    "ResourceClaimTemplate": "template",
    "DeviceTaintRule": "rule",
    "ResourceQuota": "quota",
    "PersistentVolumeClaim": "volumeclaim",
    "PersistentVolume": "volume",
    "CSINode": "node",
    "CSIStorageCapacity": "storagecapacity",
    "VolumeAttachment": "attachment",
    "PodDisruptionBudget": "budget",
    "ServiceAccount": "account",
    **dict.fromkeys(("ReplicationController", "ReplicaSet", "StatefulSet", "DaemonSet"), "owner"),
    **{kind: row.category for kind, row in NEIGHBOUR_KINDS.items()},
}
"""The category of the names of each kind."""


class Anonymizer:
    """Replaces names in objects of one cluster. The same name becomes the same everywhere."""

    def __init__(self, items: Iterable[Mapping[str, Any]], seed: str) -> None:
        """``items`` are all objects that will be replaced; ``seed`` determines the new values of serial numbers."""
        items = list(items)
        specs = [item.get("spec") or {} for item in items if item["kind"] == "ResourceSlice"]
        self._new = Identities({spec.get("driver") or "" for spec in specs} - {""}, seed)
        self._fields = Fields(self._new)
        for gate in known_gates():
            self._new.names.gave(gate)
        for item in items:
            self.item(item)
        self._new.settled()
        for pod in (item for item in items if item["kind"] == "Pod"):
            for volume in pod["spec"].get("volumes") or ():
                if volume.get("ephemeral"):
                    self._new.names.compose(
                        "volumeclaim", ("pod", pod["metadata"]["name"]), ("podvolume", volume["name"])
                    )
        self._new.names.words(_CATEGORIES.split())

    def names(self) -> dict[str, dict[str, str]]:
        """The mapping from original to replacement names, by category (node, pod …)."""
        given = self._new.names.given()
        nodes = given.get("node", {})
        given["value"] = {name: other for name, other in given.pop("value", {}).items() if name not in nodes}
        return given

    def namespace(self, name: str) -> str:
        """The replacement of a namespace's name."""
        return self._new.namespace(name)

    def text(self, message: str) -> str:
        """A message with the names in it replaced."""
        return self._new.names.text(message)

    def said(self, said: Mapping[str, Any]) -> Json:
        """What a snapshot says about itself; see ``cluster.save``."""
        out = {**said, "anonymized": True, "notes": [self.text(note) for note in said.get("notes") or ()]}
        out["gaps"] = [self._new.checked({**gap}) for gap in said.get("gaps") or ()]
        for gap in out["gaps"]:
            if "detail" in gap:
                gap["detail"] = self.text(gap["detail"])
            if gap.get("namespace", "default") not in KEPT_NAMESPACES:
                gap["namespace"] = self._new.names.known("namespace", gap["namespace"]) or LEFT_OUT
        return out

    def item(self, raw: Mapping[str, Any]) -> Json:
        """An object whose kind is in ``cluster.snapshot.KINDS``, in the form of ``cluster.save.reduced``.

        Raises InputError: an invalid object.
        """
        kind, meta = kind_here(raw["kind"], str(raw["apiVersion"])), raw.get("metadata") or {}
        category = CATEGORIES[kind]
        try:
            metadata = self._metadata(meta, category, labels=kind in _LABELLED)
            out: Json = {
                "apiVersion": raw["apiVersion"],
                "kind": raw["kind"],
                "metadata": metadata,
                **self._fields.content(raw),
            }
            if kind in ("Pod", "DaemonSet"):
                anonymize_plugin(out, raw, self._new)
            return self._new.checked(out) if self._new.names.frozen else out
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{kind} {meta.get('name') or ''} cannot be understood: {error}") from None

    def _metadata(self, meta: Mapping[str, Any], category: str, *, labels: bool) -> Json:
        out: Json = {"name": self._new.name(category, meta.get("name") or "")}
        if meta.get("namespace"):
            out["namespace"] = self._new.namespace(meta["namespace"])
        if meta.get("uid"):
            out["uid"] = self._new.names.scrambled(meta["uid"])
        if meta.get("generateName"):
            out["generateName"] = f"{category}-"
        for key in _KEPT_METADATA:
            if meta.get(key):
                out[key] = meta[key]
        if labels and meta.get("labels"):
            out["labels"] = self._new.labels(meta["labels"])
        annotations = self._annotations(meta.get("annotations") or {})
        if annotations:
            out["annotations"] = annotations
        if meta.get("finalizers"):
            out["finalizers"] = [self._new.key(name) for name in meta["finalizers"]]
        if meta.get("ownerReferences"):
            out["ownerReferences"] = [self._owner(owner) for owner in meta["ownerReferences"]]
        return out

    def _annotations(self, raw: Mapping[str, Any]) -> Json:
        """The annotations that affect answers; they name nothing but nodes and objects of other layers."""
        out: Json = {key: raw[key] for key in _ANNOTATIONS if key in raw}
        out |= self._new.naming(raw)
        if _SELECTED in raw:
            out[_SELECTED] = self._new.names.of("node", raw[_SELECTED])
        return out

    def _owner(self, raw: Mapping[str, Any]) -> Json:
        kind, version = raw.get("kind") or "", raw.get("apiVersion") or ""
        of_layer = NEIGHBOUR_KINDS.get(kind_here(kind, version))
        known_kinds = {"Pod": "pod", "Node": "node", "ResourceClaim": "claim", "PodGroup": "podgroup"}
        if of_layer is not None:
            known_kinds[kind] = of_layer.category
        known = is_harmless(kind) and is_harmless(version)
        out: Json = {
            "apiVersion": version if known else "example.com/v1",
            "kind": kind if known else "Owner",
            "name": self._new.name(known_kinds.get(kind, "owner"), raw.get("name") or ""),
            "uid": self._new.names.scrambled(raw.get("uid") or ""),
        }
        if "controller" in raw:
            out["controller"] = raw["controller"]
        return out


LEFT_OUT: Final = "left-out"
_CLAIM: Final = "claim:"
_HEAD: Final = frozenset(("apiVersion", "kind", "metadata"))
_NUMERIC: Final = frozenset(("Gt", "Lt"))
_TEXTS: Final = frozenset(("string", "any", "object"))
_OBJECTS: Final = (
    *("localqueue", "clusterqueue", "cohort", "flavor", "admissioncheck", "queue", "podset", "nodepool"),
    *("claim", "node", "pod", "podgroup", "podvolume", "pool", "priorityclass", "storageclass"),
    *("template", "volume", "volumeclaim", "workload"),
)
"""Words of rows that name an object: each is a category of names."""
_WORDS: Final = ("condition", "group", "operation", "podclaim")
"""Words of rows whose texts stay if they are nothing but known words."""
_CONSUMERS: Final = {"pods": "pod", "podgroups": "podgroup"}
_SUBJECTS: Final = {"Pod": "pod", "ResourceClaim": "claim"}


class Fields:
    """Replaces the fields of one object after the other."""

    def __init__(self, new: Identities) -> None:
        self._new = new
        self.texts: dict[str, Callable[[Any], Any]] = {
            "cel": new.expression,
            "class": new.device_class,
            "component": lambda name: new.names.known("scheduler", name) or new.plain("component", name),
            "container": new.container,
            "csidriver": new.storage_driver,
            "device": new.device,
            "driver": new.driver,
            "embedded": new.names.embedded,
            "keep": lambda value: self._unknown(value) if isinstance(value, Mapping) else value,
            "key": new.key,
            "message": new.names.text,
            "namespace": new.namespace,
            "qualified": new.qualified,
            "reason": self._reason,
            "request": new.request,
            "resource": new.resource,
            "scheduler": new.scheduler,
            "scrambled": new.names.scrambled,
            "source": self._device_source,
            **{word: partial(new.plain, word) for word in _WORDS},
            **{category: partial(new.names.of, category) for category in _OBJECTS},
        }
        self.whole: dict[str, Callable[[Any], Any]] = {
            "labels": new.labels,
            "selector": self._selector,
            "settings": self._settings,
        }
        """What replaces the value of a field as a whole."""
        self.beside: dict[str, Callable[[Mapping[str, Any], str, Any], Any]] = {
            "consumer": self._consumer,
            "parameters": self._parameters,
            "said": lambda raw, _, message: new.names.text(message) if raw.get("reason") in DEVICE_EVENTS else "",
            "subject": self._subject,
            "value": self._value,
        }
        """What replaces a text that depends on the fields beside it: of those, its name and itself."""

    def content(self, raw: Mapping[str, Any]) -> Json:
        """An object without its apiVersion, kind and metadata."""
        version, kind = raw["apiVersion"].rpartition("/")[2], kind_here(raw["kind"], raw["apiVersion"])
        return self._struct({key: raw[key] for key in raw if key not in _HEAD}, kind, version)

    def _struct(self, raw: Mapping[str, Any], struct: str, version: str) -> Json:
        table, out = fields(struct, version), {}
        for key, value in raw.items():
            field = table.get(key)
            if field is None:
                out[self._new.identifier(key)] = self._unknown(value)
                continue
            self._new.names.gave(key)
            if value is None or field.anonymize in self.whole:
                out[key] = value and self.whole[field.anonymize](value)
            elif field.type == "DeviceAttribute":
                out[key] = {
                    self._new.qualified(name): self._new.attribute(name, value_) for name, value_ in value.items()
                }
            elif field.anonymize != "drop" and field.type != "ObjectMeta":
                changed = change_items(value, field, self._item, field, version, raw, key)
                rename = self.texts[field.anonymize or "qualified"] if field.container == "map" else None
                out[key] = (
                    {rename(name): changed_value for name, changed_value in changed.items()} if rename else changed
                )
        return out

    def _item(self, value: Any, field: Field, version: str, raw: Mapping[str, Any], key: str) -> Any:
        if value is None:
            return None
        if not field.scalar:
            return self._struct(value, field.type, version)
        if value in field.values:
            self._new.names.gave(value)
            return value
        if field.anonymize in self.beside:
            return self.beside[field.anonymize](raw, key, value)
        if field.anonymize and field.container != "map":
            return self.texts[field.anonymize](value)
        return self._unknown(value) if field.type in _TEXTS else value

    def _unknown(self, value: Any) -> Any:
        """An unknown value, reduced to its type, which may matter."""
        if isinstance(value, str):
            return LEFT_OUT
        if isinstance(value, Mapping):
            return {}
        return [self._unknown(item) for item in value] if isinstance(value, list) else value

    def _value(self, raw: Mapping[str, Any], _: str, value: Any) -> Any:
        """The value of a label or taint, in a struct with its key."""
        return value if raw.get("operator") in _NUMERIC else self._new.value(raw.get("key") or "", value)

    def _selector(self, value: Mapping[str, Any]) -> Json:
        """Labels, or a selector of labels."""
        if all(isinstance(text, str) for text in value.values()):
            return self._new.labels(value)
        return self._struct(value, "LabelSelector", "v1")

    def _settings(self, data: Mapping[str, Any]) -> Json:
        """What a ConfigMap holds."""
        out: Json = renamed_settings(data, self._new.key, self._new.resource, self._new.device_class, LEFT_OUT)
        for text in out.values():
            self._new.names.gave(text)
        return out

    def _reason(self, text: str) -> str:
        """A reason; the kubelet's for a lack of something has the resource's name in it."""
        resource = text.removeprefix(OUT_OF)
        return OUT_OF + self._new.resource(resource) if resource != text else self._new.plain("reason", text)

    def _device_source(self, name: str) -> str:
        """A resource's name, or ``claim:`` with the pod's name of the claim and that of a request."""
        if not name.startswith(_CLAIM):
            return self._new.resource(name)
        claim, slash, request = name.removeprefix(_CLAIM).partition("/")
        return f"{_CLAIM}{self._new.plain('podclaim', claim)}{slash}{self._new.request(request)}"

    def _consumer(self, raw: Mapping[str, Any], _: str, name: str) -> str:
        return self._new.name(_CONSUMERS.get(raw.get("resource") or "", "owner"), name)

    def _parameters(self, raw: Mapping[str, Any], _: str, value: Any) -> Json:
        """Of the parameters for a driver, what needs one of its gates: those words are in our data."""
        driver, kept = catalogue().driver(str(raw.get("driver") or "")), dict[str, Any]()
        for gate, _path in driver.gates_needed(value) if driver is not None else ():
            for path, text in gate.needing(value).items():
                *ahead, last = path.split(".")
                at = kept
                for part in ahead:
                    at = at.setdefault(part, {})
                at[last] = text
                for word in (*ahead, last, text):
                    self._new.names.gave(word)
        return {LEFT_OUT: True, **kept}

    def _subject(self, raw: Mapping[str, Any], key: str, text: str) -> str:
        """Kind, version or name of what an event is about."""
        kind = raw.get("kind") or ""
        if key == "name":
            return self._new.name(_SUBJECTS.get(kind, "owner"), text)
        if key == "kind":
            return text if is_harmless(text) else "Owner"
        return f"{GROUP}/v1" if kind == "ResourceClaim" else "v1"
