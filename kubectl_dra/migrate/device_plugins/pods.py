"""The pod specs of an object: of known kinds, of kinds that a file of the user names, and by their shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.manifests.changes import Change, Delete, Path, Set, value_at
from kubectl_dra.manifests.workloads import (
    SPECS,
    TEMPLATES,
    Key,
    WorkloadPodSpec,
    containers,
    evident_specs,
    is_in_knative,
    key_of,
    pod_specs,
    specs_at,
)
from kubectl_dra.migrate.codes import Safety
from kubectl_dra.migrate.device_plugins.asks import Ask, by_name, read_asks
from kubectl_dra.migrate.device_plugins.environment import environment, of_driver
from kubectl_dra.migrate.device_plugins.placement import PlacementPlan, placement
from kubectl_dra.migrate.model import MigrationSettings, ObjectPlan, PlanRefusal, Step
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue
from kubectl_dra.migrate.vendors.model import Resource

# A deletion that would leave an empty mapping or list deletes that as well.

# Only these may go when they are empty: an empty one of any other kind can mean something.
_GOES: Final = frozenset(("limits", "requests", "resources", "nodeSelector", "env", "annotations", "metadata"))


def tidied(raw: Mapping[str, Any], changes: Iterable[Change]) -> tuple[Change, ...]:
    """The changes without repeats, which also delete what they leave empty. Paths lead from ``raw``."""
    at: dict[Path, list[Change]] = {}
    found: list[Change] = []
    for change in changes:
        known = at.setdefault(change.path, [])
        if change not in known:
            known.append(change)
            found.append(change)
    gone = {change.path for change in found if isinstance(change, Delete)}
    kept = {
        change.path[:length] for change in found if isinstance(change, Set) for length in range(len(change.path) + 1)
    }
    parents = list(dict.fromkeys(change.path[:-1] for change in found if isinstance(change, Delete)))
    for path in parents:
        if path not in kept and path not in gone and _emptied(raw, path, gone):
            gone.add(path)
            found.append(Delete(path))
            parents.append(path[:-1])
    return tuple(change for change in found if not _inside(change, gone))


def _emptied(raw: Mapping[str, Any], path: Path, gone: set[Path]) -> bool:
    if not path or path[-1] not in _GOES:
        return False
    value = value_at(raw, path)
    keys: Iterable[str | int] = value if isinstance(value, Mapping) else range(len(value or ()))
    return bool(value) and all((*path, key) in gone for key in keys)


def _inside(change: Change, gone: set[Path]) -> bool:
    """Whether something above the change goes as a whole."""
    return any(change.path[:length] in gone for length in range(1, len(change.path)))


# Workloads that are kustomize patches: laid over the object of the same kind and name.

_GROUPS: Final = ("apps", "batch")


def is_patch(raw: Mapping[str, Any]) -> bool:
    """Whether no container of the workload has an image, which every container needs in the end."""
    if key_of(raw)[0] not in _GROUPS:
        return False
    found = [container.content for spec in pod_specs(raw) for container in containers(spec)]
    return bool(found) and not any("image" in container for container in found)


def base_claims(raw: Mapping[str, Any], around: Iterable[Mapping[str, Any]], catalogue: VendorCatalogue) -> bool:
    """Whether the patched object is available and has claims or will get them, so that they can be patched as well."""
    return any(
        spec.content.get("resourceClaims") or read_asks(spec, catalogue).asks
        for base in _bases(raw, around)
        for spec in pod_specs(base)
    )


def _bases(raw: Mapping[str, Any], around: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The objects that a patch may be for: of its kind and name, and no patches."""
    name = value_at(raw, ("metadata", "name"))
    for other in around:
        if other is raw or key_of(other) != key_of(raw) or value_at(other, ("metadata", "name")) != name:
            continue
        if not is_patch(other):
            yield other


def plan_patch(raw: Mapping[str, Any], around: Iterable[Mapping[str, Any]], settings: MigrationSettings) -> ObjectPlan:
    """Remove the requests of device plugins from a patch, and change nothing else.

    The build shows what the patched object needs instead. Lists in a patch, such as tolerations, would
    replace the base's.
    """
    refusals: list[PlanRefusal] = []
    gone: list[Path] = []
    moved: dict[str, Resource] = {}
    for spec in pod_specs(raw):
        asks = read_asks(spec, settings.catalogue, patch=True)
        refusals += asks.refusals
        moving = [ask for ask in asks.asks if ask.resource.vendor not in asks.held]
        if moving and by_name(moving, _placements(raw, spec, moving, around, settings), settings):
            continue
        gone += [*(path for ask in moving for path in ask.keys), *asks.zeros]
        users = {ask.container.path for ask in moving}
        vendors = tuple(dict.fromkeys(ask.resource.vendor for ask in moving))
        gone += [change.path for change in environment(spec, users, vendors, settings.catalogue).changes]
        moved.update((ask.resource.name, ask.resource) for ask in moving)
    if not gone:
        return ObjectPlan(refusals=tuple(refusals))
    reason, safety = request_gone(moved)
    changes = tidied(raw, (Delete(path) for path in gone))
    return ObjectPlan((Step("MIG109", gone[0], reason, changes, safety),), refusals=tuple(refusals))


def request_gone(moved: Mapping[str, Resource]) -> tuple[str, Safety]:
    """Why a patch no longer asks for these resources, in words for people, and how safe that is."""
    reason = f"a patch asks for {', '.join(moved) or 'no device'}; what it patches claims devices"
    doubts = of_driver(moved)
    return (f"{reason}; unsafe, because {' and '.join(doubts)}", "unsafe") if doubts else (reason, "safe")


def _placements(
    raw: Mapping[str, Any],
    spec: WorkloadPodSpec,
    asks: Iterable[Ask],
    around: Iterable[Mapping[str, Any]],
    settings: MigrationSettings,
) -> dict[str, PlacementPlan]:
    """What the labels of the patched pods mean for the requests; those of the patch alone if nothing else is known."""
    contents = [one.content for base in _bases(raw, around) for one in pod_specs(base) if one.path == spec.path]
    return {
        ask.resource.name: placement(content, ask.resource, settings.catalogue, settings.release, {})
        for content in (spec.content, *contents)
        for ask in asks
    }


# Kinds whose pods cannot have claims, and what to do by hand. One entry adds a kind.


class Claimless(NamedTuple):
    """Why a kind cannot be migrated, and what to do instead."""

    why: str
    way_out: str


_WORKFLOW: Final = Claimless(
    "its templates have containers but no field for resourceClaims",
    "Add the claims with podSpecPatch: spec.resourceClaims, and resources.claims of the container main; then remove "
    "the resource.",
)
_RUNTIME: Final = Claimless(
    "no release of KServe up to 0.20.0 keeps claims in this kind",
    "Put resourceClaims and resources.claims into the predictor of the InferenceService that uses it.",
)
_NIM: Final = Claimless(
    "the NIM operator ignores claims under resources, and takes them from draResources, which cannot be added later",
    "Delete it and create it anew with NIM operator 3.0.0 or later: without the resource, and with spec.draResources: "
    "[{claimCreationSpec: {devices: [{name: gpu, count: NUMBER, deviceClassName: gpu.nvidia.com, driverName: "
    "gpu.nvidia.com}]}}].",
)
_HYPERPOD: Final = Claimless(
    "HyperPod's inference operator makes the pods, and the kind has no field for claims",
    "Leave it with the device plugin, or run the model server in a Deployment.",
)
_DYNAMO: Final = Claimless(
    "its resources name GPUs in a field of their own",
    "Write the claims into extraPodSpec (resourceClaims, and claims of mainContainer), and remove the GPU limit.",
)
_IN_KNATIVE: Final = Claimless(
    "in this deployment mode KServe hands its pod to Knative, whose webhook refuses claims of containers",
    "Run it in the mode Standard (RawDeployment before KServe 0.16; the mode of an InferenceService cannot be changed, "
    "so create it anew), or leave it with the device plugin.",
)
CLAIMLESS: Final[Mapping[Key, Claimless]] = {
    **{
        ("argoproj.io", kind): _WORKFLOW
        for kind in ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow")
    },
    ("serving.knative.dev", "Service"): Claimless(
        "Knative's webhook refuses claims of containers", "Run it as a Deployment, or leave it with the device plugin."
    ),
    # kubeflow/notebooks up to v1.11.0, config/crd/bases/kubeflow.org_notebooks.yaml: the pod spec of Kubernetes 1.23.
    ("kubeflow.org", "Notebook"): Claimless(
        "no release of Kubeflow Notebooks up to 1.11.0 keeps claims in this kind: its definition drops them",
        "Leave it with the device plugin.",
    ),
    ("serving.kserve.io", "ServingRuntime"): _RUNTIME,
    ("serving.kserve.io", "ClusterServingRuntime"): _RUNTIME,
    ("trainer.kubeflow.org", "TrainJob"): Claimless(
        "a TrainJob has no field for claims", "Put the claim into the TrainingRuntime that it uses."
    ),
    ("inference.sagemaker.aws.amazon.com", "InferenceEndpointConfig"): _HYPERPOD,
    ("inference.sagemaker.aws.amazon.com", "JumpStartModel"): _HYPERPOD,
    ("slinky.slurm.net", "NodeSet"): Claimless(
        "the container with the request is spec.slurmd, and the pod's fields are in spec.template.spec",
        "Write resourceClaims into spec.template.spec, resources.claims into spec.slurmd, and remove the resource "
        "there; slurmd counts GPUs by gres.conf, which has to find the devices of the claim (AutoDetect).",
    ),
    ("apps.nvidia.com", "NIMService"): _NIM,
    ("apps.nvidia.com", "NIMPipeline"): _NIM,
    ("nvidia.com", "DynamoGraphDeployment"): _DYNAMO,
    ("nvidia.com", "DynamoComponentDeployment"): _DYNAMO,
    ("production-stack.vllm.ai", "VLLMRuntime"): Claimless(
        "the kind has no field for claims",
        "Leave it with the device plugin, let a DeviceClass carry the resource's name (--strategy extended-resource), "
        "or run vLLM in a Deployment.",
    ),
    ("sparkoperator.k8s.io", "SparkApplication"): Claimless(
        "the operator makes an extended resource of gpu.name and gpu.quantity",
        "Remove gpu, and put resourceClaims and resources.claims into the template of the driver or executor; Spark's "
        "own spark.executor.resource.gpu settings stay.",
    ),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): Claimless(
        "the operator makes an extended resource of gpu.name and gpu.quantity",
        "Remove gpu, and put resourceClaims and resources.claims into the template of the driver or executor.",
    ),
    **{
        ("kubevirt.io", kind): Claimless(
            "deviceName is a name from the PCI database, which no DeviceClass has",
            "Choose the DeviceClass and its selector, then write spec.resourceClaims and claimName and requestName in "
            "place of deviceName (KubeVirt 1.9, gates GPUsWithDRA and HostDevicesWithDRA).",
        )
        for kind in ("VirtualMachine", "VirtualMachineInstance")
    },
    **{
        ("instancetype.kubevirt.io", kind): Claimless(
            "an instance type names devices by deviceName for virtual machines that are not in it",
            "Take the devices out of the instance type, and let the virtual machines claim them.",
        )
        for kind in ("VirtualMachineInstancetype", "VirtualMachineClusterInstancetype")
    },
    ("helm.toolkit.fluxcd.io", "HelmRelease"): Claimless(
        "only the chart knows what its values mean",
        "Check whether the chart has values for resourceClaims; with the chart app-template these are "
        "controllers.NAME.pod.resourceClaims, resources.claims of the container, and rawResources for the template.",
    ),
}
"""Kinds that name devices of device plugins in places that cannot hold claims; see ``claimless``."""
NEVER: Final[frozenset[str]] = frozenset(
    (
        "ClusterPolicy",
        "ConfigMap",
        "DeviceClass",
        "NicClusterPolicy",
        "Node",
        "NodeClaim",
        "NodeFeatureRule",
        "NodePool",
        "Provisioner",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceSlice",
        "Secret",
        "CustomResourceDefinition",
    )
)
"""Kinds that may name such resources without requesting any: settings of administrators, and texts."""


def claimless(raw: Mapping[str, Any]) -> Claimless | None:
    """Why an object cannot have claims; None if it can, or is of an unknown kind."""
    key = key_of(raw)
    if key[0] == "nvidia.com" and raw.get("apiVersion") != "nvidia.com/v1alpha1":
        return None
    return _IN_KNATIVE if is_in_knative(raw) else CLAIMLESS.get(key)


# Their values are the input of other programs, whatever they look like.
_VALUES: Final = frozenset(("values", "valuesObject", "parameters"))


class PodsFound(NamedTuple):
    """Pod specs, and with ``guessed`` only by what they look like."""

    specs: tuple[WorkloadPodSpec, ...]
    guessed: bool = False


def pods_of(raw: Mapping[str, Any], catalogue: VendorCatalogue) -> PodsFound:
    """The pod specs of an object."""
    key = key_of(raw)
    said = [path for each, path in catalogue.workloads if each == key]
    if said:
        return PodsFound(tuple(spec for path in said for spec in specs_at(raw, path)))
    known = key in TEMPLATES or key in SPECS or key in CLAIMLESS or key[1] in NEVER
    if known or key[0] == "" or key[0].endswith(".k8s.io") or "apiVersion" not in raw:
        return PodsFound(tuple(pod_specs(raw)))
    found = [spec for spec in evident_specs(raw) if not _VALUES.intersection(map(str, spec.path))]
    return PodsFound(tuple(found), bool(found))
