"""Limits of the API that are wanted without the types they belong to."""

from __future__ import annotations

from typing import Final

MAX_RESULTS: Final = 32
"""Devices in one claim's allocation (``AllocationResultsMaxSize``)."""
