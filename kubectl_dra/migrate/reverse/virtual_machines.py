"""The devices of KubeVirt's virtual machines: from the claims that migrate made back to names of its device plugins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from kubectl_dra.api.conversion import to_v1
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Change, Delete, Set, changed, items_at, value_at
from kubectl_dra.manifests.objects import ObjectKey, object_key
from kubectl_dra.manifests.workloads import key_of
from kubectl_dra.migrate.codes import NO_RESOURCE, NOT_OURS, RESTORED
from kubectl_dra.migrate.model import MigrationSettings, Moved, ObjectPlan, PlanRefusal, PlanSurroundings, Step
from kubectl_dra.migrate.reverse.requests import MadeClaim, Stop, made_claim, resources_of
from kubectl_dra.migrate.virtual_machines import GPUS, HOST_DEVICES, MachineDevice, plan_devices

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
    if problem := _difference(raw, changed(raw, changes), moved, freed, by_key, settings):
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


def _difference(
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
    planned = plan_devices(before, devices, PlanSurroundings(list(rest.values()), frozenset(rest)), forward)
    after = changed(before, [change for step in planned.steps for change in step.changes])
    objects = {object_key(manifest.raw): to_v1(manifest.raw) for manifest in planned.objects}
    if {key: template.get("spec") for key, template in objects.items()} != {
        key: raw["spec"] for key, raw in created.items()
    }:
        return "its templates are not what migrate makes: they were written or changed by hand"
    return "" if after == now else "it uses its claims in another way than migrate writes"
