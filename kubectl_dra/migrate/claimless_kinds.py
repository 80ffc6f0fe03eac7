"""Kinds whose pods cannot have claims, and what to do by hand. One entry adds a kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kubectl_dra.manifests.workloads import Key


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

CLAIMLESS: Final[Mapping[Key, Claimless]] = {
    **{
        ("argoproj.io", kind): _WORKFLOW
        for kind in ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow")
    },
    ("serving.knative.dev", "Service"): Claimless(
        "Knative's webhook refuses claims of containers", "Run it as a Deployment, or leave it with the device plugin."
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
    ("nvidia.com", "DynamoGraphDeployment"): Claimless(
        "its resources name GPUs in a field of their own",
        "Write the claims into extraPodSpec (resourceClaims, and claims of mainContainer), and remove the GPU limit.",
    ),
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
"""Kinds that name devices of device plugins in places that cannot hold claims."""

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
