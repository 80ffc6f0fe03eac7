"""GangScheduling (KEP-4671): pods of a group wait for each other, and whether they fit together.

In 1.35 ``spec.workloadRef`` names a group of a Workload; since 1.36 ``spec.schedulingGroup`` names a
PodGroup. A stored pod with either, and a stored group, show that the feature is on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Final

from msgspec import Struct, structs

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.allocation.budgets import GANG_STEPS, GANG_TRIES, GANG_WORK, SMALL_GANG_TRIES, SMALL_GANG_WORK, Budget
from kubectl_dra.api.behaviour import GROUP_IN_ONE_CYCLE, GROUP_OF_ONE_PRIORITY
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import GroupPolicy, PodGroup, PriorityClass, Workload
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.scheduling.binding import Chance, place
from kubectl_dra.scheduling.dynamic_resources import ClaimNotCreated, resolve
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.profile import Point
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection
from kubectl_dra.scheduling.volumes import fully_bound, volume_claims

UNSCHEDULABLE_GROUP: Final = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more plugins asked to "
    "wait and no plugin rejected pod"
)
"""The message of 1.36 for a pod that fits although its group does not."""


class GroupMissing(Reason, frozen=True):
    """The group or its Workload does not exist; ``kind`` is the missing one."""

    kind: str
    name: str

    @property
    def words(self) -> str:
        kind = "workload" if self.kind == "Workload" else "pod group"
        return f'waiting for pods\'s {kind} "{self.name}" to appear in scheduling queue'


class GroupNotInWorkload(Reason, frozen=True):
    """The Workload has no group of that name."""

    TEXT = 'pod group "{group}" doesn\'t exist for a workload "{workload}"'
    workload: str
    group: str


class TooFewPeers(Reason, frozen=True):
    """The gang has fewer pods than are scheduled together; ``peers`` are those that exist, including this one."""

    TEXT = "waiting for minCount pods from a gang to appear in scheduling queue"
    group: str
    minimum: int
    peers: tuple[str, ...]


class PriorityDiffers(Reason, frozen=True):
    """A pod has another priority than its group: since 1.37 the scheduler then tries none of the group's pods."""

    TEXT = (
        "all pods in a single pod group should have the same priority as the pod group's priority, "
        "got {priority} and {wanted}"
    )
    group: str
    pod: str
    priority: int
    wanted: int


class Gang(Struct, frozen=True):
    """A group whose pods are scheduled together: its pods that have not ended, and how many it needs."""

    name: str
    minimum: int
    members: tuple[Pod, ...]
    topology: tuple[str, ...] = ()
    nested: bool = False


class Obstacle(Enum):
    """Why it cannot be determined whether a group fits."""

    TOO_LARGE = auto()
    """There are too many pods, nodes and slices to try."""
    TOO_LONG = auto()
    """The search for devices does not end in time."""
    VOLUMES = auto()
    """Volumes are bound together with a pod, and which ones is unknown before the next pod is tried."""
    CHANCE = auto()
    """Whether the group fits depends on which pod is tried first and which of several nodes it takes."""
    LEFT_OUT = auto()
    """The group fits, but not all of its pods: which one is left out is random, or depends on the chosen domain."""
    NESTED = auto()
    """The group is part of a group of groups (1.37)."""
    CLAIMS = auto()
    """Claims of other pods in the group do not exist yet."""
    DOMAIN = auto()
    """Running pods of the group are in no domain of the topology key, or in several."""


class Placed(Struct, frozen=True):
    """The result for a gang. ``nodes``: where waiting pods are placed, by key. ``bound``: pods that already
    had a node.

    ``refused``: the attempts for pods that fit nowhere, in order. ``domain`` is the value of the topology key
    that they share; ``domains`` are those tried. ``alike``: the pod in question gets the same result in whatever order
    pods of equal priority are tried. ``given`` are the claims that get devices with waiting pods, by the pods' keys.
    """

    gang: Gang
    nodes: Mapping[str, str]
    bound: tuple[str, ...]
    refused: Mapping[str, Outcome]
    domain: str = ""
    domains: tuple[str, ...] = ()
    alike: bool = True
    given: Mapping[str, Sequence[ResourceClaim]] = {}

    @property
    def count(self) -> int:
        """Number of pods of the group that then have a node."""
        return len(self.bound) + len(self.nodes)

    @property
    def evicting(self) -> Outcome | None:
        """The first attempt that found pods to evict; the scheduler may evict them for the group."""
        return next(
            (
                outcome
                for outcome in self.refused.values()
                if outcome.preemption is not None and outcome.preemption.best
            ),
            None,
        )

    @property
    def fits(self) -> bool:
        """Whether as many pods fit as the group needs."""
        return bool(self.nodes) and self.count >= self.gang.minimum


def message_of(pod: Pod, placed: Placed, state: ClusterState) -> str:
    """The scheduler's message for a pod of the gang; empty if it writes none or the message is unknown."""
    if state.release not in GROUP_IN_ONE_CYCLE or placed.domains or not placed.alike or placed.evicting is not None:
        return ""
    if pod.key in placed.refused:
        refused = placed.refused[pod.key]
        return refused.message if refused.certain else ""
    return "" if placed.fits else UNSCHEDULABLE_GROUP


def in_queue(pod: Pod, state: ClusterState) -> Rejection | None:
    """What keeps a pod of a group out of the scheduler's queue."""
    gang = gang_of(pod, state)
    if isinstance(gang, Reason):
        return Rejection(PluginName.GANG_SCHEDULING, (gang,))
    if gang is None or len(gang.members) >= gang.minimum:
        waiting = (member for member in members(pod, state.snapshot) if not member.node_name) if pod.pod_group else ()
        differs = next((other for member in waiting if (other := priority_differs(member, state))), None)
        return Rejection(PluginName.GANG_SCHEDULING, (differs,)) if differs is not None else None
    peers = tuple(sorted(member.key for member in gang.members))
    return Rejection(PluginName.GANG_SCHEDULING, (TooFewPeers(gang.name, gang.minimum, peers),))


def priority_differs(pod: Pod, state: ClusterState) -> PriorityDiffers | None:
    """Whether the pod has another priority than its PodGroup, gang or not, in a release where that matters.

    None also where the group's priority is not known: a class was not read.
    """
    group: PodGroup | None = state.others("PodGroup").get((pod.metadata.namespace, pod.pod_group))
    if group is None or state.release not in GROUP_OF_ONE_PRIORITY:
        return None
    wanted = group_priority(group, state)
    if wanted is None or wanted == pod.priority:
        return None
    return PriorityDiffers(pod.pod_group, pod.key, pod.priority, wanted)


def group_priority(group: PodGroup, state: ClusterState) -> int | None:
    """The priority that the API server gives a group; None where its class is not known."""
    if group.spec.priority is not None:
        return group.spec.priority
    classes: list[PriorityClass] = list(state.others("PriorityClass").values())
    name = group.spec.priority_class_name
    if name:
        return next((priority_class.value for priority_class in classes if priority_class.metadata.name == name), None)
    if state.unknown("PriorityClass"):
        return None
    # Of several defaults the lowest counts.
    return min((priority_class.value for priority_class in classes if priority_class.global_default), default=0)


def gang_of(pod: Pod, state: ClusterState) -> Gang | Reason | None:
    """The gang of a pod; a reason if its group is missing; None if the pod can be scheduled alone."""
    namespace = pod.metadata.namespace
    if reference := pod.spec.workload_ref:
        workload: Workload | None = state.others("Workload").get((namespace, reference.name))
        if workload is None:
            return None if state.unknown("Workload", namespace) else GroupMissing("Workload", reference.name)
        for pod_group in workload.spec.pod_groups:
            if pod_group.name == reference.pod_group:
                return _gang(f"{reference.name}/{reference.pod_group}", pod_group.policy, pod, state)
        return GroupNotInWorkload(reference.name, reference.pod_group)
    if not (name := pod.pod_group):
        return None
    group: PodGroup | None = state.others("PodGroup").get((namespace, name))
    if group is None:
        return None if state.unknown("PodGroup", namespace) else GroupMissing("PodGroup", name)
    constraints = group.spec.scheduling_constraints
    topology = tuple(constraint.key for constraint in constraints.topology) if constraints else ()
    gang = _gang(name, group.spec.scheduling_policy, pod, state, topology)
    nested = bool(group.spec.parent_composite_pod_group_name)
    return gang if gang is None else structs.replace(gang, nested=nested)


def _gang(name: str, policy: GroupPolicy, pod: Pod, state: ClusterState, topology: tuple[str, ...] = ()) -> Gang | None:
    if policy.gang is None:
        return None
    return Gang(name, policy.gang.min_count, tuple(members(pod, state.snapshot)), topology)


def members(pod: Pod, snapshot: Snapshot) -> list[Pod]:
    """The pods of the same group that have not ended, including the pod itself."""
    pods = [pod]
    for other in snapshot.pods.values():
        if other.metadata.namespace != pod.metadata.namespace or other.metadata.name == pod.metadata.name:
            continue
        same = other.spec.scheduling_group == pod.spec.scheduling_group
        if same and other.spec.workload_ref == pod.spec.workload_ref and not other.finished:
            pods.append(other)
    return pods


def domains_of(gang: Gang, state: ClusterState) -> Mapping[str, frozenset[str]] | None:
    """The nodes of each domain that the group may use; None if its running pods do not share a single one.

    The scheduler then ends with an error for the group (getScheduledPodsTopologyDomain in topology_placement.go), also
    where the node of a running pod is not known.
    """
    if not gang.topology:
        return {"": frozenset(state.nodes)}
    key = gang.topology[0]
    domains: dict[str, set[str]] = {}
    for name, node in state.nodes.items():
        if (value := node.node.labels.get(key)) is not None:
            domains.setdefault(value, set()).add(name)
    running = {
        state.nodes[member.node_name].node.labels.get(key) if member.node_name in state.nodes else None
        for member in gang.members
        if member.node_name
    }
    if len(running) > 1 or None in running:
        return None
    return {value: frozenset(names) for value, names in domains.items() if not running or value in running}


# Whether the pods of a gang fit together: each is placed in turn, in the cluster with those placed before it. From 1.36
# on the scheduler tries all waiting pods of a group in one cycle, by priority, and binds none unless as many fit as the
# group needs; with a topology constraint, it tries one domain after another. 1.35 holds pods that fit until enough do.
# Sources: schedule_one_podgroup.go and the plugins gangscheduling and topologyaware.


def placed_together(gang: Gang, pod: Pod, state: ClusterState) -> Placed | Obstacle:
    """Where the pods of the gang of ``pod`` would be placed, or why that is unknown."""
    waiting = [
        member
        for member in gang.members
        if not (member.node_name or member.scheduling_gates or member.metadata.deletion_timestamp)
    ]
    bound = tuple(member.key for member in gang.members if member.node_name)
    if gang.nested:
        return Obstacle.NESTED
    work = len(waiting) * (len(state.nodes) + len(state.snapshot.slices))
    if work > GANG_WORK:
        return Obstacle.TOO_LARGE
    if any(isinstance(resolved, ClaimNotCreated) for member in waiting for resolved in resolve(member, state)):
        return Obstacle.CLAIMS
    volumes = (entry.claim for member in waiting for entry in volume_claims(member, state))
    if len(waiting) > 1 and any(claim is not None and not fully_bound(claim) for claim in volumes):
        return Obstacle.VOLUMES
    domains = domains_of(gang, state)
    if domains is None:
        return Obstacle.DOMAIN
    budget = Budget(GANG_STEPS)
    placed, *others = _in_domains(gang, waiting, bound, state, domains, budget, chance := Chance.of_try(0))
    tries = SMALL_GANG_TRIES if work <= SMALL_GANG_WORK else GANG_TRIES
    for number in range(1, tries if chance.taken else 1):
        more = _in_domains(gang, waiting, bound, state, domains, budget, Chance.of_try(number))
        if more[0].fits != placed.fits:
            return Obstacle.CHANCE
        others.extend(more)
    if not budget.left or (not placed.fits and any(_is_open(outcome) for outcome in placed.refused.values())):
        return Obstacle.TOO_LONG
    if placed.fits and any((pod.key in other.nodes) != (pod.key in placed.nodes) for other in others):
        return Obstacle.LEFT_OUT
    said = {_said(pod, choice) for choice in (placed, *others)}
    return placed if len(said) == 1 else structs.replace(placed, alike=False)


def _said(pod: Pod, placed: Placed) -> str:
    """The scheduler's text about the pod itself; empty if it fits."""
    refused = placed.refused.get(pod.key)
    return refused.message if refused is not None else ""


def _is_open(refused: Outcome) -> bool:
    """Whether a search for devices did not end, so that a node may have them for a pod that got none."""
    return any(attempt.verdict is AttemptVerdict.UNDETERMINED for attempt in refused.attempts.values())


def _in_domains(
    gang: Gang,
    waiting: Sequence[Pod],
    bound: tuple[str, ...],
    state: ClusterState,
    domains: Mapping[str, frozenset[str]],
    budget: Budget,
    chance: Chance,
) -> list[Placed]:
    """The group in each domain where it fits or, if there is none, where most of it does.

    Among several domains the scheduler chooses by scores of its own.
    """
    names = tuple(name for name in domains if name)
    tried = []
    for value, nodes in domains.items():
        placed, refused, given = _one_after_another(waiting, state, nodes, budget, chance)
        tried.append(Placed(gang, placed, bound, refused, value, names, given=given))
    if fitting := [placed for placed in tried if placed.fits]:
        return fitting
    nowhere = Placed(gang, {}, bound, {}, domains=names)
    return [max(tried, key=lambda placed: placed.count, default=nowhere)]


def _one_after_another(
    waiting: Sequence[Pod], state: ClusterState, nodes: frozenset[str], budget: Budget, chance: Chance
) -> tuple[dict[str, str], dict[str, Outcome], dict[str, Sequence[ResourceClaim]]]:
    placed: dict[str, str] = {}
    refused: dict[str, Outcome] = {}
    given: dict[str, Sequence[ResourceClaim]] = {}
    # Those of equal priority go by the time of their first attempt, which is unknown.
    for member in chance.in_order(waiting, lambda pod: -pod.priority):
        outcome, node, state = place(member, state, budget, chance.of, nodes)
        if not node:
            refused[member.key] = outcome
            continue
        placed[member.key] = node
        given[member.key] = outcome.devices.given_on(outcome.state.nodes[node].node)
    return placed, refused, given


# What keeps any pod out of the scheduler's queue (PreEnqueue): it is never tried, and its condition does not say why.


class Gated(Reason, frozen=True):
    """The pod waits for the gates of ``spec.schedulingGates`` to be removed (SchedulingGates)."""

    TEXT = "Scheduling is blocked due to non-empty scheduling gates"
    gates: tuple[str, ...]


def kept_out(pod: Pod, state: ClusterState) -> Rejection | None:
    """Why the scheduler does not try the pod at all; None if it does."""
    if gates := pod.scheduling_gates:
        return Rejection(PluginName.SCHEDULING_GATES, (Gated(gates),))
    if state.profile.runs(PluginName.DYNAMIC_RESOURCES, Point.PRE_ENQUEUE):
        for resolved in resolve(pod, state):
            if isinstance(resolved, Reason):
                return Rejection(PluginName.DYNAMIC_RESOURCES, (resolved,))
    if state.profile.runs(PluginName.GANG_SCHEDULING, Point.PRE_ENQUEUE):
        return in_queue(pod, state)
    return None
