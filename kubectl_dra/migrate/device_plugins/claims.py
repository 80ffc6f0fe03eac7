"""Claims for a pod: one claim, with a request for each container that needs devices, and the references to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from kubectl_dra.api.limits import MAX_LABEL, MAX_RESULTS
from kubectl_dra.manifests.changes import Path
from kubectl_dra.migrate.device_plugins.asks import Ask, parts_of
from kubectl_dra.migrate.device_plugins.placement import PlacementPlan
from kubectl_dra.migrate.device_plugins.shares import User, shares
from kubectl_dra.migrate.naming import as_label, free, short, shortened
from kubectl_dra.migrate.vendors.model import Resource


class Claim(NamedTuple):
    """A claim of a pod: its name there, and the spec of the ResourceClaim. ``what`` is one word for its devices."""

    name: str
    spec: Mapping[str, Any]
    what: str


class Wiring(NamedTuple):
    """The claims of a pod, and the ``resources.claims`` entries by container path."""

    claims: tuple[Claim, ...]
    references: Mapping[Path, Sequence[Mapping[str, str]]]


class _Draft(NamedTuple):
    """A request that has no name yet. ``owner`` is the container that gives it its name."""

    owner: Path
    what: str
    users: tuple[Path, ...]
    amount: int
    exactly: Mapping[str, Any]


def wired(asks: Sequence[Ask], placements: Mapping[str, PlacementPlan], names: Collection[str]) -> Wiring:
    """Claims for the requests of a pod. ``names`` are its existing claims, ``placements`` are by resource name."""
    drafts = _drafts([ask for ask in asks if not ask.resource.part_of], asks, placements)
    requests = _named(drafts, {ask.container.path: ask.container.name for ask in asks})
    references: dict[Path, list[Mapping[str, str]]] = {}
    claims: list[Claim] = []
    for group in _groups(drafts):
        words = list(dict.fromkeys(drafts[index].what for index in group))
        what = free(words[0] if len(words) == 1 else "devices", {claim.what for claim in claims})
        name = free(what, {*names, *(claim.name for claim in claims)})
        for path in dict.fromkeys(path for index in group for path in drafts[index].users):
            used = [index for index in group if path in drafts[index].users]
            # Without a request the container has all of the claim.
            one = {"request": requests[used[0]]} if len(used) == 1 else {}
            references.setdefault(path, []).append({"name": name, **one})
        devices = [{"name": requests[index], "exactly": drafts[index].exactly} for index in group]
        claims.append(Claim(name, {"devices": {"requests": devices}}, what))
    return Wiring(tuple(claims), references)


def _groups(drafts: Sequence[_Draft]) -> list[list[int]]:
    """Which requests share a claim: all of the pod, else all of a kind, else each has its own.

    A container names a claim once (``resources.claims`` is a map by name for server-side apply and in custom
    resources), so it must use either one request of a claim or all of them.
    """
    every = list(range(len(drafts)))
    kinds = {draft.what: [index for index in every if drafts[index].what == draft.what] for draft in drafts}
    for parts in ([every], list(kinds.values())):
        groups = [group for part in parts for group in _packed(drafts, part)]
        if all(_one_or_all(drafts, group) for group in groups):
            return groups
    return [[index] for index in every]


def _one_or_all(drafts: Sequence[_Draft], group: Sequence[int]) -> bool:
    users = [path for index in group for path in drafts[index].users]
    return all(users.count(path) in (1, len(group)) for path in users)


def _drafts(asks: Sequence[Ask], all_asks: Sequence[Ask], placements: Mapping[str, PlacementPlan]) -> list[_Draft]:
    order = list(dict.fromkeys(ask.container.path for ask in all_asks))
    kinds: dict[tuple[Any, ...], tuple[dict[str, Any], list[Ask]]] = {}
    for ask in asks:
        exactly = _exactly(ask, all_asks, placements.get(ask.resource.name, PlacementPlan()))
        # Containers share devices only if they ask for the same.
        kinds.setdefault((ask.resource.name, repr(exactly)), (exactly, []))[1].append(ask)
    out: list[_Draft] = []
    for exactly, same in kinds.values():
        users = [
            User(order.index(ask.container.path), _amount(ask), ask.container.init, ask.container.sidecar)
            for ask in same
        ]
        for share in shares(users):
            counted = {} if share.amount == 1 or "allocationMode" in exactly else {"count": share.amount}
            raw = {"deviceClassName": exactly["deviceClassName"], **counted, **exactly}
            what = short(same[0].resource, exactly["deviceClassName"])
            out.append(_Draft(order[share.owner], what, tuple(order[user] for user in share.users), share.amount, raw))
    return sorted(out, key=lambda draft: order.index(draft.owner))


def _amount(ask: Ask) -> int:
    """How many units: a request for all devices ignores the original number."""
    return 1 if ask.resource.allocation_mode == "All" else ask.amount


def _exactly(ask: Ask, asks: Sequence[Ask], placement: PlacementPlan) -> dict[str, Any]:
    resource: Resource = ask.resource
    out: dict[str, Any] = {"deviceClassName": placement.device_class or resource.device_class}
    if resource.allocation_mode == "All":
        out["allocationMode"] = "All"
    if resource.admin_access:
        out["adminAccess"] = True
    selectors = dict.fromkeys((*resource.selectors, *placement.selectors))
    if selectors:
        out["selectors"] = [{"cel": {"expression": expression}} for expression in selectors]
    capacity = dict(resource.capacity)
    for part in parts_of(ask, asks):
        capacity.update(part.resource.capacity)
    if capacity:
        out["capacity"] = {"requests": capacity}
    return out


def _named(drafts: Sequence[_Draft], containers: Mapping[Path, str]) -> list[str]:
    """A name for each request: its kind of device if one container uses it, else the container, plus the kind
    if needed.
    """
    alone = len({draft.owner for draft in drafts}) == 1
    words = {path: {draft.what for draft in drafts if draft.owner == path} for path in containers}
    out: list[str] = []
    for draft in drafts:
        container = as_label(containers[draft.owner]) or "container"
        name = draft.what if alone else container
        if not alone and len(words[draft.owner]) > 1:
            name = f"{shortened(container, MAX_LABEL - len(draft.what) - 1)}-{draft.what}"
        out.append(free(name, set(out)))
    return out


def _packed(drafts: Sequence[_Draft], indices: Sequence[int]) -> list[list[int]]:
    """The requests in as few claims as can hold them."""
    groups: list[list[int]] = [[]]
    room = MAX_RESULTS
    for index in indices:
        draft = drafts[index]
        need = MAX_RESULTS if draft.exactly.get("allocationMode") == "All" else draft.amount
        if need > room and groups[-1]:
            groups.append([])
            room = MAX_RESULTS
        groups[-1].append(index)
        room -= need
    return groups
