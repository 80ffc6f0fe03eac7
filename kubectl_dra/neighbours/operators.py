"""Operators that install what DRA drivers need, and NVIDIA's ComputeDomains: what is not ready, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim, ResourceClaimTemplate
from kubectl_dra.api.neighbour_kinds import ComputeDomain, ComputeDomainClique, OperatorPolicy
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.pointed_objects import Pointer
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.drivers import catalogue

# ComputeDomains: which link of their chain is missing on which node. A workload's pod is scheduled with a claim for a
# channel; the driver's plugin labels the node; by the label the node gets a daemon from the domain's DaemonSet; the
# daemon reports itself ready; only then is the claim prepared.

DOMAIN: Final = "ComputeDomain.resource.nvidia.com"
CLIQUE: Final = "ComputeDomainClique.resource.nvidia.com"
LABEL: Final = "resource.nvidia.com/computeDomain"
DRIVER: Final = "compute-domain.nvidia.com"
CHANNEL_CLASS: Final = "compute-domain-default-channel.nvidia.com"
READY: Final = "Ready"


class MissingLink(Enum):
    """What a node of the workload lacks first."""

    NONE = auto()
    LABEL = auto()
    """The driver's plugin has not labelled the node."""
    OTHER_DOMAIN = auto()
    """The node has the label of another domain, and serves one at a time."""
    DAEMON = auto()
    """The DaemonSet has no pod there."""
    DAEMON_RUNS = auto()
    """The daemon's pod does not run."""
    DAEMON_READY = auto()
    """The daemon runs, and does not say that it is ready."""
    UNSEEN = auto()
    """Pods or the node were not read."""


class DomainNode(Struct, frozen=True):
    """A node of a domain: the workload's pods there, the domain's daemon, and what that reports."""

    name: str
    pods: tuple[str, ...]
    missing: MissingLink
    daemon: Pod | None = None
    status: str = ""
    clique: str | None = None
    taints: tuple[str, ...] = ()


class DomainState(Struct, frozen=True):
    """A domain. ``template``: the template of its channel exists; None: that is not known. ``waiting`` have no node."""

    domain: ComputeDomain
    nodes: tuple[DomainNode, ...]
    template: bool | None
    waiting: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether the driver says so."""
        return self.domain.status.status == READY

    @property
    def used(self) -> bool:
        """Whether a pod of a workload exists."""
        return bool(self.waiting) or any(node.pods for node in self.nodes)

    @property
    def lacking(self) -> list[DomainNode]:
        """The nodes on which a link is missing, those with the earliest first."""
        order = list(MissingLink)
        domain_nodes = [node for node in self.nodes if node.missing is not MissingLink.NONE]
        return sorted(domain_nodes, key=lambda node: order.index(node.missing))


def with_channel_templates(manifest: Snapshot, cluster: Snapshot) -> Snapshot:
    """The manifest with the templates that the driver's controller makes for its domains, which it need not have."""
    made: dict[tuple[str, str], ResourceClaimTemplate] = {}
    domains: dict[tuple[str, str], ComputeDomain] = manifest.others.get(DOMAIN, {})  # type: ignore[assignment]
    notes = []
    for (space, name), domain in domains.items():
        key = (space, domain.spec.channel.resource_claim_template.name)
        if key[1] and key not in manifest.templates and key not in cluster.templates:
            made[key] = _channel_template(*key)
            text = "ResourceClaimTemplate {}/{} is taken as the driver's controller makes it from ComputeDomain {}"
            notes.append(text.format(*key, name))
    if not made:
        return manifest
    return replace(manifest, templates={**manifest.templates, **made}, notes=(*manifest.notes, *notes))


def _channel_template(namespace: str, name: str) -> ResourceClaimTemplate:
    """What the controller makes for a domain whose UID is not known yet."""
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig"}
    devices = {
        "requests": [{"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}],
        "config": [{"requests": ["channel"], "opaque": {"driver": DRIVER, "parameters": parameters}}],
    }
    return ResourceClaimTemplate.from_json(
        {"metadata": {"name": name, "namespace": namespace}, "spec": {"spec": {"devices": devices}}}
    )


def domain_of(pod: Pod, snapshot: Snapshot) -> ComputeDomain | None:
    """The domain whose channel a pod claims: by its UID, else by the name of its template."""
    uids = {*_channels(pod, snapshot)}
    if not uids:
        return None
    space, named = pod.metadata.namespace, {pod_claim.template_name for pod_claim in pod.claims} - {""}
    known: dict[tuple[str, str], ComputeDomain] = snapshot.others.get(DOMAIN, {})  # type: ignore[assignment]
    own = [domain for (other, _), domain in known.items() if other == space]
    by_uid = (domain for domain in own if domain.metadata.uid in uids)
    by_name = (domain for domain in own if domain.spec.channel.resource_claim_template.name in named)
    return next(chain(by_uid, by_name), None)


def gone_domain(pod: Pod, snapshot: Snapshot) -> str:
    """The UID of a domain whose channel a pod claims and that no longer exists; empty if there is none, or it may."""
    space = pod.metadata.namespace
    # Files that somebody calls complete may leave out what operators have.
    if snapshot.declared or snapshot.is_gap(DOMAIN, space) or domain_of(pod, snapshot) is not None:
        return ""
    return next(filter(None, _channels(pod, snapshot)), "")


def _channels(pod: Pod, snapshot: Snapshot) -> Iterator[str]:
    """The UIDs of the domains whose channels the claims of a pod are for, empty where they do not say."""
    for config in (config for claim in _claims(pod, snapshot) for config in claim.config):
        opaque = config.get("opaque") or {}
        if opaque.get("driver") == DRIVER:
            yield str((opaque.get("parameters") or {}).get("domainID") or "")


def _claims(pod: Pod, snapshot: Snapshot) -> Iterator[ResourceClaim]:
    """The claims of a pod, as their templates have them where they do not exist yet."""
    space, statuses = pod.metadata.namespace, pod.claim_statuses
    for pod_claim in pod.claims:
        claim = snapshot.claims.get((space, pod_claim.claim_name or statuses.get(pod_claim.name) or ""))
        template = snapshot.templates.get((space, pod_claim.template_name))
        if claim is not None:
            yield claim
        elif template is not None:
            yield template.claim("", space)


def domain_state(domain: ComputeDomain, snapshot: Snapshot) -> DomainState:
    """What is the case with a domain, as far as its pods and nodes were read."""
    meta, name = domain.metadata, domain.spec.channel.resource_claim_template.name
    space = meta.namespace
    pods = [
        pod
        for (own, _), pod in snapshot.pods.items()
        if own == space and not pod.finished and any(pod_claim.template_name == name for pod_claim in pod.claims)
    ]
    daemons = {
        pod.node_name: pod
        for pod in snapshot.pods.values()
        if pod.metadata.labels.get(LABEL) == meta.uid and not pod.finished and pod.node_name
    }
    reports = _reports(domain, snapshot)
    unread = tuple(kind for kind in ("Pod", "Node") if snapshot.is_gap(kind))
    labelled = [node.name for node in snapshot.nodes.values() if node.labels.get(LABEL) == meta.uid]
    names = dict.fromkeys((*(pod.node_name for pod in pods if pod.node_name), *labelled, *daemons, *reports))
    nodes = []
    for node in names:
        status, clique = reports.get(node, ("", None))
        own = tuple(pod.metadata.name for pod in pods if pod.node_name == node)
        daemon = daemons.get(node)
        known = snapshot.nodes.get(node)
        taints = tuple(str(taint) for taint in known.taints) if known is not None else ()
        missing = _missing(node, meta.uid, daemon, status, snapshot)
        nodes.append(DomainNode(node, own, missing, daemon, status, clique, taints))
    template = True if (space, name) in snapshot.templates else None
    if template is None and snapshot.missing("ResourceClaimTemplate", space) is None:
        template = False
    waiting = tuple(pod.metadata.name for pod in pods if not pod.node_name)
    return DomainState(domain, tuple(nodes), template, waiting, unread)


def _reports(domain: ComputeDomain, snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """What daemons report, by node: in the domain's status, and since 25.12 in cliques."""
    reports = {node.name: (node.status, node.clique_id) for node in domain.status.nodes}
    cliques: dict[tuple[str, str], ComputeDomainClique] = snapshot.others.get(CLIQUE, {})  # type: ignore[assignment]
    for (_, name), clique in cliques.items():
        if name.startswith(f"{domain.metadata.uid}."):
            reports |= {daemon.node_name: (daemon.status, daemon.clique_id) for daemon in clique.daemons}
    return reports


def _missing(node: str, uid: str, daemon: Pod | None, status: str, snapshot: Snapshot) -> MissingLink:
    """The first link that is not there."""
    known = snapshot.nodes.get(node)
    if daemon is None and known is not None and known.labels.get(LABEL) not in (None, "", uid):
        # The plugin of the node labels it anew: what an earlier daemon reported is over.
        return MissingLink.OTHER_DOMAIN
    if status == READY:
        return MissingLink.NONE
    if daemon is None:
        if known is None or snapshot.is_gap("Pod"):
            return MissingLink.UNSEEN
        return MissingLink.DAEMON if known.labels.get(LABEL) else MissingLink.LABEL
    running = daemon.phase == "Running" and all(
        status.state.waiting is None and status.state.terminated is None for status in daemon.status.container_statuses
    )
    return MissingLink.DAEMON_READY if running else MissingLink.DAEMON_RUNS


# Operators: whether one of them is not ready, in its own words.

_OF_DRIVER: Final[Mapping[str, str]] = {
    "gpu.nvidia.com": "ClusterPolicy.nvidia.com",
    "compute-domain.nvidia.com": "ClusterPolicy.nvidia.com",
    "sriovnetwork.k8snetworkplumbingwg.io": "NicClusterPolicy.mellanox.com",
}
"""The kind in which the operator that installs a driver, or what it needs on a node, has its state."""
_READY: Final = ("", "ready", "ignored")


def pointers(pod: Pod, snapshot: Snapshot) -> Iterator[Pointer]:
    """The domains of a pod's namespace, and their daemons, if one of its claims is for a channel; the operator of each
    driver that it needs and that publishes no device.
    """
    if any(True for _ in _channels(pod, snapshot)):
        yield Pointer(DOMAIN, pod.metadata.namespace)
        yield Pointer(CLIQUE)
    for driver in sorted(_drivers(pod, snapshot) & _OF_DRIVER.keys()):
        if not any(slice_.driver == driver and slice_.devices for slice_ in snapshot.slices):
            yield Pointer(_OF_DRIVER[driver])


def not_ready(driver: str, snapshot: Snapshot) -> tuple[str, OperatorPolicy] | None:
    """The policy of a driver's operator that is not ready, with its kind as ``api.neighbour_kinds`` has it."""
    kind = _OF_DRIVER.get(driver, "")
    policies: Mapping[tuple[str, str], OperatorPolicy] = snapshot.others.get(kind, {})
    operator_policy = next((policy for policy in policies.values() if policy.status.state not in _READY), None)
    return (kind, operator_policy) if operator_policy is not None else None


def words_of(policy: OperatorPolicy) -> str:
    """Why it is not ready: the message of a condition, else the parts that are not."""
    said = sorted((one for one in policy.status.conditions if one.message), key=lambda one: one.status != "True")
    parts = [part.name for part in policy.status.applied_states if part.state not in (*_READY, "ignore")]
    return said[0].message if said else f"not ready: {', '.join(parts)}" if parts else ""


def _drivers(pod: Pod, snapshot: Snapshot) -> set[str]:
    """The known drivers whose classes the pod's claims ask for."""
    classes = {spec.device_class for claim in _claims(pod, snapshot) for spec in claim.alternatives()}
    drivers = (catalogue().of_class(name) for name in classes)
    return {driver.name for driver in drivers if driver is not None}
