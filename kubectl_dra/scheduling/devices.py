"""The devices of a cluster as its scheduler sees them: the cycle that all attempts for one pod share."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.features import Features, Quirks
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.allocation.taint_rules import apply_rules
from kubectl_dra.api.known_defects import RULES_UNSEEN
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.versions import Release
from kubectl_dra.cel import Environment
from kubectl_dra.cluster.snapshot import Snapshot


def make_cycle(snapshot: Snapshot, release: Release, gates: frozenset[str], patch: int | None) -> Cycle:
    """The scheduling cycle of a snapshot, with DeviceTaintRules applied as in the release.

    ``gates`` are the enabled feature gates, ``patch`` the patch release if known.
    """
    features = Features.from_gates(gates, release)
    slices: Sequence[ResourceSlice] = snapshot.slices
    if features.loose_pools or features.stable:
        # Loaded where it is needed, which is rare.
        from kubectl_dra.allocation.slices_as_read import slices_as_read

        slices = slices_as_read(slices, features)
    if features.taint_rules and snapshot.taint_rules and not RULES_UNSEEN.affects(release, patch):
        slices = apply_rules(slices, snapshot.taint_rules)
    return Cycle(
        index=SliceIndex(slices),
        classes=snapshot.classes,
        state=allocated_state(snapshot.claims.values(), features),
        selectors=Selectors(Environment.for_release(release, features=gates, stored=True)),
        features=features,
        quirks=Quirks.of_release(release, patch),
    )
