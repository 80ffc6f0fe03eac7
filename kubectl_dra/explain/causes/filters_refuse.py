"""Filters that check more than a node's labels, taints and resources refuse nodes; one cause per filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.scene.filters import Filters
from kubectl_dra.explain.scene.node_reasons import KINDS as OBJECT_KINDS
from kubectl_dra.explain.trial import Trial
from kubectl_dra.scheduling.pod_claims import ObjectNotFound
from kubectl_dra.scheduling.reasons import PluginName

PORTS = CauseKind(
    code="host-port-taken",
    title="A host port of the pod is taken",
    why="Two pods on one node cannot have the same port of the node (same protocol and address). Ports of sidecars "
    "count, and with hostNetwork every port.",
    fix="Use another port or none, or spread the pods over more nodes.",
    seen_as="node(s) didn't have free ports for the requested pod ports",
    normal="For pods with host ports: one per node and port.",
    confirm=(
        confirm.Check(
            "The ports that the pod wants on its node.",
            "kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.containers[*].ports[*].hostPort}'",
        ),
        confirm.Check(
            "The host ports in use, and their nodes.",
            "kubectl get pods -A -o custom-columns='NAMESPACE:.metadata.namespace,POD:.metadata.name,"
            "NODE:.spec.nodeName,PORTS:.spec.containers[*].ports[*].hostPort'",
        ),
    ),
    family=Family.NODE_FILTERS,
    look=Look.ALL_PODS,
)
VOLUME_IN_USE = CauseKind(
    code="volume-in-use",
    title="A volume of the pod is used by another pod",
    why="A claim with access mode ReadWriteOncePod serves one pod in the whole cluster, and some disks cannot be "
    "shared by two pods on one node.",
    fix="End the other pod, or use an access mode that can be shared.",
    seen_as="node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
    "another pod; node(s) had no available disk",
    normal="While a pod is replaced by its successor, until the old one has ended.",
    confirm=(
        confirm.Check(
            "`Used By` names another pod.", "kubectl describe persistentvolumeclaim VOLUMECLAIM -n NAMESPACE"
        ),
        confirm.Check(
            "The access mode: `ReadWriteOncePod` allows one pod in the whole cluster.",
            "kubectl get persistentvolumeclaim VOLUMECLAIM -n NAMESPACE -o jsonpath='{.spec.accessModes}'",
        ),
    ),
    family=Family.NODE_FILTERS,
    look=Look.VOLUME_CLAIMS,
)
VOLUME_LIMIT = CauseKind(
    code="too-many-volumes-on-node",
    title="The node cannot attach more volumes",
    why="A CSI driver reports for each node how many of its volumes can be attached at once.",
    fix="Use other nodes, or end pods with volumes of the driver there.",
    seen_as="node(s) exceed max volume count",
    normal="On small cloud machines with many volumes.",
    confirm=(
        confirm.Check(
            "How many volumes of each driver the node can attach.",
            "kubectl get csinode NODE -o jsonpath='{.spec.drivers[*].allocatable.count}'",
        ),
        confirm.Check("Those that are attached.", "kubectl get volumeattachments"),
    ),
    family=Family.NODE_FILTERS,
    look=Look.VOLUMES_ATTACHED,
)
VOLUME_UNUSABLE = CauseKind(
    code="volume-not-usable-here",
    title="A volume of the pod cannot be used or created there",
    why=(
        "A bound volume can be used on the nodes that it names. A claim that waits for its pod needs a volume that "
        "the node can reach, or room for one. A claim that does not wait must already be bound."
    ),
    fix="Look at the claim, its volume's nodeAffinity and its storage class, and use nodes that can reach the volume.",
    seen_as="node(s) didn't match PersistentVolume's node affinity; didn't find available persistent volumes to bind; "
    "pod has unbound immediate PersistentVolumeClaims; persistentvolumeclaim … not found",
    normal="While a volume is being created for a claim that does not wait for its pod.",
    confirm=(
        confirm.Check(
            "Is the volume claim `Bound`, and to which volume?", "kubectl get persistentvolumeclaims -n NAMESPACE"
        ),
        confirm.Check(
            "The nodes that can use the volume.",
            "kubectl get persistentvolume VOLUME -o jsonpath='{.spec.nodeAffinity}'",
        ),
        confirm.Check(
            "The mode: `WaitForFirstConsumer` waits for the pod, `Immediate` does not.", "kubectl get storageclasses"
        ),
    ),
    family=Family.NODE_FILTERS,
    look=Look.VOLUME_CLAIMS,
)
VOLUME_ZONE = CauseKind(
    code="volume-in-other-zone",
    title="A volume of the pod is in another zone",
    why="A volume with labels for zone or region can be used only on nodes with the same labels.",
    fix="Use nodes of the volume's zone.",
    seen_as="node(s) had no available volume zone",
    normal="Where a pod with a volume is moved to another zone.",
    confirm=(
        confirm.Check("The zone of the volume …", "kubectl get persistentvolume VOLUME --show-labels"),
        confirm.Check("… and those of the nodes.", "kubectl get nodes -L topology.kubernetes.io/zone"),
    ),
    family=Family.NODE_FILTERS,
    look=Look.VOLUME_CLAIMS,
)
SPREAD = CauseKind(
    code="topology-spread-unsatisfied",
    title="The pod would make its topology spread too uneven",
    why=(
        "A topologySpreadConstraint with DoNotSchedule allows a domain at most maxSkew more matching pods than the "
        "emptiest domain. A node without the label is in no domain."
    ),
    fix="Make room in the emptiest domain, raise maxSkew, or use ScheduleAnyway.",
    seen_as="node(s) didn't match pod topology spread constraints",
    normal="If a domain is full or down: then the constraint makes pods wait.",
    confirm=(
        confirm.Check(
            "The constraint: key, `maxSkew` and the pods that count.",
            "kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.topologySpreadConstraints}'",
        ),
        confirm.Check(
            "Where matching pods run. The label is that of the constraint.",
            "kubectl get pods -n NAMESPACE -l LABEL=VALUE -o wide",
        ),
    ),
    family=Family.NODE_FILTERS,
    look=Look.LABELS_OF_PODS,
)
AFFINITY = CauseKind(
    code="pod-affinity-unsatisfied",
    title="Pod affinity or anti-affinity rules out the node",
    why=(
        "Required pod affinity demands certain pods in the node's domain, anti-affinity forbids them. Anti-affinity "
        "of running pods counts as well."
    ),
    fix="Correct the rule or the labels, or use another topology domain.",
    seen_as="node(s) didn't match pod affinity rules; didn't match pod anti-affinity rules; didn't satisfy existing "
    "pods anti-affinity rules",
    normal="Where the rule is meant to keep pods apart or together, and there is no more room.",
    confirm=(
        confirm.Check("The pod's rule.", "kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.affinity}'"),
        confirm.Check(
            "Labels and nodes of the pods that the rule is about.", "kubectl get pods -A -o wide --show-labels"
        ),
    ),
    family=Family.NODE_FILTERS,
    look=Look.LABELS_OF_PODS,
)
FEATURES = CauseKind(
    code="node-feature-not-declared",
    title="The node's kubelet does not declare a feature that the pod needs",
    why=(
        "Nodes declare the features of their kubelet in status.declaredFeatures. The scheduler skips nodes that do "
        "not declare what the pod's spec needs."
    ),
    fix="Upgrade the node's kubelet and enable the feature, or remove the field.",
    seen_as="node(s) didn't match Pod's required features",
    normal="While nodes are being upgraded: kubelets lag behind the control plane.",
    confirm=(
        confirm.Check(
            "The features of each node, and the version of its kubelet.",
            "kubectl get nodes -o custom-columns='NODE:.metadata.name,KUBELET:.status.nodeInfo.kubeletVersion,"
            "FEATURES:.status.declaredFeatures'",
        ),
    ),
    family=Family.NODE_FILTERS,
    look=Look.FEATURES_OF_NODES,
)

_OF_PLUGIN: Final[Mapping[PluginName, CauseKind]] = {
    PluginName.NODE_PORTS: PORTS,
    PluginName.VOLUME_RESTRICTIONS: VOLUME_IN_USE,
    PluginName.NODE_VOLUME_LIMITS: VOLUME_LIMIT,
    PluginName.VOLUME_BINDING: VOLUME_UNUSABLE,
    PluginName.VOLUME_ZONE: VOLUME_ZONE,
    PluginName.POD_TOPOLOGY_SPREAD: SPREAD,
    PluginName.INTER_POD_AFFINITY: AFFINITY,
    PluginName.NODE_DECLARED_FEATURES: FEATURES,
}


def kind_on(filters: Filters | None, node: str) -> CauseKind | None:
    """The cause, among those here, that refuses a node."""
    rejection = filters.rejections.get(node) if filters is not None else None
    if rejection is None:
        return None
    if any(isinstance(reason, ObjectNotFound) for reason in rejection.reasons):
        return VOLUME_UNUSABLE
    return _OF_PLUGIN.get(rejection.plugin)


def kind_of_all(trial: Trial) -> CauseKind | None:
    """The cause that refuses every node, if a single one does."""
    kinds = _by_kind(trial)
    if trial.view.nodes or len(kinds) != 1:
        return None
    ((kind, reasons),) = kinds.items()
    return kind if len(reasons) == len(trial.view.ineligible) else None


def _by_kind(trial: Trial) -> dict[CauseKind, dict[str, Words]]:
    """The nodes of each cause, with their reasons."""
    found: dict[CauseKind, dict[str, Words]] = {}
    filters = trial.scene.filters
    for name in filters.rejections if filters is not None else ():
        kind = kind_on(filters, name)
        if kind is not None and name in trial.view.ineligible:
            found.setdefault(kind, {})[name] = trial.view.ineligible[name]
    return found


def _refused(trial: Trial) -> Iterator[Finding]:
    for kind, reasons in _by_kind(trial).items():
        from kubectl_dra.explain.refused_nodes import by_reason, counted, evidence

        groups = by_reason(reasons)
        summary = say("{count:node} refused: {reasons}", count=len(reasons), reasons=counted(groups))
        yield Finding(kind, summary, evidence(groups), remedy_on(trial.scene.filters, reasons))


def remedy_on(filters: Filters | None, nodes: Iterable[str]) -> Remedy | None:
    """What ends the cause if an object is missing; None leaves the kind's general advice."""
    for name in nodes:
        rejection = filters.rejections.get(name) if filters is not None else None
        for reason in rejection.reasons if rejection is not None else ():
            if isinstance(reason, ObjectNotFound):
                kind = OBJECT_KINDS.get(reason.resource, reason.resource)
                return Remedy(say("Create {kind} {name}, or correct the name.", kind=kind, name=reason.name))
    return None


FINDERS = (Finder(When.FAILS_TOO, _refused, 50),)
