"""Room for deep recursion.

Kubernetes accepts expressions nested 250 levels deep, and each level may need several Python calls.
The work is tried as it is; only when Python's limit is hit is it repeated with a higher limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

_LIMIT = 60_000


def with_room(work: Callable[[], _T]) -> _T:
    """Run ``work``, which must be free of side effects, and repeat it with room if it ran out."""
    try:
        return work()
    except RecursionError:
        pass
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _LIMIT))
    try:
        return work()
    finally:
        sys.setrecursionlimit(before)
