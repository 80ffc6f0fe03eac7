"""What ``taint`` and ``untaint`` did, for reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.taint.blast_radius import Radius
from kubectl_dra.taint.drain import Blocker
from kubectl_dra.taint.removing import Staying
from kubectl_dra.taint.rules import Wish
from kubectl_dra.taint.server_prediction import ServerAnswer
from kubectl_dra.taint.targets import Target

SCHEMA_VERSION: Final = "1"
PLANNED: Final = "planned"
REFUSED: Final = "refused"
REMOVED: Final = "removed"
ABSENT: Final = "absent"


class RuleDone(Struct, frozen=True):
    """One device and its rule. ``outcome`` is planned, created, changed, unchanged or refused (with ``why``).

    ``rule`` is the object as the server has it, or as it would be sent. ``server`` is the server's answer to
    the effect None, ``predicted`` the expected number of deleted pods.
    """

    target: Target
    wish: Wish
    outcome: str
    rule: Mapping[str, Any]
    why: str = ""
    server: ServerAnswer | None = None
    predicted: int | None = None


class Tainted(Struct, frozen=True):
    """The result of one ``taint``. ``free`` is None without waiting.

    ``held_parts`` says who holds devices that may be the same hardware. ``exit_code`` is 2 if it was
    interrupted.
    """

    dry_run: str
    done: tuple[RuleDone, ...]
    radius: Radius
    warnings: tuple[str, ...] = ()
    free: bool | None = None
    blockers: tuple[Blocker, ...] = ()
    held_parts: tuple[str, ...] = ()
    exit_code: int = 0


class RuleRemoved(Struct, frozen=True):
    """A rule and its outcome: planned, removed, absent (already gone) or refused."""

    device: DeviceID
    name: str
    taint: str
    outcome: str
    why: str = ""


class Untainted(Struct, frozen=True):
    """The result of one ``untaint``. ``allocatable`` is None without waiting; ``left`` is what blocks it.

    ``expired_only``: only rules whose time has passed were requested; it is normal that there are none.
    """

    dry_run: str
    removed: tuple[RuleRemoved, ...]
    staying: tuple[Staying, ...]
    warnings: tuple[str, ...] = ()
    allocatable: bool | None = None
    left: tuple[str, ...] = ()
    exit_code: int = 0
    expired_only: bool = False
