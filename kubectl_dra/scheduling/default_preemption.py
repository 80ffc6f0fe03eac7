"""DefaultPreemption: which pods of lower priority the scheduler would evict, on which node.

Source: pkg/scheduler/framework/plugins/defaultpreemption and framework/preemption. Evictions never free
devices: claims of evicted pods stay allocated during this computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct, field

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import PodDisruptionBudget
from kubectl_dra.scheduling.chain import Chain
from kubectl_dra.scheduling.framework import NodeState
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection, none_available

_NEVER = "Never"
_NOT_STARTED = "~"
"""Sorts after every time, because a pod that has not started counts as started now."""
_OFFSET = 1 << 31


class NoVictims(Reason, frozen=True):
    """No pod on the node has a lower priority."""

    TEXT = "No preemption victims found for incoming pod"


class NotHelpful(Reason, frozen=True):
    """Evicting pods would not change why the node is refused."""

    TEXT = "Preemption is not helpful for scheduling"


class NeverPreempts(Reason, frozen=True):
    """The pod's preemptionPolicy is Never."""

    TEXT = "not eligible due to preemptionPolicy=Never."


class VictimsEnding(Reason, frozen=True):
    """Pods evicted for this pod are still terminating on its nominated node."""

    TEXT = "not eligible due to a terminating pod on the nominated node."
    node: str
    victims: tuple[str, ...]


class Candidate(Struct, frozen=True):
    """A node on which the pod fits after evictions. ``violations`` counts those that break a PodDisruptionBudget."""

    node: str
    victims: tuple[Pod, ...]
    violations: int = 0


class Preemption(Struct, frozen=True):
    """The result of preemption. ``ineligible``: the pod may not evict. ``best``: the candidates from which
    the scheduler takes one (several if it has no preference). ``refused``: the reasons on nodes where it does
    not work. ``enough``: the scheduler takes the best of this many candidates, starting at a random node; 0
    means of all.
    """

    total: int
    ineligible: Reason | None = None
    best: tuple[Candidate, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    refused: Mapping[str, Rejection] = field(default_factory=dict)
    enough: int = 0

    @property
    def words(self) -> str:
        """The scheduler's text in the condition; empty if it found victims."""
        if self.ineligible is not None:
            return self.ineligible.words
        if self.best:
            return ""
        rest = Rejection(PluginName.DEFAULT_PREEMPTION, (NotHelpful(),))
        others = [rest] * (self.total - len(self.refused))
        return none_available(self.total, [*self.refused.values(), *others])


def preempt(chain: Chain, rejected: Mapping[str, Rejection]) -> Preemption:
    """Preemption by the scheduler for a pod that fits nowhere.

    Args:
        chain: the plugins for the pod.
        rejected: why each node was refused.
    """
    state = chain.state
    total = len(state.nodes)
    if (ineligible := _ineligible(chain, rejected)) is not None:
        return Preemption(total, ineligible)
    budgets = list(state.others("PodDisruptionBudget").values())
    candidates: list[Candidate] = []
    refused: dict[str, Rejection] = {}
    for name, rejection in rejected.items():
        if not rejection.resolvable:
            continue
        outcome = _on_node(chain, state.nodes[name], budgets)
        if isinstance(outcome, Candidate):
            candidates.append(outcome)
        else:
            refused[name] = outcome
    potential = sum(rejection.resolvable for rejection in rejected.values())
    wanted = max(
        potential * state.profile.args.preemption.min_candidate_nodes_percentage // 100,
        state.profile.args.preemption.min_candidate_nodes_absolute,
    )
    harmless = any(not candidate.violations for candidate in candidates)
    enough = max(wanted, 1) if harmless and len(candidates) > wanted else 0
    return Preemption(total, None, _best(candidates), tuple(candidates), {} if candidates else refused, enough)


def _ineligible(chain: Chain, rejected: Mapping[str, Rejection]) -> Reason | None:
    pod, state = chain.pod, chain.state
    if pod.spec.preemption_policy == _NEVER:
        return NeverPreempts()
    nominated = pod.status.nominated_node_name
    if not nominated or nominated not in state.nodes:
        return None
    rejection = rejected.get(nominated)
    if rejection is not None and not rejection.resolvable:
        return None
    ending = ending_victims(pod, state.nodes[nominated])
    return VictimsEnding(nominated, tuple(victim.key for victim in ending)) if ending else None


def ending_victims(pod: Pod, node: NodeState) -> list[Pod]:
    """The pods on a node that the scheduler evicted for a pod of this priority and that are still running."""
    return [
        other
        for other in node.pods
        if other.priority < pod.priority and other.metadata.deletion_timestamp and _evicted_by_scheduler(other)
    ]


def _evicted_by_scheduler(pod: Pod) -> bool:
    condition = pod.condition("DisruptionTarget")
    return condition.status == "True" and condition.reason == "PreemptionByScheduler"


def _on_node(chain: Chain, node: NodeState, budgets: Sequence[PodDisruptionBudget]) -> Candidate | Rejection:
    """The fewest and least important victims on one node, or why no eviction helps there."""

    def without(pods: Iterable[Pod]) -> Rejection | None:
        return chain.filter(node.changed(removed=pods))

    lower = [pod for pod in node.pods if pod.priority < chain.pod.priority]
    if not lower:
        return Rejection(PluginName.DEFAULT_PREEMPTION, (NoVictims(),))
    if (rejection := without(lower)) is not None:
        return rejection
    violating, others = _by_budget(by_importance(lower), budgets)
    victims = fewest([*violating, *others], lambda pods: without(pods) is None)
    violations = sum(pod in violating for pod in victims)
    victims.sort(key=lambda pod: (-pod.priority, pod.status.start_time or _NOT_STARTED))
    return Candidate(node.name, tuple(victims), violations)


_T = TypeVar("_T")


def fewest(items: Sequence[_T], enough: Callable[[Sequence[_T]], bool], *, last_first: bool = False) -> list[_T]:
    """The items but those without which it is still ``enough``, left out one after the other."""
    kept = list(items)
    for item in reversed(items) if last_first else items:
        rest = [other for other in kept if other is not item]
        if enough(rest):
            kept = rest
    return kept


def by_importance(pods: Sequence[Pod]) -> list[Pod]:
    """Pods from most to least important: by priority, then older ones first.

    A pod that has not started counts as started when it is examined, so of these the last one examined comes
    first.
    """

    def importance(numbered: tuple[int, Pod]) -> tuple[int, str, int]:
        place, pod = numbered
        started = pod.status.start_time
        return -pod.priority, started or _NOT_STARTED, place if started else -place

    return [pod for _, pod in sorted(enumerate(pods), key=importance)]


def _by_budget(pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]) -> tuple[list[Pod], list[Pod]]:
    """Pods whose eviction would break a PodDisruptionBudget, counted one after another, and the others."""
    allowed = [budget.status.disruptions_allowed for budget in budgets]
    violating: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        broken = False
        for index in _protecting(pod, budgets):
            allowed[index] -= 1
            broken = broken or allowed[index] < 0
        (violating if broken else others).append(pod)
    return violating, others


def _protecting(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> Iterator[int]:
    """The indices of the budgets that an eviction of the pod counts against."""
    labels = pod.metadata.labels
    if not labels:
        return
    for index, budget in enumerate(budgets):
        selector = budget.spec.selector
        if budget.metadata.namespace != pod.metadata.namespace or selector is None or selector.empty:
            continue
        if pod.metadata.name in budget.status.disrupted_pods:
            continue
        if selector.matches(labels):
            yield index


def _best(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates that the scheduler prefers: the one that it takes, or those between which it has no preference."""
    best = list(candidates)
    for cost in _COSTS if len(best) > 1 else ():
        lowest = min(map(cost, best))
        best = [candidate for candidate in best if cost(candidate) == lowest]
    latest = max(map(_earliest_start, best), default="")
    return tuple(candidate for candidate in best if _earliest_start(candidate) == latest)


_COSTS: tuple[Callable[[Candidate], int], ...] = (
    lambda candidate: candidate.violations,
    lambda candidate: candidate.victims[0].priority,
    lambda candidate: sum(victim.priority + _OFFSET for victim in candidate.victims),
    lambda candidate: len(candidate.victims),
)


def _earliest_start(candidate: Candidate) -> str:
    """When the first of the most important victims started."""
    highest = max(victim.priority for victim in candidate.victims)
    return min(victim.status.start_time or _NOT_STARTED for victim in candidate.victims if victim.priority == highest)
