"""Claims for a pod: one claim, with a request for each container that needs devices, and the references to them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.limits import MAX_LABEL, MAX_RESULTS
from kubectl_dra.api.releases import GROUP
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import fields_at, items_at, value_at
from kubectl_dra.manifests.workloads import CLAIM_REFERENCES, CLAIM_SPECS, WorkloadPodSpec, containers
from kubectl_dra.migrate.device_plugins.asks import Ask, parts_of
from kubectl_dra.migrate.device_plugins.placement import PlacementPlan, class_of
from kubectl_dra.migrate.model import Moved, PlanRefusal
from kubectl_dra.migrate.new_objects import as_label, free, short, shortened
from kubectl_dra.migrate.vendors.model import Resource

# The classes of a pod's existing claims, as far as this run has read them.


def claimed_classes(spec: Mapping[str, Any], namespace: str, objects: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The DeviceClasses of a pod's claims and claim templates that are among the objects."""
    wanted = set()
    for claim in items_at(spec, "resourceClaims"):
        if isinstance(claim, Mapping):
            source = fields_at(claim, "source")
            for field, kind in CLAIM_REFERENCES.items():
                wanted.add((kind, str(claim.get(field) or source.get(field))))
    classes: set[str] = set()
    for raw in objects if wanted else ():
        name = (str(raw.get("kind")), str(value_at(raw, ("metadata", "name"))))
        own = str(value_at(raw, ("metadata", "namespace")) or "")
        if name in wanted and own == namespace and str(raw.get("apiVersion")).startswith(f"{GROUP}/"):
            classes.update(requested_classes(value_at(raw, (*CLAIM_SPECS[name[0]], "devices", "requests"))))
    return frozenset(classes)


def requested_classes(requests: Any) -> Iterator[str]:
    """The class of each request: flat before v1beta2, in ``exactly`` or ``firstAvailable`` since then."""
    for request in requests if isinstance(requests, list) else ():
        for part in (request, value_at(request, ("exactly",)), *items_at(request, "firstAvailable")):
            if isinstance(part, Mapping) and isinstance(part.get("deviceClassName"), str):
                yield part["deviceClassName"]


# Requests of one pod that conflict with each other or with what the pod already has.


def no_list(spec: WorkloadPodSpec) -> PlanRefusal | None:
    """The refusal if something else stands where claims or tolerations would be added to a list."""
    paths: list[FieldPath] = [(*spec.path, "resourceClaims"), (*spec.path, "tolerations")]
    values = [value_at(spec.content, path[len(spec.path) :]) for path in paths]
    for container in containers(spec):
        paths.append((*container.path, "resources", "claims"))
        values.append(value_at(container.content, ("resources", "claims")))
    for path, value in zip(paths, values, strict=True):
        if value and not isinstance(value, list):
            return PlanRefusal("MIG125", path, f"{path[-1]} is not a list", "Write it as a list, and migrate again.")
    return None


def held_back(ask: Ask) -> PlanRefusal:
    """The refusal of a request whose vendor cannot be migrated in this pod."""
    message = (
        f"container {ask.container.name}: {ask.resource.name} stays, because something else of its vendor in the pod "
        "cannot be migrated"
    )
    return PlanRefusal("MIG118", ask.keys[0], message, "Solve what is refused there; then both go together.")


def only_one(asks: Sequence[Ask], held: set[str]) -> Iterator[PlanRefusal]:
    """The refusal for a driver that gives all devices of a node to one claim, if two containers want some."""
    seen: dict[str, Ask] = {}
    for ask in asks:
        starts_first = ask.container.init and not ask.container.sidecar
        if ask.resource.allocation_mode != "All" or starts_first:
            continue
        if seen.setdefault(ask.resource.name, ask) is not ask and ask.resource.vendor not in held:
            held.add(ask.resource.vendor)
            message = f"two containers ask for {ask.resource.name}, and its driver gives a node's devices to one claim"
            way_out = "Let one container have all, or write by hand one request that both refer to."
            yield PlanRefusal("MIG113", ask.keys[0], message, way_out)


def claimed_already(
    asks: Sequence[Ask], placements: Mapping[str, PlacementPlan], classes: Collection[str], held: set[str]
) -> Iterator[PlanRefusal]:
    """Requests of a pod that already claims the same class: most likely an unfinished manual migration."""
    vendors = set(held)
    for ask in asks:
        device_class = class_of(ask.resource, placements)
        if device_class in classes and ask.resource.vendor not in vendors and not ask.resource.part_of:
            held.add(ask.resource.vendor)
            message = (
                f"container {ask.container.name}: {ask.resource.name} stands beside a claim for {device_class}, and "
                "it is unclear whether the claim replaces it"
            )
            way_out = "Remove the resource if the claim replaces it; otherwise remove the claim and migrate again."
            yield PlanRefusal("MIG124", ask.keys[0], message, way_out)


def without_lone_parts(asks: Sequence[Ask], refusals: list[PlanRefusal]) -> tuple[Ask, ...]:
    """The requests, without those for a share of devices that their container does not request."""
    whole = {(ask.container.path, ask.resource.name) for ask in asks}
    out: list[Ask] = []
    for ask in asks:
        if ask.resource.part_of and (ask.container.path, ask.resource.part_of) not in whole:
            message = (
                f"{ask.resource.name} says how much of {ask.resource.part_of}, which the container does not ask for"
            )
            way_out = f"Add {ask.resource.part_of} with the number of devices."
            refusals.append(PlanRefusal("MIG112", ask.keys[0], message, way_out))
        else:
            out.append(ask)
    return tuple(out)


# Which containers share devices. As with device plugins, later containers reuse the devices of init
# containers.
#
# The kubelet gives a container that starts after an init container that one's devices first, and reserves those
# of a sidecar (an init container with restartPolicy Always). A pod therefore needs only as many devices as run
# at one time. The claims request the same: each device of the pod is a unit, and units used by the same
# containers become one request.


class User(NamedTuple):
    """A container that needs ``amount`` devices; ``order`` is its position among all containers of the pod."""

    order: int
    amount: int
    init: bool = False
    sidecar: bool = False


class SharedRequest(NamedTuple):
    """``amount`` devices used by ``users`` (orders of containers). ``owner`` gives the request its name."""

    owner: int
    users: tuple[int, ...]
    amount: int


def shares(users: Sequence[User]) -> tuple[SharedRequest, ...]:
    """The fewest requests that give every container its number of devices, and no device to two that run together."""
    line: list[list[int]] = []
    lasting = [user for user in users if not user.init or user.sidecar]
    for user in sorted(lasting, key=lambda user: (user.init, -user.order if user.sidecar else user.order)):
        line += [[user.order] for _ in range(user.amount)]
    early = {user.order: user for user in users if user.sidecar}
    for user in users:
        if user.init and not user.sidecar:
            running = {order for order in early if order < user.order}
            free = [unit for unit in line if not running & set(unit)]
            # One whole container's devices, where there are just as many, keep the requests few.
            chosen = next(
                (
                    together
                    for other in lasting
                    if len(together := [u for u in free if other.order in u]) == user.amount
                ),
                free,
            )[: user.amount]
            for unit in chosen:
                unit.append(user.order)
            more: list[list[int]] = [[user.order] for _ in range(user.amount - len(chosen))]
            line += more
    counts: dict[tuple[int, ...], int] = {}
    for unit in line:
        counts[tuple(unit)] = counts.get(tuple(unit), 0) + 1
    return tuple(SharedRequest(users[0], tuple(sorted(users)), count) for users, count in counts.items())


class Claim(NamedTuple):
    """A claim of a pod: its name there, and the spec of the ResourceClaim. ``what`` is one word for its devices."""

    name: str
    spec: Mapping[str, Any]
    what: str


class Wiring(NamedTuple):
    """The claims of a pod, and the ``resources.claims`` entries by container path."""

    claims: tuple[Claim, ...]
    references: Mapping[FieldPath, Sequence[Mapping[str, str]]]


class _Draft(NamedTuple):
    """A request that has no name yet. ``owner`` is the container that gives it its name."""

    owner: FieldPath
    what: str
    users: tuple[FieldPath, ...]
    amount: int
    exactly: Mapping[str, Any]


def wired(asks: Sequence[Ask], placements: Mapping[str, PlacementPlan], names: Collection[str]) -> Wiring:
    """Claims for the requests of a pod. ``names`` are its existing claims, ``placements`` are by resource name."""
    drafts = _drafts([ask for ask in asks if not ask.resource.part_of], asks, placements)
    requests = _named(drafts, {ask.container.path: ask.container.name for ask in asks})
    references: dict[FieldPath, list[Mapping[str, str]]] = {}
    claims: list[Claim] = []
    for group in _groups(drafts):
        words = list(dict.fromkeys(drafts[index].what for index in group))
        what = free(words[0] if len(words) == 1 else "devices", {claim.what for claim in claims})
        name = free(what, {*names, *(claim.name for claim in claims)})
        for path in dict.fromkeys(path for index in group for path in drafts[index].users):
            used = [index for index in group if path in drafts[index].users]
            # Without a request the container has all of the claim.
            request = {"request": requests[used[0]]} if len(used) == 1 else {}
            references.setdefault(path, []).append({"name": name, **request})
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
    """Number of units: a request for all devices ignores the original number."""
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


def _named(drafts: Sequence[_Draft], containers: Mapping[FieldPath, str]) -> list[str]:
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


# Notes on requests that become claims: for which devices, and why a claim narrows them down.


_OF_DEVICE: Final = re.compile(r'device\.attributes\["[^"]+"\]\.(\w+ == "[^"]*")')


def of_claims(asks: Sequence[Ask], placements: Mapping[str, PlacementPlan], reasons: Sequence[str]) -> str:
    """One sentence: which requests become claims, the selectors of their own, and the ``reasons`` of labels."""
    parts = []
    for name in dict.fromkeys(ask.resource.name for ask in asks if not ask.resource.part_of):
        who = ", ".join(dict.fromkeys(ask.container.name for ask in asks if ask.resource.name == name))
        parts.append(f"{name} of {who} becomes a claim")
    return "; ".join((*parts, *_narrowed(asks, placements), *reasons))


def _narrowed(asks: Sequence[Ask], placements: Mapping[str, PlacementPlan]) -> Iterator[str]:
    """Why a request has selectors that no label of the pod asked for."""
    for name, resource in {ask.resource.name: ask.resource for ask in asks}.items():
        if resource.selectors:
            selected = " and ".join(map(_condition, resource.selectors))
            device_class = class_of(resource, placements)
            yield f"class {device_class} has other devices than {name}, too, so the claim selects {selected}"


def _condition(selector: str) -> str:
    """A selector in a sentence: without the driver's domain where it compares one attribute."""
    one_line = " ".join(selector.split())
    compared = _OF_DEVICE.fullmatch(one_line)
    return compared[1] if compared else one_line


def moved(asks: Sequence[Ask], placements: Mapping[str, PlacementPlan]) -> tuple[Moved, ...]:
    """The resources that become claims, with the classes and drivers of these."""
    resources = {ask.resource.name: ask.resource for ask in asks if not ask.resource.part_of}
    return tuple(Moved(name, class_of(resource, placements), resource.driver) for name, resource in resources.items())
