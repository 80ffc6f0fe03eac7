"""The node on which an attempt ends: the best of those that accept the pod."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.scheduling.chain import Chain
from kubectl_dra.scheduling.dynamic_resources import preference
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.scores.best import BestNodes, best_nodes


def winner(outcome: Outcome) -> BestNodes:
    """The best node, or several that tie; empty if no node accepts the pod.

    If the scheduler gives back a claim first, this is the node of the attempt after that.
    """
    if outcome.next is not None:
        return winner(outcome.next)
    return winner_among(outcome.chain, outcome.feasible)


def winner_among(chain: Chain, feasible: Sequence[str]) -> BestNodes:
    """The best of the nodes that pass all filters of the chain."""
    nodes = [chain.state.nodes[name] for name in feasible]
    candidates = None if chain.among is None else len(chain.among)
    return best_nodes(chain.pod, chain.state, nodes, _device_preference(chain, feasible), candidates)


def _device_preference(chain: Chain, feasible: Sequence[str]) -> dict[str, int]:
    """For each node, how close its devices are to the first choices of the pod's claims, allocated ones included."""
    devices = chain.devices
    if devices is None:
        return {}
    allocated = sum(
        preference(claim, (entry.request for entry in claim.allocation.results))
        for claim in devices.claims
        if claim.allocation is not None
    )
    out = {}
    for name in feasible:
        attempt = devices.on(name)
        found = 0
        if attempt is not None:
            claims = devices.claims_on(chain.state.nodes[name].node)
            for claim, result in zip(claims, attempt.results, strict=True):
                found += preference(claim, (entry["request"] for entry in result.devices))
        out[name] = allocated + found
    return out
