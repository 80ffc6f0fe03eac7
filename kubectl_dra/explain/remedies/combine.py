"""The fewest changes with which claims fit: one, else two, else three together, each proved."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations, islice

from msgspec.structs import replace

from kubectl_dra.allocation.budgets import NODE_KINDS_TRIED, TRIES_ALONE, TRIES_TOGETHER, Budget
from kubectl_dra.cluster.cluster import Cluster, NodeCopy
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.diagnosis import Finding, RemedyPlan
from kubectl_dra.explain.not_starting import broken_nodes, troubled_nodes
from kubectl_dra.explain.phrase import ObjectName
from kubectl_dra.explain.question.what_if_flag import WITH_NODE, WhatIfChange
from kubectl_dra.explain.remedies.change import ReplaceTerm, selector_of
from kubectl_dra.explain.remedies.freeing_claims import Free
from kubectl_dra.explain.remedies.proof import NEW_NODE, ChangeStep, Price, Proof, StepKind, StepTarget
from kubectl_dra.explain.remedies.prove import Change, WhatIf
from kubectl_dra.scheduling.node_copy import node_copies

MAX_WAYS = 4
MAX_HOLDERS = 2
MAX_TOGETHER = 3


def ways(what_if: WhatIf, changes: Sequence[Change], findings: Sequence[Finding]) -> list[RemedyPlan]:
    """The smallest sets of changes that help, except those that the findings already offer, the cheapest
    first.

    Larger sets are tried only if no smaller one helps, and only within a number of tries.
    """
    tries = Budget(TRIES_ALONE)
    proofs: dict[tuple[Change, ...], Proof] = {
        (change,): proof for change in changes if (proof := what_if.quick_proof([change], tries)) is not None
    }
    if proofs:
        return list(_distinct(what_if, proofs, findings))
    tries = Budget(TRIES_TOGETHER)
    for size in range(2, MAX_TOGETHER + 1):
        proved: dict[tuple[Change, ...], Proof] = {}
        for group in _groups(changes, size):
            if not tries.left or what_if.exhausted or len(proved) == MAX_WAYS:
                break
            if (proof := what_if.quick_proof(group, tries)) is not None:
                proved[group] = proof
        if proved:
            return list(_distinct(what_if, proved, findings))
    return []


def _groups(changes: Sequence[Change], size: int) -> Iterator[tuple[Change, ...]]:
    """Groups of changes about different things, the cheapest first."""
    groups = (group for group in combinations(changes, size) if len({change.about for change in group}) == size)
    return iter(sorted(groups, key=lambda group: sum(change.cost for change in group)))


def _distinct(
    what_if: WhatIf, proofs: Mapping[tuple[Change, ...], Proof], findings: Sequence[Finding]
) -> Iterator[RemedyPlan]:
    """The best change of each kind, without those that a finding offers and proves."""
    offered = [change for finding in findings if finding.remedy and finding.proof for change in finding.remedy.offers]
    seen: set[tuple[object, ...]] = set()
    shown = holders = 0
    for group, proof in proofs.items():
        about = tuple(change.about for change in group)
        if about in seen or shown == MAX_WAYS:
            continue
        seen.add(about)
        if len(group) == 1 and (group[0] in offered or _ends_more(group[0], offered)):
            continue
        offered += group if len(group) == 1 else ()
        frees = any(isinstance(change, Free) for change in group)
        holders += frees
        if frees and holders > MAX_HOLDERS:
            continue
        if not what_if.with_all(group).ends_without_error(proof):
            continue
        shown += 1
        yield RemedyPlan(group, proof, as_what_if(what_if, group), as_steps(what_if, group))


def _ends_more(change: Change, offered: Sequence[Change]) -> bool:
    """Whether one that is offered already ends fewer pods, all of which this one ends as well."""
    ended = {pod.key for pod in change.ended_pods}
    return any(own < ended for offer in offered if (own := {pod.key for pod in offer.ended_pods}))


def as_steps(what_if: WhatIf, group: Sequence[Change]) -> tuple[ChangeStep, ...]:
    """The changes as data, each with what is there before any of them."""
    return tuple(change.step(what_if) for change in group)


def as_what_if(what_if: WhatIf, group: Sequence[Change]) -> tuple[WhatIfChange, ...]:
    """The changes as values of --what-if, where those of one request's selectors form one value. Empty if one
    cannot be written.
    """
    for change in group:
        what_if = change.made_in(what_if)
    out: dict[WhatIfChange, None] = {}
    for change in group:
        supposed = change.what_if
        if supposed is None:
            return ()
        if isinstance(change, ReplaceTerm):
            supposed = supposed._replace(value=selector_of(what_if.request(change.place)))
        out[supposed] = None
    return tuple(out)


# One more node like one that exists: of the kinds of nodes with devices, the first on which the pod would fit.


class AddNode(Change, frozen=True):
    """One more node like another one, with the devices that this one publishes by itself."""

    TEXT = "add one more node like {node}"
    ASIDE = frozenset(("copy",))
    PRICE = Price.BUY
    like: str
    copy: NodeCopy

    @property
    def node(self) -> ObjectName:
        """The node that the new one is like."""
        return ObjectName("Node", self.like)

    @property
    def about(self) -> Hashable:
        return "new node"

    def made_in(self, what_if: WhatIf) -> WhatIf:
        return what_if.for_all(self)

    def made_for_all(self, cluster: Cluster, keep: Key | None) -> Cluster | None:
        return cluster.adding_node(self.copy)

    def step(self, what_if: WhatIf) -> ChangeStep:
        return ChangeStep(StepKind.ADD_NODE, StepTarget(nodes=(self.like,)))


def one_more_node(analysis: Analysis) -> RemedyPlan | None:
    """One more node with which the claims fit, proved with a copy of a node and of its slices; None without one."""
    what_if = analysis.what_if
    troubled, broken = troubled_nodes(analysis.snapshot), broken_nodes(analysis.snapshot)
    with_devices = (more for more in node_copies(what_if.outcome.state, troubled, broken) if more.slices)
    for more in islice(with_devices, NODE_KINDS_TRIED):
        change = AddNode(more.like, more)
        if proof := change.made_in(what_if).proof([more.node]):
            there = replace(proof, node=NEW_NODE, like=more.like, claims=())
            supposed = WhatIfChange("", WITH_NODE, more.like)
            return RemedyPlan((change,), there, (supposed,), (change.step(what_if),))
    return None
