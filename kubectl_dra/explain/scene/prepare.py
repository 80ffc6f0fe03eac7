"""A question with everything that answering it needs: the cycle, the nodes, the claims to allocate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.extended import CLAIM_NAME, ExtendedRequests, extended_requests
from kubectl_dra.allocation.features import Features, Quirks
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.selection import Selectors
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.allocation.taint_rules import apply_rules
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.known_defects import RULES_UNSEEN
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import PoolID, ResourceSlice
from kubectl_dra.api.versions import Release
from kubectl_dra.cel import Environment
from kubectl_dra.cluster.builder import MADE_BY
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.explain.question.resolve import PodClaimState, Question
from kubectl_dra.explain.question.what_if_flag import Supposition
from kubectl_dra.explain.scene.holders import HolderIndex
from kubectl_dra.explain.scene.node_eligibility import rejection, unmodelled
from kubectl_dra.explain.scene.node_resources import NodeUsage
from kubectl_dra.explain.scene.view import View
from kubectl_dra.explain.unscheduled import DEFAULT_SCHEDULER, consumers
from kubectl_dra.names import nearest
from kubectl_dra.wording import amount, are

EXTENDED = "extended resources"
NOT_ASKED = "not looked at (--node)"
NO_CONSUMER = "no pod uses this claim: devices are allocated only when a pod that names it is scheduled"
FIRST_SORTED_RELEASE = 36
SORTING_GATES = "DRADeviceBindingConditions and DRAConsumableCapacity"
"""A scheduler with neither of these feature gates uses the allocator variant that does not sort pools."""
LAST_MINOR_WITH_MIXED_SLICES = 34
"""Up to here a slice may hold devices and the counters that they share."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to answer. ``patch`` is the patch release where known; ``release_source`` says where from.

    ``proved_gates`` are those of ``gates`` that stored objects show to be on. ``invocation`` is the command line up
    to its flags, to be repeated in what to do next; ``where`` are those of its flags that choose the cluster or the
    snapshot. ``with_ways`` looks for further changes that would help. ``supposed`` are changes that question and
    snapshot have already, and the cluster has not.
    """

    release: Release
    gates: frozenset[str]
    release_source: str = ""
    patch: int | None = None
    node: str = ""
    request: str = ""
    with_devices: bool = False
    invocation: str = ""
    where: str = ""
    proved_gates: frozenset[str] = frozenset()
    with_ways: bool = True
    supposed: tuple[Supposition, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A question, prepared. ``usage`` is what pods take of each node, ``extended`` what devices may serve."""

    question: Question
    snapshot: Snapshot
    settings: Settings
    view: View
    holders: HolderIndex
    usage: NodeUsage
    extended: ExtendedRequests | None
    notes: tuple[str, ...]

    @property
    def unallocated(self) -> list[ResourceClaim]:
        """The claims that still need devices, in the order in which they are allocated."""
        return [state.claim for state in self.question.claims if state.claim and state.claim.allocation is None]

    @property
    def allocated(self) -> list[ResourceClaim]:
        """The claims that hold devices already."""
        return [state.claim for state in self.question.claims if state.claim and state.claim.allocation is not None]

    def delegated(self, node: Node) -> frozenset[str]:
        """The pod's extended resources that devices serve on this node."""
        return self.extended.delegated(node) if self.extended else frozenset()

    def claims_on(self, node: Node) -> list[ResourceClaim]:
        """The claims to allocate on a node: the one for extended resources differs from node to node."""
        if self.extended is None:
            return self.unallocated
        claims = [claim for claim in self.unallocated if claim.metadata.name != CLAIM_NAME]
        own = self.extended.claim(self.delegated(node))
        return [*claims, own] if own else claims


def _counters_apart(slices: Sequence[ResourceSlice]) -> Iterator[ResourceSlice]:
    """Slices as later releases have them: the counters of a slice that also has devices in a slice of their own."""
    mixed = Counter((entry.pool, entry.generation) for entry in slices if entry.shared_counters and entry.devices)
    for entry in slices:
        more = mixed[entry.pool, entry.generation]
        if more:
            entry = replace(entry, slice_count=entry.slice_count + more)
        if not entry.shared_counters or not entry.devices:
            yield entry
            continue
        yield replace(entry, shared_counters=())
        yield replace(entry, name=f"{entry.name} (counters)", devices=())


def make_cycle(snapshot: Snapshot, settings: Settings, notes: list[str]) -> Cycle:
    """The scheduling cycle of a snapshot, DeviceTaintRules applied as the release does."""
    features = Features.from_gates(settings.gates)
    slices: Sequence[ResourceSlice] = snapshot.slices
    if settings.release.minor <= LAST_MINOR_WITH_MIXED_SLICES:
        slices = list(_counters_apart(slices))
    if snapshot.taint_rules:
        minor = settings.release.minor
        unseen = RULES_UNSEEN.affects(settings.release, settings.patch)
        seeing_none = "" if unseen is False else RULES_UNSEEN.patches(minor)
        if unseen:
            notes.append(
                f"{len(snapshot.taint_rules)} DeviceTaintRules exist: the scheduler of {seeing_none} does not see "
                "them (and may crash), so they are left out here"
            )
        else:
            if not features.taint_rules:
                notes.append("DeviceTaintRules exist, so their feature gate (DRADeviceTaintRules) is taken to be on")
            if unseen is None:
                notes.append(
                    f"DeviceTaintRules are applied as from {RULES_UNSEEN.fixed_in(minor)} on; {seeing_none} do not "
                    "see them, and their scheduler may crash: if this is one of them, say so with "
                    f"--kubernetes-version {seeing_none.rpartition(' ')[2]}"
                )
            slices = apply_rules(slices, snapshot.taint_rules)
    return Cycle(
        index=SliceIndex(slices),
        classes=snapshot.classes,
        state=allocated_state(snapshot.claims.values(), features),
        selectors=Selectors(Environment.for_release(settings.release, features=settings.gates, stored=True)),
        features=features,
        quirks=Quirks.of_release(settings.release, settings.patch),
    )


def prepare(question: Question, snapshot: Snapshot, settings: Settings, notes: list[str]) -> Case:
    """Prepares a question.

    Raises:
        InputError: the node asked about does not exist.
    """
    cycle = make_cycle(snapshot, settings, notes)
    nodes = _nodes(snapshot, cycle, settings, notes)
    extended = _extended(question, cycle)
    usage = NodeUsage(
        (pod for pod in snapshot.pods.values() if pod is not question.pod),
        complete=snapshot.missing("Pod") is None,
    )
    ineligible = _ineligible(question, nodes, usage, extended)
    if settings.node:
        ineligible.update({name: NOT_ASKED for name in snapshot.nodes if name != settings.node})
    if settings.proved_gates:
        gates = ", ".join(sorted(settings.proved_gates))
        notes.append(f"{gates}: off by default in {settings.release}, but stored ResourceSlices show that it is on")
    if settings.release.minor < FIRST_SORTED_RELEASE:
        notes.append(
            f"schedulers of {settings.release} try pools in random order: which of several suitable devices a pod gets "
            "is not determined, and some rules of 1.36 differ (docs/versions.md)"
        )
    elif cycle.features.variant == "stable":
        notes.append(
            f"without {SORTING_GATES} the scheduler tries pools in random order: which of several suitable devices "
            "a pod gets is not determined"
        )
    view = View(cycle, [node for node in nodes if node.name not in ineligible], ineligible)
    notes.extend(_notes(question, snapshot, view, usage))
    if extended is not None:
        notes.extend(extended_notes(extended))
    return Case(
        question=_with_extended(question, extended, snapshot),
        snapshot=snapshot,
        settings=settings,
        view=view,
        holders=HolderIndex(cycle.state, snapshot.pods, partial(_all_pods, snapshot)),
        usage=usage,
        extended=extended,
        notes=tuple(notes),
    )


def _notes(question: Question, snapshot: Snapshot, view: View, usage: NodeUsage) -> Iterator[str]:
    """What was left out of account, as far as it can matter for this question."""
    newest: dict[PoolID, int] = {}
    slices = view.cycle.index.slices
    for entry in slices:
        newest[entry.pool] = max(entry.generation, newest.get(entry.pool, 0))
    old: dict[PoolID, int] = {}
    for entry in slices:
        # A node goes by the newest generation that it sees itself.
        if entry.generation < newest[entry.pool] and entry.name not in view.slice_nodes:
            old[entry.pool] = old.get(entry.pool, 0) + len(entry.devices)
    for pool, devices in sorted(old.items())[:3]:
        yield (
            f"{amount(devices)} in older slices of pool {pool} {are(devices)} ignored: "
            f"generation {newest[pool]} is its newest"
        )
    pod = question.pod
    if pod is None:
        claim = question.claims[0].claim
        if snapshot.pods and claim is not None and not consumers(claim, snapshot):
            yield NO_CONSUMER
        return
    if not usage.complete and not pod.node_name:
        yield "not all Pods were read: nodes may have less cpu and memory left than is assumed here"
    if workload := pod.metadata.annotations.get(MADE_BY):
        yield f"this is one of the pods that {workload} makes; the others are not looked at"
    if rules := unmodelled(pod):
        yield f"the pod's {', '.join(rules)} can rule out nodes as well; not modelled"
    if pod.scheduler_name != DEFAULT_SCHEDULER:
        yield f"the pod asks for scheduler {pod.scheduler_name}; results are those of the default one"


def extended_notes(extended: ExtendedRequests) -> Iterator[str]:
    """Which request of the scheduler's own claim stands for which container and resource."""
    for resource in sorted(extended.amounts):
        backing = extended.classes[resource].name
        yield f"extended resource {resource} is served by DeviceClass {backing} on nodes without a device plugin for it"
    claim = extended.claim(extended.amounts)
    for entry in claim.requests if claim else ():
        container = extended.pod.containers[int(entry.name.split("-")[1])]
        yield f'request "{entry.name}" is that of container {container.name}'


def _all_pods(snapshot: Snapshot, namespace: str) -> bool:
    """Whether all pods of a namespace are known: objects that people saved may be any part of a cluster."""
    return snapshot.release_source == "server" and snapshot.missing("Pod", namespace) is None


def _ineligible(
    question: Question, nodes: Sequence[Node], usage: NodeUsage, extended: ExtendedRequests | None
) -> dict[str, str]:
    pod = question.pod
    if pod is None or pod.node_name:
        return {}
    out: dict[str, str] = {}
    for node in nodes:
        delegated = extended.delegated(node) if extended else ()
        reason = rejection(pod, node) or usage.shortage(pod, node, delegated)
        if reason:
            out[node.name] = reason
    return out


def with_extended(question: Question, snapshot: Snapshot, cycle: Cycle) -> Question:
    """The question with the claim for the pod's extended resources, where devices may serve them."""
    return _with_extended(question, _extended(question, cycle), snapshot)


def _extended(question: Question, cycle: Cycle) -> ExtendedRequests | None:
    if question.pod is None or not cycle.features.extended_resources:
        return None
    return extended_requests(question.pod, cycle.classes)


def _with_extended(question: Question, extended: ExtendedRequests | None, snapshot: Snapshot) -> Question:
    """The question with the claim that the scheduler makes for extended resources, existing or not."""
    pod = question.pod
    if extended is None or pod is None:
        return question
    claim = snapshot.claims.get((pod.metadata.namespace, pod.extended_resource_claim))
    hypothetical = claim is None
    claim = claim or extended.claim(extended.amounts)
    state = PodClaimState(EXTENDED, claim=claim, hypothetical=hypothetical)
    return replace(question, claims=(*question.claims, state))


def _nodes(snapshot: Snapshot, cycle: Cycle, settings: Settings, notes: list[str]) -> list[Node]:
    nodes = list(snapshot.nodes.values())
    if not nodes:
        scopes = [entry.scope for entry in cycle.index.slices] + [
            device.scope for entry in cycle.index.slices if entry.per_device_node_selection for device in entry.devices
        ]
        names = sorted({scope.node_name for scope in scopes if scope.node_name})
        nodes = [Node.named(name) for name in names] or [Node.named("(any node)")]
        notes.append("no Nodes were read: their names are taken from ResourceSlices, labels and taints are unknown")
    if not settings.node:
        return nodes
    chosen = [node for node in nodes if node.name == settings.node]
    if not chosen:
        near = nearest(settings.node, [node.name for node in nodes])
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise InputError(f"node {settings.node} does not exist{hint}")
    return chosen
