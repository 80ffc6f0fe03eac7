"""A request for all devices meets one that cannot be had. The finders of taints, holders and counters find it."""

from __future__ import annotations

from kubectl_dra.explain.diagnosis import CauseKind, Family

ALL_INCOMPLETE = CauseKind(
    code="all-not-possible",
    title="A request for all devices meets one that cannot be had",
    why="Mode All needs every matching device of the node: one that is held, tainted or short of counters fails it.",
    fix="Exclude the device by a selector, or ask for a count.",
    seen_as="cannot allocate all claims",
    family=Family.DEVICES,
    held=True,
)
