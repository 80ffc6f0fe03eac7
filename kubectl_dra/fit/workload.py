"""What is to be placed: workloads of a manifest, as roles of pods that differ in nothing but their names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, ValidationError
from msgspec.structs import replace

from kubectl_dra.api.labels import Requirement
from kubectl_dra.api.meta import OwnerReference
from kubectl_dra.api.nodes import Affinity, NodeSelector, NodeSelectorTerm, Toleration
from kubectl_dra.api.plugins import DaemonSet
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.snapshot import Key, Snapshot, StandIn, stand_in
from kubectl_dra.cluster.workload_pods import called as renamed
from kubectl_dra.cluster.workload_pods import pods_of
from kubectl_dra.drivers.daemons import ALWAYS, left_out
from kubectl_dra.drivers.health import LeftOut
from kubectl_dra.errors import InputError
from kubectl_dra.explain.phrase import Joined, Words, say
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.pod_counts import counts_of, is_suspended
from kubectl_dra.manifests.workloads import key_of


class Role(Struct, frozen=True):
    """Pods of a workload from one template. ``each``: how many of them belong to a replica.

    ``pod`` stands for them, as it is written; its name is what their names begin with. ``name`` tells the role from
    others of the workload. ``exact``: there is only this pod, with this very name. ``stand_in`` is what the pod is
    called among others of the manifest.
    """

    name: str
    pod: Pod
    written: Mapping[str, Any]
    each: int = 1
    exact: bool = False
    stand_in: str = ""


DAEMON_SET: Final = "DaemonSet"


class WorkloadPods(Struct, frozen=True):
    """An object of the manifest that makes pods, or the bare pods of it. ``unit`` is what a replica is called.

    ``counted``: how many pods there are is known; otherwise one of each template is placed. ``raw`` is the object as
    it is written; empty for bare pods. ``taken`` are names of other pods of the namespace, which no pod may be given.
    ``nodes`` are those for which a DaemonSet makes a pod each; empty of others, and where that is not known.
    """

    kind: str
    namespace: str
    name: str
    roles: tuple[Role, ...]
    replicas: int = 1
    unit: str = "replica"
    counted: bool = True
    raw: Mapping[str, Any] = {}
    taken: frozenset[str] = frozenset()
    nodes: tuple[str, ...] = ()

    @property
    def of_each_node(self) -> bool:
        """Whether it makes a pod with devices for each node that its pods may run on."""
        return self.kind == DAEMON_SET and any(role.pod.claims for role in self.roles)

    @property
    def size(self) -> int:
        """Number of pods of a replica."""
        return sum(role.each for role in self.roles)

    def stored_in(self, snapshot: Snapshot) -> Mapping[str, Any] | None:
        """The object as the cluster has it; None where it is not there, or was not read."""
        return snapshot.stored.get((*key_of(self.raw), self.namespace, self.name))

    @property
    def suspended(self) -> bool:
        """Whether it makes no pods until a user, or a queue, resumes it."""
        return is_suspended(self.raw)

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.name else f"{self.kind}s of {self.namespace}"


def workloads_of(manifest: Snapshot) -> list[WorkloadPods]:
    """The workloads of a manifest in its order; bare pods are one workload a group, and one of the others, last."""
    bare = [key for key, pod in manifest.pods.items() if stand_in(pod) is None]
    return [*makers_of(manifest), *_bare(bare, manifest)]


def each_of(manifest: Snapshot) -> list[WorkloadPods]:
    """The same, but that a bare pod which belongs to no group is one workload by itself."""
    bare = [key for key, pod in manifest.pods.items() if stand_in(pod) is None]
    grouped = [key for key in bare if _group(manifest.pods[key])[1]]
    alone = (workload for key in bare if key not in grouped for workload in _bare([key], manifest))
    return [*makers_of(manifest), *_bare(grouped, manifest), *alone]


def makers_of(manifest: Snapshot) -> list[WorkloadPods]:
    """The objects of a manifest that make pods."""
    pods: list[WorkloadPods] = []
    own = {stand_in(pod): key for key, pod in manifest.pods.items()}
    for raw in manifest.workloads:
        metas = [pod["metadata"] for pod in pods_of(raw)]
        names = [meta["name"] for meta in metas]
        keys = [own[StandIn.of(meta["annotations"])] for meta in metas]
        namespace = keys[0][0]
        counts = counts_of(raw)
        meta = raw.get("metadata") or {}
        called = str(meta.get("name") or meta.get("generateName") or "pod")
        roles = tuple(
            _role(name.removeprefix(called).strip("-"), key, manifest, number, called=name)
            for name, key, number in zip(names, keys, counts.each, strict=True)
        )
        pods.append(
            WorkloadPods(raw["kind"], namespace, called, roles, counts.replicas, counts.unit, counts.known, raw)
        )
    return pods


def without_stand_ins(snapshot: Snapshot) -> Snapshot:
    """The cluster without the pods that stand for those of workloads."""
    pods = (pod for pod in snapshot.pods.values() if stand_in(pod) is not None)
    return Cluster(snapshot).ending(pods).snapshot


def _role(name: str, key: Key, manifest: Snapshot, each: int = 1, *, exact: bool = False, called: str = "") -> Role:
    """A role; ``called`` is what its pods are called after, where the one that stands for them has another name."""
    pod = renamed(manifest.pods[key], called) if called else manifest.pods[key]
    return Role(name, pod, manifest.written.get(("Pod", *key), {}), each, exact, key[1])


def _bare(keys: Sequence[Key], manifest: Snapshot) -> Iterator[WorkloadPods]:
    grouped: dict[tuple[str, str, str], list[Key]] = defaultdict(list)
    for key in keys:
        kind, name = _group(manifest.pods[key])
        grouped[kind, key[0], name].append(key)
    for (kind, namespace, name), own in grouped.items():
        roles = tuple(_role(key[1], key, manifest, exact=True) for key in own)
        title = own[0][1] if not name and len(own) == 1 else name
        yield WorkloadPods(kind, namespace, title, roles, unit="group" if name else "pod")


def _group(pod: Pod) -> tuple[str, str]:
    """The kind and name of what a bare pod belongs to."""
    if pod.pod_group:
        return "PodGroup", pod.pod_group
    if pod.spec.workload_ref is not None:
        return "Workload", pod.spec.workload_ref.name
    return "Pod", ""


# The objects that stand between a workload and its pods, by which the scheduler spreads the pods.


TEMPLATE_HASH: Final = "fit"
"""Stands for the hash of a pod template that a Deployment makes up."""


def controller_of(workload: WorkloadPods) -> OwnerReference | None:
    """What the pods of a workload are owned by; None where the scheduler does not ask who that is."""
    controller = _selecting(workload)
    if controller is None:
        return None
    kind, raw = controller
    name = raw["metadata"]["name"]
    return OwnerReference(
        kind, name, f"fit:{workload.namespace}/{name}", controller=True, api_version=raw["apiVersion"]
    )


def with_controllers(snapshot: Snapshot, workloads: Iterable[WorkloadPods]) -> Snapshot:
    """The cluster with the owners of the workloads' pods. Raises InputError: a selector with a wrong type in it."""
    cluster = Cluster(snapshot)
    for workload in workloads:
        controller = _selecting(workload)
        if controller is not None:
            kind, raw = controller
            key = (workload.namespace, raw["metadata"]["name"])
            try:
                owner = SCHEDULING_KINDS[kind].decode(raw)
            except ValidationError as error:
                raise InputError(f"{workload.title}: {error}") from None
            cluster = cluster.adding_other(kind, key, owner)
    return cluster.snapshot


def _selecting(workload: WorkloadPods) -> tuple[str, Mapping[str, Any]] | None:
    """The kind of the owner and the owner, with the selector of its pods."""
    group, kind = key_of(workload.raw)
    selector = fields_at(workload.raw, "spec", "selector")
    metadata = {"name": workload.name, "namespace": workload.namespace}
    if (group, kind) == ("apps", "Deployment"):
        labels = {**(selector.get("matchLabels") or {}), "pod-template-hash": TEMPLATE_HASH}
        metadata["name"] = f"{workload.name}-{TEMPLATE_HASH}"
        kind, selector = "ReplicaSet", {**selector, "matchLabels": labels}
    elif (group, kind) == ("", "ReplicationController"):
        return kind, {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {"selector": selector}}
    elif group != "apps" or kind not in ("ReplicaSet", "StatefulSet"):
        return None
    return kind, {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"selector": selector}}


# The pods of a DaemonSet: one for each node that they may run on, and for no other.
#
# Source: pkg/controller/daemon (NodeShouldRunDaemonPod, AddOrUpdateDaemonPodTolerations,
# ReplaceDaemonSetPodNodeNameNodeAffinity).

_REASONS: Final = 3


def of_nodes(workload: WorkloadPods, snapshot: Snapshot) -> WorkloadPods:
    """A DaemonSet with the nodes that it makes a pod for; as it is where it is none, or nodes were not read."""
    if not workload.of_each_node or len(workload.roles) != 1 or snapshot.is_gap("Node"):
        return workload
    left = _left_out(workload, snapshot)
    if left is None:
        return workload
    nodes = tuple(name for name, why in left.items() if why is None)
    (role,) = workload.roles
    spec = role.pod.spec
    tolerations = (*spec.tolerations, *(Toleration(key=key, operator="Exists") for key in ALWAYS))
    role = replace(role, pod=replace(role.pod, spec=replace(spec, tolerations=tolerations)))
    return replace(workload, roles=(role,), replicas=len(nodes), unit="pod", counted=True, nodes=nodes)


def _left_out(workload: WorkloadPods, snapshot: Snapshot) -> dict[str, LeftOut | None] | None:
    """Each node, and why a DaemonSet makes no pod for it, if it makes none; None where it cannot be read."""
    try:
        daemon = DaemonSet.from_json(workload.raw)
    except ValidationError:
        return None
    return {node.name: left_out(daemon, node) for node in snapshot.nodes.values()}


def why_none(workload: WorkloadPods, snapshot: Snapshot) -> Words:
    """Why a DaemonSet makes no pod on any node; empty where that is not known."""
    left = _left_out(workload, snapshot) or {}
    reasons = Counter(map(_why, filter(None, left.values())))
    said = [
        say("{count:node} {count:" + verbs + "} {what}", count=count, what=what)
        for (verbs, what), count in reasons.most_common(_REASONS)
    ]
    return Joined(tuple(said))


def _why(left: LeftOut) -> tuple[str, str]:
    """A verb for one node and for several, and what they lack or have."""
    if left.labels:
        return "lacks|lack", f"the label {left.labels[0]} that its nodeSelector names"
    if left.taint:
        return "has|have", f"the taint {left.taint}, which it does not tolerate"
    return "does|do", "not match its node affinity"


def for_node(pod: Pod, node: str) -> Pod:
    """The pod that is for a node: nothing else is left of its required node affinity, which the node meets."""
    term = NodeSelectorTerm(fields=(Requirement(key="metadata.name", operator="In", values=(node,)),))
    affinity = pod.spec.affinity or Affinity()
    near = replace(affinity.node_affinity, required=NodeSelector(terms=(term,)))
    spec = replace(pod.spec, affinity=replace(affinity, node_affinity=near))
    return replace(pod, spec=spec)
