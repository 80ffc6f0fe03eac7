"""No node may run the pod, whatever devices there are."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.remedies import way_in
from kubectl_dra.explain.trial import Trial

MAX_REASONS = 6

NO_NODE = CauseKind(
    code="no-eligible-node",
    title="No node may run the pod",
    why="Every node is ruled out by the pod's nodeSelector or affinity, by node taints, or because it is cordoned. "
    "Devices do not matter then.",
    fix="Correct the placement rules or tolerations, or add nodes.",
    seen_as="node counts by other filters",
    family=Family.DEVICES,
    look=Look.NODES,
)


def _no_node(trial: Trial) -> Iterator[Finding]:
    if trial.view.nodes:
        return
    reasons: dict[Words, list[str]] = {}
    for name, reason in trial.view.ineligible.items():
        reasons.setdefault(reason, []).append(name)
    ranked = sorted(reasons.items(), key=lambda entry: -len(entry[1]))
    first: Words = ranked[0][0] if ranked else "no Nodes exist"
    named = reasons.get(first, [])
    proof = trial.world.proof_elsewhere(named) if way_in.can_end(first) else None
    text = "none of the {count} nodes may run the pod: {first}"
    yield Finding(
        NO_NODE,
        say(text, count=len(trial.view.ineligible), first=first),
        tuple(
            Evidence(say("{names:some}", names=names), "rejects the pod", reason)
            for reason, names in ranked[:MAX_REASONS]
        ),
        way_in.remedy(first, named, proof) or Remedy(NO_NODE.fix, proof),
    )


KINDS = (NO_NODE,)
FINDERS = (Finder(When.FAILS, _no_node, 30),)
