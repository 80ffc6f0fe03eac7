"""A scheduler: who decides about pods, and the only one who knows what its release, gates and configuration mean."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.features import ALPHA, Features, KnownDefects, ReleaseBehaviour
from kubectl_dra.api.defects import CRASH_ON_ALL, RULE_FOR_ALL, RULES_UNSEEN, Defect
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import Release
from kubectl_dra.api.taints import EVERY_DEVICE
from kubectl_dra.cel import Environment
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.scheduling.framework import ClusterState, make_cycle
from kubectl_dra.scheduling.profile import DEFAULT_SCHEDULER, Profile, default_profile

if TYPE_CHECKING:
    from kubectl_dra.allocation.budgets import Budget
    from kubectl_dra.api.claims import ResourceClaim
    from kubectl_dra.scheduling.dynamic_resources import ClaimsAlone
    from kubectl_dra.scheduling.framework import ClusterState, Plugin
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
        return Features.from_gates(self.gates, self.release, self._release_behaviour)

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
        from kubectl_dra.scheduling.taint_toleration import proved_by_pods

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
        retried: bool = False,
    ) -> Outcome:
        """One attempt in a cluster for a pod, or with claims alone; see ``Outcome``. By default it has no limit."""
        pods = (subject,) if isinstance(subject, Pod) else ()
        return self.attempt_in(self.sees(cluster, *pods), subject, budget, only=only, retried=retried)

    @staticmethod
    def attempt_in(
        state: ClusterState,
        subject: Pod | ClaimsAlone,
        budget: Budget | None = None,
        *,
        only: Collection[str] | None = None,
        retried: bool = False,
        plugins: Sequence[type[Plugin]] | None = None,
        claims: Collection[ResourceClaim] = (),
    ) -> Outcome:
        """One attempt for a pod, or with claims alone, in a cluster as the scheduler sees it; see ``Outcome``."""
        from kubectl_dra.scheduling.dynamic_resources import DynamicResources
        from kubectl_dra.scheduling.outcome import Outcome

        if not isinstance(subject, Pod):
            return Outcome(Pod(), state, budget, plugins=(DynamicResources,), alone=subject)
        return Outcome(subject, state, budget, only=only, retried=retried, plugins=plugins, claims=claims)

    @cached_property
    def _default(self) -> Profile:
        release, _ = self._like(FILTERS)
        return default_profile(release)

    def _like(self, part: str) -> tuple[Release, int | None]:
        """The release, and its patch, like which it is in one part."""
        upgrade = self.upgrade
        return (
            (upgrade.release, upgrade.patch)
            if upgrade is not None and part in upgrade.parts
            else (self.release, self.patch)
        )

    @property
    def _parts(self) -> Set[str]:
        """The parts of the later release; a gate that only it has comes with what it switches on."""
        parts = self.upgrade.parts if self.upgrade is not None else frozenset()
        return parts | {"knows_alpha"} if ALPHA & parts else parts

    @property
    def _release_behaviour(self) -> ReleaseBehaviour:
        own = ReleaseBehaviour.of_release(self.release)
        return (
            own
            if self.upgrade is None
            else _blended(own, ReleaseBehaviour.of_release(self.upgrade.release), self._parts)
        )


_S = TypeVar("_S", bound=Struct)


def _blended(own: _S, other: _S, names: Set[str]) -> _S:
    fields: dict[str, Any] = {name: getattr(other, name) for name in own.__struct_fields__ if name in names}
    return replace(own, **fields)
