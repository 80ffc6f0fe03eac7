"""The pods of a DaemonSet: one for each node that they may run on, and for no other.

Source: pkg/controller/daemon (NodeShouldRunDaemonPod, AddOrUpdateDaemonPodTolerations,
ReplaceDaemonSetPodNodeNameNodeAffinity).
"""

from __future__ import annotations

from msgspec import ValidationError
from msgspec.structs import replace

from kubectl_dra.api.labels import Requirement
from kubectl_dra.api.nodes import Affinity, NodeSelector, NodeSelectorTerm, Toleration
from kubectl_dra.api.plugins import DaemonSet
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.daemons import ALWAYS, left_out
from kubectl_dra.fit.workload import WorkloadPods


def of_nodes(workload: WorkloadPods, snapshot: Snapshot) -> WorkloadPods:
    """A DaemonSet with the nodes that it makes a pod for; as it is where it is none, or nodes were not read."""
    if not workload.of_each_node or len(workload.roles) != 1 or snapshot.is_gap("Node"):
        return workload
    try:
        daemon = DaemonSet.from_json(workload.raw)
    except ValidationError:
        return workload
    nodes = tuple(node.name for node in snapshot.nodes.values() if left_out(daemon, node) is None)
    (role,) = workload.roles
    spec = role.pod.spec
    tolerations = (*spec.tolerations, *(Toleration(key=key, operator="Exists") for key in ALWAYS))
    role = replace(role, pod=replace(role.pod, spec=replace(spec, tolerations=tolerations)))
    return replace(workload, roles=(role,), replicas=len(nodes), unit="pod", counted=True, nodes=nodes)


def for_node(pod: Pod, node: str) -> Pod:
    """The pod that is for a node: nothing else is left of its required node affinity, which the node meets."""
    term = NodeSelectorTerm(fields=(Requirement(key="metadata.name", operator="In", values=(node,)),))
    affinity = pod.spec.affinity or Affinity()
    near = replace(affinity.node_affinity, required=NodeSelector(terms=(term,)))
    spec = replace(pod.spec, affinity=replace(affinity, node_affinity=near))
    return replace(pod, spec=spec)
