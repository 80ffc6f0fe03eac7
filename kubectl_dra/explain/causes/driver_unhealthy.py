"""The driver itself is broken on a node; ``explain/drivers_first.py`` finds it."""

from __future__ import annotations

from typing import Final

from kubectl_dra.explain.diagnosis import CauseKind, Family, Look

UNHEALTHY: Final = CauseKind(code="driver-unhealthy", family=Family.POOLS, look=Look.DRIVERS)
