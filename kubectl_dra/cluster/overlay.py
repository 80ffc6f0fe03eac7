"""A manifest laid over a snapshot: what would be, if it were applied."""

from __future__ import annotations

from dataclasses import replace

from kubectl_dra.cluster.snapshot import ABSENT, Snapshot


def overlay(base: Snapshot, manifest: Snapshot) -> Snapshot:
    """The snapshot with the manifest's objects added; an object of the same name is replaced.

    Kinds that only the manifest brings stay gaps of the snapshot, except where the manifest is all there is
    to know: a template, class or claim that it holds.
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
        gaps=tuple(gap for gap in base.gaps if not (gap.reason == ABSENT and gap.kind in brought)),
        notes=(*base.notes, *manifest.notes),
        sources=(*base.sources, *manifest.sources),
        individual=base.individual | manifest.individual,
    )
