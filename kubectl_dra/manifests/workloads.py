"""Where workloads keep their pod templates and pod specs. One entry adds a kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.workload_kinds import WorkloadKind, workload_kind
from kubectl_dra.manifests.changes import fields_at, items_at, value_at

TemplatePath = tuple[str, ...]
"""Steps to a pod template; ``*`` stands for every item of a list or value of a map."""

GroupKind = tuple[str, str]
"""Group and kind."""

_RAY: Final[tuple[TemplatePath, ...]] = (("headGroupSpec", "template"), ("workerGroupSpecs", "*", "template"))
_JOBS: Final[TemplatePath] = ("replicatedJobs", "*", "template", "spec", "template")
_LWS: Final[tuple[TemplatePath, ...]] = (
    ("leaderWorkerTemplate", "leaderTemplate"),
    ("leaderWorkerTemplate", "workerTemplate"),
)
_RAY_JOB: Final[tuple[TemplatePath, ...]] = (*(("rayClusterSpec", *path) for path in _RAY), ("submitterPodTemplate",))

_ROLES: Final[tuple[TemplatePath, ...]] = (
    ("roleTemplates", "*", "template"),
    *(
        ("roles", "*", *path)
        for path in (
            ("template",),
            ("components", "*", "template"),
            # From v1alpha2 on.
            ("standalonePattern", "template"),
            ("leaderWorkerPattern", "template"),
            ("customComponentsPattern", "components", "*", "template"),
            ("standalonePattern", "templateRef", "patch"),
            ("leaderWorkerPattern", "templateRef", "patch"),
        )
    ),
)
_OME: Final[tuple[TemplatePath, ...]] = tuple(
    (part, *below) for part in ("engine", "decoder") for below in ((), ("leader",), ("worker",))
)

TEMPLATES: Final[Mapping[GroupKind, tuple[TemplatePath, ...]]] = {
    ("", "ReplicationController"): (("spec", "template"),),
    ("apps", "Deployment"): (("spec", "template"),),
    ("apps", "ReplicaSet"): (("spec", "template"),),
    ("apps", "StatefulSet"): (("spec", "template"),),
    ("apps", "DaemonSet"): (("spec", "template"),),
    ("batch", "Job"): (("spec", "template"),),
    ("batch", "CronJob"): (("spec", "jobTemplate", "spec", "template"),),
    ("jobset.x-k8s.io", "JobSet"): (("spec", *_JOBS),),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): tuple(("spec", *path) for path in _LWS),
    ("disaggregatedset.x-k8s.io", "DisaggregatedSet"): tuple(("spec", "roles", "*", "spec", *path) for path in _LWS),
    ("ray.io", "RayCluster"): tuple(("spec", *path) for path in _RAY),
    ("ray.io", "RayJob"): tuple(("spec", *path) for path in _RAY_JOB),
    ("ray.io", "RayService"): tuple(("spec", "rayClusterConfig", *path) for path in _RAY),
    ("ray.io", "RayCronJob"): tuple(("spec", "jobTemplate", *path) for path in _RAY_JOB),
    ("kubeflow.org", "PyTorchJob"): (("spec", "pytorchReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "TFJob"): (("spec", "tfReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "MPIJob"): (("spec", "mpiReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "XGBoostJob"): (("spec", "xgbReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "Notebook"): (("spec", "template"),),
    ("kubeflow.org", "JAXJob"): (("spec", "jaxReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "PaddleJob"): (("spec", "paddleReplicaSpecs", "*", "template"),),
    ("sagemaker.amazonaws.com", "HyperPodPyTorchJob"): (("spec", "replicaSpecs", "*", "template"),),
    ("trainer.kubeflow.org", "TrainingRuntime"): (("spec", "template", "spec", *_JOBS),),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): (("spec", "template", "spec", *_JOBS),),
    ("batch.volcano.sh", "Job"): (("spec", "tasks", "*", "template"),),
    ("batch.volcano.sh", "CronJob"): (("spec", "jobTemplate", "spec", "tasks", "*", "template"),),
    ("flow.volcano.sh", "JobTemplate"): (("spec", "tasks", "*", "template"),),
    ("argoproj.io", "Rollout"): (("spec", "template"),),
    ("argoproj.io", "Experiment"): (("spec", "templates", "*", "template"),),
    ("argoproj.io", "AnalysisTemplate"): (("spec", "metrics", "*", "provider", "job", "spec", "template"),),
    ("argoproj.io", "ClusterAnalysisTemplate"): (("spec", "metrics", "*", "provider", "job", "spec", "template"),),
    ("workloads.x-k8s.io", "RoleBasedGroup"): tuple(("spec", *path) for path in _ROLES),
    ("workloads.x-k8s.io", "RoleBasedGroupSet"): tuple(
        ("spec", *group, *path) for group in (("template",), ("groupTemplate", "spec")) for path in _ROLES
    ),
    ("serving.knative.dev", "Service"): (("spec", "template"),),
    ("serving.knative.dev", "Configuration"): (("spec", "template"),),
    ("sparkoperator.k8s.io", "SparkApplication"): (("spec", "driver", "template"), ("spec", "executor", "template")),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): (
        ("spec", "template", "driver", "template"),
        ("spec", "template", "executor", "template"),
    ),
    # From v1beta1 on.
    ("nvidia.com", "DynamoGraphDeployment"): (("spec", "components", "*", "podTemplate"),),
    ("nvidia.com", "DynamoComponentDeployment"): (("spec", "podTemplate"),),
}
"""Where the pod templates are: mappings with ``metadata`` and ``spec``."""

SPECS: Final[Mapping[GroupKind, tuple[TemplatePath, ...]]] = {
    ("", "Pod"): (("spec",),),
    ("", "PodTemplate"): (("template", "spec"),),
    ("serving.kserve.io", "InferenceService"): (
        ("spec", "predictor"),
        ("spec", "predictor", "workerSpec"),
        ("spec", "transformer"),
        ("spec", "explainer"),
    ),
    **{
        ("argoproj.io", kind): (("spec", "templates", "*"),)
        for kind in ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate")
    },
    ("argoproj.io", "CronWorkflow"): (("spec", "workflowSpec", "templates", "*"),),
    ("grove.io", "PodCliqueSet"): (("spec", "template", "cliques", "*", "spec", "podSpec"),),
    ("grove.io", "PodClique"): (("spec", "podSpec"),),
    ("ome.io", "InferenceService"): tuple(("spec", *path) for path in (*_OME, ("router",))),
    **{
        ("ome.io", kind): tuple(("spec", f"{part}Config", *below) for part, *below in (*_OME, ("router",)))
        for kind in ("ServingRuntime", "ClusterServingRuntime")
    },
    **{
        ("serving.kserve.io", kind): (
            ("spec", "template"),
            ("spec", "worker"),
            ("spec", "prefill", "template"),
            ("spec", "prefill", "worker"),
            ("spec", "router", "scheduler", "template"),
        )
        for kind in ("LLMInferenceService", "LLMInferenceServiceConfig")
    },
}
"""Paths of pod specs that are not in a template."""

# A model server of KServe stands under the key of its framework, with the fields of a container.
MODEL_SERVERS: Final[frozenset[str]] = frozenset(
    (
        "model",
        "tensorflow",
        "triton",
        "pytorch",
        "huggingface",
        "sklearn",
        "xgboost",
        "lightgbm",
        "onnx",
        "paddle",
        "pmml",
        "predictiveserver",
        "art",
        "alibi",
    )
)
SINGLE_CONTAINERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(MODEL_SERVERS, "kserve-container"),
    # Argo's templates.
    "container": "main",
    "script": "main",
    # OME's.
    "runner": "ome-container",
}
"""Fields that are one container each, which no pod spec has, and the names under which they run."""

# The last two are those of Argo's templates.
CONTAINER_LISTS: Final[tuple[TemplatePath, ...]] = (
    ("initContainers",),
    ("containers",),
    ("containerSet", "containers"),
    ("sidecars",),
)
_STEERING: Final = ("resourceClaims", "tolerations", "nodeSelector", "affinity", "runtimeClassName")

CLAIM_REFERENCES: Final[Mapping[str, str]] = {
    "resourceClaimTemplateName": "ResourceClaimTemplate",
    "resourceClaimName": "ResourceClaim",
}
"""The fields of a pod's claim that refer to an object, and its kind."""
CLAIM_SPECS: Final[Mapping[str, FieldPath]] = {"ResourceClaim": ("spec",), "ResourceClaimTemplate": ("spec", "spec")}
"""Where objects have the spec of a claim."""

KSERVE_MODE: Final = "serving.kserve.io/deploymentMode"
"""The annotation with the deployment mode of an InferenceService."""
OME_COUNT: Final = "PARALLELISM_SIZE"
"""The variable that OME sets to the number of GPUs in the limits."""
ACCELERATOR_CLASS: Final = "AcceleratorClass"
_CHOOSE_CLASS: Final = frozenset(
    ("acceleratorConfig", "acceleratorOverride", "acceleratorRequirements", "acceleratorSelector")
)


def mode_of(workload: Mapping[str, Any]) -> str:
    """What decides whether claims reach the pods of a workload; empty where it says nothing of it, and for others.

    The deployment mode of an InferenceService of KServe; in kinds of OME ``ACCELERATOR_CLASS`` or ``OME_COUNT`` if they
    use these.
    """
    key = key_of(workload)
    if key == ("serving.kserve.io", "InferenceService"):
        return str(value_at(workload, ("metadata", "annotations", KSERVE_MODE)) or "")
    if key[0] != "ome.io":
        return ""
    words = set(_words(workload.get("spec")))
    if words & _CHOOSE_CLASS:
        return ACCELERATOR_CLASS
    return OME_COUNT if any(OME_COUNT in word for word in words) else ""


def _words(value: Any) -> Iterator[str]:
    """The keys and texts of a value."""
    if isinstance(value, dict):
        yield from value
    elif isinstance(value, str):
        yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _words(below)


def known_kind(workload: Mapping[str, Any]) -> WorkloadKind | None:
    """Whether claims reach the pods of a workload; None for Kubernetes' own and unknown kinds."""
    group, _, version = str(workload.get("apiVersion") or "").rpartition("/")
    return workload_kind(group, str(workload.get("kind") or ""), version, mode_of(workload))


def loses_claims(workload: Mapping[str, Any]) -> bool:
    """Whether claims in the workload do not all reach its pods."""
    known = known_kind(workload)
    return known is not None and bool(known.loses)


class PodTemplate(NamedTuple):
    """A pod template in a workload: its path and its content (``metadata`` and ``spec``)."""

    path: FieldPath
    content: Mapping[str, Any]


class WorkloadPodSpec(NamedTuple):
    """A pod spec: its path and content, and the metadata of the pods made from it, with its path.

    ``holder_path`` leads to the object with the containers, if that is not the spec itself; the spec may then
    be missing. ``complete`` is false if a controller adds to it: required pod fields may be missing, and
    other fields may not be a pod's.
    """

    path: FieldPath
    content: Mapping[str, Any]
    metadata: Mapping[str, Any]
    metadata_path: FieldPath
    holder_path: FieldPath = ()
    holder: Mapping[str, Any] | None = None
    complete: bool = True


class PodContainer(NamedTuple):
    """A container of a pod spec. ``path`` begins at the object's root.

    ``sidecar``: an init container that keeps running beside the others.
    """

    path: FieldPath
    name: str
    content: Mapping[str, Any]
    init: bool = False
    sidecar: bool = False


def key_of(workload: Mapping[str, Any]) -> GroupKind:
    """Group and kind of an object."""
    return str(workload.get("apiVersion") or "").rpartition("/")[0], str(workload.get("kind") or "")


def pod_templates(workload: Mapping[str, Any]) -> Iterator[PodTemplate]:
    """The pod templates of an object, in table and object order; none for other kinds."""
    for path in TEMPLATES.get(key_of(workload), ()):
        for place, value in _walk(workload, path, ()):
            group = value_at(workload, place[: place.index("roles")]) if path[-1] == "patch" else {}
            if isinstance(value.get("spec"), dict) and not _devices_in_templates(group):
                yield PodTemplate(place, value)


def _devices_in_templates(group: Any) -> bool:
    """Whether a patch of a role's template could take the place of what its RoleBasedGroup has for devices."""
    specs = [fields_at(role_template, "template", "spec") for role_template in items_at(group, "roleTemplates")]
    return any(
        spec.get("tolerations") or spec.get("resourceClaims") or "/" in "".join(_amounts(spec)) for spec in specs
    )


def _amounts(spec: Mapping[str, Any]) -> Iterator[str]:
    """The names of resources that the containers of a pod ask for."""
    for container in (*items_at(spec, "initContainers"), *items_at(spec, "containers")):
        for amounts in ("limits", "requests"):
            yield from map(str, fields_at(container, "resources", amounts))


def pod_specs(workload: Mapping[str, Any]) -> Iterator[WorkloadPodSpec]:
    """The pod specs of an object: those of its templates, and free-standing ones; for a Pod its own."""
    for template in pod_templates(workload):
        path = (*template.path, "metadata")
        yield WorkloadPodSpec(
            (*template.path, "spec"), template.content["spec"], fields_at(template.content, "metadata"), path
        )
    key = key_of(workload)
    for path in SPECS.get(key, ()):
        for place, value in _walk(workload, path, ()):
            if path[-2:] == ("templates", "*"):
                if not _replaces(value_at(workload, place[:-2])):
                    yield WorkloadPodSpec(
                        place, value, fields_at(value, "metadata"), (*place, "metadata"), complete=False
                    )
                continue
            # PodTemplate has metadata beside the spec; elsewhere the object's own is what there is.
            meta = (*place[:-1], "metadata") if key == ("", "PodTemplate") else ("metadata",)
            yield WorkloadPodSpec(place, value, fields_at(workload, *meta), meta, complete=key[0] == "")
    if key == ("helm.toolkit.fluxcd.io", "HelmRelease"):
        yield from _app_template(workload)


def _replaces(workflow: Any) -> bool:
    """Whether what a template of Argo gets would take the place of what its workflow has for all of them."""
    owners = (workflow, fields_at(workflow, "templateDefaults"))
    return any(owner.get(field) for owner in owners for field in ("resourceClaims", "tolerations"))


def specs_at(workload: Mapping[str, Any], path: TemplatePath) -> Iterator[WorkloadPodSpec]:
    """The pod specs of an object at a path, of a kind that is not in the tables."""
    for place, value in _walk(workload, path, ()):
        meta = (*place[:-1], "metadata")
        yield WorkloadPodSpec(place, value, fields_at(workload, *meta), meta, complete=False)


def evident_specs(value: Any, path: FieldPath = ()) -> Iterator[WorkloadPodSpec]:
    """What is a pod template by its shape: ``spec`` with containers, and nothing but ``metadata`` beside it."""
    if isinstance(value, dict):
        spec = value.get("spec")
        if path and isinstance(spec, dict) and value.keys() <= {"metadata", "spec"} and _has_containers(spec):
            yield WorkloadPodSpec(
                (*path, "spec"), spec, fields_at(value, "metadata"), (*path, "metadata"), complete=False
            )
            return
        for key, below in value.items():
            if path or key not in ("metadata", "status"):
                yield from evident_specs(below, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from evident_specs(item, (*path, index))


def _has_containers(spec: Mapping[str, Any]) -> bool:
    items = items_at(spec, "containers")
    return bool(items) and all(isinstance(item, dict) and "name" in item and "image" in item for item in items)


def _app_template(release: Mapping[str, Any]) -> Iterator[WorkloadPodSpec]:
    """The pods in the values of the chart app-template: containers by name, and the rest of the spec under ``pod``."""
    values = fields_at(release, "spec", "values")
    controllers, defaults = fields_at(values, "controllers"), fields_at(values, "defaultPodOptions")
    if any(field in defaults for field in _STEERING):
        # A field of a controller takes the place of a default, so that adding to one would lose the other.
        return
    for name, controller in controllers.items():
        if fields_at(controller, "containers"):
            holder: FieldPath = ("spec", "values", "controllers", name)
            pod = fields_at(controller, "pod")
            yield WorkloadPodSpec((*holder, "pod"), pod, pod, (*holder, "pod"), holder, controller, False)


def containers(spec: WorkloadPodSpec) -> Iterator[PodContainer]:
    """Init containers, then containers, as written. Unnamed ones are named after their key or position."""
    at, holder = (spec.path, spec.content) if spec.holder is None else (spec.holder_path, spec.holder)
    for field in CONTAINER_LISTS:
        content = value_at(holder, field)
        items = content.items() if isinstance(content, dict) else enumerate(items_at(content))
        for index, value in items:
            if isinstance(value, dict):
                init = field == ("initContainers",)
                unnamed = index if isinstance(index, str) else f"{'init' if init else 'container'}-{index}"
                name = str(value.get("name") or unnamed)
                sidecar = init and value.get("restartPolicy") == "Always"
                yield PodContainer((*at, *field, index), name, value, init, sidecar)
    for key, value in spec.content.items():
        if key in SINGLE_CONTAINERS and isinstance(value, dict):
            yield PodContainer((*spec.path, key), str(value.get("name") or SINGLE_CONTAINERS[key]), value)


def _walk(value: Any, path: TemplatePath, done: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    if not path:
        if isinstance(value, dict):
            yield done, value
        return
    step, rest = path[0], path[1:]
    if step == "*":
        items = value.items() if isinstance(value, dict) else enumerate(items_at(value))
        for key, item in items:
            yield from _walk(item, rest, (*done, key))
    elif isinstance(value, dict) and step in value:
        yield from _walk(value[step], rest, (*done, step))
