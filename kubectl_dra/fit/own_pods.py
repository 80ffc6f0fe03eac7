"""A diagnosis without remedies that end pods which were only placed to see whether they fit."""

from __future__ import annotations

from collections.abc import Set

from msgspec.structs import replace

from kubectl_dra.explain.diagnosis import Diagnosis, Finding, Remedy
from kubectl_dra.explain.remedies.free import Free
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.explain.remedies.room import EndPods


def without_own(diagnosis: Diagnosis, own: Set[str]) -> Diagnosis:
    """The diagnosis without what asks for the end of these pods, each as ``namespace/name``."""
    ways = tuple(way for way in diagnosis.ways if not any(_ends(change, own) for change in way.changes))
    return replace(diagnosis, ways=ways, findings=tuple(_finding(one, own) for one in diagnosis.findings))


def _finding(finding: Finding, own: Set[str]) -> Finding:
    remedy = finding.remedy
    if remedy is None or not any(_ends(change, own) for change in remedy.offers):
        return finding
    return replace(finding, remedy=Remedy(finding.kind.fix))


def _ends(change: Change, own: Set[str]) -> bool:
    if isinstance(change, Free):
        return any(pod.key in own for holder in change.holders for pod in holder.pods)
    return isinstance(change, EndPods) and bool(own & set(change.keys))
