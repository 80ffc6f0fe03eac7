"""A scheduler: who decides about pods, and the only one who knows what its release, gates and configuration mean."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.features import ALPHA, BEHAVIOUR, DEFECTS, Features, KnownDefects, ReleaseBehaviour
from kubectl_dra.api.behaviour import CRASH_ON_ALL, RULE_FOR_ALL, RULES_UNSEEN, Defect
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import Release, gate_default, kep_of
from kubectl_dra.api.slices import MAPPINGS, ResourceSlice
from kubectl_dra.api.taints import EVERY_DEVICE, DeviceTaintRule
from kubectl_dra.cel import Environment
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.scheduling.framework import ClusterState, make_cycle
from kubectl_dra.scheduling.profile import DEFAULT_SCHEDULER, Profile, default_profile

if TYPE_CHECKING:
    from kubectl_dra.allocation.budgets import Budget
    from kubectl_dra.scheduling.dynamic_resources import ClaimsAlone
    from kubectl_dra.scheduling.outcome import Outcome
    from kubectl_dra.scheduling.scheduler_config import SchedulerConfig


SELECTORS: Final = "selectors"
FILTERS: Final = "filters"
DEFECTS_BESIDE: Final = {"rules_unseen": RULES_UNSEEN, "crash_on_all": CRASH_ON_ALL, "rule_for_all": RULE_FOR_ALL}
"""The defects that are none of the allocator's, by the names of their parts."""


class PartialUpgrade(Struct, frozen=True):
    """A later release, and the ``parts`` in which a scheduler is like it already: the names of gates, of
    ``KnownDefects`` and ``ReleaseBehaviour``, how selectors are evaluated, the filters but that of devices, and the
    ``DEFECTS_BESIDE``.
    """

    release: Release
    patch: int | None
    parts: frozenset[str]


class Scheduler(Struct, frozen=True, dict=True):
    """A scheduler of a release; two are equal if their fields are.

    ``gates`` are the enabled feature gates, ``patch`` the patch release where known. ``config`` is what it was
    configured with; None: nobody says, so that the default is assumed. ``upgrade``: in what it is like a later release
    already, to find what an upgrade changes.
    """

    release: Release
    gates: frozenset[str]
    patch: int | None = None
    config: SchedulerConfig | None = None
    upgrade: PartialUpgrade | None = None

    def changed(self, **fields: Any) -> Scheduler:
        """The scheduler with other fields."""
        return replace(self, **fields)

    @property
    def version(self) -> str:
        """The release in words, with its patch where that is known: on it depends which defects it has."""
        return str(self.release) if self.patch is None else f"{self.release}.{self.patch}"

    def has(self, defect: Defect) -> bool | None:
        """Whether it has one of the ``DEFECTS_BESIDE``; None if that is not known."""
        part = next(name for name, known in DEFECTS_BESIDE.items() if known is defect)
        return defect.affects(*self._like(part))

    def profile_of(self, pod: Pod) -> Profile | None:
        """The profile that a pod is scheduled with; None if it is another scheduler's pod."""
        if self.config is not None:
            return self.config.profile_of(pod)
        return self._default if pod.scheduler_name == DEFAULT_SCHEDULER else None

    def schedules(self, pod: Pod) -> bool:
        """Whether it is the one that a pod asks for."""
        return self.profile_of(pod) is not None

    @cached_property
    def features(self) -> Features:
        """What its allocator can do."""
        behaves = ReleaseBehaviour.of_release(self.release)
        if self.upgrade is not None:
            behaves = _blended(behaves, ReleaseBehaviour.of_release(self.upgrade.release), self._parts)
        return Features.from_gates(self.gates, self.release, behaves)

    @cached_property
    def defects(self) -> KnownDefects:
        """The defects that its allocator has."""
        own = KnownDefects.of_release(self.release, self.patch)
        if self.upgrade is None:
            return own
        return _blended(own, KnownDefects.of_release(self.upgrade.release, self.upgrade.patch), self._parts)

    @property
    def environment(self) -> Environment:
        """What its selectors may say."""
        release, _ = self._like(SELECTORS)
        return Environment.for_release(release, features=self.gates, stored=True)

    def cycle(self, snapshot: Snapshot) -> Cycle:
        """The devices of a cluster and who holds them, as its allocator sees them. For each pod: ``Cycle.changed``.

        That of the last snapshot is kept: many questions are asked about one cluster.
        """
        last: tuple[Snapshot, Cycle] | None = self.__dict__.get("_last_cycle")
        if last is None or last[0] is not snapshot:
            last = self.__dict__["_last_cycle"] = snapshot, self._cycle(snapshot)
        return last[1].changed()

    def _cycle(self, snapshot: Snapshot) -> Cycle:
        rules = snapshot.taint_rules if self.features.taint_rules and not self.has(RULES_UNSEEN) else ()
        if rules and self.has(RULE_FOR_ALL):
            rules = tuple(rule if rule.selector is not None else replace(rule, selector=EVERY_DEVICE) for rule in rules)
        return make_cycle(snapshot, self.features, self.defects, self.environment, rules)

    def sees(self, cluster: Cluster, *pods: Pod) -> ClusterState:
        """A cluster as its plugins read it, for pods of one profile."""
        from kubectl_dra.scheduling.simple_filters import proved_by_pods

        gates = self.gates.union(*(proved_by_pods(pod, cluster.snapshot) for pod in pods))
        profile = self.profile_of(pods[0]) if pods else None
        release, patch = self._like(FILTERS)
        return ClusterState(cluster, release, gates, patch, profile or self._default, self.cycle)

    def sees_all(self, snapshot: Snapshot, *pods: Pod) -> ClusterState:
        """The same of a snapshot, also with the nodes that are only named. What the last one had is kept."""
        last: tuple[Snapshot, Cluster, list[ClusterState]] | None = self.__dict__.get("_last_seen")
        if last is None or last[0] is not snapshot:
            last = self.__dict__["_last_seen"] = snapshot, Cluster(snapshot).with_named_nodes(), []
        _, cluster, known = last
        new = self.sees(cluster, *pods)
        for state in known:
            if state.gates == new.gates and state.profile is new.profile:
                return state
        known.append(new)
        return new

    def attempt(
        self,
        subject: Pod | ClaimsAlone,
        cluster: Cluster,
        budget: Budget | None = None,
        *,
        only: Collection[str] | None = None,
    ) -> Outcome:
        """One attempt in a cluster for a pod, or with claims alone; see ``Outcome``. By default it has no limit."""
        pods = (subject,) if isinstance(subject, Pod) else ()
        return self.attempt_in(self.sees(cluster, *pods), subject, budget, only=only)

    @staticmethod
    def attempt_in(
        state: ClusterState,
        subject: Pod | ClaimsAlone,
        budget: Budget | None = None,
        *,
        only: Collection[str] | None = None,
        retried: bool = False,
        claims: Collection[ResourceClaim] = (),
    ) -> Outcome:
        """One attempt for a pod, or with claims alone, in a cluster as the scheduler sees it; see ``Outcome``."""
        from kubectl_dra.scheduling.dynamic_resources import DynamicResources
        from kubectl_dra.scheduling.outcome import Outcome

        if not isinstance(subject, Pod):
            return Outcome(Pod(), state, budget, plugins=(DynamicResources,), alone=subject)
        return Outcome(subject, state, budget, only=only, retried=retried, claims=claims)

    @cached_property
    def _default(self) -> Profile:
        release, _ = self._like(FILTERS)
        return default_profile(release)

    def _like(self, part: str) -> tuple[Release, int | None]:
        """The release, and its patch, like which it is in one part."""
        like = self.upgrade if self.upgrade is not None and part in self.upgrade.parts else self
        return like.release, like.patch

    @property
    def _parts(self) -> Set[str]:
        """The parts of the later release; a gate that only it has comes with what it switches on."""
        parts = self.upgrade.parts if self.upgrade is not None else frozenset()
        return parts | {"knows_alpha"} if ALPHA & parts else parts


_S = TypeVar("_S", bound=Struct)


def _blended(own: _S, other: _S, names: Set[str]) -> _S:
    fields: dict[str, Any] = {name: getattr(other, name) for name in own.__struct_fields__ if name in names}
    return replace(own, **fields)


# Feature gates that stored objects prove to be on, or make likely. If a gate is off, the API server drops its fields
# from new objects, so an existing field shows that the gate was on when the object was written.


def _gate(field: str) -> str:
    """The first gate that a field of devices needs."""
    return fields("Device")[field].gates[0]


TAINTS = _gate("taints")
PARTITIONS = _gate("consumesCounters")
CAPACITY = _gate("allowMultipleAllocations")
BINDING = _gate("bindingConditions")
GROUPS = fields("DeviceCounterConsumption")["compatibilityGroups"].gates[0]
OPERATIONS = fields("ResourceSliceSpec")["skipNodeOperations"].gates[0]
DERIVED = fields("ExactDeviceRequest")["derivedAttributes"].gates[0]
NODE_RESOURCES = _gate("nodeAllocatableResources")
RULES = (TAINTS, "DRADeviceTaintRules")
"""The gates without which a DeviceTaintRule has no effect. Up to 1.34 the first is both."""
_KNOWN = (TAINTS, PARTITIONS, CAPACITY, BINDING, GROUPS, OPERATIONS, DERIVED, NODE_RESOURCES)


def proved(
    slices: Iterable[ResourceSlice], assumed: Set[str], release: Release, claims: Iterable[ResourceClaim] = ()
) -> frozenset[str]:
    """The gates of the release proved by fields of these slices and stored claims, beyond those assumed to be on."""
    missing = {gate for gate in _KNOWN if gate not in assumed and gate_default(gate, release) is not None}
    found: set[str] = set()
    if not missing:
        return frozenset()
    for entry in slices:
        if entry.skip_node_operations:
            found.add(OPERATIONS)
        if entry.shared_counters or entry.per_device_node_selection:
            found.add(PARTITIONS)
        for device in entry.devices:
            if device.taints:
                found.add(TAINTS)
            if device.consumes_counters:
                found.add(PARTITIONS)
                if any(consumption.groups for consumption in device.consumes_counters):
                    found.add(GROUPS)
            if device.node_resources or MAPPINGS in device.unmodelled:
                found.add(NODE_RESOURCES)
            if device.allow_multiple_allocations:
                found.add(CAPACITY)
            if device.binding_conditions:
                found.add(BINDING)
    if DERIVED in missing and any(_derives(claim) for claim in claims):
        found.add(DERIVED)
    return frozenset(found & missing)


def taken_on(rules: Sequence[DeviceTaintRule], release: Release, patch: int | None) -> frozenset[str]:
    """The gates of the release that are off by default and taken to be on because rules exist.

    A rule proves nothing, for a server stores them with the gates off too; but nobody writes one where it does not
    count. The releases whose schedulers do not see rules are left out.
    """
    if not rules or RULES_UNSEEN.affects(release, patch):
        return frozenset()
    return frozenset(gate for gate in RULES if gate_default(gate, release) is False)


def _derives(claim: ResourceClaim) -> bool:
    return any(spec.derived_attributes for spec in claim.alternatives())


# What differs between the schedulers of two releases, one by one.


class ChangeKind(Enum):
    """What sort of change it is."""

    GATE_ON = auto()
    GATE_OFF = auto()
    DEFECT_GONE = auto()
    DEFECT_NEW = auto()
    OTHERWISE = auto()
    """Something is done in another way, as ``what`` says."""


class SchedulerChange(Struct, frozen=True):
    """One difference of the scheduler after an upgrade. ``name`` is that of the gate, the defect, the behaviour, or one
    of the parts of ``PartialUpgrade``.

    ``what`` says it in words, but for gates; ``link`` leads to its pull request or enhancement, where that is known.
    """

    name: str
    kind: ChangeKind
    what: str = ""
    link: str = ""


class Deciding(Struct, frozen=True):
    """The changes that decide: each alone, or all of them ``together``. Without any it is not known which do."""

    changes: tuple[SchedulerChange, ...] = ()
    together: bool = False


_OTHERS: Final[Mapping[str, str]] = {
    SELECTORS: "selectors are evaluated otherwise",
    FILTERS: "other filters of the scheduler than that of devices judge the nodes otherwise",
}


def changes(before: Scheduler, after: Scheduler) -> Iterator[SchedulerChange]:
    """What differs, gates first."""
    for gate in sorted(before.gates ^ after.gates):
        kep = kep_of(gate)
        link = f"https://kep.k8s.io/{kep}" if kep else ""
        on = gate in after.gates
        if on or gate_default(gate, after.release) is not None:
            yield SchedulerChange(gate, ChangeKind.GATE_ON if on else ChangeKind.GATE_OFF, link=link)
    was, will = before.defects, after.defects
    for name in _different(was, will):
        yield _of_defect(name, DEFECTS[name], gone=getattr(was, name))
    for name, defect in DEFECTS_BESIDE.items():
        had, has = bool(before.has(defect)), bool(after.has(defect))
        if had != has:
            yield _of_defect(name, defect, gone=had)
    for name in _different(ReleaseBehaviour.of_release(before.release), ReleaseBehaviour.of_release(after.release)):
        if name != "knows_alpha":
            # That changes an answer by its gates alone.
            yield SchedulerChange(name, ChangeKind.OTHERWISE, BEHAVIOUR[name].what, BEHAVIOUR[name].link)
    if before.release != after.release:
        for name, what in _OTHERS.items():
            yield SchedulerChange(name, ChangeKind.OTHERWISE, what)


def _of_defect(name: str, defect: Defect, *, gone: bool) -> SchedulerChange:
    link = f"https://github.com/kubernetes/kubernetes/pull/{defect.number}" if defect.number else ""
    return SchedulerChange(name, ChangeKind.DEFECT_GONE if gone else ChangeKind.DEFECT_NEW, defect.what, link)


def _different(first: Struct, other: Struct) -> Iterator[str]:
    return (name for name in first.__struct_fields__ if getattr(first, name) != getattr(other, name))
