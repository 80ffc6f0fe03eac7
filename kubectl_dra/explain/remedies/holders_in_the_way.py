"""Whose end would leave a node with enough devices for a request, one holder or several, by counting alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.explain.funnel.blocked import Blocked
from kubectl_dra.explain.remedies.free import Free
from kubectl_dra.explain.scene.holders import HolderIndex
from kubectl_dra.explain.scene.view import MAX_NEAR, Published

MOST_NODES: Final = 500
NODES_OF_SETS: Final = 5


class Spot(NamedTuple):
    """A node that lacks ``lacking`` devices, and those that it loses because somebody holds them."""

    lacking: int
    node: str
    lost: Sequence[Published]


class InTheWay(NamedTuple):
    """``single``: holders of whom each one alone is enough, in the order in which to ask them.

    ``spots`` are the nodes, the nearest to having enough first; ``every``: no node was left out.
    """

    single: list[Free]
    spots: list[Spot]
    every: bool


def in_the_way(blocked: Blocked) -> InTheWay:
    """Who is in the way of a request that falls short at the stage of devices that are held."""
    spots = nsmallest(MOST_NODES, _spots(blocked), lambda spot: spot.lacking)
    holders = blocked.scene.holders
    claims: dict[int, ResourceClaim] = {}
    where: dict[int, list[Spot]] = {}
    for spot in spots:
        for claim in _claims(spot, holders):
            if len(_freed(spot, [claim], holders)) >= spot.lacking:
                claims[id(claim)] = claim
                where.setdefault(id(claim), []).append(spot)

    def order(claim: ResourceClaim) -> tuple[object, ...]:
        return holders.holder(claim).order, where[id(claim)][0].lacking, holders.size(claim), claim.key

    single = [
        Free.of([holders.holder(claim)], _nodes(blocked, where[id(claim)]))
        for claim in sorted(claims.values(), key=order)
    ]
    return InTheWay(single, spots, len(spots) == len(blocked.nodes))


def sets_of_holders(blocked: Blocked, spots: Sequence[Spot]) -> Iterator[Free]:
    """One set of holders for each of the nearest nodes: those who are asked first, and none too many."""
    holders = blocked.scene.holders
    for spot in spots[:NODES_OF_SETS]:
        taken: list[ResourceClaim] = []
        for claim in sorted(_claims(spot, holders), key=lambda claim: holders.holder(claim).order):
            taken.append(claim)
            if len(_freed(spot, taken, holders)) >= spot.lacking:
                break
        else:
            continue
        for claim in list(reversed(taken)):
            left = [other for other in taken if other is not claim]
            if len(_freed(spot, left, holders)) >= spot.lacking:
                taken = left
        yield Free.of([holders.holder(claim) for claim in taken], _nodes(blocked, [spot]))


def _spots(blocked: Blocked) -> Iterator[Spot]:
    position = blocked.funnel.stages.index(blocked.stage)
    for name in blocked.nodes:
        lost, _, left = blocked.funnel.lost_on([name], position)
        yield Spot(blocked.funnel.needed_on(name) - left, name, lost)


def _nodes(blocked: Blocked, spots: Sequence[Spot]) -> list[Node]:
    return [blocked.view.node_by_name[spot.node] for spot in spots[:MAX_NEAR]]


def _claims(spot: Spot, holders: HolderIndex) -> list[ResourceClaim]:
    return list({id(claim): claim for item in spot.lost for claim in holders.claims(item.id)}.values())


def _freed(spot: Spot, ended: Sequence[ResourceClaim], holders: HolderIndex) -> list[Published]:
    """The devices that are free when these claims are given back, and with them what else only their pods use."""
    given = holders.cluster.freed_with(ended, _claims(spot, holders))
    free = {id(claim) for claim in given}
    return [item for item in spot.lost if all(id(claim) in free for claim in holders.claims(item.id))]
