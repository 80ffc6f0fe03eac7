"""A question in its cluster, with everything tried there on demand: funnels of requests, attempts, changed clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum, auto
from functools import cached_property
from heapq import nsmallest
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict
from kubectl_dra.allocation.budgets import ATTEMPTS_STEPS, PROOF_NODES, STEPS_PER_NODE, Budget, of_answer
from kubectl_dra.allocation.extended_resources import CLAIM_NAME, ExtendedRequests, extended_requests, limit_of
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import ClaimStatus, Pod
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.explain.funnel.device_view import DeviceView
from kubectl_dra.explain.funnel.located import Located
from kubectl_dra.explain.funnel.request_funnel import RequestFunnel
from kubectl_dra.explain.holders import HolderIndex
from kubectl_dra.explain.node_reasons import one_step_away, reason_of
from kubectl_dra.explain.phrase import say
from kubectl_dra.explain.question.resolve import ClaimEntry, Question
from kubectl_dra.explain.remedies.prove import WhatIf
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.dynamic_resources import ClaimsAlone
from kubectl_dra.scheduling.gang_scheduling import Gang, Obstacle, Placed, gang_of, kept_out, placed_together
from kubectl_dra.scheduling.node_resources_of_devices import PublishedTwice, about_nodes
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.reasons import Rejection
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.text import did_you_mean_or_known

if TYPE_CHECKING:
    from kubectl_dra.explain.eviction import Eviction, Evictions


NOT_ASKED: Final = say("not looked at (--node)")
"""Why a node is not looked at that the question leaves out."""


class Outlook(Enum):
    """What the attempts alone say: devices are allocated, some node has them, none has, or it is open."""

    PLACED = auto()
    FITS = auto()
    FAILS = auto()
    OPEN = auto()


class Analysis(Struct, frozen=True, dict=True):
    """A question with the cluster, and what is tried there. Each part is computed on first use and never changes.

    ``extended`` is what devices may serve of the extended resources. ``pod_outcome`` is the scheduler's attempt for
    the pod; None where no pod waits for a node. ``claims_outcome`` is the one in which devices are tried: the same, or
    with the claims alone. Both are made in the snapshot with the claims of the question, and take a part of the
    ``budget``. ``tries``: devices count, so nodes are tried.
    """

    question: Question
    snapshot: Snapshot
    settings: Settings
    view: DeviceView
    holders: HolderIndex
    pod_outcome: Outcome | None
    claims_outcome: Outcome
    extended: ExtendedRequests | None
    budget: Budget
    tries: bool = False

    def trying_nodes(self) -> Analysis:
        """The same, with attempts."""
        out = replace(self, tries=True)
        # They count devices as published, whatever is tried.
        out.__dict__["funnels"] = self.funnels
        return out

    @property
    def pod(self) -> Pod | None:
        """The pod that is asked about; None where it is a claim."""
        return self.question.pod

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler that is asked."""
        return self.settings.scheduler

    @cached_property
    def claims(self) -> list[ResourceClaim]:
        """The claims that still need devices, in the order in which they are allocated."""
        return [claim for claim in self.question.existing_claims if claim.allocation is None]

    @cached_property
    def allocated(self) -> list[ResourceClaim]:
        """The claims that hold devices already."""
        return [claim for claim in self.question.existing_claims if claim.allocation is not None]

    @property
    def barred_nodes(self) -> list[Node]:
        """Nodes that exist but where the pod may not run."""
        return [node for name, node in self.snapshot.nodes.items() if name in self.view.ineligible]

    @cached_property
    def funnels(self) -> tuple[Located, ...]:
        """The funnel of every request and subrequest whose class exists."""
        out: list[Located] = []
        claims = self.question.existing_claims
        times = Counter(name for claim in claims for name in {request.name for request in claim.requests})
        for claim_index, claim in enumerate(self.claims):
            for request_index, request in enumerate(claim.requests):
                for alternative, spec in enumerate(request.alternatives()):
                    device_class = self.view.cycle.classes.get(spec.device_class)
                    if device_class is not None:
                        name = request.result_name(spec)
                        funnel = RequestFunnel(self.view, name, spec, device_class, self.holders)
                        container, resource = self._limit(claim, name)
                        twice = times[request.name] > 1
                        place = (claim_index, request_index, alternative)
                        out.append(Located(*place, claim, funnel, container, resource, twice))
        return tuple(out)

    def _limit(self, claim: ResourceClaim, request: str) -> tuple[str, str]:
        pod = self.pod
        return limit_of(pod, request) if pod is not None and claim.metadata.name == CLAIM_NAME else ("", "")

    @cached_property
    def attempts(self) -> Mapping[str, Attempt]:
        """The attempt on each eligible node, in their order, within a total number of steps."""
        if not self.tries or not self.claims:
            return {}
        return {node.name: self.claims_outcome.try_on(node) for node in self.view.nodes}

    def given_on(self, node: str) -> list[ResourceClaim]:
        """The claims that need devices, with those that they would get on an eligible node; none if that is open."""
        there = self.view.node_by_name[node]
        return self.claims_outcome.devices.given_on(there) if node in self.attempts else []

    @cached_property
    def unavailable(self) -> Mapping[str, str]:
        """Nodes where an allocated claim of the question cannot be used, with the claim."""
        out: dict[str, str] = {}
        for claim in self.allocated:
            assert claim.allocation is not None
            for node in self.view.nodes:
                if not claim.allocation.usable_on(node):
                    out.setdefault(node.name, claim.key)
        return out

    def would_time_out(self, attempt: Attempt) -> bool:
        """Whether the scheduler's own search would probably not finish in time; a profile can disable the limit."""
        outcome = self.pod_outcome
        if outcome is not None and outcome.state.profile.args.dynamic_resources.takes_its_time:
            return False
        return attempt.would_time_out

    @cached_property
    def fitting(self) -> tuple[str, ...]:
        """The nodes where the unallocated claims fit, with what their devices take from the node."""
        return tuple(
            name
            for name, attempt in self.attempts.items()
            if attempt.verdict is AttemptVerdict.ALLOCATED and name not in self.overtaxed
        )

    @cached_property
    def overtaxed(self) -> Mapping[str, Rejection]:
        """The nodes that refuse the pod because of what its devices take of them, such as cpu."""
        chain = self.outcome.chain if self.outcome is not None else None
        devices = chain.devices if chain is not None else None
        if chain is None or devices is None or devices.rejection is not None or not devices.takes_of_nodes:
            return {}
        states = chain.state.nodes
        rejections = ((node.name, chain.filter(states[node.name])) for node in self.view.nodes if node.name in states)
        return {name: rejection for name, rejection in rejections if rejection is not None and about_nodes(rejection)}

    @property
    def takers(self) -> list[str]:
        """The nodes that accept the pod as it is: its claims fit, or its devices can be used there."""
        names = self.fitting if self.claims else [node.name for node in self.view.nodes]
        return [name for name in names if name not in self.unavailable and name not in self.overtaxed]

    @cached_property
    def ends(self) -> Evictions | None:
        """Which devices end pods; None if there are none, or no pod is asked about."""
        from kubectl_dra.explain.eviction import Evictions

        if self.pod is None:
            return None
        evictions = Evictions(self.snapshot, self.view.cycle.features)
        return evictions if evictions.possible else None

    @cached_property
    def wanted_drivers(self) -> frozenset[str]:
        """The drivers that the classes of the requests name; of classes that are missing, those that install them."""
        from kubectl_dra.data.drivers import catalogue
        from kubectl_dra.drivers.drivers_on_nodes import named_in

        drivers: set[str] = set()
        classes = self.view.cycle.classes
        specs = (spec for claim in self.claims for spec in claim.alternatives())
        for spec in specs:
            known = classes.get(spec.device_class)
            if known is not None:
                drivers.update(named_in((*known.selectors, *spec.selectors)))
            elif (driver := catalogue().of_class(spec.device_class)) is not None:
                drivers.add(driver.name)
        return frozenset(drivers)

    @cached_property
    def evictions(self) -> Mapping[str, Eviction]:
        """The nodes that accept the pod where it would be evicted because of a device, with what ends it first."""
        pod = self.pod
        if pod is None or pod.node_name or self.outlook is not Outlook.FITS or self.ends is None:
            return {}
        evictions: dict[str, Eviction] = {}
        for name in self.takers:
            first = self.ends.first((*self.allocated, *self.given_on(name)))
            if first is not None:
                evictions[name] = first
        return evictions

    @cached_property
    def outlook(self) -> Outlook:
        """What the attempts alone say."""
        pod = self.pod
        bound = pod is not None and pod.node_name
        if not self.claims:
            if self.question.kind == "claim" or bound:
                return Outlook.PLACED
            if self.takers and not self.fails_somewhere:
                return Outlook.FITS
            return Outlook.OPEN if self.published_twice else Outlook.FAILS
        outcomes = {attempt.verdict for attempt in self.attempts.values()}
        if AttemptVerdict.ERROR in outcomes or self.fails_somewhere:
            return Outlook.FAILS
        if any(name not in self.unavailable for name in self.fitting):
            return Outlook.FITS
        open_ = AttemptVerdict.UNDETERMINED in outcomes or self.published_twice
        return Outlook.OPEN if open_ else Outlook.FAILS

    @property
    def fails_somewhere(self) -> bool:
        """Whether what devices take of a node cannot be computed, which ends the scheduler's attempt for all nodes."""
        return any(rejection.error for rejection in self.overtaxed.values())

    @property
    def published_twice(self) -> tuple[PublishedTwice, ...]:
        """The devices about which slices differ in what they take from the node."""
        reasons = (reason for rejection in self.overtaxed.values() for reason in rejection.reasons)
        return tuple(reason for reason in reasons if isinstance(reason, PublishedTwice))

    @cached_property
    def without_defects(self) -> WhatIf:
        """The same for a scheduler whose allocator has no known defect."""
        return self.what_if.looking(defects=KnownDefects.none())

    @cached_property
    def what_if(self) -> WhatIf:
        """The real cluster, on the nodes that differ; of very many, on those that come closest."""
        nodes = self.view.different_nodes
        if len(nodes) > PROOF_NODES:
            nodes = nsmallest(
                PROOF_NODES, nodes, lambda node: sum(_distance(located, node) for located in self.funnels)
            )
        outcome = self.pod_outcome or self.claims_outcome
        state = outcome.state
        if self.snapshot.judged:
            # A change may read what the question does not.
            state = state.looking(exact=ByIdentity())
        barred = (node for node in self.barred_nodes if self.view.ineligible[node.name] is not NOT_ASKED)
        return WhatIf(
            outcome=outcome.on(state, budget=self.budget, retried=True),
            asked=tuple(self.claims),
            nodes=tuple(nodes),
            alike=(*self.view.nodes, *barred),
            ends=self.ends,
        )

    @cached_property
    def one_step_away(self) -> tuple[Node, ...]:
        """Nodes that only one reason keeps from accepting the pod."""
        outcome = self.pod_outcome
        if outcome is None:
            return ()
        return tuple(node for node in self.barred_nodes if one_step_away(outcome, node.name))

    @property
    def outcome(self) -> Outcome | None:
        """The scheduler's whole attempt with the pod; None if it makes none, or nodes were not tried."""
        return self.pod_outcome if self.tries else None

    @cached_property
    def together(self) -> Placed | Obstacle | None:
        """The result for the pod's gang, or why it is unknown; None if it is in none, or is tried without it."""
        outcome, pod = self.pod_outcome, self.pod
        if outcome is None or pod is None or not (pod.pod_group or pod.spec.workload_ref):
            return None
        attempted_pod, state = outcome.pod, outcome.state
        gang = gang_of(attempted_pod, state) if kept_out(attempted_pod, state) is None else None
        if not isinstance(gang, Gang):
            return None
        return placed_together(gang, attempted_pod, state)

    @cached_property
    def in_foreign_gang(self) -> Placed | Obstacle | None:
        """What would come of the pod's group of another scheduler by the rules of the default one; None: in none.

        Another scheduler places pods by rules of its own, but nowhere where their devices are not.
        """
        outcome, pod = self.pod_outcome, self.pod
        if outcome is None or pod is None or pod.node_name:
            return None
        from kubectl_dra.neighbours.gangs import group_of, members_of

        group = group_of(pod, self.snapshot)
        if group is None:
            return None
        gang = Gang(group.name, group.minimum, members_of(outcome.pod, self.snapshot))
        return placed_together(gang, outcome.pod, outcome.state)

    @cached_property
    def after_giving_back(self) -> tuple[str, ...]:
        """The nodes that accept the pod after the scheduler takes back a claim, if it does nothing else first."""
        last = self.last_outcome
        names = {node.name for node in self.view.nodes}
        return tuple(name for name in last.feasible if name in names) if last is not None else ()

    @cached_property
    def last_outcome(self) -> Outcome | None:
        """The last attempt, after the scheduler takes back a claim; None if it takes none back, or does more first."""
        outcome = self.outcome
        if outcome is None or outcome.next is None or (outcome.preemption is not None and outcome.preemption.best):
            return None
        last = outcome.next
        while last.next is not None:
            last = last.next
        return last


def analysis_of(question: Question, snapshot: Snapshot, settings: Settings, budget: Budget | None = None) -> Analysis:
    """The analysis of a question. What its answer takes is taken from the ``budget`` as well.

    Raises:
        InputError: the node asked about does not exist.
    """
    own = of_answer(len(snapshot.nodes), budget)
    nodes = _nodes(snapshot, settings)
    attempts = own.part(max(ATTEMPTS_STEPS, STEPS_PER_NODE * len(nodes)))
    scheduler = settings.scheduler
    read = scheduler.sees_all(snapshot)
    pod, cluster = as_created(question, read.cluster)
    outcome = None
    if pod is not None and not pod.node_name:
        outcome = scheduler.attempt_in(scheduler.sees_all(snapshot, pod).moved(cluster), pod, attempts)
    question, extended = with_extended(question, snapshot, scheduler.features)
    keys = tuple(key_of(claim) for claim in question.existing_claims if claim.metadata.name != CLAIM_NAME)
    if outcome is None or [key_of(claim) for claim in outcome.devices.claims] != [*keys]:
        asked = scheduler.attempt_in(read.moved(cluster), ClaimsAlone(keys, extended), attempts)
    else:
        asked = outcome
    ineligible = {name: reason_of(why) for name, why in outcome.filtered.items()} if outcome is not None else {}
    if settings.node:
        ineligible.update({name: NOT_ASKED for name in snapshot.nodes if name != settings.node})
    cycle = asked.state.cycle
    return Analysis(
        question=question,
        snapshot=snapshot,
        settings=settings,
        view=DeviceView(
            cycle, [node for node in nodes if node.name not in ineligible], ineligible, snapshot.judged, extended
        ),
        holders=HolderIndex(cycle.state, cluster, question.pod),
        pod_outcome=outcome,
        claims_outcome=asked,
        extended=extended,
        budget=own,
    )


def as_created(question: Question, cluster: Cluster) -> tuple[Pod | None, Cluster]:
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
    if extended is None or pod is None or _by_plugin(pod, extended, snapshot):
        return question, None
    stored = snapshot.claims.get((pod.metadata.namespace, pod.extended_resource_claim))
    state = ClaimEntry(
        "extended resources", claim=stored or extended.claim(extended.amounts), hypothetical=stored is None
    )
    return replace(question, claims=(*question.claims, state)), extended


def _by_plugin(pod: Pod, extended: ExtendedRequests, snapshot: Snapshot) -> bool:
    """Whether a device plugin serves the extended resources of a pod that has its node."""
    node = snapshot.nodes.get(pod.node_name)
    return node is not None and not pod.extended_resource_claim and not extended.delegated(node)


def _nodes(snapshot: Snapshot, settings: Settings) -> list[Node]:
    """All nodes, or the one asked about."""
    nodes = list(Cluster(snapshot).nodes)
    if not settings.node:
        return nodes
    chosen = [node for node in nodes if node.name == settings.node]
    if not chosen:
        hint = did_you_mean_or_known(settings.node, [node.name for node in nodes])
        raise InputError(f"node {settings.node} does not exist; {hint}")
    return chosen


def _distance(located: Located, node: Node) -> int:
    """Distance of a node from what a request needs: the stages left, then the missing devices."""
    short = located.funnel.shortfall(node.name)
    if short is None:
        return 0
    stages_left = len(located.funnel.stages) - short.position
    return stages_left * MAX_RESULTS + max(0, located.funnel.needed_on(node.name) - short.left)
