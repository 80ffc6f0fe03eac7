"""What somebody does by itself within seconds: it is normal as long as it has not had the time that it needs."""

from __future__ import annotations

from typing import Final

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.diagnosis import UnderWay
from kubectl_dra.explain.scene.clock import Clock

CLAIM_CONTROLLER: Final = "the resource claim controller"
GROUP_MAKER: Final = "whoever makes the group"
SCHEDULER: Final = "the scheduler"


def under_way(by: str, since: str, snapshot: Snapshot) -> UnderWay | None:
    """Who has been at it since a time of the API; None if that has lasted too long, or nobody knows."""
    clock = Clock(snapshot)
    return UnderWay(by, int(clock.age(since).total_seconds())) if clock.fresh(since) else None
