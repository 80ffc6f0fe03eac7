"""Whether a taint would work, and what comes in place of the pods that it deletes, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_dra.report.color import Painter
from kubectl_dra.taint.pending_affected import ReplacementPod
from kubectl_dra.text import some

_COMES: Final = (
    ((True, False), "the pod that its owner makes instead fits nowhere", "the pods made instead fit nowhere"),
    (
        (True, None),
        "whether the pod that its owner makes instead gets a place and starts is unknown",
        "whether the pods made instead get a place and start is unknown",
    ),
    ((False, None), "nobody is known to recreate it", "nobody is known to recreate them"),
    ((True, True), "the pod that its owner makes instead has a place", "the pods made instead have a place"),
)
"""By whether a pod is made in place of a deleted one, and whether it fits: what to say of one, and of several."""


def replaced(made: Sequence[ReplacementPod]) -> Iterator[str]:
    """What comes in place of the pods that are deleted."""
    groups: dict[tuple[bool, bool | None], list[ReplacementPod]] = {}
    for replacement in made:
        groups.setdefault((replacement.made, replacement.fits), []).append(replacement)
    for key, one, several in _COMES:
        if like := groups.get(key):
            names = some([replacement.key for replacement in like], 6)
            why = f": {like[0].unread}" if like[0].unread is not None else ""
            yield f"{names}: {one if len(like) == 1 else several}{why}."


_SERVED: Final = {
    None: "Whether it works there is unknown: nothing saved shows that the cluster serves DeviceTaintRules.",
    False: "The taint would not work: the cluster does not serve DeviceTaintRules. If it did:",
}


def write_served(*, served: bool | None, color: str) -> None:
    """Write that the taint would not work, before everything else, or that it may not, behind it."""
    if served is not True:
        Painter(color=color).paragraph(_SERVED[served], style="yellow")
