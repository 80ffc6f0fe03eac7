"""Causes in the nodes themselves: none takes the pod, or not the one for which a claim is allocated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.explain import of_extended
from kubectl_dra.explain.causes import claim as claim_causes
from kubectl_dra.explain.causes import devices
from kubectl_dra.explain.diagnosis import Cause, Evidence
from kubectl_dra.explain.remedies import way_in
from kubectl_dra.explain.remedies.prove import WhatIf
from kubectl_dra.explain.scene.node_eligibility import rejections, usable_on
from kubectl_dra.explain.scene.prepare import Case
from kubectl_dra.wording import some


def stuck(case: Case, unavailable: Mapping[str, str]) -> list[Cause]:
    """Claims allocated where the pod cannot run, while another claim of the pod fails."""
    if not unavailable or len(unavailable) < len(case.view.nodes):
        return []
    causes = [elsewhere(case, claim) for claim in case.allocated if claim.key in unavailable.values()]
    unused = claim_causes.ELSEWHERE_UNUSED
    return [
        replace(cause, kind=claim_causes.STUCK, fix=claim_causes.STUCK.fix) if cause.kind is unused else cause
        for cause in causes
    ]


def one_step_away(case: Case) -> list[Node]:
    """Nodes that would take the pod if it were not for one reason."""
    asking = case.question.pod
    if asking is None:
        return []
    near: list[Node] = []
    for node in _other_nodes(case):
        reasons = [*rejections(asking, node), case.usage.shortage(asking, node, case.delegated(node))]
        if len([reason for reason in reasons if reason]) == 1:
            near.append(node)
    return near


def _other_nodes(case: Case) -> list[Node]:
    """Nodes that exist but where the pod may not run."""
    return [node for name, node in case.snapshot.nodes.items() if name in case.view.ineligible]


def no_node(case: Case, whatif: WhatIf) -> Cause:
    """The cause where no node may run the pod."""
    exhausted = of_extended.plugin_exhausted(case)
    if exhausted is not None:
        return exhausted
    reasons: dict[str, list[str]] = {}
    for name, reason in case.view.ineligible.items():
        reasons.setdefault(reason, []).append(name)
    ranked = sorted(reasons.items(), key=lambda entry: -len(entry[1]))
    evidence = tuple(Evidence(some(names), "rejects the pod", reason) for reason, names in ranked[:6])
    first = ranked[0][0] if ranked else "no Nodes exist"
    kind = devices.NO_NODE
    named = reasons.get(first, [])
    proof = whatif.on_other_nodes(named) if way_in.can_end(first) else None
    fix = way_in.fix(first, named) if proof or (named and not way_in.can_end(first)) else kind.fix
    summary = f"none of the {len(case.view.ineligible)} nodes may run the pod: {first}"
    return Cause(kind, summary, evidence, fix, str(proof) if proof else "")


def elsewhere(case: Case, claim: ResourceClaim) -> Cause:
    """The cause of a claim that is allocated for nodes where the pod cannot run."""
    assert claim.allocation is not None
    asking = case.question.pod
    others = [
        entry for entry in claim.reserved_for if asking is None or not entry.uid or entry.uid != asking.metadata.uid
    ]
    kind = claim_causes.ELSEWHERE if others else claim_causes.ELSEWHERE_UNUSED
    selector = str(claim.allocation.node_selector)
    barred = [
        Evidence(f"node {node.name}", "rejects the pod", case.view.ineligible[node.name])
        for node in _other_nodes(case)
        if claim.allocation.node_selector is not None and usable_on(claim.allocation.node_selector, node)
    ]
    consumers = ", ".join(f"{entry.resource} {entry.name}" for entry in claim.reserved_for) or "nobody"
    return Cause(
        kind,
        f"claim {claim.key} is allocated for {selector}, where the pod cannot run",
        (
            Evidence(f"ResourceClaim {claim.key}", "status.allocation.nodeSelector", selector),
            Evidence(f"ResourceClaim {claim.key}", "status.reservedFor", consumers),
            *barred[:3],
        ),
        kind.fix,
        claim=claim.key,
    )
