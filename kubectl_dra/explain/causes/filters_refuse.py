"""Filters that look at more than a node's labels, taints and resources refuse nodes: one cause for each filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.refused_nodes import by_reason, counted, evidence
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
    family=Family.NODE_FILTERS,
    look=Look.VOLUME_CLAIMS,
)
VOLUME_LIMIT = CauseKind(
    code="too-many-volumes-on-node",
    title="The node has as many volumes as it can attach",
    why="A CSI driver says for each node how many of its volumes can be attached at once.",
    fix="Use other nodes, or end pods with volumes of the driver there.",
    seen_as="node(s) exceed max volume count",
    family=Family.NODE_FILTERS,
    look=Look.VOLUMES_ATTACHED,
)
VOLUME_UNUSABLE = CauseKind(
    code="volume-not-usable-here",
    title="A volume of the pod cannot be used or made there",
    why="A bound volume can be used on the nodes that it names; a claim that waits for its pod needs a volume, or room "
    "for one, that the node can reach; a claim that does not wait must be bound before.",
    fix="Look at the claim, its volume's nodeAffinity and its storage class, and use nodes that can reach the volume.",
    seen_as="node(s) didn't match PersistentVolume's node affinity; didn't find available persistent volumes to bind; "
    "pod has unbound immediate PersistentVolumeClaims; persistentvolumeclaim … not found",
    family=Family.NODE_FILTERS,
    look=Look.VOLUME_CLAIMS,
)
VOLUME_ZONE = CauseKind(
    code="volume-in-other-zone",
    title="A volume of the pod is in another zone",
    why="A volume with labels of zone or region can be used only on nodes with the same.",
    fix="Use nodes of the volume's zone.",
    seen_as="node(s) had no available volume zone",
    family=Family.NODE_FILTERS,
    look=Look.VOLUME_CLAIMS,
)
SPREAD = CauseKind(
    code="topology-spread-unsatisfied",
    title="The pod would make its topology spread too uneven",
    why="A topologySpreadConstraint with DoNotSchedule allows a domain at most maxSkew more matching pods than the "
    "emptiest domain has. A node without the label is in no domain.",
    fix="Make room in the emptiest domain, raise maxSkew, or use ScheduleAnyway.",
    seen_as="node(s) didn't match pod topology spread constraints",
    family=Family.NODE_FILTERS,
    look=Look.LABELS_OF_PODS,
)
AFFINITY = CauseKind(
    code="pod-affinity-unsatisfied",
    title="Pod affinity or anti-affinity rules out the node",
    why="Required pod affinity wants certain pods in the node's domain, anti-affinity excludes them; anti-affinity of "
    "pods that run already counts as well.",
    fix="Correct the rule or the labels, or use another topology domain.",
    seen_as="node(s) didn't match pod affinity rules; didn't match pod anti-affinity rules; didn't satisfy existing "
    "pods anti-affinity rules",
    family=Family.NODE_FILTERS,
    look=Look.LABELS_OF_PODS,
)
FEATURES = CauseKind(
    code="node-feature-not-declared",
    title="The node's kubelet does not declare a feature that the pod needs",
    why="Nodes declare in status.declaredFeatures what their kubelet can; the scheduler leaves out nodes that do not "
    "declare what the pod's spec needs.",
    fix="Upgrade the node's kubelet and switch the feature on, or do without the field.",
    seen_as="node(s) didn't match Pod's required features",
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
    """The cause, of those here, that refuses a node."""
    rejection = filters.rejections.get(node) if filters is not None else None
    if rejection is None:
        return None
    if any(isinstance(reason, ObjectNotFound) for reason in rejection.reasons):
        return VOLUME_UNUSABLE
    return _OF_PLUGIN.get(rejection.plugin)


def kind_of_all(trial: Trial) -> CauseKind | None:
    """The cause that refuses every node, where a single one does."""
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
        groups = by_reason(reasons)
        summary = say("{count:node} refused: {reasons}", count=len(reasons), reasons=counted(groups))
        yield Finding(kind, summary, evidence(groups), remedy_on(trial.scene.filters, reasons))


def remedy_on(filters: Filters | None, nodes: Iterable[str]) -> Remedy | None:
    """What ends the cause where an object is missing; None where what helps with its kind has to do."""
    for name in nodes:
        rejection = filters.rejections.get(name) if filters is not None else None
        for reason in rejection.reasons if rejection is not None else ():
            if isinstance(reason, ObjectNotFound):
                kind = OBJECT_KINDS.get(reason.resource, reason.resource)
                return Remedy(say("Create {kind} {name}, or correct the name.", kind=kind, name=reason.name))
    return None


FINDERS = (Finder(When.FAILS_TOO, _refused, 50),)
