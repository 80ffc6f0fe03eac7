"""The documentation of the codes about device plugins and their surroundings."""

from __future__ import annotations

from typing import Final

from kubectl_dra.migrate.model import ChangePage

_POD: Final = "containers:\n- name: trainer\n  resources:\n    limits:\n      %s\n"

_CHANGES: Final = (
    ChangePage(
        "MIG101",
        "claim-for-devices",
        "safe",
        "A pod's device-plugin request becomes a claim",
        "A pod that asks a device plugin for a number of devices gets a claim for as many. Each container that "
        "asks has its own request and refers to it, so it sees only its own devices. Init containers reuse what "
        "later containers get, and sidecars keep their own, as with device plugins. Node labels that chose a "
        "device by its node become selectors of the device. Either all of it changes or nothing does. It is "
        "unsafe where the vendor's driver may give something other than the plugin did.",
        _POD % "nvidia.com/gpu: 2",
        "containers:\n- name: trainer\n  resources:\n    claims:\n    - name: gpu\n      request: gpu\n"
        "resourceClaims:\n- name: gpu\n  resourceClaimTemplateName: trainer-gpu\n",
    ),
    ChangePage(
        "MIG102",
        "zero-devices",
        "safe",
        "A quantity of 0 is removed",
        "A container that asks for 0 devices asks for none and needs no claim. In a namespace whose LimitRange "
        "adds devices by default, the 0 kept them away; a pod with claims gets none by default.",
        _POD % "nvidia.com/gpu: 0",
        "containers:\n- name: trainer\n",
    ),
    ChangePage(
        "MIG103",
        "claim-template",
        "safe",
        "A ResourceClaimTemplate is added",
        "Each pod that refers to it gets a ResourceClaim of its own, created and removed with the pod. The "
        "template cannot be changed later: create one with another name and let the pods refer to that. It must "
        "be in the cluster before the pods.",
        "",
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata:\n  name: trainer-gpu\nspec:\n  spec:\n"
        "    devices:\n      requests:\n      - name: gpu\n        exactly:\n"
        "          deviceClassName: gpu.nvidia.com\n          count: 2\n",
    ),
    ChangePage(
        "MIG104",
        "shared-claim",
        "unsafe",
        "A ResourceClaim is added",
        "With --share claim all pods of the workload use one ResourceClaim, and so the same devices on the same node. "
        "Up to 256 pods can use a claim. The claim stays when the workload goes.",
    ),
    ChangePage(
        "MIG105",
        "device-class-for-resource",
        "safe",
        "A DeviceClass takes over a resource's name",
        "From Kubernetes 1.36 the scheduler gives pods that ask for an extended resource devices of the DeviceClass "
        "that carries its name (KEP-5004). The workloads stay as they are. A node must not serve the same name from a "
        "device plugin as well; different nodes may.",
        "",
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata:\n  name: mig-1g.5gb.nvidia.com\nspec:\n"
        "  extendedResourceName: nvidia.com/mig-1g.5gb\n  selectors:\n  - cel:\n      expression: ...\n",
    ),
)

_REFUSALS: Final = (
    ChangePage(
        "MIG109",
        "patch-without-request",
        "safe",
        "The patch no longer asks device plugins for anything",
        "A patch of a kustomization, in a file or in the kustomization itself, says only what differs. The claim is in "
        "what it patches; lists that a patch would add, such as tolerations and resourceClaims of custom resources, "
        "would take the place of the base's. Of a JSON patch, the operation that sets the number goes, and with the "
        "last one the patch; its comments stay. Another number of devices, or labels that choose other ones, become "
        "a patch of the claim template (MIG110). A comment # kubectl-dra: ignore[MIG109] above the patch, or in "
        "its text on the line that asks, leaves it; then what it patches stays as well.",
        "containers:\n- name: main\n  resources:\n    limits:\n      nvidia.com/gpu: 4\n",
        "containers:\n- name: main\n",
    ),
    ChangePage(
        "MIG110",
        "claim-patched",
        "safe",
        "The overlay patches the claim",
        "The overlay wants a different number of devices than its base, or different ones. The patch contains all "
        "requests of the claim, because kustomize has no keys by which to merge them. It stands beside the patch of "
        "the workload, or in kubectl-dra-counts.yaml where that is part of the kustomization. What the overlay builds "
        "is compared with what migrate makes of its earlier build.",
        "kind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - name: main\n"
        "        resources: {limits: {nvidia.com/gpu: 4}}\n",
        "kind: ResourceClaimTemplate\nmetadata: {name: train-gpu}\nspec:\n  spec:\n    devices:\n      requests:\n"
        "      - name: gpu\n        exactly: {deviceClassName: gpu.nvidia.com, count: 4}\n",
    ),
    ChangePage(
        "MIG127",
        "claims-of-an-overlay",
        "safe",
        "An overlay gets claims of its own",
        "A patch asks for devices, and what it patches does not. The patch then refers to a claim, whose template is a "
        "resource of the overlay. What the overlay builds is compared with what migrate makes of its earlier build.",
        "kind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - name: main\n"
        "        resources: {limits: {nvidia.com/gpu: 1}}\n",
        "kind: Deployment\nspec:\n  template:\n    spec:\n      resourceClaims:\n"
        "      - {name: gpu, resourceClaimTemplateName: train-gpu}\n      containers:\n      - name: main\n"
        "        resources: {claims: [{name: gpu}]}\n",
    ),
    ChangePage(
        "MIG140",
        "node-pool-limit",
        "note",
        "The limit of a node pool does not count claims",
        "Karpenter's NodePool, and the Provisioner before it, limit the total of what their nodes have. Devices "
        "that pods claim are not among these resources, so the limit no longer holds for migrated pods.",
    ),
    ChangePage(
        "MIG139",
        "names-followed",
        "safe",
        "kustomize follows the names of claims",
        "namePrefix and nameSuffix rename claim templates, but kustomize does not know where pods refer to them: "
        "the pods would wait for a template that does not exist. A configuration tells it. A replacement that "
        "writes the namespace of a kind of workload is for the claims of these workloads as well.",
        "namePrefix: prod-\n",
        "namePrefix: prod-\nconfigurations:\n- kubectl-dra-names.yaml\n",
    ),
    ChangePage(
        "MIG111",
        "unknown-resource",
        "refusal",
        "No known vendor has the resource",
        "Only its device plugin knows what a resource name stands for. It is listed and never guessed. A file for "
        "--vendors can say which DeviceClass it becomes, or with outcome: keep that it stays, and then nothing "
        "more is said about it.",
        _POD % "example.org/accelerator: 1",
    ),
    ChangePage(
        "MIG112",
        "needs-an-answer",
        "refusal",
        "Only people know what is meant",
        "The name does not say which device is meant: a share of a GPU, a name that an administrator chose, a setting "
        "of another scheduler. The message says what to decide.",
        _POD % "nvidia.com/gpu.shared: 1",
    ),
    ChangePage(
        "MIG113",
        "no-device-for-it",
        "refusal",
        "DRA has nothing for it",
        "No DRA driver offers what the device plugin provides under this name. Leave it with the plugin.",
        _POD % "rdma/hca: 1",
    ),
    ChangePage(
        "MIG114",
        "no-number-of-devices",
        "refusal",
        "The quantity is not a number of devices",
        "A placeholder is not a quantity, devices come in whole numbers, and a claim can hold 32 of them. 1k is "
        "1000: no node has that many devices, so it counts something else, such as shares of one. Where the number "
        "is a placeholder, migrate what the templater makes of it, and put the placeholder into the claim's count.",
        _POD % "nvidia.com/gpu: $GPUS",
    ),
    ChangePage(
        "MIG115",
        "request-and-limit",
        "refusal",
        "Request and limit do not agree",
        "Extended resources need a limit, and a request beside it must be equal. Containers ask for them, not the "
        "pod as a whole. The API server refuses this pod as it is, so nobody can tell what was intended.",
        "containers:\n- name: trainer\n  resources:\n    requests:\n      nvidia.com/gpu: 1\n",
    ),
    ChangePage(
        "MIG116",
        "placement-not-translated",
        "refusal",
        "Node constraints cannot be translated to devices",
        "Node labels choose the device, and these cannot be translated. Removing only the resource would give the "
        "pod other devices.",
    ),
    ChangePage(
        "MIG117",
        "no-name",
        "refusal",
        "There is no name to start from",
        "New objects are named after their workload. Its name is missing, is a placeholder, or breaks the rules for "
        "names.",
        "metadata:\n  name: $JOB\n",
    ),
    ChangePage(
        "MIG118",
        "vendor-in-part",
        "refusal",
        "Another resource of the vendor stays",
        "On each node, a vendor's devices come either from its device plugin or from its DRA driver. A pod that "
        "asks both fits nowhere, so all its requests for the vendor move together or stay together.",
    ),
    ChangePage(
        "MIG119",
        "not-to-be-shared",
        "refusal",
        "Pods of this kind cannot share a claim",
        "Pods that share a ResourceClaim run where its devices are, which usually is one node. A DaemonSet, a "
        "StatefulSet or a job over several nodes cannot do that.",
    ),
    ChangePage(
        "MIG120",
        "kind-without-claims",
        "refusal",
        "The kind has no place for claims",
        "The controller of this kind drops or refuses resource claims, or does not know them. The message says "
        "what to do by hand.",
    ),
    ChangePage(
        "MIG121",
        "unknown-kind",
        "refusal",
        "Nobody knows where the kind keeps its pods",
        "The object names a resource of a device plugin, but only its controller knows whether its fields end up "
        "in a pod.",
    ),
    ChangePage(
        "MIG124",
        "claim-beside-resource",
        "refusal",
        "The pod claims such devices already",
        "A pod that asks the device plugin for a GPU and also has a claim for one gets two, if any. Most likely "
        "somebody did not finish a migration by hand; then one of them has to go.",
        _POD % "nvidia.com/gpu: 1" + "    claims:\n    - name: gpu\n",
        "containers:\n- name: trainer\n  resources:\n    claims:\n    - name: gpu\n",
    ),
    ChangePage(
        "MIG125",
        "not-a-list",
        "refusal",
        "A list was expected here",
        "Claims and tolerations are added to lists, and the API server refuses the pod as it is. Nothing that "
        "somebody wrote is overwritten.",
        "resources:\n  claims: true\n  limits:\n    nvidia.com/gpu: 1\n",
        "resources:\n  limits:\n    nvidia.com/gpu: 1\n",
    ),
    ChangePage(
        "MIG122",
        "no-class-for-resource",
        "refusal",
        "A DeviceClass cannot stand for the resource",
        "A class with an extendedResourceName serves pods that need nothing but a number of devices, on "
        "Kubernetes 1.36 or later.",
    ),
)

_NOTES: Final = (
    ChangePage(
        "MIG141",
        "autoscaler",
        "note",
        "An autoscaler has to know claims",
        "An object of the run, or a node label that a pod asks for, says who makes nodes, and pods of the run have "
        "claims. A pod with a claim stays pending if the autoscaler does not count devices of nodes that do not exist "
        "yet.",
    ),
    ChangePage(
        "MIG142",
        "no-preemption-for-devices",
        "note",
        "Priority frees no device",
        "With a device plugin, the scheduler evicts pods of lower priority to free their devices. It does not do that "
        "for claims: the pod waits until a device is released.",
    ),
    ChangePage(
        "MIG143",
        "device-was-shared",
        "note",
        "The device plugin shares the device",
        "By the configuration of the device plugin, a resource is a share of a device (time-slicing or MPS). "
        "Each claim "
        "takes a whole device, so fewer pods fit: the change is unsafe. With DRA, pods and containers share a "
        "device by "
        "referring to the same claim.",
    ),
    ChangePage(
        "MIG106",
        "class-has-the-name",
        "note",
        "The driver's class already carries the name",
        "Its DeviceClass has the extendedResourceName, so unchanged workloads get devices from the driver on "
        "nodes without the device plugin.",
    ),
    ChangePage(
        "MIG107",
        "toleration-written-out",
        "note",
        "A toleration is written out",
        "The admission plugin ExtendedResourceToleration adds a toleration to pods that ask for an extended "
        "resource, and clusters such as GKE rely on it for nodes tainted with the resource's name. It adds "
        "nothing for claims. If no node has the taint, the toleration does nothing.",
        _POD % "nvidia.com/gpu: 1",
        "tolerations:\n- key: nvidia.com/gpu\n  operator: Exists\n  effect: NoSchedule\n",
    ),
    ChangePage(
        "MIG108",
        "pods-share-devices",
        "note",
        "All pods use the same devices",
        "With --share claim, more replicas do not mean more devices: they share the devices of one claim, on its node.",
    ),
    ChangePage(
        "MIG123",
        "manifest-in-text",
        "note",
        "A text names a resource",
        "Some kinds carry other objects as text, often with placeholders: a ConfigMap with a pod template, a script "
        "or an argument from which a program makes pods. Texts are never changed. Look whether pods come of it that "
        "ask the device plugin.",
    ),
    ChangePage(
        "MIG126",
        "named-elsewhere",
        "note",
        "A field other than a request names a resource",
        "A setting of a controller, a policy, or the weights of a scheduler can name a resource of a device plugin. "
        "What it does with pods that have claims only its program knows.",
    ),
    ChangePage(
        "MIG130",
        "vendor-advice",
        "note",
        "The vendor's driver works differently",
        "The claim asks for the same number of devices, but the driver differs from the device plugin as the "
        "message says. If that may change what a pod gets, the change is unsafe, and its reason says so.",
    ),
    ChangePage(
        "MIG131",
        "label-stays",
        "note",
        "A label stays, or is removed with advice",
        "Labels that drive autoscaling, or say something that no attribute of a device says, stay on the pod.",
    ),
    ChangePage(
        "MIG132",
        "needs-newer-controller",
        "note",
        "Older releases of the controller drop claims",
        "From the named release on, the CustomResourceDefinition of the kind keeps resourceClaimTemplateName and "
        "the containers' requests. Before that, the API server drops the fields, and the pods start without "
        "devices.",
    ),
    ChangePage(
        "MIG133",
        "claims-and-plugins",
        "note",
        "The pod keeps a device plugin's resource",
        "Another vendor's resource that cannot be migrated stays. The scheduler places claims and extended "
        "resources independently of each other: the GPU and the network adapter may be far apart.",
    ),
    ChangePage(
        "MIG134",
        "controller-needs-telling",
        "note",
        "The controller read a setting from the resource",
        "Some controllers read the number of GPUs from the limits of their pods, to choose a setting or an image. "
        "With a claim they find none and must be told.",
        _POD % "nvidia.com/gpu: 4",
        'rayStartParams:\n  num-gpus: "4"\n',
    ),
    ChangePage(
        "MIG135",
        "template-in-each-namespace",
        "note",
        "Each namespace needs the template",
        "An object for all namespaces makes pods in any of them, and a pod finds a ResourceClaimTemplate in its own "
        "namespace only.",
    ),
    ChangePage(
        "MIG136",
        "queue-must-map-classes",
        "note",
        "Kueue must know the class",
        "Kueue counts claims by its deviceClassMappings, which map each DeviceClass to a resource of the "
        "ClusterQueue. Without a mapping the workload is not admitted or not counted.",
    ),
    ChangePage(
        "MIG137",
        "generated-name",
        "note",
        "The object has a new name each time",
        "An object with generateName is created again and again, its ResourceClaimTemplate only once: apply the "
        "template, create the object.",
    ),
    ChangePage(
        "MIG138",
        "needs-gate",
        "note",
        "A feature gate is off",
        "The claim uses a field that the API server of this release drops, or the scheduler ignores, unless the "
        "gate is on.",
    ),
)

_BESIDE: Final = (
    ChangePage(
        "MIG401",
        "environment-variable",
        "note",
        "A variable controls devices",
        "Variables such as NVIDIA_VISIBLE_DEVICES make the container runtime add devices to those of the claim. A "
        "device plugin sets them; set by hand, they bypass the claim.",
        "env:\n- name: NVIDIA_VISIBLE_DEVICES\n  value: all\n",
    ),
    ChangePage(
        "MIG402",
        "runtime-class",
        "note",
        "A runtime class of the vendor",
        "DRA drivers pass devices by CDI, which needs no vendor runtime. The runtime class may serve other "
        "purposes, so it stays.",
        "runtimeClassName: nvidia\n",
    ),
    ChangePage(
        "MIG403",
        "annotation",
        "note",
        "An annotation controls devices",
        "Annotations of device plugins and their schedulers mean nothing to a DRA driver.",
    ),
    ChangePage(
        "MIG404",
        "devices-past-the-claim",
        "note",
        "The container reaches devices without a claim",
        "A privileged container, or one with the host's device files or driver libraries, sees devices that are "
        "not its own.",
    ),
    ChangePage(
        "MIG405",
        "scheduler-name",
        "note",
        "Another scheduler",
        "The pod's scheduler allocates its claims. Schedulers other than Kubernetes' own support them only in part.",
    ),
)

ABOUT: Final = (*_CHANGES, *_REFUSALS, *_NOTES, *_BESIDE)
"""Pages of MIG1xx and MIG4xx."""
