"""What controls devices besides requests: variables, annotations, runtime classes, host paths."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.clouds import autoscalers
from kubectl_dra.manifests.changes import Change, Delete, Set, fields_at, items_at, value_at
from kubectl_dra.manifests.workloads import WorkloadPodSpec, containers, key_of, known_kind, mode_of, pod_specs
from kubectl_dra.migrate.device_plugins.asks import Ask, said, within
from kubectl_dra.migrate.device_plugins.labels import node_selector, required_terms
from kubectl_dra.migrate.model import Note, PlanRefusal
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue
from kubectl_dra.migrate.vendors.model import Resource

_CODES: Final[Mapping[str, str]] = {
    "env": "MIG401",
    "runtimeClassName": "MIG402",
    "annotation": "MIG403",
    "hostPath": "MIG404",
    "schedulerName": "MIG405",
}


class Advice(NamedTuple):
    """Changes that accompany the requests, notes, and what needs a decision first (by vendor)."""

    changes: tuple[Change, ...] = ()
    notes: tuple[Note, ...] = ()
    refusals: tuple[tuple[str, PlanRefusal], ...] = ()


def environment(
    spec: WorkloadPodSpec, users: Collection[FieldPath], vendors: Sequence[str], catalogue: VendorCatalogue
) -> Advice:
    """What to do about the surroundings of a pod's requests. ``users`` are the paths of containers that will
    have claims.
    """
    changes: list[Change] = []
    notes: list[Note] = []
    refusals: list[tuple[str, PlanRefusal]] = []
    for where, name, path, removable in _found(spec, users):
        flag = catalogue.flag(where, name, vendors)
        if flag is None or flag.action == "quiet":
            continue
        code = _CODES[where]
        if flag.action == "ask":
            refusals.append((flag.vendor, PlanRefusal("MIG112", path, said(name, flag.message), flag.way_out)))
            continue
        if flag.action == "remove" and removable:
            changes.append(Delete(path))
            notes.append(Note(code, path, f"{name} goes with the request: {within(flag.message)}", writes=True))
        else:
            notes.append(Note(code, path, said(name, flag.message)))
    for container in containers(spec):
        security = container.content.get("securityContext")
        if container.path in users and isinstance(security, Mapping) and security.get("privileged") is True:
            path = (*container.path, "securityContext", "privileged")
            message = f"container {container.name} is privileged and sees every device of the node, claimed or not"
            notes.append(Note("MIG404", path, message))
    return Advice(tuple(changes), tuple(notes), tuple(refusals))


def _found(spec: WorkloadPodSpec, users: Collection[FieldPath]) -> Iterator[tuple[str, str, FieldPath, bool]]:
    """Everything that a flag may concern: kind of place, name, path, and whether it may be removed."""
    for container in containers(spec):
        for index, variable in enumerate(items_at(container.content, "env")):
            if isinstance(variable, Mapping) and isinstance(variable.get("name"), str):
                yield "env", variable["name"], (*container.path, "env", index), container.path in users
        # Values of charts have them by name.
        for name in fields_at(container.content, "env"):
            yield "env", str(name), (*container.path, "env", name), container.path in users
    for name in fields_at(spec.metadata, "annotations"):
        # Those of the object itself may be about more than these pods.
        removable = spec.metadata_path != ("metadata",) or spec.path == ("spec",)
        yield "annotation", str(name), (*spec.metadata_path, "annotations", name), removable
    for field in ("runtimeClassName", "schedulerName"):
        value = spec.content.get(field)
        if isinstance(value, str) and value:
            yield field, value, (*spec.path, field), True
    for index, volume in enumerate(items_at(spec.content, "volumes")):
        host = value_at(volume, ("hostPath", "path"))
        if host and isinstance(host, str):
            yield "hostPath", host, (*spec.path, "volumes", index, "hostPath"), False


# What workload controllers derive from device requests and must be told explicitly after the migration.

_KUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
_SCHEDULERS: Final[Mapping[str, str]] = {
    "volcano": "Volcano places pods with claims if predicate.DynamicResourceAllocationEnable is on in its settings",
    "kai-scheduler": (
        "KAI counts claims of classes whose name has gpu in it, and places no pods of device plugins on nodes that "
        "have a DRA driver only"
    ),
}
_RAY_GROUPS: Final = ("headGroupSpec", "workerGroupSpecs")
_IMAGES: Final = ("tensorflow", "pytorch")


def of_spec(raw: Mapping[str, Any], spec: WorkloadPodSpec, asks: Sequence[Ask]) -> Advice:
    """What one pod spec of a workload needs besides its claims."""
    key = key_of(raw)
    advice = Advice()
    if key[0] == "ray.io":
        advice = _ray(raw, spec, asks)
    elif key == ("serving.kserve.io", "InferenceService"):
        advice = _kserve(spec, asks)
    message = _SCHEDULERS.get(str(spec.content.get("schedulerName")))
    if message is not None:
        return Advice(advice.changes, (*advice.notes, Note("MIG405", (*spec.path, "schedulerName"), message)))
    return advice


def is_queued(raw: Mapping[str, Any]) -> bool:
    """Whether Kueue admits the workload."""
    labels = value_at(raw, ("metadata", "labels"))
    return isinstance(labels, Mapping) and _KUEUE_LABEL in labels


def of_object(raw: Mapping[str, Any], classes: Sequence[str], every: bool = False) -> tuple[Note, ...]:
    """What a workload needs once, however many pods it has. ``classes`` are the requested DeviceClasses.

    ``every``: a request is for all devices of a node.
    """
    key = key_of(raw)
    out: list[Note] = []
    known = known_kind(raw)
    if known is not None and known.since:
        message = f"needs {known.since} or later: an older CustomResourceDefinition of {key[1]} drops the claims"
        out.append(Note("MIG132", (), message))
    if known is not None and known.undecided and not mode_of(raw):
        out.append(Note("MIG134", ("metadata",), known.undecided))
    if key[0] == "trainer.kubeflow.org":
        out += _trainer(raw)
    if key[1].startswith("Cluster"):
        message = f"{key[1]} is for all namespaces: each that uses it needs a copy of the ResourceClaimTemplate"
        out.append(Note("MIG135", ("kind",), message))
    metadata = fields_at(raw, "metadata")
    if is_queued(raw):
        message = (
            f"Kueue counts the claims only if its Configuration maps {', '.join(dict.fromkeys(classes))} to a resource "
            "of the queue (resources.deviceClassMappings, Kueue 0.18 or later)"
        )
        if every:
            message += ", and admits no claim for all devices of a node: write their number (count) instead"
        out.append(Note("MIG136", ("metadata", "labels", _KUEUE_LABEL), message))
    if key == ("helm.toolkit.fluxcd.io", "HelmRelease"):
        message = "taken for values of the chart app-template, whose releases after 4.1.1 pass pod.resourceClaims on"
        out.append(Note("MIG134", ("spec", "values"), message))
    if not metadata.get("name") and metadata.get("generateName"):
        message = "the object gets a new name each time it is created; its ResourceClaimTemplate is created once"
        out.append(Note("MIG137", ("metadata", "generateName"), message))
    return tuple(out)


def _ray(raw: Mapping[str, Any], spec: WorkloadPodSpec, asks: Sequence[Ask]) -> Advice:
    """KubeRay starts Ray with the GPUs from the first container's limits, taken from resource names that end in gpu."""
    path = spec.path[:-2]
    if not any(step in path for step in _RAY_GROUPS):
        return Advice()
    first = [ask for ask in asks if ask.container.path == (*spec.path, "containers", 0)]
    gpus = sum(ask.amount for ask in first if ask.resource.name.endswith("gpu"))
    others = [ask.resource.name for ask in first if not ask.resource.name.endswith("gpu") and not ask.resource.part_of]
    notes = [
        Note(
            "MIG134",
            (*path, "rayStartParams"),
            f"Ray no longer learns of {name}: add it to rayStartParams.resources",
            done=True,
        )
        for name in others
    ]
    given = value_at(raw, (*path, "rayStartParams"))
    changes: list[Change] = []
    if gpus and not (isinstance(given, Mapping) and "num-gpus" in given):
        where = (*path, "rayStartParams")
        changes.append(Set((*where, "num-gpus"), str(gpus)) if given else Set(where, {"num-gpus": str(gpus)}))
        message = f"num-gpus becomes {gpus}, because KubeRay no longer finds it in the limits"
        notes.append(Note("MIG134", where, message, writes=True))
    return Advice(tuple(changes), tuple(notes))


def _kserve(spec: WorkloadPodSpec, asks: Sequence[Ask]) -> Advice:
    notes = []
    for ask in asks:
        if ask.container.path[-1] in _IMAGES and ask.resource.name.endswith("gpu"):
            message = (
                f"KServe takes the -gpu image of {ask.container.path[-1]} when it sees a GPU limit: "
                "set runtimeVersion to the GPU image yourself"
            )
            notes.append(Note("MIG134", ask.container.path, message))
    if spec.path[-1] == "workerSpec" or "workerSpec" in spec.content:
        message = "KServe itself adds nvidia.com/gpu to pods of several nodes: check that it does not come back"
        notes.append(Note("MIG134", spec.path, message))
    return Advice((), tuple(notes))


def _trainer(raw: Mapping[str, Any]) -> list[Note]:
    path = ("spec", "mlPolicy", "torch")
    torch = value_at(raw, path)
    if not isinstance(torch, Mapping) or torch.get("numProcPerNode") not in (None, "auto", "gpu"):
        return []
    message = "the trainer took the processes per node from the GPU limit: set numProcPerNode to the number of GPUs"
    return [Note("MIG134", path, message)]


# Why a change is unsafe by the drivers of its resources alone.


def of_driver(resources: Mapping[str, Resource]) -> list[str]:
    """Why pods that used these resources, by name, may get other devices from claims."""
    doubts = [
        f"the driver of {name} differs from its device plugin (MIG130)"
        for name, resource in resources.items()
        if resource.outcome == "note"
    ]
    return doubts + [
        f"the class may have other devices than the device plugin gave for {name}"
        for name, resource in resources.items()
        if resource.unsafe and resource.outcome != "note"
    ]


# What a correct change does not keep: nodes that an autoscaler makes.


def by_labels(spec: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """What to know of claims where the labels that a pod asks of its nodes say who makes these; once for each."""
    stated = [(label.path, label.key) for label in node_selector(spec)]
    stated += [((*label.path, "key"), label.key) for term in required_terms(spec) for label in term.stated]
    messages: set[str] = set()
    for path, key in stated:
        for maker in autoscalers().makers:
            if maker.labels and re.match(maker.labels, key) and maker.message not in messages:
                messages.add(maker.message)
                yield path, maker.message


def autoscaler(raw: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> str:
    """What to know of claims where an object says who makes nodes; empty where it says nothing of it."""
    group, kind = key_of(raw)
    known = next((maker.message for maker in autoscalers().makers if (maker.group, maker.kind) == (group, kind)), "")
    if (group, kind) == ("karpenter.sh", "NodePool"):
        made_by = value_at(raw, ("spec", "template", "spec", "nodeClassRef", "group"))
        if any(made_by == key_of(other)[0] for other in others):
            # The class says it.
            return ""
        return next((maker.message for maker in autoscalers().makers if maker.group == str(made_by or "")), known)
    if kind == "Deployment" and any(
        "cluster-autoscaler" in str(container.content.get("image"))
        for spec in pod_specs(raw)
        for container in containers(spec)
    ):
        return autoscalers().of_deployments.message
    return known


def claims_devices(objects: Iterable[Mapping[str, Any]]) -> bool:
    """Whether some pod among the objects has claims."""
    return any(spec.content.get("resourceClaims") for raw in objects for spec in pod_specs(raw))
