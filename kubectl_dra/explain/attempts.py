"""Attempts on every eligible node, each kind of node once."""

from __future__ import annotations

from collections.abc import Hashable

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict
from kubectl_dra.allocation.budgets import ATTEMPTS_STEPS, NODE_STEPS, STEPS_PER_NODE, Budget
from kubectl_dra.explain.scene.equivalent_nodes import Likeness
from kubectl_dra.explain.scene.prepare import Scene


def run_attempts(scene: Scene) -> dict[str, Attempt]:
    """One attempt per eligible node, in node order, within a total number of steps.

    Nodes that are rejected alike share the attempt on the first of them.
    """
    out: dict[str, Attempt] = {}
    whole = scene.view.cycle.budget
    end = whole.steps + max(ATTEMPTS_STEPS, STEPS_PER_NODE * len(scene.view.nodes))
    same = scene.unallocated
    likeness: dict[frozenset[str], Likeness] = {}
    tried: dict[Hashable, Attempt] = {}
    for node in scene.view.nodes:
        pools = scene.view.pools.get(node.name)
        delegated = scene.delegated(node)
        claims = same if scene.extended is None else scene.claims_on(node)
        if delegated not in likeness:
            likeness[delegated] = Likeness(scene.view.cycle, claims)
        read = None if pools is None else likeness[delegated].of(node, pools)
        alike = None if read is None else (delegated, read)
        known = tried.get(alike)
        if known is not None and alike is not None and pools is not None:
            allocated = known.verdict is AttemptVerdict.ALLOCATED
            out[node.name] = scene.view.cycle.repeated(known, node, claims, pools) if allocated else known
            continue
        budget = Budget(max(1, min(NODE_STEPS, end - whole.steps)))
        attempt = out[node.name] = scene.view.cycle.attempt(node, claims, budget=budget, pools=pools)
        if attempt.verdict in (AttemptVerdict.REJECTED, AttemptVerdict.ALLOCATED):
            tried[alike] = attempt
    return out


def unavailable_nodes(scene: Scene) -> dict[str, str]:
    """Nodes where an allocated claim of the question cannot be used, with the claim."""
    out: dict[str, str] = {}
    for claim in scene.allocated:
        assert claim.allocation is not None
        for node in scene.view.nodes:
            if not claim.allocation.usable_on(node):
                out.setdefault(node.name, claim.key)
    return out
