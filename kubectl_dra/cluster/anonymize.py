"""Objects without names that tell whose they are, and of which ``explain`` still says the same.

Replaced: names of nodes, namespaces, pods, claims, templates, rules, quotas, slices and owners; classes but those of
drivers; pools and devices that contain a node's name; label and taint keys but well-known ones, and their values;
UUIDs, serial numbers and addresses; the words of messages that are such names; in CEL selectors, the literals that
equal replaced values. Left out: opaque configuration, driver data, comments in selectors, fields that nobody knows.
Kept: drivers, attributes and their other values, capacities, requests, resource amounts, times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubectl_dra.allocation.extended import MADE_FOR_EXTENDED
from kubectl_dra.api.events import DEVICE_EVENTS
from kubectl_dra.api.versions import GROUP
from kubectl_dra.cluster.identities import KEPT_NAMESPACES, Identities
from kubectl_dra.errors import InputError

Json = dict[str, Any]
Changes = dict[str, Callable[[Any], Any]]

_CATEGORIES = "node namespace pod claim template class pool slice rule quota podgroup owner scheduler key value"
_EVENT_TIMES: Final = (
    "firstTimestamp",
    "lastTimestamp",
    "eventTime",
    "deprecatedFirstTimestamp",
    "deprecatedLastTimestamp",
)
LEFT_OUT: Final = "left-out"


class Anonymizer:
    """Replaces names in objects of one cluster: the same name becomes the same everywhere."""

    def __init__(self, items: Iterable[Mapping[str, Any]], seed: str) -> None:
        """``items`` are all objects that will be replaced; ``seed`` decides which values serial numbers get."""
        items = list(items)
        specs = [item.get("spec") or {} for item in items if item["kind"] == "ResourceSlice"]
        self._new = Identities({spec.get("driver") or "" for spec in specs} - {""}, seed)
        self._kinds = self._changes()
        for item in items:
            self.item(item)
        self._new.names.freeze()
        self._new.names.settle("pool", self._new.names.embedded)
        self._new.names.words(_CATEGORIES.split())

    def names(self) -> dict[str, dict[str, str]]:
        """What was replaced: by category (node, pod …) the name and what it is called now."""
        given = self._new.names.given()
        nodes = given.get("node", {})
        given["value"] = {name: other for name, other in given.pop("value", {}).items() if name not in nodes}
        return given

    def namespace(self, name: str) -> str:
        """What a namespace is called now."""
        return self._new.namespace(name)

    def text(self, message: str) -> str:
        """A message with the names in it replaced."""
        return self._new.names.text(message)

    def said(self, said: Mapping[str, Any]) -> Json:
        """What a snapshot says about itself, see ``cluster.save``."""
        out = {**said, "anonymized": True, "notes": [self.text(note) for note in said.get("notes") or ()]}
        out["gaps"] = [{**gap} for gap in said.get("gaps") or ()]
        for gap in out["gaps"]:
            if "detail" in gap:
                gap["detail"] = self.text(gap["detail"])
            if gap.get("namespace", "default") not in KEPT_NAMESPACES:
                gap["namespace"] = self._new.names.known("namespace", gap["namespace"]) or LEFT_OUT
        return out

    def item(self, raw: Mapping[str, Any]) -> Json:
        """An object of a kind of ``cluster.snapshot.KINDS``, as ``cluster.save.reduced`` gives it.

        Raises:
            InputError: an object that cannot be understood.
        """
        kind, meta = raw["kind"], raw.get("metadata") or {}
        category, change = self._kinds[kind]
        try:
            metadata = self._metadata(meta, category, labels=kind in ("Node", "Namespace"))
            return {"apiVersion": raw["apiVersion"], "kind": kind, "metadata": metadata, **change(raw)}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{kind} {meta.get('name') or ''} cannot be understood: {error}") from None

    def _changes(self) -> dict[str, tuple[str, Callable[[Mapping[str, Any]], Json]]]:
        return {
            "ResourceSlice": ("slice", lambda raw: {"spec": self._slice(raw.get("spec") or {})}),
            "DeviceClass": ("class", lambda raw: {"spec": self._class_spec(raw.get("spec") or {})}),
            "ResourceClaim": ("claim", self._claim),
            "ResourceClaimTemplate": (
                "template",
                lambda raw: {"spec": {"spec": self._claim_spec((raw.get("spec") or {}).get("spec") or {})}},
            ),
            "DeviceTaintRule": ("rule", lambda raw: {"spec": self._rule(raw.get("spec") or {})}),
            "Pod": ("pod", self._pod),
            "Node": ("node", self._node),
            "Namespace": ("namespace", lambda raw: {}),
            "ResourceQuota": ("quota", self._quota),
            "Event": ("event", self._event),
        }

    def _unknown(self, value: Any) -> Any:
        """Something that nobody knows: its type is what may count."""
        if isinstance(value, str):
            return LEFT_OUT
        if isinstance(value, Mapping):
            return {}
        return [self._unknown(entry) for entry in value] if isinstance(value, list) else value

    def _fields(self, raw: Mapping[str, Any], changes: Mapping[str, Callable[[Any], Any]], kept: Iterable[str]) -> Json:
        """The object with some fields changed and some kept; of others remains that they are there."""
        kept = frozenset(kept)
        return {
            key: value
            if value is None or key in kept
            else changes[key](value)
            if key in changes
            else self._unknown(value)
            for key, value in raw.items()
        }

    def _each(self, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda entries: [change(entry) for entry in entries]

    def _metadata(self, meta: Mapping[str, Any], category: str, *, labels: bool) -> Json:
        out: Json = {"name": self._new.name(category, meta.get("name") or "")}
        if meta.get("namespace"):
            out["namespace"] = self._new.namespace(meta["namespace"])
        if meta.get("uid"):
            out["uid"] = self._new.names.scrambled(meta["uid"])
        if meta.get("generateName"):
            out["generateName"] = f"{category}-"
        for key in ("resourceVersion", "creationTimestamp", "deletionTimestamp"):
            if meta.get(key):
                out[key] = meta[key]
        if labels and meta.get("labels"):
            out["labels"] = self._new.labels(meta["labels"])
        if MADE_FOR_EXTENDED in (meta.get("annotations") or ()):
            out["annotations"] = {MADE_FOR_EXTENDED: meta["annotations"][MADE_FOR_EXTENDED]}
        if meta.get("finalizers"):
            out["finalizers"] = [self._new.key(name) for name in meta["finalizers"]]
        if meta.get("ownerReferences"):
            out["ownerReferences"] = [self._owner(entry) for entry in meta["ownerReferences"]]
        return out

    def _owner(self, raw: Mapping[str, Any]) -> Json:
        kind = raw.get("kind") or ""
        known_kinds = {"Pod": "pod", "Node": "node", "ResourceClaim": "claim", "PodGroup": "podgroup"}
        category = known_kinds.get(kind, "owner")
        known = "/" not in (raw.get("apiVersion") or "") or category != "owner"
        out: Json = {
            "apiVersion": raw.get("apiVersion") if known else "apps/v1",
            "kind": kind,
            "name": self._new.names.of(category, raw.get("name") or ""),
            "uid": self._new.names.scrambled(raw.get("uid") or ""),
        }
        if "controller" in raw:
            out["controller"] = raw["controller"]
        return out

    # Kinds of resource.k8s.io

    def _slice(self, spec: Mapping[str, Any]) -> Json:
        kept = ("driver", "allNodes", "perDeviceNodeSelection")
        changes: Changes = {
            "pool": lambda pool: {**pool, "name": self._new.names.of("pool", pool.get("name") or "")},
            "nodeName": lambda name: self._new.names.of("node", name),
            "nodeSelector": self._node_selector,
            "sharedCounters": self._each(
                lambda entry: {**entry, "name": self._new.names.embedded(entry.get("name") or "")}
            ),
            "devices": self._each(self._device),
        }
        return self._fields(spec, changes, kept)

    def _device(self, raw: Mapping[str, Any]) -> Json:
        if "basic" in raw:
            return {"name": self._new.names.embedded(raw.get("name") or ""), "basic": self._device(raw["basic"] or {})}
        kept = (
            "capacity",
            "allNodes",
            "bindsToNode",
            "bindingConditions",
            "bindingFailureConditions",
            "allowMultipleAllocations",
        )
        changes: Changes = {
            "name": self._new.names.embedded,
            "attributes": lambda entries: {name: self._new.attribute(name, entry) for name, entry in entries.items()},
            "nodeName": lambda name: self._new.names.of("node", name),
            "nodeSelector": self._node_selector,
            "taints": self._each(self._taint),
            "consumesCounters": self._each(
                lambda entry: {**entry, "counterSet": self._new.names.embedded(entry.get("counterSet") or "")}
            ),
        }
        return self._fields(raw, changes, kept)

    def _taint(self, raw: Mapping[str, Any]) -> Json:
        """A taint or a toleration."""
        key = raw.get("key") or ""
        changes: Changes = {
            "key": lambda text: self._new.key(text) if text else text,
            "value": lambda value: self._new.value(key, value),
        }
        return self._fields(raw, changes, ("effect", "operator", "timeAdded", "tolerationSeconds"))

    def _rule(self, spec: Mapping[str, Any]) -> Json:
        selector: Changes = {
            "pool": lambda name: self._new.names.of("pool", name),
            "device": self._new.names.embedded,
            "deviceClassName": self._new.device_class,
            "selectors": self._each(self._selector),
        }
        changes: Changes = {
            "deviceSelector": lambda raw: self._fields(raw, selector, ("driver",)),
            "taint": self._taint,
        }
        return self._fields(spec, changes, ())

    def _class_spec(self, spec: Mapping[str, Any]) -> Json:
        changes: Changes = {
            "selectors": self._each(self._selector),
            "config": self._each(self._config),
            "extendedResourceName": self._new.resource,
            "suitableNodes": self._node_selector,
        }
        return self._fields(spec, changes, ())

    def _claim(self, raw: Mapping[str, Any]) -> Json:
        status = raw.get("status") or {}
        out: Json = {"spec": self._claim_spec(raw.get("spec") or {})}
        kept: Json = {}
        if status.get("allocation"):
            kept["allocation"] = self._allocation(status["allocation"])
        if status.get("reservedFor"):
            kept["reservedFor"] = [self._consumer(entry) for entry in status["reservedFor"]]
        if status.get("devices"):
            kept["devices"] = [
                self._result({key: entry[key] for key in entry if key not in ("data", "networkData")})
                for entry in status["devices"]
            ]
        return {**out, "status": kept} if kept else out

    def _claim_spec(self, spec: Mapping[str, Any]) -> Json:
        inner: Changes = {
            "requests": self._each(self._request),
            "constraints": lambda entries: entries,
            "config": self._each(self._config),
        }
        return self._fields(spec, {"devices": lambda devices: self._fields(devices, inner, ())}, ())

    def _request(self, raw: Mapping[str, Any]) -> Json:
        changes: Changes = {
            "deviceClassName": self._new.device_class,
            "selectors": self._each(self._selector),
            "tolerations": self._each(self._taint),
            "exactly": self._request,
            "firstAvailable": self._each(self._request),
        }
        return self._fields(raw, changes, ("name", "allocationMode", "count", "adminAccess", "capacity"))

    def _selector(self, raw: Any) -> Any:
        cel = raw.get("cel") if isinstance(raw, Mapping) else None
        if not isinstance(cel, Mapping) or not isinstance(cel.get("expression"), str):
            return raw
        return {"cel": {"expression": self._new.expression(cel["expression"])}}

    def _config(self, raw: Mapping[str, Any]) -> Json:
        """Configuration for a driver: for which requests it is, but not what it says."""

        def opaque(entry: Mapping[str, Any]) -> Json:
            return {"driver": entry.get("driver") or "", "parameters": {LEFT_OUT: True}}

        return self._fields(raw, {"opaque": opaque}, ("requests", "source"))

    def _allocation(self, raw: Mapping[str, Any]) -> Json:
        inner: Changes = {"results": self._each(self._result), "config": self._each(self._config)}
        changes: Changes = {
            "nodeSelector": self._node_selector,
            "devices": lambda devices: self._fields(devices, inner, ()),
        }
        return self._fields(raw, changes, ("allocationTimestamp",))

    def _result(self, raw: Mapping[str, Any]) -> Json:
        kept = ("request", "driver", "adminAccess", "consumedCapacity", "bindingConditions", "bindingFailureConditions")
        changes: Changes = {
            "pool": lambda name: self._new.names.of("pool", name),
            "device": self._new.names.embedded,
            "shareID": self._new.names.scrambled,
            "tolerations": self._each(self._taint),
            "conditions": self._each(self._condition),
        }
        return self._fields(raw, changes, kept)

    def _consumer(self, raw: Mapping[str, Any]) -> Json:
        category = {"pods": "pod", "podgroups": "podgroup"}.get(raw.get("resource") or "", "owner")
        changes: Changes = {"name": lambda name: self._new.names.of(category, name), "uid": self._new.names.scrambled}
        return self._fields(raw, changes, ("resource", "apiGroup"))

    def _condition(self, raw: Mapping[str, Any]) -> Json:
        kept = ("type", "status", "reason", "lastTransitionTime", "observedGeneration")
        return self._fields(raw, {"message": self.text}, kept)

    # Nodes and pods

    def _node(self, raw: Mapping[str, Any]) -> Json:
        changes: Changes = {"allocatable": self._new.resources, "conditions": self._each(self._condition)}
        return {
            "spec": self._fields(raw.get("spec") or {}, {"taints": self._each(self._taint)}, ("unschedulable",)),
            "status": self._fields(raw.get("status") or {}, changes, ("nodeInfo",)),
        }

    def _node_selector(self, raw: Mapping[str, Any]) -> Json:
        terms = raw.get("nodeSelectorTerms") or ()
        return {"nodeSelectorTerms": [self._term(term) for term in terms]}

    def _term(self, raw: Mapping[str, Any]) -> Json:
        out: Json = {}
        if raw.get("matchExpressions"):
            out["matchExpressions"] = [self._requirement(entry) for entry in raw["matchExpressions"]]
        if raw.get("matchFields"):
            out["matchFields"] = [
                {**entry, "values": [self._new.names.of("node", name) for name in entry.get("values") or ()]}
                for entry in raw["matchFields"]
            ]
        return out

    def _requirement(self, raw: Mapping[str, Any]) -> Json:
        key, operator = raw.get("key") or "", raw.get("operator") or ""
        out: Json = {"key": self._new.key(key), "operator": operator}
        if raw.get("values"):
            values = raw["values"]
            out["values"] = values if operator in ("Gt", "Lt") else [self._new.value(key, value) for value in values]
        return out

    def _pod(self, raw: Mapping[str, Any]) -> Json:
        containers = self._each(self._container)
        changes: Changes = {
            "nodeName": lambda name: self._new.names.of("node", name),
            "schedulerName": self._new.scheduler,
            "schedulingGates": self._each(lambda entry: {"name": self._new.key(entry.get("name") or "")}),
            "schedulingGroup": lambda entry: {
                "podGroupName": self._new.names.of("podgroup", entry.get("podGroupName") or "")
            },
            "resourceClaims": self._each(self._pod_claim),
            "nodeSelector": self._new.labels,
            "affinity": self._affinity,
            "tolerations": self._each(self._taint),
            "topologySpreadConstraints": self._each(
                lambda entry: self._fields(entry, {"topologyKey": self._new.key}, ("maxSkew", "whenUnsatisfiable"))
            ),
            "overhead": self._new.resources,
            "initContainers": containers,
            "containers": containers,
            "volumes": self._each(self._volume),
        }
        status: Changes = {
            "conditions": self._each(self._condition),
            "resourceClaimStatuses": self._each(self._claim_status),
            "extendedResourceClaimStatus": self._claim_status,
        }
        return {
            "spec": self._fields(raw.get("spec") or {}, changes, ("priority",)),
            "status": self._fields(raw.get("status") or {}, status, ("phase",)),
        }

    def _container(self, raw: Mapping[str, Any]) -> Json:
        def resources(entry: Mapping[str, Any]) -> Json:
            return self._fields(entry, {"requests": self._new.resources, "limits": self._new.resources}, ("claims",))

        changes: Changes = {"name": lambda name: self._new.names.of("container", name), "resources": resources}
        return self._fields(raw, changes, ("restartPolicy", "ports"))

    def _volume(self, raw: Mapping[str, Any]) -> Json:
        kind = "ephemeral" if "ephemeral" in raw else "persistentVolumeClaim"
        content = {} if kind == "ephemeral" else {"claimName": LEFT_OUT}
        return {"name": self._new.names.of("volume", raw.get("name") or ""), kind: content}

    def _pod_claim(self, raw: Mapping[str, Any]) -> Json:
        changes: Changes = {
            "resourceClaimName": lambda name: self._new.names.of("claim", name),
            "resourceClaimTemplateName": lambda name: self._new.names.of("template", name),
            "source": self._pod_claim,
        }
        return self._fields(raw, changes, ("name",))

    def _claim_status(self, raw: Mapping[str, Any]) -> Json:
        out: Json = {"name": raw["name"]} if "name" in raw else {}
        if raw.get("resourceClaimName"):
            out["resourceClaimName"] = self._new.names.of("claim", raw["resourceClaimName"])
        return out

    def _affinity(self, raw: Mapping[str, Any]) -> Json:
        """What nodes are required; of affinity to pods, only that there is some."""
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        out: Json = {}
        selector = (raw.get("nodeAffinity") or {}).get(required)
        if selector is not None:
            out["nodeAffinity"] = {required: self._node_selector(selector)}
        for key in ("podAffinity", "podAntiAffinity"):
            if raw.get(key):
                out[key] = {required: []}
        return out

    # Other kinds

    def _quota(self, raw: Mapping[str, Any]) -> Json:
        out: Json = {}
        for part in ("spec", "status"):
            amounts = raw.get(part) or {}
            out[part] = {key: self._new.resources(amounts[key]) for key in ("hard", "used") if amounts.get(key)}
        return out

    def _event(self, raw: Mapping[str, Any]) -> Json:
        def about(entry: Mapping[str, Any]) -> Json:
            kind = entry.get("kind") or ""
            category = {"Pod": "pod", "ResourceClaim": "claim"}.get(kind, "owner")
            return {
                "apiVersion": f"{GROUP}/v1" if kind == "ResourceClaim" else "v1",
                "kind": kind,
                "namespace": self._new.namespace(entry.get("namespace") or ""),
                "name": self._new.names.of(category, entry.get("name") or ""),
                "uid": self._new.names.scrambled(entry.get("uid") or ""),
            }

        def message(text: str) -> str:
            return self.text(text) if raw.get("reason") in DEVICE_EVENTS else ""

        def component(entry: Mapping[str, Any]) -> Json:
            return {"component": self._component(entry.get("component") or "")}

        changes: Changes = {
            "involvedObject": about,
            "regarding": about,
            "message": message,
            "note": message,
            "source": component,
            "deprecatedSource": component,
            "reportingComponent": self._component,
            "reportingController": self._component,
        }
        kept = ("reason", "type", "count", "deprecatedCount", "series")
        rest = {key: value for key, value in raw.items() if key not in ("apiVersion", "kind", "metadata")}
        return self._fields(rest, changes, (*kept, *_EVENT_TIMES))

    def _component(self, name: str) -> str:
        return self._new.names.known("scheduler", name) or name
