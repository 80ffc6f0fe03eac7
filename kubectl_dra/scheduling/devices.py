"""The devices of a cluster as its scheduler sees them: the cycle that all attempts for one pod share."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.features import ALPHA, Features, Habits, Quirks
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.allocation.state import allocated_state, changed_state
from kubectl_dra.api.releases import RULES_UNSEEN, Release
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cel import Environment
from kubectl_dra.cluster.cluster import Delta
from kubectl_dra.cluster.snapshot import Snapshot

SELECTORS: Final = "selectors"
FILTERS: Final = "filters"
UNSEEN: Final = "rules_unseen"
CRASH: Final = "crash_on_all"


class Ahead(Struct, frozen=True):
    """A later release, and the ``parts`` in which a scheduler is like it already: the names of gates, of ``Quirks`` and
    ``Habits``, and those above: how selectors are evaluated, the filters but that of devices, and two more defects.
    """

    release: Release
    patch: int | None
    parts: frozenset[str]


def like(release: Release, patch: int | None, ahead: Ahead | None, part: str) -> tuple[Release, int | None]:
    """The release, and its patch, like which a scheduler is in one part."""
    return (ahead.release, ahead.patch) if ahead is not None and part in ahead.parts else (release, patch)


def make_cycle(
    snapshot: Snapshot, release: Release, gates: frozenset[str], patch: int | None, ahead: Ahead | None = None
) -> Cycle:
    """The scheduling cycle of a snapshot, with DeviceTaintRules applied as in the release.

    ``gates`` are the enabled feature gates, ``patch`` the patch release if known. ``ahead``: see ``Ahead``.
    """
    habits, quirks = Habits.of_release(release), Quirks.of_release(release, patch)
    if ahead is not None:
        # A gate that only the later release has comes with what it switches on.
        parts = ahead.parts | ({"knows_alpha"} if ALPHA & ahead.parts else frozenset())
        habits = _blended(habits, Habits.of_release(ahead.release), parts)
        quirks = _blended(quirks, Quirks.of_release(ahead.release, ahead.patch), parts)
    features = Features.from_gates(gates, release, habits)
    language, _ = like(release, patch, ahead, SELECTORS)
    unseen = RULES_UNSEEN.affects(*like(release, patch, ahead, UNSEEN))
    rules = snapshot.taint_rules if features.taint_rules and not unseen else ()
    return Cycle(
        index=SliceIndex(_seen(snapshot.slices, features, rules)),
        classes=snapshot.classes,
        state=allocated_state(snapshot.claims.values(), features),
        selectors=Selectors(Environment.for_release(language, features=gates, stored=True)),
        features=features,
        quirks=quirks,
        rules=rules,
    )


def _seen(
    slices: Sequence[ResourceSlice], features: Features, rules: Sequence[DeviceTaintRule]
) -> Sequence[ResourceSlice]:
    """Published slices as the allocator sees them. What is rarely needed is loaded then."""
    if features.loose_pools or features.stable:
        from kubectl_dra.allocation.slices_seen import slices_as_read

        slices = slices_as_read(slices, features)
    if rules:
        from kubectl_dra.allocation.slices_seen import apply_rules

        slices = apply_rules(slices, rules)
    return slices


def after(cycle: Cycle, delta: Delta) -> Cycle:
    """The cycle after a change of its cluster that replaces no slices."""
    assert delta.slices is not None
    state = changed_state(cycle.state, delta.claims, cycle.features)
    if not delta.slices:
        return cycle if state is cycle.state else cycle.changed(state=state)
    more = _seen(delta.slices, cycle.features, cycle.rules)
    for entry in more:
        cycle.selectors.keep(entry.devices)
    return cycle.changed(state=state, index=SliceIndex((*cycle.index.slices, *more)))


_S = TypeVar("_S", bound=Struct)


def _blended(own: _S, other: _S, names: Set[str]) -> _S:
    taken: dict[str, Any] = {name: getattr(other, name) for name in own.__struct_fields__ if name in names}
    return replace(own, **taken)
