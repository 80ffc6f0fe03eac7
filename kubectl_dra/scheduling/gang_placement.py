"""Whether the pods of a gang fit together: each is placed in turn, in the cluster with those placed before
it.

From 1.36 on the scheduler tries all waiting pods of a group in one cycle, by priority, and binds none unless
as many fit as the group needs; with a topology constraint, it tries one domain after another. 1.35 holds pods
that fit until enough do. Sources: schedule_one_podgroup.go and the plugins gangscheduling and topologyaware.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import structs

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.allocation.budgets import GANG_STEPS, GANG_TRIES, GANG_WORK, SMALL_GANG_TRIES, SMALL_GANG_WORK, Budget
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.binding import Chance, place
from kubectl_dra.scheduling.dynamic_resources import ClaimNotCreated, resolve
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.gang_scheduling import Gang, Obstacle, Placed, domains_of
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.volumes import fully_bound, volume_claims


def placed_together(gang: Gang, pod: Pod, state: ClusterState) -> Placed | Obstacle:
    """Where the pods of the gang of ``pod`` would be placed, or why that is unknown."""
    waiting = [
        member
        for member in gang.members
        if not (member.node_name or member.scheduling_gates or member.metadata.deletion_timestamp)
    ]
    bound = tuple(member.key for member in gang.members if member.node_name)
    if gang.nested:
        return Obstacle.NESTED
    work = len(waiting) * (len(state.nodes) + len(state.snapshot.slices))
    if work > GANG_WORK:
        return Obstacle.TOO_LARGE
    if any(isinstance(resolved, ClaimNotCreated) for member in waiting for resolved in resolve(member, state)):
        return Obstacle.CLAIMS
    volumes = (entry.claim for member in waiting for entry in volume_claims(member, state))
    if len(waiting) > 1 and any(claim is not None and not fully_bound(claim) for claim in volumes):
        return Obstacle.VOLUMES
    domains = domains_of(gang, state)
    if domains is None:
        return Obstacle.DOMAIN
    budget = Budget(GANG_STEPS)
    placed, *others = _in_domains(gang, waiting, bound, state, domains, budget, chance := Chance.of_try(0))
    tries = SMALL_GANG_TRIES if work <= SMALL_GANG_WORK else GANG_TRIES
    for number in range(1, tries if chance.taken else 1):
        more = _in_domains(gang, waiting, bound, state, domains, budget, Chance.of_try(number))
        if more[0].fits != placed.fits:
            return Obstacle.CHANCE
        others.extend(more)
    if not budget.left or (not placed.fits and any(_is_open(outcome) for outcome in placed.refused.values())):
        return Obstacle.TOO_LONG
    if placed.fits and any((pod.key in other.nodes) != (pod.key in placed.nodes) for other in others):
        return Obstacle.LEFT_OUT
    said = {_said(pod, choice) for choice in (placed, *others)}
    return placed if len(said) == 1 else structs.replace(placed, alike=False)


def _said(pod: Pod, placed: Placed) -> str:
    """The scheduler's text about the pod itself; empty if it fits."""
    refused = placed.refused.get(pod.key)
    return refused.message if refused is not None else ""


def _is_open(refused: Outcome) -> bool:
    """Whether a search for devices did not end, so that a node may have them for a pod that got none."""
    return any(attempt.verdict is AttemptVerdict.UNDETERMINED for attempt in refused.attempts.values())


def _in_domains(
    gang: Gang,
    waiting: Sequence[Pod],
    bound: tuple[str, ...],
    state: ClusterState,
    domains: Mapping[str, frozenset[str]],
    budget: Budget,
    chance: Chance,
) -> list[Placed]:
    """The group in each domain where it fits or, if there is none, where most of it does.

    Among several domains the scheduler chooses by scores of its own.
    """
    names = tuple(name for name in domains if name)
    tried = []
    for value, nodes in domains.items():
        placed, refused, given = _one_after_another(waiting, state, nodes, budget, chance)
        tried.append(Placed(gang, placed, bound, refused, value, names, given=given))
    if fitting := [placed for placed in tried if placed.fits]:
        return fitting
    nowhere = Placed(gang, {}, bound, {}, domains=names)
    return [max(tried, key=lambda placed: placed.count, default=nowhere)]


def _one_after_another(
    waiting: Sequence[Pod], state: ClusterState, nodes: frozenset[str], budget: Budget, chance: Chance
) -> tuple[dict[str, str], dict[str, Outcome], dict[str, Sequence[ResourceClaim]]]:
    placed: dict[str, str] = {}
    refused: dict[str, Outcome] = {}
    given: dict[str, Sequence[ResourceClaim]] = {}
    # Those of equal priority go by the time of their first attempt, which is unknown.
    for member in chance.in_order(waiting, lambda pod: -pod.priority):
        outcome, node, state = place(member, state, budget, chance.of, nodes)
        if not node:
            refused[member.key] = outcome
            continue
        placed[member.key] = node
        given[member.key] = outcome.devices.given_on(outcome.state.nodes[node].node)
    return placed, refused, given
