"""What ``taint`` and ``untaint`` did, for reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.taint.blast_radius import Radius
from kubectl_dra.taint.drain import Blocker
from kubectl_dra.taint.removing import Staying
from kubectl_dra.taint.rules import RuleStage, Wish, stage_of
from kubectl_dra.taint.server_prediction import ServerAnswer
from kubectl_dra.taint.targets import Target

SCHEMA_VERSION: Final = "2"
SKIPPED: Final = "skipped"
REMOVED: Final = "removed"
ABSENT: Final = "absent"


class RuleDone(Struct, frozen=True):
    """One device and its rule. ``outcome`` is created, changed, unchanged, refused (with ``why``), or skipped
    because another rule was refused. In a dry run it is what would come of it.

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

    @property
    def stage(self) -> RuleStage:
        """The effect that the rule has, and the one that follows."""
        return stage_of(DeviceTaintRule.from_json(self.rule))


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
    """A rule and its outcome, in a dry run the expected one: removed, absent (already gone) or refused."""

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
