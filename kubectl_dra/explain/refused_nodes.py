"""Why nodes refuse a pod, and how many nodes each reason has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kubectl_dra.explain.diagnosis import Evidence
from kubectl_dra.explain.phrase import Joined, Words, nodes_named, say

_SAID: Final = 3
_PROVED_BY: Final = 6


class RefusingNodes(NamedTuple):
    """The nodes that refuse the pod for the same reason."""

    reason: Words
    nodes: tuple[str, ...]


def by_reason(reasons: Mapping[str, Words]) -> list[RefusingNodes]:
    """The nodes grouped by their reason, the reason with the most nodes first."""
    found: dict[Words, list[str]] = {}
    for name, reason in reasons.items():
        found.setdefault(reason, []).append(name)
    groups = [RefusingNodes(reason, tuple(names)) for reason, names in found.items()]
    return sorted(groups, key=lambda group: -len(group.nodes))


def counted(groups: Sequence[RefusingNodes]) -> Words:
    """The reasons, each with its number of nodes; a single one without, because it covers all."""
    if len(groups) == 1:
        return groups[0].reason
    said = [say("{reason} ({count:node})", reason=group.reason, count=len(group.nodes)) for group in groups[:_SAID]]
    more = len(groups) - len(said)
    # Reasons have commas of their own.
    return say("{said} and {more:more reason}" if more else "{said}", said=Joined(tuple(said)), more=more)


def evidence(groups: Sequence[RefusingNodes]) -> tuple[Evidence, ...]:
    """One fact for each of the first reasons."""
    return tuple(
        Evidence(say("{names:some}", names=nodes_named(group.nodes)), "rejects the pod", group.reason)
        for group in groups[:_PROVED_BY]
    )
