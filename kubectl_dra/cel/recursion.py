"""Room for deep recursion.

Kubernetes accepts expressions nested 250 levels deep, and each level may need several Python calls. Work runs
with the normal recursion limit first, and is repeated with a higher one only if it hits that limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

_LIMIT = 60_000


def with_room(work: Callable[[], _T]) -> _T:
    """Run ``work``, and repeat it with a higher recursion limit if needed. ``work`` must have no side effects."""
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
