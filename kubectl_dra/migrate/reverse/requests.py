"""What a pod's containers requested from device plugins before it had claims, and its labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.conversion import reshaped, to_v1
from kubectl_dra.api.releases import GROUP
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Change, Delete, Set, changed, fields_at, items_at, value_at
from kubectl_dra.manifests.objects import ObjectKey, object_key
from kubectl_dra.manifests.workloads import (
    CLAIM_REFERENCES,
    CLAIM_SPECS,
    PodContainer,
    WorkloadPodSpec,
    containers,
    key_of,
)
from kubectl_dra.migrate import quotas
from kubectl_dra.migrate.codes import NO_RESOURCE, NO_TEMPLATE, NOT_OURS, QUOTA, RESTORED, STILL_COUNTED
from kubectl_dra.migrate.device_plugins.labels import node_selector
from kubectl_dra.migrate.device_plugins.placement import placement
from kubectl_dra.migrate.model import (
    MigrationSettings,
    Moved,
    NamespaceDemand,
    Note,
    ObjectPlan,
    PlanRefusal,
    PlanSurroundings,
    Share,
    Step,
)
from kubectl_dra.migrate.other_kinds import GPUS, HOST_DEVICES, MachineDevice, plan_devices
from kubectl_dra.migrate.reverse.labels import Named, Unnamed, candidates, chosen, conditions
from kubectl_dra.migrate.vendors.model import Resource
from kubectl_dra.text import whole_number

# Data for planning the reverse migration: claims of a pod, and why an object stays unchanged.

_READ: Final = "Name the file that has it as well; what is in the cluster only, kubectl get -o yaml writes."
BY_HAND: Final = "Take the manifest from before out of version control, or write the resource and remove the claim."


class MadeClaim(NamedTuple):
    """A claim of a pod: its index in the list, its object, and its requests."""

    place: int
    name: str
    key: ObjectKey
    share: Share
    requests: Mapping[str, Mapping[str, Any]]


class Stop(Exception):
    """Why an object stays unchanged."""

    def __init__(self, code: str, path: FieldPath, message: str, way_out: str = BY_HAND) -> None:
        self.refusal = PlanRefusal(code, path, message, way_out)


def made_claim(
    raw: Mapping[str, Any], path: FieldPath, pod_claim: Any, by_key: Mapping[ObjectKey, Mapping[str, Any]]
) -> MadeClaim | None:
    """The claim of one entry of ``resourceClaims``; None if it names none. Raises Stop: migrate has not made it."""
    for field, kind in CLAIM_REFERENCES.items():
        if not isinstance(pod_claim, Mapping) or not isinstance(pod_claim.get(field), str):
            continue
        key = (kind, object_key(raw)[1], pod_claim[field])
        existing = by_key.get(key)
        if existing is None or not str(existing.get("apiVersion")).startswith(f"{GROUP}/v1"):
            raise Stop(NO_TEMPLATE, path, f"{kind} {pod_claim[field]} is not among the files that were read", _READ)
        try:
            devices = value_at(reshaped(existing), (*CLAIM_SPECS[kind], "devices"))
        except (AttributeError, KeyError, TypeError, ValueError):
            devices = None
        requests = {
            str(request.get("name")): request["exactly"]
            for request in items_at(devices, "requests")
            if isinstance(request, Mapping) and isinstance(request.get("exactly"), Mapping)
        }
        if not requests or set(devices) != {"requests"} or len(requests) != len(devices["requests"]):
            message = f"{kind} {pod_claim[field]} has constraints, alternatives or settings, and migrate writes none"
            raise Stop(NOT_OURS, path, message)
        share: Share = "template" if kind == "ResourceClaimTemplate" else "claim"
        return MadeClaim(int(path[-1]), str(pod_claim.get("name")), key, share, requests)
    return None


def resources_of(
    claim: MadeClaim, name: str, exactly: Mapping[str, Any], path: FieldPath, settings: MigrationSettings
) -> list[Named]:
    """The resources that a request of a claim may have been made from. Raises Stop: none."""
    try:
        return candidates(exactly, settings.catalogue)
    except Unnamed as unnamed:
        raise Stop(NO_RESOURCE, path, f"request {name} of {claim.key[0]} {claim.key[2]}: {unnamed}") from None


def restored(
    spec: WorkloadPodSpec,
    entries: Sequence[MadeClaim],
    named: Mapping[tuple[ObjectKey, str], Named],
    settings: MigrationSettings,
) -> Iterator[Change]:
    """The changes of one pod spec."""
    if not entries:
        return
    every = items_at(spec.content, "resourceClaims")
    if len(entries) == len(every) and set(spec.content) == {"resourceClaims"}:
        # Values of a chart had no settings of the pod before.
        yield Delete(spec.path)
    elif len(entries) == len(every):
        yield Delete((*spec.path, "resourceClaims"))
    else:
        yield from (Delete((*spec.path, "resourceClaims", claim.place)) for claim in entries)
    by_name = {claim.name: claim for claim in entries}
    counts: dict[str, int | None] = {}
    for container in containers(spec):
        amounts, changes = _of_container(spec, container, by_name, named, settings)
        yield from changes
        if not container.init:
            for name, amount in amounts.items():
                counts[name] = (counts.get(name) or 0) + amount
    labels = []
    # What the labels that stayed say depends on what the pod asked for.
    before = {**spec.content, "containers": [{"resources": {"limits": counts}}]}
    for claim in entries:
        for request, exactly in claim.requests.items():
            candidate = named[claim.key, request]
            path: FieldPath = (*spec.path, "resourceClaims", claim.place)
            _check_label(spec, candidate.resource, str(exactly.get("deviceClassName")), path, settings)
            kept = placement(before, candidate.resource, settings.catalogue, settings.release).selectors
            rest = [selector for selector in candidate.rest if selector not in kept]
            try:
                device_class = str(exactly.get("deviceClassName"))
                restored_conditions = conditions(rest, candidate.resource, settings.catalogue, counts, device_class)
            except Unnamed as unnamed:
                message = f"request {request} of {claim.key[0]} {claim.key[2]}: {unnamed}"
                raise Stop(NO_RESOURCE, path, message) from None
            labels += [condition for condition in restored_conditions if condition not in labels]
    try:
        yield from chosen(spec.content, spec.path, labels)
    except Unnamed as unnamed:
        raise Stop(NO_RESOURCE, spec.path, str(unnamed)) from None


def _check_label(
    spec: WorkloadPodSpec, resource: Resource, device_class: str, path: FieldPath, settings: MigrationSettings
) -> None:
    """Refuse if a remaining label of the pod may have chosen the class for another resource of the vendor."""
    for rule in settings.catalogue.vendor(resource.vendor).resources:
        other = settings.catalogue.resource(rule.name) if rule.name else None
        if other is None or other.name == resource.name or other.outcome not in ("auto", "note"):
            continue
        if placement(spec.content, other, settings.catalogue, settings.release).device_class == device_class:
            message = f"class {device_class} can be that of {resource.name}, or of {other.name} with a label of the pod"
            raise Stop(NO_RESOURCE, path, message)


def _of_container(
    spec: WorkloadPodSpec,
    container: PodContainer,
    entries: Mapping[str, MadeClaim],
    named: Mapping[tuple[ObjectKey, str], Named],
    settings: MigrationSettings,
) -> tuple[dict[str, int], list[Change]]:
    """What a container requested, and the changes that request it again."""
    path: FieldPath = (*container.path, "resources")
    resources = container.content.get("resources")
    claims = items_at(resources, "claims")
    amounts: dict[str, int] = {}
    gone: list[int] = []
    for index, claim in enumerate(claims):
        made_claim = entries.get(str(claim.get("name"))) if isinstance(claim, Mapping) else None
        if made_claim is None:
            continue
        gone.append(index)
        wanted = claim.get("request")
        for name, exactly in made_claim.requests.items():
            if wanted in (None, "", name):
                candidate = named[made_claim.key, name]
                count = exactly.get("count") or 1
                if candidate.resource.allocation_mode == "All":
                    count = _all_of(
                        spec, candidate.resource, (*spec.path, "resourceClaims", made_claim.place), settings
                    )
                amounts[candidate.resource.name] = amounts.get(candidate.resource.name, 0) + count
                amounts.update(candidate.parts)
    if not gone:
        return {}, []
    changes: list[Change] = [Delete((*path, "claims", index)) for index in gone]
    if len(gone) == len(claims):
        changes = [Delete((*path, "claims"))]
    limits = fields_at(resources, "limits")
    written = {name: _written(amount, resources) for name, amount in amounts.items()}
    if limits:
        changes += [Set((*path, "limits", name), amount) for name, amount in written.items()]
    else:
        changes.append(Set((*path, "limits"), written))
    return amounts, changes


def _all_of(spec: WorkloadPodSpec, resource: Resource, path: FieldPath, settings: MigrationSettings) -> int:
    """The number behind a claim for all devices of a node: that of the topology which the pod asks for."""
    for stated in node_selector(spec.content):
        labelled = settings.catalogue.label(stated.key, resource)
        if labelled is None or labelled.rule.compare != "topology" or labelled.rule.of != resource.name:
            continue
        if stated.condition is not None and re.fullmatch(r"[0-9]{1,5}(x[0-9]{1,5})*", stated.condition.values[0]):
            return prod(int(side) for side in stated.condition.values[0].split("x"))
    message = f"the claim is for all devices of a node, and no label of the pod says how many {resource.name} these are"
    raise Stop(NO_RESOURCE, path, message)


def _written(amount: int, resources: Any) -> int | str:
    """The amount in the style of the container's other whole numbers: as text if all of them are."""
    others = [value for field in ("limits", "requests") for value in fields_at(resources, field).values()]
    texts = [value for value in others if isinstance(value, str) and whole_number(value) is not None]
    return str(amount) if texts and not any(isinstance(value, int) for value in others) else amount


def carried_out(
    plan: ObjectPlan, before: Mapping[str, Any]
) -> tuple[Mapping[str, Any], dict[ObjectKey, Mapping[str, Any]]]:
    """The object after the steps of its plan, and the new objects in v1, by key."""
    after: Mapping[str, Any] = changed(before, [change for step in plan.steps for change in step.changes])
    return after, {object_key(new.raw): to_v1(new.raw) for new in plan.objects}


# The reverse migration of a quota: removes the keys that migrate added.


def plan_quota(
    raw: Mapping[str, Any], path: FieldPath, demand: NamespaceDemand, settings: MigrationSettings
) -> ObjectPlan:
    """Remove the keys that migrate would add again, where no claim is left that they count."""
    classes = {key: key.removesuffix(quotas.quota_key("")) for key in map(str, fields_at(raw, *path))}
    classes = {key: device_class for key, device_class in classes.items() if device_class != key}
    left = demand.classes(quotas.namespace_of_quota(raw))
    notes = tuple(
        Note(STILL_COUNTED, (*path, key), f"{key} stays: claims of the namespace still ask for {device_class}")
        for key, device_class in classes.items()
        if device_class in left
    )
    keys = [key for key, device_class in classes.items() if device_class not in left]
    changes = tuple(Delete((*path, key)) for key in keys)
    if not changes:
        return ObjectPlan(notes=notes)
    before = changed(raw, changes)
    forward = replace(settings, reverse=False, strategy="claims")
    then = NamespaceDemand({}, {"": frozenset(classes.values())})
    after, _ = carried_out(quotas.plan(before, PlanSurroundings(demand=lambda: then), forward), before)
    if after != raw:
        names = ", ".join(str(key) for key in keys)
        way_out = "Take the keys out by hand when no pod of the namespace has claims any more."
        message = f"{names} is not what migrate adds to this quota"
        return ObjectPlan(notes=notes, refusals=(PlanRefusal(NOT_OURS, (*path, keys[0]), message, way_out),))
    reason = f"the quota counts {', '.join(map(str, keys))} no more"
    return ObjectPlan((Step(QUOTA, (*path, keys[0]), reason, changes),), notes=notes)


# The devices of KubeVirt's virtual machines: from the claims that migrate made back to names of its device plugins.


_MACHINES: Final[Mapping[tuple[str, str], FieldPath]] = {
    ("kubevirt.io", "VirtualMachine"): ("spec", "template", "spec"),
    ("kubevirt.io", "VirtualMachineInstance"): ("spec",),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"): ("spec", "template", "spec"),
    ("pool.kubevirt.io", "VirtualMachinePool"): ("spec", "virtualMachineTemplate", "spec", "template", "spec"),
}
"""Where each kind has the spec of a VirtualMachineInstance."""


def machine_path(raw: Mapping[str, Any]) -> FieldPath | None:
    """Where an object has the spec of a virtual machine; None if it has none."""
    return _MACHINES.get(key_of(raw))


def plan_machine(
    raw: Mapping[str, Any], root: FieldPath, by_key: Mapping[ObjectKey, Mapping[str, Any]], settings: MigrationSettings
) -> tuple[ObjectPlan, tuple[ObjectKey, ...]]:
    """The plan of an object with a virtual machine at ``root``, and the templates that it then no longer needs.

    Raises:
        Stop: it is not known what its devices were called, or migrate has not made its claims.
    """
    changes: list[Change] = []
    moved: list[MachineDevice] = []
    freed: dict[ObjectKey, Mapping[str, Any]] = {}
    others: list[PlanRefusal] = []
    entries = items_at(value_at(raw, root), "resourceClaims")
    for device, claim, exactly in _devices(raw, root, by_key, others):
        path = (*root, "resourceClaims", claim.place)
        names = [named.resource for named in resources_of(claim, "", exactly, path, settings)]
        machines = [resource for resource in names if resource.kind == "passthrough"]
        if len(machines) != 1:
            known = " or ".join(resource.name for resource in machines) or "no device of a virtual machine"
            raise Stop(NO_RESOURCE, path, f"the claim can have been made from {known}")
        changes += [Delete((*device, "claimName")), Delete((*device, "requestName"))]
        changes += [Set((*device, "deviceName"), machines[0].name), Delete(path)]
        moved.append(MachineDevice(device, machines[0]))
        freed[claim.key] = to_v1(by_key[claim.key])
    if not moved:
        return ObjectPlan(refusals=tuple(others)), ()
    gpus: FieldPath = (*root, "domain", "devices", GPUS)
    going = {device.path for device in moved}
    staying = [(*gpus, index) for index, _ in enumerate(items_at(raw, *gpus)) if (*gpus, index) not in going]
    if staying and any(device.field == GPUS for device in moved):
        message = "another GPU of the machine keeps its claim, and KubeVirt refuses a mixture"
        raise Stop(NOT_OURS, staying[0], message)
    if len(moved) == len(entries):
        gone = (*root, "resourceClaims")
        changes = [*(change for change in changes if change.path[: len(gone)] != gone), Delete(gone)]
    if problem := _machine_difference(raw, changed(raw, changes), moved, freed, by_key, settings):
        raise Stop(NOT_OURS, (*root, "resourceClaims"), problem)
    names_again = ", ".join(dict.fromkeys(device.resource.name for device in moved))
    reason = f"the claim becomes {names_again} again, which KubeVirt takes from permittedHostDevices"
    resources = {device.resource.name: device.resource for device in moved}
    restored = tuple(Moved(name, resource.device_class, resource.driver) for name, resource in resources.items())
    step = Step(RESTORED, (*root, "resourceClaims"), reason, tuple(changes), moved=restored)
    return ObjectPlan((step,), refusals=tuple(others)), tuple(freed)


def _devices(
    raw: Mapping[str, Any], root: FieldPath, by_key: Mapping[ObjectKey, Mapping[str, Any]], others: list[PlanRefusal]
) -> Iterator[tuple[FieldPath, MadeClaim, Mapping[str, Any]]]:
    """The devices that claims of their own serve, each with its request; ``others`` get why the rest stays."""
    entries = items_at(value_at(raw, root), "resourceClaims")
    for field in (GPUS, HOST_DEVICES):
        for index, device in enumerate(items_at(value_at(raw, root), "domain", "devices", field)):
            named = device.get("claimName") if isinstance(device, Mapping) else None
            for place, entry in enumerate(entries):
                if not named or not isinstance(entry, Mapping) or entry.get("name") != named:
                    continue
                path: FieldPath = (*root, "resourceClaims", place)
                try:
                    claim = made_claim(raw, path, entry, by_key)
                    exactly = claim.requests.get(str(device.get("requestName"))) if claim is not None else None
                    if claim is None or claim.share != "template" or exactly is None:
                        raise Stop(NOT_OURS, path, "migrate gives each device of a virtual machine a template's claim")
                    yield (*root, "domain", "devices", field, index), claim, exactly
                except Stop as stop:
                    others.append(stop.refusal)


def _machine_difference(
    now: Mapping[str, Any],
    before: Mapping[str, Any],
    devices: list[MachineDevice],
    created: Mapping[ObjectKey, Mapping[str, Any]],
    by_key: Mapping[ObjectKey, Mapping[str, Any]],
    settings: MigrationSettings,
) -> str:
    """Difference between the migrated ``before`` and the current state; empty if there is none."""
    rest = {key: other for key, other in by_key.items() if key not in created}
    forward = replace(settings, reverse=False, strategy="claims", version="v1")
    around = PlanSurroundings(rest.values(), frozenset(rest))
    after, objects = carried_out(plan_devices(before, devices, around, forward), before)
    specs, wanted = ({key: raw.get("spec") for key, raw in found.items()} for found in (objects, created))
    if specs != wanted:
        return "its templates are not what migrate makes: they were written or changed by hand"
    return "" if after == now else "it uses its claims in another way than migrate writes"
