"""Which node taints a pod tolerates (core/v1, KEP-5471)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from kubectl_dra.api.nodes import NodeTaint, Toleration

COMPARISON: Final = "TaintTolerationComparisonOperators"
"""The feature gate of the operators Lt and Gt."""
COMPARING: Final = ("Lt", "Gt")
_BLOCKING: Final = ("NoSchedule", "NoExecute")
_INTEGER: Final = re.compile(r"(?:0|-?[1-9][0-9]*)\Z")
_INT64: Final = 1 << 63


def untolerated(
    taints: Iterable[NodeTaint], tolerations: Sequence[Toleration], *, comparing: bool = False
) -> NodeTaint | None:
    """The first taint that keeps a pod with these tolerations off a node; None if there is none.

    ``comparing``: the operators Lt and Gt are supported.
    """
    for taint in taints:
        if taint.effect in _BLOCKING and not tolerated(taint, tolerations, comparing=comparing):
            return taint
    return None


def tolerated(taint: NodeTaint, tolerations: Iterable[Toleration], *, comparing: bool = False) -> bool:
    """Whether one of the tolerations covers the taint."""
    return any(tolerates(entry, taint, comparing=comparing) for entry in tolerations)


def tolerates(toleration: Toleration, taint: NodeTaint, *, comparing: bool = False) -> bool:
    """Whether a toleration covers a taint. An empty effect or key matches any."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator or "Equal"
    if operator == "Exists":
        return True
    if operator == "Equal":
        return toleration.value == taint.value
    if operator in COMPARING and comparing:
        bound, value = _integer(toleration.value), _integer(taint.value)
        if bound is None or value is None:
            return False
        return value < bound if operator == "Lt" else value > bound
    return False


def _integer(text: str) -> int | None:
    if not _INTEGER.match(text):
        return None
    value = int(text)
    return value if -_INT64 <= value < _INT64 else None
