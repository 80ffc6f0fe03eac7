"""What a snapshot does not know, for tests to compare."""

from __future__ import annotations

from kubectl_dra.cluster.snapshot import Snapshot


def gap_reason(snapshot: Snapshot, kind: str) -> str:
    """Why a kind is not known completely, with the detail; empty if it is."""
    gap = snapshot.missing(kind)
    if gap is None:
        return ""
    return f"{gap.reason}: {gap.detail}" if gap.detail else gap.reason
