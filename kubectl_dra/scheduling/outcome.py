"""One scheduling attempt for a pod: where it fits, why not elsewhere, what would be evicted, and the
resulting message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_dra.api.behaviour import PREEMPTION_TERSE
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.chain import Chain
from kubectl_dra.scheduling.default_preemption import Candidate, Preemption, preempt
from kubectl_dra.scheduling.dynamic_resources import SearchNotEnded
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.node_resources_of_devices import PublishedTwice
from kubectl_dra.scheduling.profile import Point
from kubectl_dra.scheduling.reasons import NotRead, PluginName, Rejection, none_available

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
NO_NODES: Final = "no nodes available to schedule pods"
_NONE: Final[Mapping[str, Rejection]] = MappingProxyType({})


class Outcome(Struct, frozen=True, eq=False, dict=True):
    """The result of one attempt.

    ``feasible``: the nodes that accept the pod, in cluster order. ``rejected``: the reasons for the others.
    ``before``: what refuses the pod as a whole. ``errors``: what ends the attempt whatever other nodes say, of several
    nodes any one, because the scheduler asks them in parallel.
    ``preemption``: what the scheduler would evict if no node accepts the pod. ``freed``: the claim that it
    gives back first because its devices are where the pod cannot run; ``next`` is the attempt after that.
    """

    chain: Chain
    feasible: tuple[str, ...] = ()
    rejected: Mapping[str, Rejection] = field(default_factory=dict)
    before: Rejection | None = None
    errors: tuple[Rejection, ...] = ()
    preemption: Preemption | None = None
    freed: ResourceClaim | None = None
    next: Outcome | None = None

    @property
    def pod(self) -> Pod:
        """The pod."""
        return self.chain.pod

    @property
    def fits(self) -> bool:
        """Whether some node accepts the pod, possibly after the scheduler gave back a claim."""
        return bool(self.feasible) or (self.next is not None and self.next.fits)

    @property
    def undetermined(self) -> tuple[str, ...]:
        """The nodes with an unknown answer: the search for devices did not end, or it is not known what
        they take of the node, or a deciding object was not read.
        """
        return tuple(
            name
            for name, rejection in self.rejected.items()
            if any(isinstance(reason, (SearchNotEnded, PublishedTwice, NotRead)) for reason in rejection.reasons)
        )

    @property
    def reason(self) -> str:
        """The reason of the PodScheduled condition."""
        return SCHEDULER_ERROR if self.errors else UNSCHEDULABLE

    @property
    def message(self) -> str:
        """The message of the PodScheduled condition, one of ``messages``; empty if a node accepts the pod."""
        return self.messages[0]

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """The possible messages. Of errors on several nodes it is the first that occurs. Since 1.37 they name the node
        where pods are evicted, which may be any of those that the scheduler likes best. Nodes that it likes less, and
        may reach by sampling, are not covered.
        """
        if self.errors:
            return tuple(dict.fromkeys(map(self._failed, self.errors)))
        best = self.preemption.best if self.preemption is not None else ()
        if best and self.chain.state.release in PREEMPTION_TERSE:
            return tuple(self._written(candidate) for candidate in best)
        return (self._written(best[0] if best else None),)

    @property
    def certain(self) -> bool:
        """Whether the message is certain."""
        named = self.preemption is not None and self.preemption.best and self.chain.state.release in PREEMPTION_TERSE
        return len(self.messages) == 1 and not (named and self.preemption is not None and self.preemption.enough)

    def _written(self, chosen: Candidate | None) -> str:
        if self.feasible:
            return ""
        if not self.chain.state.nodes:
            return NO_NODES
        after = ", ".join(self._after(chosen))
        return none_available(len(self.chain.state.nodes), self.rejected.values(), self.before, after)

    def _failed(self, error: Rejection) -> str:
        text = ", ".join(reason.words for reason in error.reasons)
        if self.before is error:
            return f'running PreFilter plugin "{error.plugin}": {text}'
        return f'running "{error.plugin}" filter plugin: {text}'

    def _after(self, chosen: Candidate | None) -> Iterator[str]:
        """The texts of plugins that run when no node accepts the pod (PostFilter)."""
        terse = self.chain.state.release in PREEMPTION_TERSE
        if chosen is not None:
            if terse:
                node, count = chosen.node, len(chosen.victims)
                yield f"preemption: found a potential placement for pod on node {node}, preempting {count} victims"
            return
        devices = self.chain.devices
        for name in self.chain.state.profile.plugins[Point.POST_FILTER]:
            if name == PluginName.DYNAMIC_RESOURCES:
                if devices is None:
                    # Its PreFilter never ran, and without what that leaves behind its PostFilter fails.
                    yield "not found"
                    return
                if self.freed is not None:
                    yield "deallocation of ResourceClaim completed"
                elif devices.leftover is not None:
                    yield "deletion of ResourceClaim completed"
                elif not terse:
                    none = devices.skipped or devices.rejection is not None
                    yield "no new claims to deallocate" if none else "still not schedulable"
            elif self.preemption is not None and (words := self.preemption.words):
                yield f"preemption: {words}"


def schedule(pod: Pod, state: ClusterState) -> Outcome:
    """One attempt for a pod in the scheduler's queue."""
    return attempt(Chain(pod, state))


def attempt(chain: Chain, known: Mapping[str, Rejection] = _NONE) -> Outcome:
    """One attempt with these plugins. ``known``: refusals already known for some nodes."""
    state = chain.state
    if chain.rejection is not None:
        rejected = dict.fromkeys(state.nodes, chain.rejection)
        if chain.rejection.error:
            return Outcome(chain, before=chain.rejection, errors=(chain.rejection,), rejected=rejected)
        outcome = Outcome(chain, before=chain.rejection, rejected=rejected)
        if chain.devices is None and state.profile.runs(PluginName.DYNAMIC_RESOURCES, Point.POST_FILTER):
            return outcome
        return replace(outcome, preemption=_preemption(chain, rejected))
    feasible: list[str] = []
    errors: list[Rejection] = []
    rejected = {}
    for name, node in state.nodes.items():
        rejection = known.get(name) or chain.filter(node)
        if rejection is None:
            feasible.append(name)
            continue
        rejected[name] = rejection
        if rejection.error:
            errors.append(rejection)
    if errors:
        return Outcome(chain, rejected=rejected, errors=tuple(errors))
    if nominated := chain.pod.status.nominated_node_name:
        feasible = [nominated] if nominated in feasible else feasible
    outcome = Outcome(chain, tuple(feasible), rejected)
    if feasible or not state.nodes:
        return outcome
    gives_back = chain.devices is not None and state.profile.runs(PluginName.DYNAMIC_RESOURCES, Point.POST_FILTER)
    freed = chain.devices.freed if chain.devices is not None and gives_back else None
    outcome = replace(outcome, preemption=_preemption(chain, rejected), freed=freed)
    if freed is None:
        return outcome
    return replace(outcome, next=schedule(chain.pod, state.moved(state.cluster.editing(freed.deallocated()))))


def _preemption(chain: Chain, rejected: Mapping[str, Rejection]) -> Preemption | None:
    preempts = chain.state.profile.runs(PluginName.DEFAULT_PREEMPTION, Point.POST_FILTER)
    return preempt(chain, rejected) if preempts else None
