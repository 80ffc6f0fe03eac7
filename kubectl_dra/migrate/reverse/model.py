"""Data for planning the reverse migration: claims of a pod, and why an object stays unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.manifests.changes import Path
from kubectl_dra.manifests.objects import ObjectKey
from kubectl_dra.migrate.model import PlanRefusal, Share

BY_HAND: Final = "Take the manifest from before out of version control, or write the resource and remove the claim."


class MadeClaim(NamedTuple):
    """A claim of a pod: its index in the list, its object, and its requests."""

    place: int
    name: str
    key: ObjectKey
    share: Share
    requests: Mapping[str, Mapping[str, Any]]


class Stop(Exception):
    """Why an object stays unchanged."""

    def __init__(self, code: str, path: Path, message: str, way_out: str = BY_HAND) -> None:
        self.refusal = PlanRefusal(code, path, message, way_out)


def items_of(value: Any) -> Sequence[Any]:
    """The items of a list; none for anything else."""
    return value if isinstance(value, list) else ()
