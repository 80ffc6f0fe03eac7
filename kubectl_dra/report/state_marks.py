"""Devices as a row of marks, one each or in proportion: a picture that needs no colour and no more than ASCII."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from kubectl_dra.explain.devices.device_state import DeviceState

MARKS: Final = {
    DeviceState.FREE: "o",
    DeviceState.SHARED: "+",
    DeviceState.HELD: "#",
    DeviceState.TAINTED: "!",
    DeviceState.BLOCKED: ":",
    DeviceState.UNUSABLE: "x",
    DeviceState.UNKNOWN: "?",
}
CELLS: Final = 40
"""Room for the marks of one row."""


def bar(states: Sequence[DeviceState], cells: int = CELLS) -> str:
    """A mark for each device, in their order; of more devices than ``cells``, each state has its share."""
    if len(states) <= cells:
        return "".join(MARKS[state] for state in states)
    counts = Counter(states)
    # Whatever occurs has a mark, however rare it is; the most frequent one takes what is left.
    most = max(counts, key=lambda state: counts[state])
    shares = {state: max(1, count * cells // len(states)) for state, count in counts.items()}
    shares[most] += cells - sum(shares.values())
    return "".join(MARKS[state] * shares[state] for state in DeviceState if state in shares)


def legend(states: Iterable[DeviceState]) -> str:
    """What the marks mean, of the states that occur."""
    found = {*states}
    return "  ".join(f"{MARKS[state]} {state}" for state in DeviceState if state in found)
