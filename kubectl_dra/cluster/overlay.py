"""Lays a manifest over a snapshot: the state after applying it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.snapshot import ABSENT, Key, Snapshot


def overlay(base: Snapshot, manifest: Snapshot) -> Snapshot:
    """The snapshot with the manifest's objects added; objects of the same name are replaced.

    What was not read of the cluster remains a gap: a manifest says nothing of what else there is.
    """
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
        notes=(*base.notes, *manifest.notes),
        sources=(*base.sources, *manifest.sources),
        individual=base.individual | manifest.individual,
        written={**base.written, **manifest.written},
        workloads=(*base.workloads, *manifest.workloads),
    )


def with_kinds(base: Snapshot, more: Snapshot, kinds: Iterable[str]) -> Snapshot:
    """The snapshot with objects of further kinds, read later; ``more`` has gaps for those that could not be read."""
    wanted = frozenset(kinds)
    read = {kind: more.others.get(kind, {}) for kind in wanted if kind in SCHEDULING_KINDS}
    known = {(entry.metadata.namespace, entry.metadata.name): entry for entry in (*base.quotas, *more.quotas)}
    return replace(
        base,
        others=_merged(read, base.others),
        quotas=tuple(known.values()),
        gaps=(
            *(gap for gap in base.gaps if gap.kind not in wanted or gap.reason != ABSENT),
            *(gap for gap in more.gaps if gap.kind in wanted and gap not in base.gaps),
        ),
    )


def _merged(
    base: Mapping[str, Mapping[Key, Any]], more: Mapping[str, Mapping[Key, Any]]
) -> dict[str, Mapping[Key, Any]]:
    return {kind: {**base.get(kind, {}), **more.get(kind, {})} for kind in {**base, **more}}
