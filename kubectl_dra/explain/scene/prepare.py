"""What a question is answered in: the scheduling cycle, the nodes that may run the pod, who holds devices."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.budgets import ANSWER_STEPS, FILTERED_NODE, STEPS_PER_NODE, Budget
from kubectl_dra.allocation.extended_resources import CLAIM_NAME, ExtendedRequests, extended_requests
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import ClaimStatus, Pod
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.explain.phrase import say
from kubectl_dra.explain.question.resolve import ClaimEntry, Question
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.scene.device_view import DeviceView
from kubectl_dra.explain.scene.holders import HolderIndex
from kubectl_dra.explain.scene.node_reasons import reason_of
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.text import nearest

EXTENDED = "extended resources"
NOT_ASKED = say("not looked at (--node)")
"""Why a node is not looked at that the question leaves out."""


class Settings(Struct, frozen=True):
    """How to answer. ``release_source`` says where the scheduler's release is from.

    ``proved_gates`` are those of its gates that stored objects show to be on, ``taken_gates`` those that are taken to
    be on because objects would have no effect without. ``with_ways`` looks for further changes that would help.
    ``supposed`` are changes that question and snapshot have already, and the cluster has not.
    """

    scheduler: Scheduler
    release_source: str = ""
    node: str = ""
    request: str = ""
    with_devices: bool = False
    proved_gates: frozenset[str] = frozenset()
    taken_gates: frozenset[str] = frozenset()
    with_ways: bool = True
    supposed: tuple[WhatIfChange, ...] = ()


class Scene(Struct, frozen=True):
    """A question with the cluster. ``extended`` is what devices may serve of the pod's extended resources.

    ``outcome`` is the scheduler's attempt, without those for devices; None where no pod waits for a node. ``cluster``
    is the one in which it is made: the snapshot, with the claims that are made for the pod first.
    """

    question: Question
    snapshot: Snapshot
    cluster: Cluster
    settings: Settings
    view: DeviceView
    holders: HolderIndex
    outcome: Outcome | None
    extended: ExtendedRequests | None

    @property
    def unallocated(self) -> list[ResourceClaim]:
        """The claims that still need devices, in the order in which they are allocated."""
        return [state.claim for state in self.question.claims if state.claim and state.claim.allocation is None]

    @property
    def allocated(self) -> list[ResourceClaim]:
        """The claims that hold devices already."""
        return [state.claim for state in self.question.claims if state.claim and state.claim.allocation is not None]

    @property
    def unavailable(self) -> dict[str, str]:
        """Nodes where an allocated claim of the question cannot be used, with the claim."""
        out: dict[str, str] = {}
        for claim in self.allocated:
            assert claim.allocation is not None
            for node in self.view.nodes:
                if not claim.allocation.usable_on(node):
                    out.setdefault(node.name, claim.key)
        return out

    @property
    def asked_nodes(self) -> tuple[Node, ...]:
        """The nodes that the question is about, whether the pod may run there or not."""
        barred = (node for node in self.barred_nodes if self.view.ineligible[node.name] is not NOT_ASKED)
        return (*self.view.nodes, *barred)

    @property
    def barred_nodes(self) -> list[Node]:
        """Nodes that exist but where the pod may not run."""
        return [node for name, node in self.snapshot.nodes.items() if name in self.view.ineligible]

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


def prepare(question: Question, snapshot: Snapshot, settings: Settings, budget: Budget | None = None) -> Scene:
    """The scene of a question. What its answer takes is taken from the ``budget`` as well.

    Raises:
        InputError: the node asked about does not exist.
    """
    cycle = settings.scheduler.cycle(snapshot)
    cycle.budget = Budget(ANSWER_STEPS + STEPS_PER_NODE * len(snapshot.nodes), whole=budget)
    cycle.budget.charge(FILTERED_NODE * len(snapshot.nodes))
    nodes = _nodes(snapshot, settings)
    extended = _extended(question, cycle)
    outcome = _outcome(question, Cluster(snapshot), settings.scheduler, cycle)
    cluster = outcome.state.cluster if outcome is not None else Cluster(snapshot)
    ineligible = {name: reason_of(one) for name, one in outcome.filtered.items()} if outcome is not None else {}
    if settings.node:
        ineligible.update({name: NOT_ASKED for name in snapshot.nodes if name != settings.node})
    return Scene(
        question=_with_extended(question, extended, snapshot),
        snapshot=snapshot,
        settings=settings,
        view=DeviceView(
            cycle, [node for node in nodes if node.name not in ineligible], ineligible, snapshot.judged, extended
        ),
        cluster=cluster,
        holders=HolderIndex(cycle.state, cluster, question.pod),
        outcome=outcome,
        extended=extended,
    )


def _outcome(question: Question, cluster: Cluster, scheduler: Scheduler, cycle: Cycle) -> Outcome | None:
    """The attempt for the pod asked about; None if nothing is to be scheduled."""
    pod = question.pod
    if pod is None or pod.node_name:
        return None
    asked, cluster = _as_created(question, pod, cluster.with_named_nodes())
    return scheduler.attempt(asked, cluster, cycle.changed())


def _as_created(question: Question, pod: Pod, cluster: Cluster) -> tuple[Pod, Cluster]:
    """The pod and the cluster after the claim controller made the claims that do not exist yet."""
    made = {entry.entry: entry.claim for entry in question.claims if entry.hypothetical and entry.claim is not None}
    if not made:
        return pod, cluster
    statuses = [entry for entry in pod.status.resource_claim_statuses if entry.name not in made]
    statuses += [ClaimStatus(name, claim.metadata.name) for name, claim in made.items()]
    asked = replace(pod, status=replace(pod.status, resource_claim_statuses=tuple(statuses)))
    return asked, cluster.editing(*made.values())


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
    state = ClaimEntry(EXTENDED, claim=claim, hypothetical=hypothetical)
    return replace(question, claims=(*question.claims, state))


def _nodes(snapshot: Snapshot, settings: Settings) -> list[Node]:
    """All nodes, or the one asked about."""
    nodes = list(Cluster(snapshot).nodes)
    if not settings.node:
        return nodes
    chosen = [node for node in nodes if node.name == settings.node]
    if not chosen:
        near = nearest(settings.node, [node.name for node in nodes])
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise InputError(f"node {settings.node} does not exist{hint}")
    return chosen
