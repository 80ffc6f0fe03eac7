"""Pods one after the other: each gets its node in the cluster with those before it."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.binding import bound
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.outcome import Outcome, schedule

Choose = Callable[[Sequence[str]], str]
"""Takes one of several nodes that are as good."""


class TurnTaken(NamedTuple):
    """What came of one pod: the attempt, its node (empty if none takes it), and the cluster after."""

    outcome: Outcome
    node: str
    state: ClusterState


def place(pod: Pod, state: ClusterState, choose: Choose, within: Container[str] | None = None) -> TurnTaken:
    """Gives a pod one of its best nodes, after the scheduler took back what nobody uses; ``within``: only of these."""
    from kubectl_dra.scheduling.winner import winner_among

    outcome = schedule(pod, state)
    while outcome.next is not None:
        outcome = outcome.next
    feasible = tuple(name for name in outcome.feasible if within is None or name in within)
    if not feasible:
        return TurnTaken(outcome, "", state)
    best = winner_among(outcome.chain, feasible)
    node = choose([name for name in best.nodes or feasible if name in feasible])
    return TurnTaken(outcome, node, bound(pod, node, outcome.state, outcome.attempt_on(node)))
