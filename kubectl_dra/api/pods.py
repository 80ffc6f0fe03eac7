"""Pods (core/v1): what decides about their claims and their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubectl_dra.api.meta import EMPTY, JSONObject, ObjectMeta


@dataclass(frozen=True, slots=True)
class PodClaim:
    """One entry of ``spec.resourceClaims``; at most one of the two names is set in a valid pod."""

    name: str
    claim_name: str = ""
    template_name: str = ""


@dataclass(frozen=True, slots=True)
class Container:
    """A container: name, resource requests, and the claims it uses as (claim entry, request)."""

    name: str
    requests: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[tuple[str, str], ...] = ()
    init: bool = False
    restart_policy: str = ""

    @property
    def long_lived(self) -> bool:
        """Regular containers and sidecars (init containers that restart always)."""
        return not self.init or self.restart_policy == "Always"


@dataclass(frozen=True, slots=True)
class PodCondition:
    """One entry of ``status.conditions``."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


@dataclass(frozen=True, slots=True)
class Pod:
    """A v1 Pod. ``raw_spec`` holds affinity, tolerations and topology for the node-side checks.

    ``claim_statuses`` maps an entry of ``spec.resourceClaims`` to the generated claim's name; None says
    that the controller decided that no claim is needed.
    """

    metadata: ObjectMeta
    claims: tuple[PodClaim, ...] = ()
    containers: tuple[Container, ...] = ()
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    scheduling_gates: tuple[str, ...] = ()
    pod_group: str = ""
    priority: int = 0
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    claim_statuses: Mapping[str, str | None] = field(default_factory=dict)
    extended_resource_claim: str = ""
    raw_spec: JSONObject = field(default_factory=dict)

    @classmethod
    def from_json(cls, raw: JSONObject) -> Pod:
        spec = raw.get("spec") or EMPTY
        status = raw.get("status") or EMPTY
        extended = status.get("extendedResourceClaimStatus") or EMPTY
        return cls(
            metadata=ObjectMeta.from_json(raw.get("metadata") or EMPTY),
            claims=tuple(_pod_claim(entry) for entry in spec.get("resourceClaims") or ()),
            containers=tuple(
                _container(entry, init)
                for init, key in ((True, "initContainers"), (False, "containers"))
                for entry in spec.get(key) or ()
            ),
            node_name=spec.get("nodeName") or "",
            scheduler_name=spec.get("schedulerName") or "default-scheduler",
            scheduling_gates=tuple(gate.get("name") or "" for gate in spec.get("schedulingGates") or ()),
            pod_group=(spec.get("schedulingGroup") or EMPTY).get("podGroupName") or "",
            priority=int(spec.get("priority") or 0),
            phase=status.get("phase") or "",
            conditions=tuple(
                PodCondition(
                    type=entry.get("type") or "",
                    status=entry.get("status") or "",
                    reason=entry.get("reason") or "",
                    message=entry.get("message") or "",
                    last_transition_time=entry.get("lastTransitionTime") or "",
                )
                for entry in status.get("conditions") or ()
            ),
            claim_statuses={
                entry.get("name") or "": entry.get("resourceClaimName")
                for entry in status.get("resourceClaimStatuses") or ()
            },
            extended_resource_claim=extended.get("resourceClaimName") or "",
            raw_spec=spec,
        )

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self.metadata.key

    @property
    def finished(self) -> bool:
        """Whether the pod has ended and no longer needs its devices."""
        return self.phase in ("Succeeded", "Failed")

    def condition(self, kind: str) -> PodCondition | None:
        """The condition of that type, if the status has it."""
        return next((entry for entry in self.conditions if entry.type == kind), None)


def _pod_claim(raw: JSONObject) -> PodClaim:
    source = raw.get("source") or EMPTY
    return PodClaim(
        name=raw.get("name") or "",
        claim_name=raw.get("resourceClaimName") or source.get("resourceClaimName") or "",
        template_name=raw.get("resourceClaimTemplateName") or source.get("resourceClaimTemplateName") or "",
    )


def _container(raw: JSONObject, init: bool) -> Container:
    resources = raw.get("resources") or EMPTY
    requests = dict(resources.get("limits") or EMPTY)
    requests.update(resources.get("requests") or EMPTY)
    return Container(
        name=raw.get("name") or "",
        requests={key: str(value) for key, value in requests.items()},
        claims=tuple((entry.get("name") or "", entry.get("request") or "") for entry in resources.get("claims") or ()),
        init=init,
        restart_policy=raw.get("restartPolicy") or "",
    )
