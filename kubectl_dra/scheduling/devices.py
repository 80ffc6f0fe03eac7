"""The devices of a cluster as a scheduler sees them: the cycle that all attempts for one pod share."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.features import Features, Quirks
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.allocation.state import allocated_state, changed_state
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cel import Environment
from kubectl_dra.cluster.cluster import Delta
from kubectl_dra.cluster.snapshot import Snapshot


def make_cycle(
    snapshot: Snapshot, features: Features, quirks: Quirks, environment: Environment, *, with_rules: bool
) -> Cycle:
    """The devices of a cluster for all attempts of one cycle; ``with_rules``: DeviceTaintRules are applied."""
    rules = snapshot.taint_rules if with_rules else ()
    return Cycle(
        index=SliceIndex(_seen(snapshot.slices, features, rules)),
        classes=snapshot.classes,
        state=allocated_state(snapshot.claims.values(), features),
        selectors=Selectors(environment),
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
    return cycle.changed(state=state, index=SliceIndex((*cycle.index.slices, *more)))
