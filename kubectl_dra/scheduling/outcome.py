"""One scheduling attempt for a pod: where it fits, why not elsewhere, what would be evicted, and the
resulting message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from kubectl_dra.allocation.attempt import Attempt, Cycle
from kubectl_dra.allocation.budgets import NODE_STEPS
from kubectl_dra.api.behaviour import PREEMPTION_TERSE
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.layered import layered
from kubectl_dra.scheduling.chain import Chain, order, without_devices
from kubectl_dra.scheduling.default_preemption import Candidate, Preemption, preempt
from kubectl_dra.scheduling.dynamic_resources import DynamicResources, SearchNotEnded
from kubectl_dra.scheduling.framework import ClusterState, Plugin
from kubectl_dra.scheduling.node_resources_of_devices import PublishedTwice
from kubectl_dra.scheduling.profile import Point
from kubectl_dra.scheduling.reasons import NotRead, PluginName, Rejection, none_available

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
NO_NODES: Final = "no nodes available to schedule pods"


class Outcome:
    """One attempt for a pod, worked out as far as somebody asks: first what the other filters say, then the devices.

    ``only``: no other nodes are asked. ``plugins``: the filters but that for devices, by default those of the profile.
    ``cycle``: the devices, where they are not those of the state. ``steps``: the limit of the search on a node.
    ``retried``: what an earlier attempt left behind is gone.
    """

    def __init__(
        self,
        pod: Pod,
        state: ClusterState,
        *,
        only: Collection[str] | None = None,
        plugins: Sequence[type[Plugin]] | None = None,
        cycle: Cycle | None = None,
        steps: int = NODE_STEPS,
        retried: bool = False,
    ) -> None:
        self.pod = pod
        self.state = state
        self._only = only
        self._plugins = plugins
        self._cycle = cycle
        self._steps = steps
        self._retried = retried
        self._made: Mapping[str, Attempt] = {}

    @property
    def asked(self) -> Collection[str]:
        """The nodes that are asked, in the order of the cluster."""
        return self.state.nodes if self._only is None else self._only

    @cached_property
    def others(self) -> Chain:
        """The plugins but that for devices."""
        return Chain(self.pod, self.state, self._plugins or without_devices(self.state.profile))

    @cached_property
    def filtered(self) -> Mapping[str, Rejection]:
        """Why these plugins refuse nodes, for those that they refuse."""
        found = {name: self.others.filter(self.state.nodes[name]) for name in self.asked}
        return {name: rejection for name, rejection in found.items() if rejection is not None}

    @cached_property
    def chain(self) -> Chain:
        """All plugins."""
        devices = DynamicResources(self.pod, self.state, self._cycle, self._steps, self._made)
        if self._retried:
            devices.leftover = None
        return self.others.joined(devices)

    def changed(self, cluster: Cluster | None = None, pod: Pod | None = None) -> Outcome:
        """The attempt in another cluster, which was made of this one by a change, or for another pod."""
        return Outcome(pod or self.pod, self.state if cluster is None else self.state.moved(cluster))

    def given(
        self,
        made: Mapping[str, Attempt],
        *,
        state: ClusterState | None = None,
        cycle: Cycle | None = None,
        retried: bool = False,
    ) -> Outcome:
        """The attempt where those for devices on some nodes were made already.

        ``state``: of a cluster that differs in nothing that the other plugins read.
        """
        out = Outcome(self.pod, state or self.state, only=self._only, cycle=cycle or self._cycle, steps=self._steps)
        out._retried, out._made = self._retried or retried, made
        out.others = self.others if state is None else self.others.moved(state)
        if "filtered" in self.__dict__:
            out.filtered = self.filtered
        return out

    def again(self, state: ClusterState, cycle: Cycle, nodes: Collection[str]) -> Outcome:
        """The attempt in a cluster that differs on these nodes alone: the others answer as they did."""
        rejected = self.rejected
        # The attempts for devices are made where the nodes are judged.
        out = self.given(layered(self.attempts, dict.fromkeys(nodes)), state=state, cycle=cycle)
        nodes = [name for name in nodes if name in self.asked]
        out.filtered = layered(self.filtered, {name: out.others.filter(state.nodes[name]) for name in nodes})
        found = {name: out._refusal(name) for name in nodes}
        out.rejected = layered(rejected, found)
        out.accepting = layered(self.accepting, {name: found[name] is None or None for name in nodes})
        out.errors = (*self.errors, *(one for one in found.values() if one is not None and one.error))
        return out

    @property
    def attempts(self) -> Mapping[str, Attempt]:
        """The attempts for devices that were made so far, by node."""
        devices = self.chain.devices
        return layered(self._made, devices.attempts) if devices is not None else self._made

    def attempt_on(self, node: str) -> Attempt | None:
        """The attempt for devices on a node; None if none was made."""
        devices = self.chain.devices
        return devices.on(node) if devices is not None else None

    @property
    def before(self) -> Rejection | None:
        """What refuses the pod as a whole."""
        return self.chain.rejection

    @cached_property
    def rejected(self) -> Mapping[str, Rejection]:
        """Why nodes do not accept the pod, for those that do not."""
        if self.before is not None:
            return dict.fromkeys(self.asked, self.before)
        found = {name: self._refusal(name) for name in self.asked}
        return {name: rejection for name, rejection in found.items() if rejection is not None}

    def _refusal(self, name: str) -> Rejection | None:
        known = self.filtered.get(name)
        # A plugin that comes after that for devices is not asked where there are none.
        if known is not None and known.plugin not in self._late:
            return known
        return self.chain.filter(self.state.nodes[name])

    @cached_property
    def _late(self) -> frozenset[PluginName]:
        kinds = order(self.state.profile)
        names = [kind.name for kind in kinds]
        after = names.index(PluginName.DYNAMIC_RESOURCES) if PluginName.DYNAMIC_RESOURCES in names else len(names)
        return frozenset(names[after + 1 :])

    @cached_property
    def errors(self) -> tuple[Rejection, ...]:
        """What ends the attempt whatever other nodes say, of several nodes any one: they are asked in parallel."""
        if self.before is not None:
            return (self.before,) if self.before.error else ()
        return tuple(rejection for rejection in self.rejected.values() if rejection.error)

    @cached_property
    def accepting(self) -> Mapping[str, bool]:
        """The nodes that accept the pod, in cluster order, whatever ends the attempt on others."""
        return {name: True for name in self.asked if name not in self.rejected}

    @cached_property
    def feasible(self) -> tuple[str, ...]:
        """The nodes that the scheduler chooses from, in cluster order."""
        if self.errors or self.before is not None:
            return ()
        nominated = self.pod.status.nominated_node_name
        return (nominated,) if nominated in self.accepting else tuple(self.accepting)

    @cached_property
    def freed(self) -> ResourceClaim | None:
        """The claim that the scheduler gives back first because its devices are where the pod cannot run."""
        devices = self.chain.devices
        if devices is None or self.before is not None or not self._goes_on(PluginName.DYNAMIC_RESOURCES):
            return None
        return devices.freed

    @cached_property
    def preemption(self) -> Preemption | None:
        """What the scheduler would evict if no node accepts the pod."""
        if self.before is not None and self.chain.devices is None and self._goes_on(PluginName.DYNAMIC_RESOURCES):
            return None
        # Looking for victims, it meets claims that were in no node's way: what is given back is known before that.
        _freed, rejected = self.freed, self.rejected
        return preempt(self.chain, rejected) if self._goes_on(PluginName.DEFAULT_PREEMPTION) else None

    def _goes_on(self, plugin: PluginName) -> bool:
        """Whether a plugin is asked what could be done about the pod (PostFilter)."""
        tried = self.before is not None or bool(self.state.nodes)
        return tried and not self.errors and not self.feasible and self.state.profile.runs(plugin, Point.POST_FILTER)

    @cached_property
    def next(self) -> Outcome | None:
        """The attempt after a claim was given back."""
        if self.freed is None:
            return None
        return self.changed(self.state.cluster.editing(self.freed.deallocated()))

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
        if best and self.state.release in PREEMPTION_TERSE:
            return tuple(self._written(candidate) for candidate in best)
        return (self._written(best[0] if best else None),)

    @property
    def certain(self) -> bool:
        """Whether the message is certain."""
        named = self.preemption is not None and self.preemption.best and self.state.release in PREEMPTION_TERSE
        return len(self.messages) == 1 and not (named and self.preemption is not None and self.preemption.enough)

    def _written(self, chosen: Candidate | None) -> str:
        if self.feasible:
            return ""
        if not self.state.nodes:
            return NO_NODES
        after = ", ".join(self._after(chosen))
        return none_available(len(self.state.nodes), self.rejected.values(), self.before, after)

    def _failed(self, error: Rejection) -> str:
        text = ", ".join(reason.words for reason in error.reasons)
        if self.before is error:
            return f'running PreFilter plugin "{error.plugin}": {text}'
        return f'running "{error.plugin}" filter plugin: {text}'

    def _after(self, chosen: Candidate | None) -> Iterator[str]:
        """The texts of plugins that run when no node accepts the pod (PostFilter)."""
        terse = self.state.release in PREEMPTION_TERSE
        if chosen is not None:
            if terse:
                node, count = chosen.node, len(chosen.victims)
                yield f"preemption: found a potential placement for pod on node {node}, preempting {count} victims"
            return
        devices = self.chain.devices
        for name in self.state.profile.plugins[Point.POST_FILTER]:
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


def schedule(pod: Pod, state: ClusterState, **how: Any) -> Outcome:
    """One attempt for a pod in the scheduler's queue; ``how``: see ``Outcome``."""
    return Outcome(pod, state, **how)
