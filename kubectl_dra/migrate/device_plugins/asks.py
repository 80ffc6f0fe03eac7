"""What the containers of a pod request from device plugins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.pod_resources import pod_requests
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.releases import GROUP, first_with, gate_default
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import fields_at, value_at
from kubectl_dra.manifests.workloads import PodContainer, WorkloadPodSpec, containers
from kubectl_dra.migrate.codes import Safety
from kubectl_dra.migrate.device_plugins.placement import PlacementPlan
from kubectl_dra.migrate.model import (
    MigrationSettings,
    Moved,
    NewObject,
    Note,
    ObjectPlan,
    PlanRefusal,
    PlanSurroundings,
)
from kubectl_dra.migrate.new_objects import as_label
from kubectl_dra.migrate.other_texts import fill_in
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, is_extended
from kubectl_dra.migrate.vendors.model import Resource

_NO_NUMBER: Final = "Write how many; if the file is cut off there, get the whole one."


class Ask(NamedTuple):
    """A container's request for ``amount`` devices of a resource. ``keys`` are the paths that state it."""

    container: PodContainer
    resource: Resource
    amount: int
    keys: tuple[FieldPath, ...]


def ask_elsewhere(path: FieldPath, resource: Resource) -> Ask:
    """A request of pods that someone else creates: what a DeviceClass for the resource must serve."""
    return Ask(PodContainer((), "", {}), resource, 1, (path,))


class Asks(NamedTuple):
    """All requests of a pod for devices.

    ``held`` are the vendors for which some container requests something that cannot be migrated. No container
    of the pod is then migrated for that vendor, because a pod cannot mix devices of one vendor from a device
    plugin and from a claim. ``beside`` are resources that stay with their device plugin. ``zeros`` are keys
    that request nothing.
    """

    asks: tuple[Ask, ...] = ()
    zeros: tuple[FieldPath, ...] = ()
    refusals: tuple[PlanRefusal, ...] = ()
    held: frozenset[str] = frozenset()
    beside: tuple[str, ...] = ()


class _Problem(Exception):
    def __init__(self, code: str, message: str, way_out: str) -> None:
        self.refusal = (code, message, way_out)


def extended_amounts(pod: Pod) -> dict[str, int]:
    """Amount of each extended resource that the whole pod requests, without those that it requests 0 of."""
    requested = pod_requests(pod)
    return {name: amount.value() for name, amount in requested.items() if is_extended(name) and amount.sign() > 0}


def read_asks(spec: WorkloadPodSpec, catalogue: VendorCatalogue, *, patch: bool = False) -> Asks:
    """The requests in a pod spec, in the order of its containers and their resources.

    ``patch``: it is laid over another one, where null removes what that has.
    """
    asks: list[Ask] = []
    zeros: list[FieldPath] = []
    refusals: list[PlanRefusal] = []
    held: set[str] = set()
    beside: list[str] = []
    kept: list[str] = []
    for container in containers(spec):
        refusals += _no_amounts(container, catalogue)
        for name, amounts_at, resource in _resources(container, spec, catalogue):
            keys = tuple(path for path, _ in amounts_at)
            if resource is None:
                if not is_zero(amounts_at[0][1]):
                    refusals.append(_unknown(name, container, keys[0]))
                    beside.append(name)
                continue
            if resource.outcome == "keep":
                kept.append(name)
                continue
            if patch and all(value is None for _, value in amounts_at):
                zeros += keys
                continue
            try:
                count = _count(name, amounts_at)
                if count == 0:
                    zeros += keys
                    continue
                _check(resource, count)
            except _Problem as problem:
                code, message, way_out = problem.refusal
                refusals.append(PlanRefusal(code, keys[0], f"{_who(container)}: {message}", way_out))
                held.add(resource.vendor)
                beside.append(name)
                continue
            asks.append(Ask(container, resource, count, keys))
    refusals += _of_the_pod(spec, catalogue)
    for ask in _of_two_vendors(asks):
        refusals.append(
            PlanRefusal(
                "MIG112",
                ask.keys[0],
                f"{_who(ask.container)}: {ask.resource.name} is {ask.resource.vendor}'s here, and another container of "
                "the pod means another vendor's by it",
                "Ask in all containers of the pod in the same way, and migrate again.",
            )
        )
        held.add(ask.resource.vendor)
    # An unknown name in a vendor's own domain is most likely of its device plugin, which a node then runs.
    strange = {_domain(name) for name in beside} - {_domain(ask.resource.name) for ask in asks if ask.resource.part_of}
    held.update(ask.resource.vendor for ask in asks if _domain(ask.resource.name) in strange)
    return Asks(tuple(asks), tuple(zeros), tuple(refusals), frozenset(held), tuple(dict.fromkeys((*beside, *kept))))


def meanings(spec: WorkloadPodSpec, catalogue: VendorCatalogue) -> dict[str, Resource]:
    """What each known resource of a pod is there: HAMi's nvidia.com/gpu is another one than NVIDIA's."""
    out: dict[str, Resource] = {}
    for container in containers(spec):
        for name, _, resource in _resources(container, spec, catalogue):
            if resource is not None:
                out.setdefault(name, resource)
    return out


def _resources(
    container: PodContainer, spec: WorkloadPodSpec, catalogue: VendorCatalogue
) -> Iterator[tuple[str, list[tuple[FieldPath, Any]], Resource | None]]:
    """The extended resources of a container, with their paths and values, and what each is there."""
    annotations, scheduler = fields_at(spec.metadata, "annotations"), str(spec.content.get("schedulerName") or "")
    amounts = _amounts(container)
    values = {name: amounts_at[0][1] for name, amounts_at in amounts.items()}
    for name in filter(is_extended, amounts):
        yield name, amounts[name], catalogue.resource(name, values, annotations, scheduler)


def _no_amounts(container: PodContainer, catalogue: VendorCatalogue) -> Iterator[PlanRefusal]:
    """Limits and requests that are a known name and no mapping, as where a file is cut off."""
    for field in ("limits", "requests"):
        content = value_at(container.content, ("resources", field))
        if isinstance(content, str) and catalogue.moves(content.strip()):
            path = (*container.path, "resources", field)
            message = f"{_who(container)}: {field} is {shown(content)}, a name without a number"
            yield PlanRefusal("MIG114", path, message, _NO_NUMBER)


def _of_the_pod(spec: WorkloadPodSpec, catalogue: VendorCatalogue) -> Iterator[PlanRefusal]:
    """Known resources in the pod's own ``resources``, where the API server accepts only cpu, memory and huge pages."""
    whole = PodContainer(spec.path, "", spec.content)
    for name, amounts_at in _amounts(whole).items():
        if not is_zero(amounts_at[0][1]) and catalogue.moves(name):
            message = f"{name} is requested for the pod as a whole, which works only for cpu, memory and huge pages"
            yield PlanRefusal("MIG115", amounts_at[0][0], message, "Ask for it in the container that needs it.")


def _of_two_vendors(asks: Iterable[Ask]) -> list[Ask]:
    """Requests with names that are ambiguous within the pod: a whole GPU or, beside shares of memory, HAMi's
    part of one.
    """
    vendors: dict[str, set[str]] = {}
    asks = list(asks)
    for ask in asks:
        vendors.setdefault(ask.resource.name, set()).add(ask.resource.vendor)
    return [ask for ask in asks if len(vendors[ask.resource.name]) > 1]


def _domain(name: str) -> str:
    return name.partition("/")[0]


def _amounts(container: PodContainer) -> dict[str, list[tuple[FieldPath, Any]]]:
    """Every resource name of a container, with the paths and values of its limit and request (limit first)."""
    resources = container.content.get("resources")
    out: dict[str, list[tuple[FieldPath, Any]]] = {}
    for field in ("limits", "requests"):
        for name, value in fields_at(resources, field).items():
            out.setdefault(str(name), []).append(((*container.path, "resources", field, name), value))
    return out


def _count(name: str, amounts_at: Iterable[tuple[FieldPath, Any]]) -> int:
    """The number of devices. Raises _Problem if limit and request do not give one whole number."""
    values: dict[str, Quantity] = {}
    for path, value in amounts_at:
        if value is None:
            raise _Problem("MIG114", f"{name} has no number", _NO_NUMBER)
        try:
            quantity = Quantity.from_json(value)
        except QuantityError:
            how = fill_in(str(value))
            if how:
                raise _Problem(
                    "MIG114",
                    f"{name} is {shown(value)}, a placeholder: how many devices that is, only its tool knows",
                    f"{how[:1].upper()}{how[1:]}.",
                ) from None
            raise _Problem(
                "MIG114",
                f"{name} is {shown(value)}, which is not a number of devices",
                "Put the number in, then migrate.",
            ) from None
        if quantity.nanos % 1_000_000_000 or quantity.sign() < 0:
            raise _Problem(
                "MIG114",
                f"{name} is {shown(value)}, and devices come in whole numbers",
                "Write a whole number of devices.",
            )
        values[str(path[-2])] = quantity
    limit, request = values.get("limits"), values.get("requests")
    if limit is None:
        if request is not None and request.sign() == 0:
            return 0
        raise _Problem(
            "MIG115",
            f"{name} is in requests only, which the API server refuses: an extended resource needs its limit",
            "Write the limit, equal to the request.",
        )
    if request is not None and request.compare(limit) != 0:
        raise _Problem(
            "MIG115",
            f"{name} has the request {request} and the limit {limit}, which must be equal",
            "Make both the number of devices that is meant.",
        )
    # Exact, also where 64 bits would not hold it.
    return limit.nanos // 1_000_000_000


def _check(resource: Resource, count: int) -> None:
    if resource.outcome in ("ask", "refuse"):
        code = "MIG112" if resource.outcome == "ask" else "MIG113"
        raise _Problem(code, said(resource.name, resource.message), resource.way_out)
    if count > MAX_RESULTS and not resource.part_of and resource.allocation_mode != "All":
        raise _Problem(
            "MIG114",
            f"{resource.name} is {_digits(count)}, and a claim can hold {MAX_RESULTS} devices at most",
            "If the plugin gives out shares of devices, count the devices that are needed; else split the container.",
        )


def _digits(count: int) -> str:
    return str(count) if count < 10**20 else "a number of more than 20 digits"


def _unknown(name: str, container: PodContainer, path: FieldPath) -> PlanRefusal:
    return PlanRefusal(
        "MIG111",
        path,
        f"{_who(container)}: {name} belongs to no known vendor, so nothing is guessed",
        "Say in a file for --vendors which DeviceClass it becomes, or that it stays (outcome: keep).",
    )


def said(name: str, message: str) -> str:
    """The catalogue's message about something, after its name."""
    return f"{name}: {within(message)}"


def within(sentence: str) -> str:
    """A sentence of the catalogue as part of another one: no full stop, and no capital except in names."""
    text = sentence.rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2] == " " or text[1:2].islower() else text


def shown(value: Any) -> str:
    """A value as JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _who(container: PodContainer) -> str:
    kind = "sidecar" if container.sidecar else "init container" if container.init else "container"
    return f"{kind} {container.name}"


def is_zero(value: Any) -> bool:
    """Whether an amount is a quantity of 0."""
    try:
        return Quantity.from_json(value).sign() == 0
    except QuantityError:
        return False


def parts_of(ask: Ask, asks: Iterable[Ask]) -> Iterator[Ask]:
    """Requests of the same container that only state the share of each device; they are merged into it."""
    for other in asks:
        if other.resource.part_of == ask.resource.name and other.container.path == ask.container.path:
            yield other


# ``--strategy extended-resource``: workloads stay unchanged, and DeviceClasses take over the resource names.

_GATE: Final = "DRAExtendedResource"
_TRADE_OFF: Final = (
    "pods stay unchanged, but cannot share devices, select them by attribute or configure them, "
    "and a node must not also serve the name through a device plugin"
)


def by_name(asks: Sequence[Ask], placements: Mapping[str, PlacementPlan], settings: MigrationSettings) -> bool:
    """Whether the strategy for these requests is to keep the extended resources."""
    if settings.strategy != "auto":
        return settings.strategy == "extended-resource"
    return not why_claims(asks, placements, settings)


def why_claims(asks: Sequence[Ask], placements: Mapping[str, PlacementPlan], settings: MigrationSettings) -> str:
    """Why a pod has to have claims, because a number of extended resources would not be the same; empty if it would."""
    if not gate_default(_GATE, settings.release):
        return f"Kubernetes {settings.release} has no DeviceClass for an extended resource"
    for ask in asks:
        name = ask.resource.name
        reason = _cannot(ask, placements)
        if not reason and ask.resource.outcome != "auto":
            reason = "its driver works differently from the device plugin"
        if not reason and placements.get(name, PlacementPlan()).removed:
            reason = "node labels choose the device, which only a claim can say"
        if reason := reason or _unknown_selector(ask, settings):
            return f"{name}: {reason}"
    return ""


def extended(
    asks: Sequence[Ask],
    placements: Mapping[str, PlacementPlan],
    surroundings: PlanSurroundings,
    settings: MigrationSettings,
) -> ObjectPlan:
    """DeviceClasses for the resources of a pod, or why none are needed or possible."""
    objects: list[NewObject] = []
    notes: list[Note] = []
    refusals: list[PlanRefusal] = []
    for ask in {ask.resource.name: ask for ask in reversed(asks)}.values():
        resource, path = ask.resource, ask.keys[0]
        if not gate_default(_GATE, settings.release):
            message = f"Kubernetes {settings.release} has no DeviceClass for an extended resource unless a gate is on"
            way_out = f"Use --strategy claims, or a release from {first_with(_GATE)}."
            refusals.append(PlanRefusal("MIG122", path, message, way_out))
            continue
        if reason := _cannot(ask, placements) or _unknown_selector(ask, settings):
            message = f"a DeviceClass cannot stand for {resource.name}: {reason}"
            refusals.append(PlanRefusal("MIG122", path, message, "Use --strategy claims for this workload."))
        elif resource.extended_resource_since:
            message = (
                f"nothing to change: the class {resource.device_class} carries {resource.name} "
                f"(since {resource.extended_resource_since}); {_TRADE_OFF}"
            )
            notes.append(Note("MIG106", path, message))
        else:
            new_class = device_class(ask, _selector(ask, settings))
            if ("DeviceClass", "", new_class["metadata"]["name"]) not in surroundings.taken:
                reason = f"the scheduler gives pods that ask for {resource.name} devices of this class; {_TRADE_OFF}"
                safety: Safety = "unsafe" if resource.outcome == "note" else "safe"
                moved = (Moved(resource.name, new_class["metadata"]["name"], resource.driver),)
                objects.append(NewObject("MIG105", new_class, reason, safety, moved))
    return ObjectPlan(objects=tuple(objects), notes=tuple(notes), refusals=tuple(refusals))


def device_class(ask: Ask, selector: str) -> dict[str, Any]:
    """The class for a resource name: ``mig-1g.5gb.nvidia.com`` for nvidia.com/mig-1g.5gb."""
    domain, _, name = ask.resource.name.partition("/")
    parts = [as_label(part) for part in name.split(".")]
    selectors = [{"cel": {"expression": expression}} for expression in (selector, *ask.resource.selectors)]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "DeviceClass",
        "metadata": {"name": f"{'.'.join(part for part in parts if part)}.{domain}"},
        "spec": {"selectors": selectors, "extendedResourceName": ask.resource.name},
    }


def _cannot(ask: Ask, placements: Mapping[str, PlacementPlan]) -> str:
    """Why a number of extended resources does not express the request; empty if it does."""
    resource, placed = ask.resource, placements.get(ask.resource.name, PlacementPlan())
    if resource.capacity or resource.part_of:
        return "its count does not say how much of each device is meant"
    if resource.allocation_mode == "All":
        return "the driver gives all devices of a node to one claim"
    if resource.admin_access:
        return "it cannot ask for admin access"
    if placed.device_class and placed.device_class != resource.device_class:
        return f"the pod's labels mean devices of the class {placed.device_class}"
    return ""


def _unknown_selector(ask: Ask, settings: MigrationSettings) -> str:
    """Why no DeviceClass can be written for the resource; empty if one can, or the driver has it."""
    known = ask.resource.extended_resource_since or _selector(ask, settings)
    return "" if known else f"the selector of the class {ask.resource.device_class} is not known"


def _selector(ask: Ask, settings: MigrationSettings) -> str:
    installed = settings.catalogue.device_class(ask.resource.device_class)
    return installed.selector if installed is not None else ""
