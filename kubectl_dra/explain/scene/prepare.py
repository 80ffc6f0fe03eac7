"""What a question is answered in: the scheduling cycle, the nodes that may run the pod, who holds devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.budgets import ATTEMPTS_STEPS, STEPS_PER_NODE, Budget, of_answer
from kubectl_dra.allocation.extended_resources import CLAIM_NAME, ExtendedRequests, extended_requests
from kubectl_dra.allocation.features import Features
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import ClaimStatus, Pod
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.explain.phrase import say
from kubectl_dra.explain.question.resolve import ClaimEntry, Question
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.scene.device_view import DeviceView
from kubectl_dra.explain.scene.holders import HolderIndex
from kubectl_dra.explain.scene.node_reasons import reason_of
from kubectl_dra.scheduling.dynamic_resources import ClaimsAlone
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.text import did_you_mean, nearest

if TYPE_CHECKING:
    from kubectl_dra.explain.question.new_nodes import Addition

EXTENDED = "extended resources"
NOT_ASKED = say("not looked at (--node)")
"""Why a node is not looked at that the question leaves out."""


class Settings(Struct, frozen=True):
    """How to answer. ``release_source`` says where the scheduler's release is from.

    ``proved_gates`` are those of its gates that stored objects show to be on, ``taken_gates`` those that are taken to
    be on because objects would have no effect without. ``with_ways`` looks for further changes that would help.
    ``supposed`` are changes that question and snapshot have already, and the cluster has not; ``new_nodes`` those of
    them that add nodes.
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
    new_nodes: tuple[Addition, ...] = ()


class Scene(Struct, frozen=True):
    """A question with the cluster. ``extended`` is what devices may serve of the pod's extended resources.

    ``outcome`` is the scheduler's attempt for the pod; None where no pod waits for a node. ``asked`` is the one in
    which devices are tried: the same, or with the claims alone. Both are made in the snapshot with the claims of the
    question, and take a part of the ``budget``.
    """

    question: Question
    snapshot: Snapshot
    settings: Settings
    view: DeviceView
    holders: HolderIndex
    outcome: Outcome | None
    asked: Outcome
    extended: ExtendedRequests | None
    budget: Budget

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


def prepare(question: Question, snapshot: Snapshot, settings: Settings, budget: Budget | None = None) -> Scene:
    """The scene of a question. What its answer takes is taken from the ``budget`` as well.

    Raises:
        InputError: the node asked about does not exist.
    """
    own = of_answer(len(snapshot.nodes), budget)
    nodes = _nodes(snapshot, settings)
    attempts = own.part(max(ATTEMPTS_STEPS, STEPS_PER_NODE * len(nodes)))
    pod, cluster = _as_created(question, Cluster(snapshot).with_named_nodes())
    scheduler = settings.scheduler
    outcome = scheduler.attempt(pod, cluster, attempts) if pod is not None and not pod.node_name else None
    question, extended = with_extended(question, snapshot, scheduler.features)
    keys = tuple(key_of(claim) for claim in question.existing_claims if claim.metadata.name != CLAIM_NAME)
    if outcome is None or [key_of(claim) for claim in outcome.devices.claims] != [*keys]:
        asked = scheduler.attempt(ClaimsAlone(keys, extended), cluster, attempts)
    else:
        asked = outcome
    ineligible = {name: reason_of(why) for name, why in outcome.filtered.items()} if outcome is not None else {}
    if settings.node:
        ineligible.update({name: NOT_ASKED for name in snapshot.nodes if name != settings.node})
    cycle = asked.state.cycle
    return Scene(
        question=question,
        snapshot=snapshot,
        settings=settings,
        view=DeviceView(
            cycle, [node for node in nodes if node.name not in ineligible], ineligible, snapshot.judged, extended
        ),
        holders=HolderIndex(cycle.state, cluster, question.pod),
        outcome=outcome,
        asked=asked,
        extended=extended,
        budget=own,
    )


def _as_created(question: Question, cluster: Cluster) -> tuple[Pod | None, Cluster]:
    """The pod, and the cluster with the claims of the question, also those that the claim controller makes."""
    known, pod = cluster.snapshot.claims, question.pod
    claims = [claim for claim in question.existing_claims if known.get(key_of(claim)) is not claim]
    cluster = cluster.editing(*claims) if claims else cluster
    made = {entry.entry: entry.claim for entry in question.claims if entry.hypothetical and entry.claim is not None}
    if not made or pod is None:
        return pod, cluster
    statuses = [entry for entry in pod.status.resource_claim_statuses if entry.name not in made]
    statuses += [ClaimStatus(name, claim.metadata.name) for name, claim in made.items()]
    return replace(pod, status=replace(pod.status, resource_claim_statuses=tuple(statuses))), cluster


def with_extended(
    question: Question, snapshot: Snapshot, features: Features
) -> tuple[Question, ExtendedRequests | None]:
    """The question with the claim for the pod's extended resources, existing or not, and what devices may serve."""
    pod = question.pod
    extended = extended_requests(pod, snapshot.classes) if pod is not None and features.extended_resources else None
    if extended is None or pod is None:
        return question, None
    stored = snapshot.claims.get((pod.metadata.namespace, pod.extended_resource_claim))
    state = ClaimEntry(EXTENDED, claim=stored or extended.claim(extended.amounts), hypothetical=stored is None)
    return replace(question, claims=(*question.claims, state)), extended


def _nodes(snapshot: Snapshot, settings: Settings) -> list[Node]:
    """All nodes, or the one asked about."""
    nodes = list(Cluster(snapshot).nodes)
    if not settings.node:
        return nodes
    chosen = [node for node in nodes if node.name == settings.node]
    if not chosen:
        near = nearest(settings.node, [node.name for node in nodes])
        hint = f"; {did_you_mean(near)}" if near else ""
        raise InputError(f"node {settings.node} does not exist{hint}")
    return chosen
