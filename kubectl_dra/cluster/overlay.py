"""Lays a manifest over a snapshot: the state after applying it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.snapshot import ABSENT, Key, Snapshot


def overlay(base: Snapshot, manifest: Snapshot) -> Snapshot:
    """The snapshot with the manifest's objects added; objects of the same name are replaced.

    Kinds that only the manifest has remain gaps of the snapshot, except templates, classes and claims, for
    which the manifest is sufficient.
    """
    brought = {
        kind
        for kind, present in (
            ("ResourceSlice", manifest.slices),
            ("DeviceClass", manifest.classes),
            ("ResourceClaim", manifest.claims),
            ("ResourceClaimTemplate", manifest.templates),
            ("Pod", manifest.pods),
            ("Node", manifest.nodes),
        )
        if present
    }
    names = {entry.name for entry in manifest.slices}
    return replace(
        base,
        slices=(*(entry for entry in base.slices if entry.name not in names), *manifest.slices),
        classes={**base.classes, **manifest.classes},
        claims={**base.claims, **manifest.claims},
        templates={**base.templates, **manifest.templates},
        pods={**base.pods, **manifest.pods},
        nodes={**base.nodes, **manifest.nodes},
        taint_rules=(*base.taint_rules, *manifest.taint_rules),
        namespaces={**base.namespaces, **manifest.namespaces},
        others=_merged(base.others, manifest.others),
        gaps=tuple(gap for gap in base.gaps if not (gap.reason == ABSENT and gap.kind in brought)),
        notes=(*base.notes, *manifest.notes),
        sources=(*base.sources, *manifest.sources),
        individual=base.individual | manifest.individual,
        written={**base.written, **manifest.written},
        workloads=(*base.workloads, *manifest.workloads),
    )


def with_kinds(base: Snapshot, more: Snapshot, kinds: Iterable[str]) -> Snapshot:
    """The snapshot with objects of further kinds, read later. Kinds without objects are known to have none."""
    read = {kind: more.others.get(kind, {}) for kind in kinds if kind in SCHEDULING_KINDS}
    known = {(entry.metadata.namespace, entry.metadata.name): entry for entry in (*base.quotas, *more.quotas)}
    return replace(
        base,
        others=_merged(read, base.others),
        quotas=tuple(known.values()),
        gaps=(*base.gaps, *(gap for gap in more.gaps if gap not in base.gaps)),
    )


def _merged(
    base: Mapping[str, Mapping[Key, Any]], more: Mapping[str, Mapping[Key, Any]]
) -> dict[str, Mapping[Key, Any]]:
    return {kind: {**base.get(kind, {}), **more.get(kind, {})} for kind in {**base, **more}}
