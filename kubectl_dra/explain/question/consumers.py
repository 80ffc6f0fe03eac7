"""The consumers of a claim, in words."""

from __future__ import annotations

from typing import Final

from kubectl_dra.api.claims import Consumer, ResourceClaim
from kubectl_dra.explain.phrase import ObjectName, Phrase, say

_KINDS: Final = {"pods": "Pod", "podgroups": "PodGroup"}


def consumers_named(claim: ResourceClaim) -> list[Phrase]:
    """The consumers for which a claim is reserved, according to its status."""
    return [
        say("{resource} {name:bare}", resource=entry.resource, name=_named(claim, entry))
        for entry in claim.reserved_for
    ]


def _named(claim: ResourceClaim, entry: Consumer) -> ObjectName | str:
    kind = _KINDS.get(entry.resource)
    return ObjectName(kind, entry.name, claim.metadata.namespace) if kind else entry.name
