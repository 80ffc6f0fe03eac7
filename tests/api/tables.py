"""For tests that change a table of the API: what the program worked out from its tables, forgotten."""

from __future__ import annotations

import gc
from functools import _lru_cache_wrapper
from typing import Final

INDEPENDENT: Final = "kubectl_dra.data."
"""Read from files, not from these tables: other tests of the process hold its values."""


def forget() -> None:
    """Empty what is remembered of the tables."""
    # What is frozen is not listed.
    gc.unfreeze()
    for cached in gc.get_objects():
        if not isinstance(cached, _lru_cache_wrapper):
            continue
        module = str(cached.__module__)
        if module.startswith("kubectl_dra.") and not module.startswith(INDEPENDENT):
            cached.cache_clear()
