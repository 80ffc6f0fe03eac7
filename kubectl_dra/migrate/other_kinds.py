"""Reports device plugins' resources in kinds without claims or with unknown pods. Changes virtual machines alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Change, Delete, Set, items_at, value_at
from kubectl_dra.manifests.workloads import SPECS, TEMPLATES, PodContainer, containers, key_of, pod_specs
from kubectl_dra.migrate.codes import PATCH, WAY_OUT_PATCH
from kubectl_dra.migrate.device_plugins.asks import Ask, ask_elsewhere, by_name, extended, is_zero, said
from kubectl_dra.migrate.device_plugins.claim_wiring import Claim, wired
from kubectl_dra.migrate.device_plugins.environment import autoscaler, claims_devices
from kubectl_dra.migrate.device_plugins.pod_rewrite import added, claim_object
from kubectl_dra.migrate.device_plugins.pods import NEVER, claimless, pods_of
from kubectl_dra.migrate.inline_patches import TRANSFORMER, inline_patches, plan_inline
from kubectl_dra.migrate.model import (
    MigrationSettings,
    Moved,
    NewObject,
    Note,
    ObjectPlan,
    PlanRefusal,
    PlanSurroundings,
    Step,
)
from kubectl_dra.migrate.new_objects import free_object, workload_name
from kubectl_dra.migrate.other_texts import OTHER_USES, embedded_asks, named
from kubectl_dra.migrate.quotas import QUOTAS
from kubectl_dra.migrate.reading import TEMPLATE, named_in
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, is_extended
from kubectl_dra.migrate.vendors.model import Resource
from kubectl_dra.text import with_article

_VM_LISTS: Final = ("gpus", "hostDevices")
_TEXTS: Final = ("ConfigMap", "Secret")
_NODE_POOLS: Final = ("NodePool", "Provisioner")
_CHARTS: Final = ("helm.toolkit.fluxcd.io",)
# They check or change what others ask for.
_POLICIES: Final = (
    "admissionregistration.k8s.io",
    "constraints.gatekeeper.sh",
    "kyverno.io",
    "mutations.gatekeeper.sh",
    "policies.kyverno.io",
    "templates.gatekeeper.sh",
)
_KUSTOMIZE: Final = "kustomize.config.k8s.io"
_FLUX: Final = "kustomize.toolkit.fluxcd.io"


_UNCHANGED: Final = (
    "Or leave it as it is with --strategy auto: a DeviceClass then serves the resource's name on nodes without the "
    "plugin."
)


_NIM_SERVICE: Final = ("apps.nvidia.com", "NIMService")
_IMPLIED: Final = (
    "it names no GPU, and the NIM operator then asks for nvidia.com/gpu itself, as many as its model's profile says; "
    "with spec.draResources, given when it is created, it does not"
)


_ARGO_CD: Final = frozenset((("argoproj.io", "Application"), ("argoproj.io", "ApplicationSet")))
_OF_VALUES: Final = "Change the values of the chart or the patch, so that its pods claim devices."
_OF_ARGO_CD: Final = (
    " Or let a config management plugin of Argo CD give what it renders to kubectl dra migrate - -o yaml."
)


_NEWEST: Final = "Write the object in the newest version of its API and migrate again, or write its claims by hand."
_IN_PATCH: Final = (
    "Write resourceClaims and resources.claims into the patch in place of the resource, as migrate does in a pod "
    "template; tolerations in a patch take the place of the template's."
)


ResourceMention = tuple[FieldPath, str]
"""The place of a resource's name, and the name."""


def plan(raw: Mapping[str, Any], surroundings: PlanSurroundings, settings: MigrationSettings) -> ObjectPlan:
    """Report why an object's device resources stay; see ``model.Plan``."""
    key = key_of(raw)
    if settings.reverse or key in QUOTAS or key == TEMPLATE:
        return ObjectPlan()
    scaled = autoscaler(raw, surroundings.objects)
    if (
        key == _NIM_SERVICE
        and not value_at(raw, ("spec", "draResources"))
        and not any(_mentions_of(raw, key, settings.catalogue))
    ):
        return ObjectPlan(notes=(Note("MIG126", ("spec",), _IMPLIED),))
    hazards = (Note("MIG141", ("kind",), scaled),) if scaled and claims_devices(surroundings.objects) else ()
    if key[0] in _POLICIES:
        return ObjectPlan(notes=tuple(_left(raw, (), settings.catalogue)))
    if key[1] in NEVER:
        return ObjectPlan(notes=(*_beside(raw, settings.catalogue), *hazards))
    plan = _reported(raw, key, surroundings, settings)
    seen = [
        *(refusal.path for refusal in plan.refusals),
        *(note.path for note in plan.notes),
        *(step.path for step in plan.steps),
        *_of_pods(raw, key, settings.catalogue),
    ]
    seen += [path for path, _ in _mentions_of(raw, key, settings.catalogue)]
    return replace(plan, notes=(*plan.notes, *_left(raw, seen, settings.catalogue), *hazards))


def _reported(
    raw: Mapping[str, Any], key: tuple[str, str], surroundings: PlanSurroundings, settings: MigrationSettings
) -> ObjectPlan:
    """What certainly asks for devices."""
    why = claimless(raw)
    if (key in TEMPLATES or key in SPECS) and why is None:
        return ObjectPlan(refusals=tuple(_outside(raw, key, settings.catalogue)))
    if key[0] == _KUSTOMIZE or key == ("", TRANSFORMER):
        return plan_inline(raw, surroundings.objects, settings)
    if key[0] == _FLUX:
        return ObjectPlan(refusals=tuple(_patches(raw, settings.catalogue)))
    unchanged = replace(settings, strategy="auto")
    out: list[PlanRefusal] = []
    asks: list[Ask] = []
    machines: list[MachineDevice] = []
    pods = tuple(_of_pods(raw, key, settings.catalogue)) if why is None else ()
    for path, name in _mentions_of(raw, key, settings.catalogue):
        if any(path[: len(pod)] == pod for pod in pods):
            continue
        resource = settings.catalogue.resource(name)
        device = virtual_device(path, resource)
        kept = resource is not None and by_name([ask_elsewhere(path, resource)], {}, settings)
        if device is not None and not kept and device.resource.outcome != "refuse":
            # The name is found in the list of devices, and as a text that is a known resource.
            if not serves(device.resource):
                out.append(not_served(device, key[1]))
            elif device.path not in {other.path for other in machines}:
                machines.append(device)
        elif resource is not None and resource.outcome in ("ask", "refuse"):
            code = "MIG112" if resource.outcome == "ask" else "MIG113"
            out.append(PlanRefusal(code, path, said(name, resource.message), resource.way_out))
        elif resource is not None and by_name([ask := ask_elsewhere(path, resource)], {}, settings):
            asks.append(ask)
        elif why is not None and resource is not None and by_name([ask_elsewhere(path, resource)], {}, unchanged):
            message = f"{name} of {with_article(key[1])}: {why.why}"
            out.append(PlanRefusal("MIG120", path, message, f"{why.way_out} {_UNCHANGED}"))
        elif why is not None:
            out.append(PlanRefusal("MIG120", path, f"{name} of {with_article(key[1])}: {why.why}", why.way_out))
        elif key in _ARGO_CD:
            message = f"{name} in the values of a chart: only the chart knows what they mean"
            out.append(PlanRefusal("MIG121", path, message, _OF_VALUES + _OF_ARGO_CD))
        else:
            message = f"{name}: where {with_article(key[1])} of {key[0] or 'v1'} keeps its pods is not known"
            way_out = "Migrate the pods that it makes, or write its claims by hand if its fields keep them."
            out.append(PlanRefusal("MIG121", path, message, way_out))
    if why is None or key[0] in _CHARTS:
        out += _of_texts(raw, key, settings.catalogue)
    plan = extended(asks, {}, surroundings, settings)
    claims = plan_devices(raw, machines, surroundings, settings)
    refusals = tuple(dict.fromkeys((*out, *plan.refusals, *claims.refusals)))
    return ObjectPlan(claims.steps, (*plan.objects, *claims.objects), plan.notes, refusals)


def _of_pods(raw: Mapping[str, Any], key: tuple[str, str], catalogue: VendorCatalogue) -> Iterator[FieldPath]:
    """Where requests stand that other migrations look at."""
    barred = claimless(raw)
    if barred is None or barred.partly:
        for spec in pods_of(raw, catalogue).specs:
            yield (*spec.path, "resources")
            yield from ((*container.path, "resources") for container in containers(spec))


def _left(raw: Mapping[str, Any], seen: Sequence[FieldPath], catalogue: VendorCatalogue) -> Iterator[Note]:
    """What else names a resource, beside the places that are ``seen``."""
    for ask in named(raw, catalogue):
        if any(ask.path[: len(path)] == path[: len(ask.path)] for path in seen):
            continue
        names = ", ".join(ask.names)
        if ask.path[-1] not in ask.names and value_at(raw, ask.path) not in ask.names:
            message = f"a text names {names}, and texts are not changed: if it is a manifest, give it a file of its own"
            yield Note("MIG123", ask.path, message)
        else:
            yield Note(
                "MIG126",
                ask.path,
                f"it names {names} in another place than the requests of a pod, and stays as it is",
            )


def _outside(raw: Mapping[str, Any], key: tuple[str, str], catalogue: VendorCatalogue) -> Iterator[PlanRefusal]:
    """Requests of a known kind outside its pods: in an older version of the kind, or an unknown field."""
    pods = [spec.path for spec in pod_specs(raw)]
    holders = [container.path for spec in pod_specs(raw) for container in containers(spec)]
    for place, name in _mentions_of(raw, key, catalogue):
        if not any(place[: len(path)] == path for path in (*pods, *holders)):
            version = raw.get("apiVersion")
            message = f"{name}: it is not in a pod of {with_article(key[1])} of {version} that migrate knows"
            patched = any("patch" in str(step).lower() for step in place)
            way_out = _IN_PATCH if patched else _NEWEST
            yield PlanRefusal("MIG121", place, message, way_out)


def _of_texts(raw: Mapping[str, Any], key: tuple[str, str], catalogue: VendorCatalogue) -> Iterator[PlanRefusal]:
    """Texts of an unknown kind that request devices: values of a chart, patches."""
    content = {field: value for field, value in raw.items() if field not in ("metadata", "status")}
    for ask in embedded_asks(content, catalogue):
        message = f"a text in {with_article(key[1])} asks for {', '.join(ask.names)}: texts are not changed"
        yield PlanRefusal("MIG121", ask.path, message, _OF_VALUES + (_OF_ARGO_CD if key in _ARGO_CD else ""))


def _beside(raw: Mapping[str, Any], catalogue: VendorCatalogue) -> Iterator[Note]:
    """Texts of ConfigMaps and the like, and limits of node pools, which cannot count claims."""
    if raw.get("kind") in _TEXTS:
        yield from _left(raw, (), catalogue)
    elif raw.get("kind") in _NODE_POOLS:
        limits = value_at(raw, ("spec", "limits"))
        # Older provisioners have them one level down.
        for path, content in (
            (("spec", "limits"), limits),
            (("spec", "limits", "resources"), value_at(limits, ("resources",))),
        ):
            for name in content if isinstance(content, Mapping) else ():
                if is_extended(name) and catalogue.moves(name):
                    message = f"the limit on {name} of a {raw['kind']} does not count devices that pods claim"
                    yield Note("MIG140", (*path, name), message)


def _mentions_of(raw: Mapping[str, Any], key: tuple[str, str], catalogue: VendorCatalogue) -> Iterator[ResourceMention]:
    spec, barred = raw.get("spec"), claimless(raw)
    if key[0].endswith("kubevirt.io"):
        yield from _devices(spec, ("spec",))
    elif key[0] == "nvidia.com" and key[1].startswith("Dynamo"):
        yield from _gpu_limits(spec, ("spec",))
    migrated = [container.path for pod in pod_specs(raw) for container in containers(pod)]
    for field, value in raw.items():
        if field not in ("apiVersion", "kind", "metadata", "status"):
            for place, name in _mentions(value, (field,), catalogue, everywhere=barred is not None):
                if not (barred is not None and barred.partly and any(place[: len(path)] == path for path in migrated)):
                    yield place, name


def _mentions(
    value: Any, path: FieldPath, catalogue: VendorCatalogue, *, everywhere: bool = True
) -> Iterator[ResourceMention]:
    """Known resources as keys of limits and requests; ``everywhere``: as any key or whole value."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            if isinstance(key, str) and is_extended(key) and not isinstance(below, Mapping | list):
                if not everywhere and path[-1] not in ("limits", "requests"):
                    continue
                if not is_zero(below) and catalogue.moves(key, value):
                    yield (*path, key), key
            elif key == "requests" and isinstance(value.get("limits"), Mapping) and isinstance(below, Mapping):
                rest = {name: amount for name, amount in below.items() if name not in value["limits"]}
                yield from _mentions(rest, (*path, key), catalogue, everywhere=everywhere)
            elif key not in OTHER_USES:
                yield from _mentions(below, (*path, key), catalogue, everywhere=everywhere)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _mentions(item, (*path, index), catalogue, everywhere=everywhere)
    elif everywhere and isinstance(value, str) and catalogue.moves(value):
        yield path, value


def _devices(value: Any, path: FieldPath) -> Iterator[ResourceMention]:
    """Devices of virtual machines named by deviceName."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            for index, device in enumerate(below if key in _VM_LISTS and isinstance(below, list) else ()):
                if isinstance(device, Mapping) and isinstance(device.get("deviceName"), str):
                    yield (*path, key, index, "deviceName"), device["deviceName"]
            if key not in _VM_LISTS:
                yield from _devices(below, (*path, key))


def _gpu_limits(value: Any, path: FieldPath) -> Iterator[ResourceMention]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            if key == "limits" and isinstance(below, Mapping) and "gpu" in below and not is_zero(below["gpu"]):
                yield (*path, key, "gpu"), "gpu"
            else:
                yield from _gpu_limits(below, (*path, key))


def _patches(raw: Mapping[str, Any], catalogue: VendorCatalogue) -> Iterator[PlanRefusal]:
    """Patches in a Kustomization of Flux that name resources."""
    spec = raw.get("spec")
    for patch in inline_patches(spec) if isinstance(spec, Mapping) else ():
        if names := named_in(patch.text, catalogue):
            yield PlanRefusal(PATCH, ("spec", *patch.path), f"a patch names {', '.join(names)}", WAY_OUT_PATCH)


# Devices of KubeVirt's virtual machines: from names that its device plugins serve to claims.
#
# KubeVirt 1.9 takes them with its feature gates GPUsWithDRA and HostDevicesWithDRA (``pkg/dra/admitter``). Each device
# gets a claim of its own, because releases before 1.9 make an invalid pod of several from one.


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
    message = said(device.resource.name, device.resource.message) if device.resource.message else device.resource.name
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
