"""What ``taint`` could not see, in words: the same in text, JSON and warnings."""

from __future__ import annotations

from kubectl_dra.cluster.snapshot import Gap


def why_unread(gap: Gap) -> str:
    """Why objects of a kind are not known."""
    return f"{gap}{gap.help}"


def not_seen(gap: Gap) -> str:
    """The note about a gap."""
    return f"not seen: {why_unread(gap)}"
