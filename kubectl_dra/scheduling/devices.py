"""The devices of a cluster as its scheduler sees them: the cycle that all attempts for one pod share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

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

LAST_MINOR_WITH_MIXED_SLICES: Final = 34
"""The last release in which a slice may hold both devices and the counters that they share."""


def make_cycle(snapshot: Snapshot, release: Release, gates: frozenset[str], patch: int | None) -> Cycle:
    """The scheduling cycle of a snapshot, with DeviceTaintRules applied as in the release.

    ``gates`` are the enabled feature gates, ``patch`` the patch release if known.
    """
    features = Features.from_gates(gates)
    slices: Sequence[ResourceSlice] = snapshot.slices
    if release.minor <= LAST_MINOR_WITH_MIXED_SLICES:
        slices = list(counters_apart(slices))
    if snapshot.taint_rules and not RULES_UNSEEN.affects(release, patch):
        slices = apply_rules(slices, snapshot.taint_rules)
    return Cycle(
        index=SliceIndex(slices),
        classes=snapshot.classes,
        state=allocated_state(snapshot.claims.values(), features),
        selectors=Selectors(Environment.for_release(release, features=gates, stored=True)),
        features=features,
        quirks=Quirks.of_release(release, patch),
    )


def counters_apart(slices: Sequence[ResourceSlice]) -> Iterator[ResourceSlice]:
    """Slices in the shape of later releases: counters in slices without devices."""
    mixed = Counter((entry.pool, entry.generation) for entry in slices if entry.shared_counters and entry.devices)
    for entry in slices:
        more = mixed[entry.pool, entry.generation]
        if more:
            entry = replace(entry, slice_count=entry.slice_count + more)
        if not entry.shared_counters or not entry.devices:
            yield entry
            continue
        yield replace(entry, shared_counters=())
        yield replace(entry, name=f"{entry.name} (counters)", devices=())
