"""The question: a pod with its claims resolved, or one claim."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from msgspec import Struct

from kubectl_dra.admission.plugins import Refusal
from kubectl_dra.api.claims import ResourceClaim, ResourceClaimTemplate
from kubectl_dra.api.pods import Pod, PodClaim
from kubectl_dra.cluster.claim_relation import as_made_for, made_for
from kubectl_dra.cluster.snapshot import Snapshot, stand_in
from kubectl_dra.data.messages import AUTOSCALERS


class Unresolved(Enum):
    """Why a pod cannot use a claim for one of its entries, or not yet."""

    CLAIM_MISSING = auto()
    MADE_CLAIM_GONE = auto()
    NO_SOURCE = auto()
    TEMPLATE_MISSING = auto()
    OF_ANOTHER_POD = auto()
    NOT_CREATED = auto()


class ClaimEntry(Struct, frozen=True):
    """One claim entry of a pod: the claim that it resolves to, or what prevents that.

    ``name`` is the claim's name from the entry or the pod's status. ``hypothetical`` claims do not exist: the
    entry's template would create them.
    """

    entry: str
    template: str = ""
    claim: ResourceClaim | None = None
    hypothetical: bool = False
    name: str = ""
    unresolved: Unresolved | None = None


class Question(Struct, frozen=True):
    """A pod or a claim to explain. ``exists``: it is in the cluster.

    ``refusals`` are the reasons for which the API server would refuse a pod that does not exist yet,
    ``unread`` the kinds that would affect that but were not read.
    """

    kind: str
    namespace: str
    name: str
    pod: Pod | None
    claims: tuple[ClaimEntry, ...]
    exists: bool = True
    refusals: tuple[Refusal, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def existing_claims(self) -> list[ResourceClaim]:
        """The claims that entries resolve to, including those that do not exist yet."""
        return [claim_entry.claim for claim_entry in self.claims if claim_entry.claim is not None]

    @property
    def waiting_pod(self) -> Pod | None:
        """The pod that is asked about, while it has no node and has not ended."""
        pod = self.pod
        return None if pod is None or pod.node_name or pod.finished else pod

    @property
    def made_by(self) -> str:
        """Kind and name of what is going to make the pod; empty where it is there, or is written by itself."""
        stands_for = stand_in(self.pod) if not self.exists else None
        return f"{stands_for.kind} {self.namespace}/{stands_for.name}" if stands_for is not None else ""


def about_claim(claim: ResourceClaim) -> Question:
    """The question about one claim, without a pod."""
    return Question(
        kind="claim",
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        pod=None,
        claims=(ClaimEntry(claim.metadata.name, claim=claim),),
        exists=bool(claim.metadata.uid),
    )


def about_template(template: ResourceClaimTemplate) -> Question:
    """The question about a claim as a template makes it, which does not exist."""
    name, namespace = template.metadata.name, template.metadata.namespace
    claim_entry = ClaimEntry(name, template=name, claim=template.claim(name, namespace))
    return Question(kind="claim", namespace=namespace, name=name, pod=None, claims=(claim_entry,), exists=False)


def about_pod(pod: Pod, snapshot: Snapshot, *, exists: bool) -> Question:
    """The question about a pod. A pod that does not exist yet gets its template claims hypothetically."""
    resolved = (_resolve(pod, pod_claim, snapshot, exists=exists) for pod_claim in pod.claims)
    return Question(
        kind="pod",
        namespace=pod.metadata.namespace,
        name=pod.metadata.name or pod.metadata.generate_name,
        pod=pod,
        claims=tuple(claim_entry for claim_entry in resolved if claim_entry is not None),
        exists=exists,
    )


def _resolve(pod: Pod, pod_claim: PodClaim, snapshot: Snapshot, *, exists: bool) -> ClaimEntry | None:
    """The entry; None if its template makes no claim."""
    namespace, template = pod.metadata.namespace, pod_claim.template_name
    if pod_claim.claim_name:
        claim = snapshot.claims.get((namespace, pod_claim.claim_name))
        missing = Unresolved.CLAIM_MISSING if claim is None else None
        return ClaimEntry(pod_claim.name, claim=claim, name=pod_claim.claim_name, unresolved=missing)
    if not template:
        return ClaimEntry(pod_claim.name, unresolved=Unresolved.NO_SOURCE)
    if pod_claim.name in pod.claim_statuses:
        name = pod.claim_statuses[pod_claim.name]
        if not name:
            return None
        claim = snapshot.claims.get((namespace, name))
        if claim is not None:
            other = None if made_for(claim, pod, pod.pod_group) else Unresolved.OF_ANOTHER_POD
            return ClaimEntry(pod_claim.name, template, claim, name=name, unresolved=other)
        return ClaimEntry(pod_claim.name, template, name=name, unresolved=Unresolved.MADE_CLAIM_GONE)
    source = snapshot.templates.get((namespace, template))
    if source is None:
        return ClaimEntry(pod_claim.name, template, unresolved=Unresolved.TEMPLATE_MISSING)
    base = pod.metadata.name or pod.metadata.generate_name.rstrip("-") or "pod"
    name = f"{base}-{pod_claim.name}"
    while (namespace, name) in snapshot.claims:
        # The claim controller makes names that nothing has.
        name += "-new"
    claim = as_made_for(pod, source.claim(name, namespace), name)
    waiting = Unresolved.NOT_CREATED if exists else None
    return ClaimEntry(pod_claim.name, template, claim, hypothetical=True, unresolved=waiting)


# The scheduler's last message about a pod.


class LastMessage(NamedTuple):
    """A message and its time, empty if it has none; ``event``: from an event, else from the pod's condition."""

    event: bool
    message: str
    time: str


def last_message(pod: Pod, snapshot: Snapshot) -> LastMessage | None:
    """The scheduler's last message about a waiting pod; None if there is none."""
    condition = pod.condition("PodScheduled")
    events = [event for event in snapshot.events_of(pod, "FailedScheduling") if event.speaker not in AUTOSCALERS]
    if events and condition.last_transition_time <= events[-1].last:
        return LastMessage(True, events[-1].message, events[-1].last)
    if condition.status == "False":
        return LastMessage(False, condition.message, condition.last_transition_time)
    return None
