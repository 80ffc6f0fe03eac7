"""Settings of an answer: the scheduler, the node and request asked about, and the supposed changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from kubectl_dra.api.pods import Pod
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from kubectl_dra.explain.question.with_node_flag import Addition


class Settings(Struct, frozen=True):
    """Settings of an answer. ``release_source`` says where the scheduler's release is from.

    ``proved_gates`` are those of its gates that stored objects show to be on, ``taken_gates`` those that are taken to
    be on because objects would have no effect without. ``with_ways`` looks for further changes that would help.
    ``supposed`` are changes that question and snapshot have already, and the cluster has not; ``new_nodes`` those of
    them that add nodes, called ``added``; ``idle`` those that ask for what was asked for already. ``ended`` are the
    pods that they end, as these are, and ``freed`` the claims that they take from pods, each with its pods.
    """

    scheduler: Scheduler
    release_source: str = ""
    node: str = ""
    request: str = ""
    with_devices: bool = False
    proved_gates: frozenset[str] = frozenset()
    taken_gates: frozenset[str] = frozenset()
    with_ways: bool = True
    supposed: tuple[WhatIfChange, ...] = ()
    new_nodes: tuple[Addition, ...] = ()
    added: frozenset[str] = frozenset()
    idle: tuple[WhatIfChange, ...] = ()
    ended: tuple[Pod, ...] = ()
    freed: Mapping[str, tuple[Pod, ...]] = {}
