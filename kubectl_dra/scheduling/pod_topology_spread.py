"""PodTopologySpread: DoNotSchedule constraints spread matching pods evenly over the domains of a node label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import nsmallest

from msgspec import Struct

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.reasons import NotRead, PluginName, Reason, Rejection
from kubectl_dra.scheduling.spread_constraints import (
    Constraint,
    comparing,
    constraints,
    has_keys,
    matching_pods,
    unread_selecting,
)


class TooManyInDomain(Reason, frozen=True):
    """With the pod, the node's domain would have too many matching pods.

    ``here`` counts the matching pods in the domain, without the pod itself; ``least`` is the count of the
    emptiest domain, or 0 if there are fewer domains than ``min_domains``.
    """

    key: str
    value: str
    here: int
    least: int
    max_skew: int
    domains: int
    min_domains: int

    @property
    def words(self) -> str:
        return "node(s) didn't match pod topology spread constraints"


class NoDomain(Reason, frozen=True):
    """The node lacks the label over which the pods are spread."""

    key: str

    @property
    def words(self) -> str:
        return "node(s) didn't match pod topology spread constraints (missing required label)"


class _Domains(Struct):
    """Matching pods by domain, and the two emptiest domains, to know the minimum without any one domain."""

    counts: dict[str, int]
    emptiest: Sequence[tuple[int, str]] = ()

    def settle(self) -> None:
        self.emptiest = nsmallest(2, ((count, value) for value, count in self.counts.items()))

    def least_beside(self, value: str) -> int | None:
        """The count of the emptiest domain other than ``value``; None if there is no other."""
        return next((count for count, other in self.emptiest if other != value), None)


class PodTopologySpread(Plugin):
    """The plugin for one pod."""

    name = PluginName.POD_TOPOLOGY_SPREAD

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._constraints = constraints(pod, "DoNotSchedule", state)
        self._unread: Rejection | None = None
        defaults = [entry for entry in state.profile.args.spread.constraints if entry.required]
        if defaults and (kind := unread_selecting(pod, state)):
            self._unread = Rejection(self.name, (NotRead(kind, NoDomain(defaults[0].topology_key)),))
            return
        self.skipped = not self._constraints
        self._comparing = comparing(state)
        self._domains = [_Domains({}) for _ in self._constraints]
        for node in state.nodes.values():
            labels = node.node.labels
            if not has_keys(labels, self._constraints):
                continue
            for entry, domains in zip(self._constraints, self._domains, strict=True):
                if entry.counts(pod, node.node, comparing=self._comparing):
                    found = matching_pods(node.pods, entry.selector, pod.metadata.namespace)
                    value = labels[entry.key]
                    domains.counts[value] = domains.counts.get(value, 0) + found
        for domains in self._domains:
            domains.settle()

    def filter(self, node: NodeState) -> Rejection | None:
        if self._unread is not None:
            return self._unread
        labels = node.node.labels
        for entry, domains in zip(self._constraints, self._domains, strict=True):
            value = labels.get(entry.key)
            if value is None:
                return Rejection(self.name, (NoDomain(entry.key),))
            change = self._change(entry, node, labels)
            here = domains.counts.get(value, 0) + change
            least = self._least(entry, domains, value, here)
            own = entry.selector.matches(self.pod.metadata.labels)
            if here + own - least > entry.max_skew:
                reason = TooManyInDomain(
                    entry.key, value, here, least, entry.max_skew, len(domains.counts), entry.min_domains
                )
                return Rejection(self.name, (reason,), resolvable=True)
        return None

    def _least(self, entry: Constraint, domains: _Domains, value: str, here: int) -> int:
        """The count of the emptiest domain, given that the domain ``value`` has ``here``."""
        if len(domains.counts) < entry.min_domains:
            return 0
        beside = domains.least_beside(value)
        if value not in domains.counts:
            return beside or 0
        return here if beside is None else min(here, beside)

    def _change(self, entry: Constraint, node: NodeState, labels: Mapping[str, str]) -> int:
        """How the count of the node's domain differs if pods are assumed to be there or gone.

        The scheduler subtracts a matching pod that was already terminating, although it had not counted it.
        """
        if not node.added and not node.removed:
            return 0
        if not has_keys(labels, self._constraints):
            return 0
        if not entry.counts(self.pod, node.node, comparing=self._comparing):
            return 0
        return self._matching(entry, node.added) - self._matching(entry, node.removed)

    def _matching(self, entry: Constraint, pods: Sequence[Pod]) -> int:
        namespace = self.pod.metadata.namespace
        return sum(
            other.metadata.namespace == namespace and entry.selector.matches(other.metadata.labels) for other in pods
        )
