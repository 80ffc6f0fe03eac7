"""What ``taint`` could not see, in words: the same in text, JSON and warnings."""

from __future__ import annotations

from kubectl_dra.cluster.snapshot import ABSENT, Gap


def why_unread(gap: Gap) -> str:
    """Why objects of a kind are not known."""
    return f"no {gap.kind} in the snapshot" if gap.reason == ABSENT else str(gap)


def not_seen(gap: Gap) -> str:
    """The note about a gap."""
    return why_unread(gap) if gap.reason == ABSENT else f"not seen: {gap}"
