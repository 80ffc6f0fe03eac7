"""The devices that each namespace or owner holds, and how many of its claims wait."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from msgspec import Struct

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.usage.claim_state import UNUSED, ClaimState
from kubectl_dra.usage.claim_use import ClaimUse, ClaimUses
from kubectl_dra.usage.owner import OwnerName

K = TypeVar("K", bound=Hashable)


class DeviceDemand(Struct, frozen=True):
    """What the claims of a namespace, or of one owner in it, hold and wait for.

    ``devices`` counts a shared device once; ``unused`` are those held by claims that nobody uses. ``pending`` are
    claims for which a pod waits. ``owner`` is None for a whole namespace, or for claims without one. ``largest`` is
    the owner that holds most of them.
    """

    namespace: str
    owner: OwnerName | None
    devices: int
    unused: int
    claims: int
    pending: int
    nodes: int
    largest: OwnerName | None = None


def demand_of_namespaces(claims: ClaimUses) -> list[DeviceDemand]:
    """What each namespace holds."""
    return [
        _demand(space, None, items) for space, items in _grouped(claims, lambda item: item.claim.metadata.namespace)
    ]


def demand_of_owners(claims: ClaimUses) -> list[DeviceDemand]:
    """What each owner holds; claims without an owner are one row of their namespace."""
    found = _grouped(claims, lambda item: (item.claim.metadata.namespace, item.owner))
    return [_demand(space, owner, items) for (space, owner), items in found]


def _grouped(claims: ClaimUses, key: Callable[[ClaimUse], K]) -> list[tuple[K, list[ClaimUse]]]:
    groups: dict[K, list[ClaimUse]] = {}
    for item in claims.items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.items())


def _demand(space: str, owner: OwnerName | None, items: list[ClaimUse]) -> DeviceDemand:
    held = _devices(items)
    used = _devices([item for item in items if item.state not in UNUSED])
    by_owner: dict[OwnerName, int] = {}
    for item in items:
        if item.owner is not None:
            by_owner[item.owner] = by_owner.get(item.owner, 0) + len(item.results)
    return DeviceDemand(
        namespace=space,
        owner=owner,
        devices=len(held),
        unused=len(held - used),
        claims=len(items),
        pending=sum(item.state is ClaimState.PENDING for item in items),
        nodes=len({item.node for item in items if item.results} - {""}),
        largest=max(by_owner, key=lambda name: by_owner[name], default=None),
    )


def _devices(items: list[ClaimUse]) -> set[DeviceID]:
    return {result.device for item in items for result in item.results}
