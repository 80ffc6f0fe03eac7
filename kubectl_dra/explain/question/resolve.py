"""What is asked: a pod with its claims resolved, or one claim, and what is wrong before any device counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod, PodClaim
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain import admission, after, unscheduled
from kubectl_dra.explain.causes import claim as claim_causes
from kubectl_dra.explain.causes import pod as pod_causes
from kubectl_dra.explain.diagnosis import Cause, Evidence
from kubectl_dra.names import nearest
from kubectl_dra.wording import some

_KUEUE = "kueue.x-k8s.io/"
CREATION_FAILED = "FailedResourceClaimCreation"


@dataclass(frozen=True, slots=True)
class PodClaimState:
    """One claim entry of a pod: the claim it resolves to, or what stands in the way.

    ``hypothetical`` claims do not exist: they are what the entry's template would make.
    """

    entry: str
    template: str = ""
    claim: ResourceClaim | None = None
    hypothetical: bool = False
    causes: tuple[Cause, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A pod or a claim to explain. ``causes`` hold for the pod as a whole; ``exists``: it is in the cluster."""

    kind: str
    namespace: str
    name: str
    pod: Pod | None
    claims: tuple[PodClaimState, ...]
    causes: tuple[Cause, ...] = ()
    exists: bool = True


def about_claim(claim: ResourceClaim, snapshot: Snapshot) -> Question:
    """The question about one claim, without a pod."""
    causes: list[Cause] = []
    if claim.metadata.deletion_timestamp:
        causes.append(_deleting(claim))
    if (claim.metadata.namespace, claim.metadata.name) not in snapshot.claims:
        causes.extend(admission.refusals([claim], snapshot))
    return Question(
        kind="claim",
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        pod=None,
        claims=(PodClaimState(entry=claim.metadata.name, claim=claim, causes=tuple(causes)),),
        exists=bool(claim.metadata.uid),
    )


def about_pod(pod: Pod, snapshot: Snapshot, *, exists: bool) -> Question:
    """The question about a pod. A pod that does not exist yet gets its template claims hypothetically."""
    resolved = (_resolve(pod, entry, snapshot, exists=exists) for entry in pod.claims)
    states = [state for state in resolved if state is not None]
    return Question(
        kind="pod",
        namespace=pod.metadata.namespace,
        name=pod.metadata.name or pod.metadata.generate_name,
        pod=pod,
        claims=tuple(states),
        causes=tuple(_pod_causes(pod, states, snapshot, exists=exists)),
        exists=exists,
    )


def _resolve(pod: Pod, entry: PodClaim, snapshot: Snapshot, *, exists: bool) -> PodClaimState | None:
    namespace = pod.metadata.namespace
    if entry.claim_name:
        claim = snapshot.claims.get((namespace, entry.claim_name))
        if claim is None:
            return PodClaimState(entry.name, causes=(_claim_missing(pod, entry, snapshot, exists=exists),))
        deleting = (_deleting(claim),) if claim.metadata.deletion_timestamp else ()
        return PodClaimState(entry.name, claim=claim, causes=deleting)
    if not entry.template_name:
        cause = Cause(
            pod_causes.ENTRY_WITHOUT_SOURCE,
            f'entry "{entry.name}" of spec.resourceClaims names neither a claim nor a template',
            (
                Evidence(
                    f"Pod {pod.key}",
                    f"spec.resourceClaims[{entry.name}]",
                    "no resourceClaimName, no resourceClaimTemplateName",
                ),
            ),
            pod_causes.ENTRY_WITHOUT_SOURCE.fix,
        )
        return PodClaimState(entry.name, causes=(cause,))
    return _resolve_template(pod, entry, snapshot, exists=exists)


def _resolve_template(pod: Pod, entry: PodClaim, snapshot: Snapshot, *, exists: bool) -> PodClaimState | None:
    namespace = pod.metadata.namespace
    if entry.name in pod.claim_statuses:
        name = pod.claim_statuses[entry.name]
        if not name:
            return None
        claim = snapshot.claims.get((namespace, name))
        if claim is None:
            cause = Cause(
                pod_causes.CLAIM_MISSING,
                f"ResourceClaim {namespace}/{name}, made for this pod, does not exist any more",
                (Evidence(f"Pod {pod.key}", "status.resourceClaimStatuses", f"{entry.name}: {name}"),),
                "Delete the pod so that its owner makes a new one.",
            )
            return PodClaimState(entry.name, entry.template_name, causes=(cause,))
        causes: list[Cause] = []
        owner = claim.metadata.controller()
        of_group = owner is not None and owner.kind == "PodGroup" and owner.name == pod.pod_group
        if pod.metadata.uid and not of_group and (owner is None or owner.uid != pod.metadata.uid):
            causes.append(
                Cause(
                    pod_causes.CLAIM_NOT_OWNED,
                    f"ResourceClaim {claim.key} belongs to another pod of that name",
                    (
                        Evidence(
                            f"ResourceClaim {claim.key}",
                            "metadata.ownerReferences[controller].uid",
                            owner.uid if owner else "none",
                        ),
                        Evidence(f"Pod {pod.key}", "metadata.uid", pod.metadata.uid),
                    ),
                    f"kubectl delete resourceclaim -n {namespace} {claim.metadata.name}",
                )
            )
        if claim.metadata.deletion_timestamp:
            causes.append(_deleting(claim))
        return PodClaimState(entry.name, entry.template_name, claim, causes=tuple(causes))
    template = snapshot.templates.get((namespace, entry.template_name))
    if template is None:
        missing = _template_missing(pod, entry, snapshot, exists=exists)
        return PodClaimState(entry.name, entry.template_name, causes=(missing,))
    base = pod.metadata.name or pod.metadata.generate_name.rstrip("-") or "pod"
    claim = template.claim(f"{base}-{entry.name}", namespace)
    causes = _not_created(pod, entry, snapshot) if exists else []
    return PodClaimState(entry.name, entry.template_name, claim, hypothetical=True, causes=tuple(causes))


def _not_created(pod: Pod, entry: PodClaim, snapshot: Snapshot) -> list[Cause]:
    for event in snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name):
        if event.reason == CREATION_FAILED:
            return [admission.denied(pod, entry.name, event)]
    if pod.pod_group:
        return [unscheduled.of_group(pod, entry.name, snapshot)]
    return [
        Cause(
            pod_causes.NOT_CREATED,
            f'the claim for entry "{entry.name}" has not been created from template {entry.template_name} yet',
            (Evidence(f"Pod {pod.key}", "status.resourceClaimStatuses", f"no entry {entry.name}"),),
            f"Look for FailedResourceClaimCreation: kubectl get events -n {pod.metadata.namespace} --field-selector "
            f"involvedObject.name={pod.metadata.name}. If there is none, check that kube-controller-manager runs.",
        )
    ]


def _claim_missing(pod: Pod, entry: PodClaim, snapshot: Snapshot, *, exists: bool) -> Cause:
    namespace, name = pod.metadata.namespace, entry.claim_name
    template = (namespace, name) in snapshot.templates
    near = nearest(name, [other for space, other in snapshot.claims if space == namespace])
    elsewhere = sorted(space for space, other in snapshot.claims if other == name)
    hint = ""
    if template:
        hint = f"; {name} is a ResourceClaimTemplate: use resourceClaimTemplateName"
    elif near:
        hint = f"; nearest: {', '.join(near)}"
    elif elsewhere:
        hint = f"; one of that name is in namespace {', '.join(elsewhere)}"
    fix = f"Create ResourceClaim {name} in namespace {namespace}, or name an existing one in a new pod."
    if near:
        where = "a new pod" if exists else "the manifest"
        fix = (
            f"Write resourceClaimName: {near[0]} in {where}. Or: create ResourceClaim {name} in namespace {namespace}."
        )
    if template:
        fix = f"Write resourceClaimTemplateName: {name} instead of resourceClaimName in a new pod."
    return Cause(
        pod_causes.CLAIM_MISSING,
        f"ResourceClaim {namespace}/{name} does not exist{hint}",
        (Evidence(f"Pod {pod.key}", f"spec.resourceClaims[{entry.name}].resourceClaimName", name),),
        fix,
    )


def _template_missing(pod: Pod, entry: PodClaim, snapshot: Snapshot, *, exists: bool) -> Cause:
    namespace, name = pod.metadata.namespace, entry.template_name
    is_claim = (namespace, name) in snapshot.claims
    near = nearest(name, [other for space, other in snapshot.templates if space == namespace])
    elsewhere = sorted(space for space, other in snapshot.templates if other == name)
    hint = ""
    if is_claim:
        hint = f"; {name} is a ResourceClaim: use resourceClaimName"
    else:
        here = sorted(other for space, other in snapshot.templates if space == namespace)
        if near or here:
            hint = f"; nearest: {', '.join(near)}" if near else f"; templates here: {some(here)}"
        if elsewhere:
            hint += f"; one of that name is in namespace {', '.join(elsewhere)}"
    fix = f"Create ResourceClaimTemplate {name} in namespace {namespace}; the claim follows by itself."
    if near:
        where = "a new pod" if exists else "the manifest"
        fix = f"Write resourceClaimTemplateName: {near[0]} in {where}. Or: {fix[0].lower()}{fix[1:]}"
    if is_claim:
        fix = f"Write resourceClaimName: {name} instead of resourceClaimTemplateName in a new pod."
    return Cause(
        pod_causes.TEMPLATE_MISSING,
        f"ResourceClaimTemplate {namespace}/{name} does not exist{hint}",
        (Evidence(f"Pod {pod.key}", f"spec.resourceClaims[{entry.name}].resourceClaimTemplateName", name),),
        fix,
    )


def _opens(pod: Pod) -> str:
    """Who removes the pod's scheduling gates."""
    if not any(gate.startswith(_KUEUE) for gate in pod.scheduling_gates):
        return pod_causes.SCHEDULING_GATED.fix
    return (
        f"Kueue removes the gate when it admits the workload: kubectl get workloads -n {pod.metadata.namespace}. Check "
        "that deviceClassMappings in its configuration name the claim's class."
    )


def _deleting(claim: ResourceClaim) -> Cause:
    fix = pod_causes.CLAIM_DELETING.fix
    if not claim.reserved_for and claim.metadata.finalizers:
        kept = ", ".join(claim.metadata.finalizers)
        fix = f"Nobody uses it: what keeps it is finalizer {kept}, which its controller has to remove."
    consumers = ", ".join(f"{entry.resource} {entry.name}" for entry in claim.reserved_for) or "nobody"
    return Cause(
        pod_causes.CLAIM_DELETING,
        f"ResourceClaim {claim.key} is being deleted since {claim.metadata.deletion_timestamp}",
        (
            Evidence(f"ResourceClaim {claim.key}", "metadata.deletionTimestamp", claim.metadata.deletion_timestamp),
            Evidence(
                f"ResourceClaim {claim.key}",
                "metadata.finalizers",
                ", ".join(claim.metadata.finalizers) or "none",
            ),
            Evidence(f"ResourceClaim {claim.key}", "status.reservedFor", consumers),
        ),
        fix,
    )


def _refused(states: Sequence[PodClaimState], snapshot: Snapshot) -> list[Cause]:
    """What stands against creating the claims that templates would make, unless an event says so already."""
    known = [cause.kind for state in states for cause in state.causes]
    claims = [state.claim for state in states if state.claim is not None and state.hypothetical]
    return [cause for cause in admission.refusals(claims, snapshot) if cause.kind not in known]


def _pod_causes(pod: Pod, states: Sequence[PodClaimState], snapshot: Snapshot, *, exists: bool) -> list[Cause]:
    claims = [state.claim for state in states if state.claim is not None]
    causes = list(after.evicted(pod, claims, snapshot))
    target = f"Pod {pod.key}"
    if pod.finished and not causes:
        causes.append(
            Cause(
                pod_causes.FINISHED,
                f"the pod has ended ({pod.phase})",
                (Evidence(target, "status.phase", pod.phase),),
                pod_causes.FINISHED.fix,
            )
        )
    if pod.scheduling_gates:
        gates = ", ".join(pod.scheduling_gates)
        causes.append(
            Cause(
                pod_causes.SCHEDULING_GATED,
                f"the pod is held back by scheduling gate {gates}",
                (Evidence(target, "spec.schedulingGates", gates),),
                _opens(pod),
            )
        )
    if not pod.node_name and not pod.finished:
        causes.extend(unscheduled.waiting_for_group(pod, snapshot))
        causes.extend(after.full(pod, claims))
        causes.extend(_refused(states, snapshot))
        if exists and not causes and not any(state.causes for state in states):
            causes.extend(unscheduled.ignored(pod, snapshot))
    if pod.node_name and not pod.finished:
        unallocated = [
            state.claim.key
            for state in states
            if state.claim is not None and state.claim.allocation is None and not state.hypothetical
        ]
        scheduled = pod.condition("PodScheduled")
        if unallocated and not (scheduled and scheduled.status == "True" and scheduled.reason):
            causes.append(
                Cause(
                    pod_causes.BOUND_BY_HAND,
                    f"the pod was bound to node {pod.node_name} past the scheduler, so nobody allocates "
                    f"{', '.join(unallocated)}",
                    (
                        Evidence(target, "spec.nodeName", pod.node_name),
                        Evidence(f"ResourceClaim {unallocated[0]}", "status.allocation", "not set"),
                    ),
                    pod_causes.BOUND_BY_HAND.fix,
                )
            )
        causes.extend(after.misplaced(pod, claims, snapshot))
    seen: dict[str, str] = {}
    for state in states:
        if state.claim is None or state.hypothetical:
            continue
        if state.claim.key in seen:
            causes.append(
                Cause(
                    claim_causes.TWICE,
                    f'entries "{seen[state.claim.key]}" and "{state.entry}" are both ResourceClaim {state.claim.key}',
                    (Evidence(target, "spec.resourceClaims", f"{seen[state.claim.key]}, {state.entry}"),),
                    claim_causes.TWICE.fix,
                )
            )
        seen.setdefault(state.claim.key, state.entry)
    return causes
