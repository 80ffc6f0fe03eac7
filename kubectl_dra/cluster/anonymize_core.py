"""Replaces names in pods, nodes, quotas and events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.api.meta import DEVICE_EVENTS
from kubectl_dra.api.releases import GROUP
from kubectl_dra.cluster.anonymize_parts import Changes, Json
from kubectl_dra.cluster.anonymize_scheduling import SchedulingParts
from kubectl_dra.cluster.harmless import is_harmless

_CLAIM: Final = "claim:"
_EVENT_TIMES: Final = (
    "firstTimestamp",
    "lastTimestamp",
    "eventTime",
    "deprecatedFirstTimestamp",
    "deprecatedLastTimestamp",
)


class CoreParts(SchedulingParts):
    """Objects of the core API."""

    def node(self, raw: Mapping[str, Any]) -> Json:
        """Spec and status of a Node."""
        changes: Changes = {"allocatable": self._new.resources, "conditions": self._each(self._condition)}
        return {
            "spec": self._fields(raw.get("spec") or {}, {"taints": self._each(self._taint)}, ("unschedulable",)),
            "status": self._fields(raw.get("status") or {}, changes, ("nodeInfo", "declaredFeatures")),
        }

    def pod(self, raw: Mapping[str, Any]) -> Json:
        """Spec and status of a Pod."""
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
            "topologySpreadConstraints": self._each(self.content),
            "resources": self.content,
            "workloadRef": self.content,
            "overhead": self._new.resources,
            "initContainers": containers,
            "containers": containers,
            "volumes": self._each(self.volume),
        }
        status: Changes = {
            "conditions": self._each(self._condition),
            "resourceClaimStatuses": self._each(self._claim_status),
            "extendedResourceClaimStatus": self._claim_status,
            "nodeAllocatableResourceClaimStatuses": self._each(self._of_node_for_claim),
            "nominatedNodeName": lambda name: self._new.names.of("node", name),
            "resources": self.content,
            "allocatedResources": self._new.resources,
            "initContainerStatuses": self._each(self._container_status),
            "containerStatuses": self._each(self._container_status),
            "reason": lambda reason: self._new.plain("reason", reason),
        }
        return {
            "spec": self._fields(raw.get("spec") or {}, changes, ("priority", "preemptionPolicy", "hostNetwork")),
            "status": self._fields(raw.get("status") or {}, status, ("phase", "startTime")),
        }

    def _container(self, raw: Mapping[str, Any]) -> Json:
        def resources(entry: Mapping[str, Any]) -> Json:
            changes: Changes = {
                "requests": self._new.resources,
                "limits": self._new.resources,
                "claims": self._each(self._container_claim),
            }
            return self._fields(entry, changes, ())

        changes: Changes = {"name": lambda name: self._new.names.of("container", name), "resources": resources}
        return self._fields(raw, changes, ("restartPolicy", "restartPolicyRules", "ports"))

    def _container_claim(self, raw: Mapping[str, Any]) -> Json:
        changes: Changes = {"name": lambda name: self._new.plain("podclaim", name), "request": self._new.request}
        return self._fields(raw, changes, ())

    def _container_status(self, raw: Mapping[str, Any]) -> Json:
        """Why a container waits, and the health of its devices, without texts and ids."""
        out: Json = {"name": self._new.names.of("container", raw.get("name") or "")}
        if raw.get("resources"):
            out["resources"] = self.content(raw["resources"])
        if raw.get("allocatedResources"):
            out["allocatedResources"] = self._new.resources(raw["allocatedResources"])
        if waiting := (raw.get("state") or {}).get("waiting"):
            out["state"] = {"waiting": {"reason": self._new.plain("reason", waiting.get("reason") or "")}}
        elif ended := (raw.get("state") or {}).get("terminated"):
            kept = {key: ended[key] for key in ("exitCode", "finishedAt") if key in ended}
            out["state"] = {"terminated": {**kept, "reason": self._new.plain("reason", ended.get("reason") or "")}}
        if known := raw.get("allocatedResourcesStatus"):
            out["allocatedResourcesStatus"] = [
                {
                    "name": self._device_source(entry.get("name") or ""),
                    "resources": [
                        {"resourceID": "device", "health": one.get("health")} for one in entry.get("resources") or ()
                    ],
                }
                for entry in known
            ]
        return out

    def _device_source(self, name: str) -> str:
        """A resource's name, or ``claim:`` with the pod's name of the claim and that of a request."""
        if not name.startswith(_CLAIM):
            return self._new.resource(name)
        claim, slash, request = name.removeprefix(_CLAIM).partition("/")
        return f"{_CLAIM}{self._new.plain('podclaim', claim)}{slash}{self._new.request(request)}"

    def _pod_claim(self, raw: Mapping[str, Any]) -> Json:
        changes: Changes = {
            "resourceClaimName": lambda name: self._new.names.of("claim", name),
            "resourceClaimTemplateName": lambda name: self._new.names.of("template", name),
            "source": self._pod_claim,
            "name": lambda name: self._new.plain("podclaim", name),
        }
        return self._fields(raw, changes, ())

    def _claim_status(self, raw: Mapping[str, Any]) -> Json:
        out: Json = {"name": self._new.plain("podclaim", raw["name"] or "")} if "name" in raw else {}
        if raw.get("requestMappings"):
            out["requestMappings"] = [self._mapping(entry) for entry in raw["requestMappings"]]
        if raw.get("resourceClaimName"):
            out["resourceClaimName"] = self._new.names.of("claim", raw["resourceClaimName"])
        return out

    def _of_node_for_claim(self, raw: Mapping[str, Any]) -> Json:
        """What a claim's devices take of the node's own resources for the pod."""
        amounts = ("quantity", "perPod", "perContainer")
        named: Changes = {"name": self._new.resource, "resourceName": self._new.resource}
        changes: Changes = {
            "resourceClaimName": lambda name: self._new.names.of("claim", name),
            "containers": self._each(lambda name: self._new.names.of("container", name)),
            "resources": self._new.resources,
            "mapping": self._each(lambda entry: self._fields(entry, named, amounts)),
            "overhead": self._each(lambda entry: self._fields(entry, named, amounts)),
        }
        return self._fields(raw, changes, ())

    def _mapping(self, raw: Mapping[str, Any]) -> Json:
        """Which request a container's extended resource became."""
        changes: Changes = {
            "containerName": lambda name: self._new.names.of("container", name),
            "resourceName": self._new.resource,
            "requestName": self._new.request,
        }
        return self._fields(raw, changes, ())

    def _affinity(self, raw: Mapping[str, Any]) -> Json:
        """What nodes and pods are required; preferences are dropped because they rule out nothing."""
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        out: Json = {}
        selector = (raw.get("nodeAffinity") or {}).get(required)
        if selector is not None:
            out["nodeAffinity"] = {required: self._node_selector(selector)}
        for key in ("podAffinity", "podAntiAffinity"):
            if raw.get(key):
                out[key] = {required: [self.content(term) for term in raw[key].get(required) or ()]}
        return out

    def quota(self, raw: Mapping[str, Any]) -> Json:
        """Spec and status of a ResourceQuota."""
        out: Json = {}
        for part in ("spec", "status"):
            amounts = raw.get(part) or {}
            out[part] = {key: self._new.resources(amounts[key]) for key in ("hard", "used") if amounts.get(key)}
        return out

    def event(self, raw: Mapping[str, Any]) -> Json:
        """An Event without its metadata."""

        def about(entry: Mapping[str, Any]) -> Json:
            kind = entry.get("kind") or ""
            kind = kind if is_harmless(kind) else "Owner"
            category = {"Pod": "pod", "ResourceClaim": "claim"}.get(kind, "owner")
            return {
                "apiVersion": f"{GROUP}/v1" if kind == "ResourceClaim" else "v1",
                "kind": kind,
                "namespace": self._new.namespace(entry.get("namespace") or ""),
                "name": self._new.names.of(category, entry.get("name") or ""),
                "uid": self._new.names.scrambled(entry.get("uid") or ""),
            }

        def message(text: str) -> str:
            return self._new.names.text(text) if raw.get("reason") in DEVICE_EVENTS else ""

        def component(entry: Mapping[str, Any]) -> Json:
            return {"component": self._component(entry.get("component") or "")}

        changes: Changes = {
            "involvedObject": about,
            "regarding": about,
            "reason": lambda name: self._new.plain("reason", name),
            "message": message,
            "note": message,
            "source": component,
            "deprecatedSource": component,
            "reportingComponent": self._component,
            "reportingController": self._component,
        }
        kept = ("type", "count", "deprecatedCount", "series")
        rest = {key: value for key, value in raw.items() if key not in ("apiVersion", "kind", "metadata")}
        return self._fields(rest, changes, (*kept, *_EVENT_TIMES))

    def _component(self, name: str) -> str:
        return self._new.names.known("scheduler", name) or self._new.plain("component", name)
