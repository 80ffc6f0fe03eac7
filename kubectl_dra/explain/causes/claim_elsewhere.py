"""A claim is allocated for nodes where the pod cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kubectl_dra.api.claims import Consumer, ResourceClaim
from kubectl_dra.cluster.claim_relation import relation_of
from kubectl_dra.explain.analysis import NOT_ASKED, Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.holders import consumers_named, owner_of_all
from kubectl_dra.explain.node_reasons import ResourceShort
from kubectl_dra.explain.phrase import ObjectName, named, nodes_named, say, subject, the_node
from kubectl_dra.explain.remedies.freeing_claims import freeing

MAX_NODES = 3

ELSEWHERE = CauseKind(code="claim-allocated-elsewhere", family=Family.CLAIM, look=Look.POD)
ELSEWHERE_UNUSED = CauseKind(code="claim-allocated-elsewhere-unused", family=Family.CLAIM, look=Look.POD)
STUCK = CauseKind(code="claim-stuck-elsewhere", family=Family.CLAIM, look=Look.POD)


def reserved_for(claim: ResourceClaim) -> Evidence:
    """Who may use a claim, by its status."""
    said = say("{consumers: else nobody}", consumers=consumers_named(claim))
    return Evidence(subject("ResourceClaim", claim), "status.reservedFor", said)


def elsewhere(analysis: Analysis) -> Iterator[Finding]:
    """The unallocated claims fit, or there are none."""
    if analysis.unavailable and (analysis.fitting or not analysis.claims):
        for finding in _of_claims(analysis):
            if finding.kind is ELSEWHERE:
                yield _with_room(finding, analysis)
            elif analysis.after_giving_back:
                # The scheduler resolves this by itself.
                text = "the scheduler first takes back the devices of unused claim {claim}"
                nodes = say("{nodes:some}", nodes=nodes_named(analysis.after_giving_back))
                facts = (*finding.evidence, Evidence("the scheduler", "binds the pod after that", nodes))
                change = "Wait for the next attempt: the scheduler allocates the claim anew, where the pod can run."
                summary = say(text, claim=finding.claim)
                yield replace(finding, summary=summary, evidence=facts, remedy=Remedy(change))
            else:
                yield finding


def _with_room(finding: Finding, analysis: Analysis) -> Finding:
    """With the end of those who use the claim as its remedy, where the claim is then allocated for the pod."""
    claim = next(claim for claim in analysis.allocated if claim.key == finding.claim)
    remedy = _there(claim, analysis) or _among_siblings(claim, analysis)
    change = freeing(claim, analysis.view, analysis.holders) if remedy is None else None
    proof = analysis.what_if.proof_with(change) if change is not None else None
    if change is not None and proof is not None:
        text = (
            "Let the pod run on the claim's node, or give each pod its own claim by a template. Or {what}, so that the "
            "claim is allocated anew."
        )
        remedy = Remedy(say(text, what=change.what), proof, offers=(change,))
    return replace(finding, remedy=remedy) if remedy is not None else finding


_SECOND: Final = (
    "Make a second claim for some {pods}, or give each pod its own claim by a template: the pods of one claim run "
    "where it is."
)
SECOND_CLAIM: Final = say(_SECOND, pods="of the pods")


def _among_siblings(claim: ResourceClaim, analysis: Analysis) -> Remedy | None:
    """What helps where only pods of the same owner use the claim: the end of one of them makes way for the next."""
    if (owner := owner_of_all(claim, analysis.pod, analysis.snapshot)) is None:
        return None
    return Remedy(say(_SECOND, pods=say("pods of {owner}", owner=str(owner))))


def _there(claim: ResourceClaim, analysis: Analysis) -> Remedy | None:
    """What lets the pod run where the claim is, proved, where the pod asks for more than that node has left."""
    from kubectl_dra.explain.remedies import node_rules

    own = [node.name for node in analysis.barred_nodes if claim.allocation and claim.allocation.usable_on(node)]
    refused = {analysis.view.ineligible[name]: [name] for name in own}
    found = node_rules.best(
        ((reason, names) for reason, names in refused.items() if isinstance(reason, ResourceShort)), analysis.what_if
    )
    return found if found is not None and found.proof is not None else None


def _stuck(analysis: Analysis) -> Iterator[Finding]:
    """No node suits the allocated claims, and another claim of the pod fails as well."""
    if not analysis.unavailable or len(analysis.unavailable) < len(analysis.view.nodes):
        return
    for finding in _of_claims(analysis):
        yield replace(finding, kind=STUCK) if finding.kind is ELSEWHERE_UNUSED else finding


def _of_claims(analysis: Analysis) -> Iterator[Finding]:
    for claim in analysis.allocated:
        if claim.key in analysis.unavailable.values():
            found = _finding(analysis, claim)
            yield replace(found, remedy=_among_siblings(claim, analysis)) if found.kind is ELSEWHERE else found


def _finding(analysis: Analysis, claim: ResourceClaim) -> Finding:
    asking = analysis.pod
    listed = asking is not None and relation_of(claim, asking, groups=False).listed
    others = len(claim.reserved_for) - listed
    selector = claim.allocation.node_selector if claim.allocation else None
    usable = [
        node
        for node in analysis.barred_nodes
        if claim.allocation is not None and selector is not None and claim.allocation.usable_on(node)
    ]
    # With --node, the others were left out by whoever asked.
    asked = [node for node in usable if analysis.view.ineligible.get(node.name) is not NOT_ASKED]
    alone = analysis.settings.node if usable and not asked else ""
    barred = [Evidence(the_node(node.name), "rejects the pod", analysis.view.ineligible[node.name]) for node in asked]
    own = subject("ResourceClaim", claim)
    placed = [_only_placed(use, claim, analysis) for use in claim.reserved_for]
    consumers = [
        say("{consumer} (placed before it)", consumer=consumer) if before else consumer
        for consumer, before in zip(consumers_named(claim), placed, strict=True)
    ]
    # Then so is its allocation.
    supposed = bool(placed) and all(placed)
    reasons = {reason for node in asked if (reason := analysis.view.ineligible.get(node.name)) is not None}
    why = say(" ({reason})", reason=next(iter(reasons))) if len(reasons) == 1 else ""
    there = [node.name for node in analysis.view.nodes if node.name not in analysis.unavailable]
    if not reasons and there and analysis.claims:
        lacking, count = [named("ResourceClaim", each) for each in analysis.claims], len(analysis.claims)
        text = ": its {count:claim|claims} {lacking:some 2} {count:does|do} not fit there"
        why = say(text, lacking=lacking, count=count)
    text = "claim {claim} {is_} allocated for {selector}, where the pod cannot run{why}"
    if alone:
        text = "claim {claim} {is_} allocated for {selector}, not for node {alone}"
    words = {"claim": claim.key, "is_": "would be" if supposed else "is", "selector": str(selector), "why": why}
    facts = (
        Evidence(own, "status.allocation.nodeSelector", str(selector)),
        Evidence(own, "status.reservedFor", say("{consumers: else nobody}", consumers=consumers)),
        *barred[:MAX_NODES],
    )
    kind = ELSEWHERE if others else ELSEWHERE_UNUSED
    return Finding(kind, say(text, alone=ObjectName("Node", alone), **words), facts, claim=claim.key)


def _only_placed(use: Consumer, claim: ResourceClaim, analysis: Analysis) -> bool:
    """Whether a pod for which the claim is reserved was placed to see what fits, and no cluster has it."""
    pod = analysis.snapshot.pods.get((claim.metadata.namespace, use.name)) if use.is_pod else None
    return pod is not None and pod.only_placed


FINDERS = (
    Finder(When.FAILS, elsewhere, 40),
    Finder(When.BESIDE_REQUESTS, _stuck),
)
