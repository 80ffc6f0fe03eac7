"""One scheduling attempt for a pod: where it fits, why not elsewhere, what would be evicted, and the
resulting message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict
from kubectl_dra.allocation.budgets import FILTERED_NODE, Budget, unlimited
from kubectl_dra.api.behaviour import PREEMPTION_TERSE
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.cluster import Cluster, Delta
from kubectl_dra.layered_table import layered
from kubectl_dra.scheduling.chain import Chain, order
from kubectl_dra.scheduling.default_preemption import Candidate, Preemption, preempt
from kubectl_dra.scheduling.dynamic_resources import ClaimsAlone, DynamicResources, SearchNotEnded
from kubectl_dra.scheduling.framework import ClusterState, Plugin
from kubectl_dra.scheduling.inter_pod_affinity import InterPodAffinity
from kubectl_dra.scheduling.node_resources_of_devices import PublishedTwice
from kubectl_dra.scheduling.pod_topology_spread import PodTopologySpread
from kubectl_dra.scheduling.profile import Point
from kubectl_dra.scheduling.reasons import NotRead, PluginName, Rejection, none_available
from kubectl_dra.scheduling.volume_filters import VolumeRestrictions

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
_NOT_OF_NODES: Final = frozenset(("classes", "taint_rules", "others"))
"""What any node may be judged by, in fields of a snapshot."""
_READ_OTHER_NODES: Final = (InterPodAffinity, PodTopologySpread, VolumeRestrictions)
NO_NODES: Final = "no nodes available to schedule pods"


class Outcome:
    """One attempt for a pod, worked out on demand: first what the other filters say, then the devices.

    ``claims`` are made for the pod first. ``only``: no other nodes are asked. ``plugins``: those that are asked, by
    default those of the profile. ``alone``: claims are asked about, and no pod. ``supposed``: the claim for extended
    resources, where it is not as the scheduler makes it. ``retried``: what an earlier attempt left behind is gone.
    ``unlike``: the nodes are known to differ.
    """

    def __init__(
        self,
        pod: Pod,
        state: ClusterState,
        budget: Budget | None = None,
        *,
        only: Collection[str] | None = None,
        plugins: Sequence[type[Plugin]] | None = None,
        alone: ClaimsAlone | None = None,
        supposed: ResourceClaim | None = None,
        retried: bool = False,
        unlike: bool = False,
        claims: Collection[ResourceClaim] = (),
    ) -> None:
        self.pod = pod
        self.state = state
        if claims:
            self.state = state.moved(state.cluster.editing(*claims))
            # A pod like this one may have claims of these names by now: it keeps its devices.
            self.state.cycle = state.cycle
        self._given = state
        self._claims = claims
        self.budget = budget or unlimited()
        self._only = None if only is None else dict.fromkeys(name for name in only if name in state.nodes)
        self._kinds = order(state.profile) if plugins is None else plugins
        self.alone = alone
        self._supposed = supposed
        self._retried = retried
        self._unlike = unlike
        self._prepared: dict[type[Plugin], Plugin] = {}
        self._made: Mapping[str, Attempt] = {}

    @property
    def asked(self) -> Collection[str]:
        """The names of the nodes that are asked."""
        return self.state.nodes if self._only is None else self._only

    @cached_property
    def devices(self) -> DynamicResources:
        """The plugin for devices, also where another one refused the pod first, or the profile lacks it."""
        devices = DynamicResources(
            self.pod,
            self.state,
            self.budget,
            made=self._made,
            alone=self.alone,
            retried=self._retried,
            unlike=self._unlike,
        )
        if self._supposed is not None and devices.extended is not None:
            devices.extended = replace(devices.extended, supposed=self._supposed)
        return devices

    def _plugins(self, kinds: Iterable[type[Plugin]]) -> Iterator[Plugin]:
        """The plugins of these kinds, each made when it is its turn."""
        for kind in kinds:
            if kind is DynamicResources:
                yield self.devices
                continue
            if kind not in self._prepared:
                self._prepared[kind] = kind(self.pod, self.state)
            yield self._prepared[kind]

    @cached_property
    def others(self) -> Chain:
        """The plugins but that for devices."""
        return Chain(self.pod, self.state, self._plugins(kind for kind in self._kinds if kind is not DynamicResources))

    @cached_property
    def chain(self) -> Chain:
        """All plugins."""
        return Chain(self.pod, self.state, self._plugins(self._kinds))

    @cached_property
    def filtered(self) -> Mapping[str, Rejection]:
        """Why the plugins but that for devices refuse nodes, for those that they refuse."""
        self.budget.charge(FILTERED_NODE * len(self.asked))
        refused = {name: self.others.filter(self.state.nodes[name]) for name in self.asked}
        return {name: rejection for name, rejection in refused.items() if rejection is not None}

    def changed(self, cluster: Cluster | None = None, **how: Any) -> Outcome:
        """The attempt in another cluster, which was made of this one by a change; ``how``: see ``on``."""
        return self._like(self.state if cluster is None else self.state.moved(cluster), **how)

    def on(self, state: ClusterState, **how: Any) -> Outcome:
        """The attempt in a cluster that differs in nothing that the other plugins read, such as the claims.

        ``how``: the pod, the budget, or what else differs in the attempt itself.
        """
        out = self._like(state, **how)
        # Those that were prepared for the former serve as well.
        out._prepared = self._prepared
        if "filtered" in self.__dict__:
            out.filtered = self.filtered
        return out

    def _like(self, state: ClusterState, **how: Any) -> Outcome:
        own = {
            "pod": self.pod,
            "budget": self.budget,
            "only": self._only,
            "plugins": self._kinds,
            "alone": self.alone,
            "supposed": self._supposed,
            "retried": self._retried,
            "unlike": self._unlike,
        }
        return Outcome(state=state, **(own | how))

    @property
    def local(self) -> bool:
        """Whether no pod on another node, and no claim that several pods use, decides about a node."""
        reads = any(isinstance(plugin, _READ_OTHER_NODES) and not plugin.skipped for plugin in self.chain.prepared)
        return not reads and not self._names_claims

    @property
    def _names_claims(self) -> bool:
        return any(claim.claim_name for claim in self.pod.claims)

    def after(self, state: ClusterState) -> Outcome:
        """The attempt in a cluster that changes have made of the one that it was made in.

        Where nothing but a node itself decides, the nodes that they did not touch answer as they did, so that a
        thousand equal pods cost little more than the first.
        """
        deltas = state.cluster.since(self._given.cluster)
        if deltas is None or any(delta.slices != () or _NOT_OF_NODES.intersection(delta.more) for delta in deltas):
            return self._like(state, claims=self._claims)
        nodes = state.cluster.touched(deltas)
        # Anti-affinity of a pod counts for pods that have none themselves.
        if nodes is not None and self.local and not any(map(_shuns, deltas)):
            return self._again(state, nodes)
        out = self._like(state, claims=self._claims)
        if self._names_claims:
            return out
        if nodes is not None:
            out._made = {name: attempt for name, attempt in self.attempts.items() if name not in nodes}
        elif not any(delta.freed for delta in deltas):
            # Where there were no devices there are none when fewer are left.
            rejected = AttemptVerdict.REJECTED
            out._made = {name: attempt for name, attempt in self.attempts.items() if attempt.verdict is rejected}
        return out

    def _again(self, state: ClusterState, touched: Collection[str]) -> Outcome:
        """The attempt in a cluster that differs on these nodes alone."""
        rejected = self.rejected
        out = self.on(state, claims=self._claims)
        # The attempts for devices are made where the nodes are judged.
        out._made = layered(self.attempts, dict.fromkeys(touched))
        nodes = [name for name in touched if name in out.asked]
        out.filtered = layered(self.filtered, {name: out.others.filter(out.state.nodes[name]) for name in nodes})
        refused = {name: out._refusal(name) for name in nodes}
        out.rejected = layered(rejected, refused)
        if all(name in self.accepting for name in nodes if refused[name] is None):
            # Otherwise one would come last that has its place in the order of the cluster.
            out.accepting = layered(self.accepting, {name: refused[name] is None or None for name in nodes})
        if not self.errors:
            out.errors = tuple(rejection for rejection in refused.values() if rejection is not None and rejection.error)
        return out

    @property
    def attempts(self) -> Mapping[str, Attempt]:
        """The attempts for devices that were made so far, by node."""
        return layered(self._made, self.devices.attempts)

    def try_on(self, node: Node) -> Attempt:
        """The attempt for devices on a node, whatever other plugins say of it."""
        return self.devices.attempt(node, self.devices.claims_on(node))

    @property
    def before(self) -> Rejection | None:
        """What refuses the pod as a whole."""
        return self.chain.rejection

    @cached_property
    def rejected(self) -> Mapping[str, Rejection]:
        """Why nodes do not accept the pod, for those that do not."""
        if self.before is not None:
            return dict.fromkeys(self.asked, self.before)
        refusals = {name: self._refusal(name) for name in self.asked}
        return {name: rejection for name, rejection in refusals.items() if rejection is not None}

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

    @property
    def taking(self) -> Collection[str]:
        """The nodes that take a pod like this one, in cluster order; none where something ends the attempt."""
        return () if self.errors or self.before is not None else self.accepting.keys()

    @cached_property
    def feasible(self) -> tuple[str, ...]:
        """The nodes that the scheduler chooses from, in cluster order."""
        nominated = self.pod.status.nominated_node_name
        return (nominated,) if nominated in self.taking else tuple(self.taking)

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
        rejected = {name: rejected[name] for name in self.asked if name in rejected}
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
        they take from the node, or a deciding object was not read.
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


def _shuns(delta: Delta) -> bool:
    """Whether a pod came or went that has required anti-affinity."""
    pods = (pod for change in delta.pods for pod in change if pod is not None)
    return any(pod.required_anti_affinity for pod in pods)
