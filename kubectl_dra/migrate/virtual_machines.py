"""Devices of KubeVirt's virtual machines: from names that its device plugins serve to claims.

KubeVirt 1.9 takes them with its feature gates GPUsWithDRA and HostDevicesWithDRA (``pkg/dra/admitter``). Each device
gets a claim of its own, because releases before 1.9 make an invalid pod of several from one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Change, Delete, Set, items_at, value_at
from kubectl_dra.manifests.workloads import PodContainer
from kubectl_dra.migrate.device_plugins.asks import Ask, said
from kubectl_dra.migrate.device_plugins.claim_wiring import Claim, wired
from kubectl_dra.migrate.device_plugins.pod_rewrite import added, claim_object
from kubectl_dra.migrate.model import (
    MigrationSettings,
    Moved,
    NewObject,
    ObjectPlan,
    PlanRefusal,
    PlanSurroundings,
    Step,
)
from kubectl_dra.migrate.new_objects import free_object, workload_name
from kubectl_dra.migrate.vendors.model import Resource

GPUS: Final = "gpus"
HOST_DEVICES: Final = "hostDevices"
_GATES: Final = {GPUS: "GPUsWithDRA", HOST_DEVICES: "HostDevicesWithDRA"}
_TEMPLATE: Final = "ResourceClaimTemplate"


class MachineDevice(NamedTuple):
    """A device of a virtual machine that is named by ``resource``: its path, and which list it is in."""

    path: FieldPath
    resource: Resource

    @property
    def field(self) -> str:
        """``gpus`` or ``hostDevices``."""
        return str(self.path[-2])

    @property
    def machine(self) -> FieldPath:
        """Where the spec of the VirtualMachineInstance is."""
        return self.path[: self.path.index("domain")]


def virtual_device(path: FieldPath, resource: Resource | None) -> MachineDevice | None:
    """The device of a virtual machine whose ``deviceName`` is at a path; None elsewhere, as in an instance type."""
    named = path[-1] == "deviceName" and path[-3:-2] in ((GPUS,), (HOST_DEVICES,))
    return MachineDevice(path[:-1], resource) if named and "domain" in path and resource is not None else None


def serves(resource: Resource) -> bool:
    """Whether a DeviceClass is known whose devices a virtual machine can have."""
    return resource.kind == "passthrough" and resource.outcome in ("auto", "note")


def plan_devices(
    raw: Mapping[str, Any],
    devices: Sequence[MachineDevice],
    surroundings: PlanSurroundings,
    settings: MigrationSettings,
) -> ObjectPlan:
    """Claims for those devices of an object whose classes are known."""
    name = workload_name(raw)
    whole = [device for device in devices if not _mixed(raw, device, devices)]
    refusals = [_with_others(device) for device in devices if device not in whole]
    if name is None and devices:
        message = "the new claims would be named after the object, whose own name is missing or not valid"
        refusals += [PlanRefusal("MIG117", ("metadata",), message, "Give it its name, then migrate.")]
    if not whole or name is None:
        return ObjectPlan(refusals=tuple(dict.fromkeys(refusals)))
    namespace = str(value_at(raw, ("metadata", "namespace")) or "")
    templates: dict[str, str] = {}
    objects: list[NewObject] = []
    steps: list[Step] = []
    for machine in dict.fromkeys(device.machine for device in whole):
        known = items_at(value_at(raw, machine), "resourceClaims")
        names = {str(entry.get("name")) for entry in known if isinstance(entry, Mapping)}
        entries: list[Mapping[str, str]] = []
        changes: list[Change] = []
        own = [device for device in whole if device.machine == machine]
        for device in own:
            claim = _claim(raw, device, names)
            names.add(claim.name)
            template = templates.get(repr(claim.spec))
            if template is None:
                taken = {(_TEMPLATE, namespace, other) for other in templates.values()}
                wanted = f"{name}-{claim.what}".replace(".", "-")
                template = free_object(_TEMPLATE, namespace, wanted, surroundings.taken, taken)
                templates[repr(claim.spec)] = template
                objects.append(claim_object(_TEMPLATE, template, namespace, claim, "unsafe"))
            entries.append({"name": claim.name, "resourceClaimTemplateName": template})
            changes += _changes(device, claim)
        gates = " and ".join(dict.fromkeys(_GATES[device.field] for device in own))
        what = ", ".join(dict.fromkeys(device.resource.name for device in own))
        reason = f"{what} becomes a claim; unsafe, because KubeVirt takes it from 1.9 only, with {gates} on, and "
        reason += "the nodes must leave the devices to the driver"
        changes += added(raw, (*machine, "resourceClaims"), entries)
        resources = {device.resource.name: device.resource for device in own}
        moved = tuple(Moved(name, resource.device_class, resource.driver) for name, resource in resources.items())
        steps.append(Step("MIG101", (*own[0].path, "deviceName"), reason, tuple(changes), "unsafe", moved=moved))
    return ObjectPlan(tuple(steps), tuple(objects), refusals=tuple(refusals))


def not_served(device: MachineDevice, kind: str) -> PlanRefusal:
    """The refusal of a device of which it is not known whether a virtual machine can have it."""
    message = f"{said(device.resource.name, device.resource)}" if device.resource.message else device.resource.name
    message += f"; a {kind} needs a class of devices that are passed through"
    way_out = (
        "Say in a file for --vendors which class it becomes, with kind: passthrough, and which selectors; then "
        f"spec.resourceClaims, claimName and requestName are written (KubeVirt 1.9, gate {_GATES[device.field]})."
    )
    return PlanRefusal("MIG112", (*device.path, "deviceName"), message, way_out)


def _claim(raw: Mapping[str, Any], device: MachineDevice, names: set[str]) -> Claim:
    named = str(value_at(raw, (*device.path, "name")) or "")
    ask = Ask(PodContainer(device.path, named, {}), device.resource, 1, ((*device.path, "deviceName"),))
    return wired([ask], {}, names).claims[0]


def _changes(device: MachineDevice, claim: Claim) -> Iterator[Change]:
    yield Delete((*device.path, "deviceName"))
    yield Set((*device.path, "claimName"), claim.name)
    yield Set((*device.path, "requestName"), claim.spec["devices"]["requests"][0]["name"])


def _mixed(raw: Mapping[str, Any], device: MachineDevice, devices: Sequence[MachineDevice]) -> bool:
    """Whether another GPU of the machine would keep its name: KubeVirt wants all GPUs from claims, or none."""
    if device.field != GPUS:
        return False
    moving = {other.path for other in devices}
    siblings = value_at(raw, device.path[:-1]) or ()
    return any(
        isinstance(other, Mapping) and other.get("deviceName") and (*device.path[:-1], index) not in moving
        for index, other in enumerate(siblings)
    )


def _with_others(device: MachineDevice) -> PlanRefusal:
    message = f"{device.resource.name} stays, because another GPU of the machine does: KubeVirt refuses a mixture"
    return PlanRefusal("MIG118", (*device.path, "deviceName"), message, "Solve what is refused there; then both go.")
