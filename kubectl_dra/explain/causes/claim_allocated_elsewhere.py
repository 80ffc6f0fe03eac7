"""A claim is allocated for nodes where the pod cannot run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.cluster.relation import relation_of
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import ObjectName, Subject, named, nodes_named, say
from kubectl_dra.explain.scene.holders import consumers_named
from kubectl_dra.explain.trial import Trial

MAX_NODES = 3

ELSEWHERE = CauseKind(code="claim-allocated-elsewhere", family=Family.CLAIM, look=Look.POD)
ELSEWHERE_UNUSED = CauseKind(code="claim-allocated-elsewhere-unused", family=Family.CLAIM, look=Look.POD)
STUCK = CauseKind(code="claim-stuck-elsewhere", family=Family.CLAIM, look=Look.POD)


def elsewhere(trial: Trial) -> Iterator[Finding]:
    """The unallocated claims fit, or there are none."""
    if trial.unavailable and (trial.fitting or not trial.claims):
        for found in _of_claims(trial):
            gives_back = found.kind is ELSEWHERE_UNUSED and trial.after_giving_back
            yield _given_back(found, trial.after_giving_back) if gives_back else found


def _given_back(found: Finding, nodes: Sequence[str]) -> Finding:
    """The scheduler resolves this by itself."""
    summary = say("the scheduler first takes back the devices of claim {claim}, which nobody uses", claim=found.claim)
    fact = Evidence("the scheduler", "binds the pod after that", say("{nodes:some}", nodes=nodes_named(nodes)))
    remedy = Remedy("Wait for the next attempt: the scheduler allocates the claim anew, where the pod can run.")
    return replace(found, summary=summary, evidence=(*found.evidence, fact), remedy=remedy)


def _stuck(trial: Trial) -> Iterator[Finding]:
    """No node suits the allocated claims, and another claim of the pod fails as well."""
    if not trial.unavailable or len(trial.unavailable) < len(trial.view.nodes):
        return
    for found in _of_claims(trial):
        yield replace(found, kind=STUCK) if found.kind is ELSEWHERE_UNUSED else found


def _of_claims(trial: Trial) -> Iterator[Finding]:
    for claim in trial.scene.allocated:
        if claim.key in trial.unavailable.values():
            yield _finding(trial, claim)


def _finding(trial: Trial, claim: ResourceClaim) -> Finding:
    asking = trial.question.pod
    listed = asking is not None and relation_of(claim, asking, groups=False).listed
    others = len(claim.reserved_for) - listed
    selector = claim.allocation.node_selector if claim.allocation else None
    usable = [
        node
        for node in trial.scene.barred_nodes
        if claim.allocation is not None and selector is not None and claim.allocation.usable_on(node)
    ]
    barred = [
        Evidence(Subject("node", ObjectName("Node", node.name)), "rejects the pod", trial.view.ineligible[node.name])
        for node in usable
    ]
    own = Subject("ResourceClaim", named("ResourceClaim", claim))
    consumers = consumers_named(claim)
    reasons = {reason for node in usable if (reason := trial.view.ineligible.get(node.name)) is not None}
    why = say(" ({reason})", reason=next(iter(reasons))) if len(reasons) == 1 else ""
    return Finding(
        ELSEWHERE if others else ELSEWHERE_UNUSED,
        say(
            "claim {claim} is allocated for {selector}, where the pod cannot run{why}",
            claim=claim.key,
            selector=str(selector),
            why=why,
        ),
        (
            Evidence(own, "status.allocation.nodeSelector", str(selector)),
            Evidence(own, "status.reservedFor", say("{consumers: else nobody}", consumers=consumers)),
            *barred[:MAX_NODES],
        ),
        claim=claim.key,
    )


FINDERS = (Finder(When.FAILS, elsewhere, 40), Finder(When.BESIDE_REQUESTS, _stuck))
