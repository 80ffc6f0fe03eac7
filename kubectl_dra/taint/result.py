"""What ``taint`` and ``untaint`` did, for reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaint, DeviceTaintRule
from kubectl_dra.command import CommandEffect, CommandLine, deleting, kubectl
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.taint import times
from kubectl_dra.taint.apply import ServerAnswer
from kubectl_dra.taint.blast_radius import Radius
from kubectl_dra.taint.device_taint_rules import EXPIRES, DesiredRule, RuleStage, is_ours, only_device, stage_of
from kubectl_dra.taint.targets import Target
from kubectl_dra.taint.typed import Removal
from kubectl_dra.taint.wait_until_drained import Blocker

# Which rules ``untaint`` removes, and which taints remain: their owners and what ends them.


class Staying(Struct, frozen=True):
    """A taint that remains on the device. ``owner`` names the rule or slice, ``ended_by`` who removes it, or how."""

    device: DeviceID
    taint: DeviceTaint
    owner: str
    ended_by: str
    command: CommandLine | None = None


class Removals(Struct, frozen=True):
    """The rules to delete, with the device of each, and what remains."""

    rules: tuple[tuple[DeviceID, DeviceTaintRule], ...]
    staying: tuple[Staying, ...]


def plan_removals(
    rules: Iterable[DeviceTaintRule], targets: Sequence[Target], removals: Sequence[Removal], *, overwrite: bool
) -> Removals:
    """Our rules for exactly these devices; others' rules only with ``overwrite``, and broader ones never."""
    wanted = {target.id: target for target in targets}
    chosen: list[tuple[DeviceID, DeviceTaintRule]] = []
    staying: list[Staying] = []
    for rule in rules:
        if not any(rule.selects(*id) for id in wanted):
            continue
        device = only_device(rule)
        effects = {rule.taint.effect, stage_of(rule).next_effect} - {""}
        named = any(removal.covers(rule.taint.key, effect) for removal in removals for effect in effects)
        ours = is_ours(rule.metadata)
        if device is not None and named and (ours or overwrite):
            chosen.append((device, rule))
            continue
        owner = f"DeviceTaintRule {rule.metadata.name}"
        for id in [device] if device else [id for id in wanted if rule.selects(*id)]:
            staying.append(Staying(id, rule.taint, owner, *_ended_by(rule, device, named=named, ours=ours)))
    for id, target in wanted.items():
        for taint in target.row.taints if target.row else ():
            if not taint.rule:
                owner = f"driver {id.driver} (ResourceSlice {target.row.slice.name if target.row else ''})"
                staying.append(
                    Staying(id, taint, owner, "the driver removes it when it finds the device healthy, or is restarted")
                )
    return Removals(tuple(chosen), tuple(staying))


def expired(rules: Iterable[DeviceTaintRule], at: datetime) -> list[tuple[DeviceID, DeviceTaintRule]]:
    """Our rules whose time has passed."""
    out: list[tuple[DeviceID, DeviceTaintRule]] = []
    for rule in rules:
        device, time = only_device(rule), times.parse(rule.metadata.annotations.get(EXPIRES, ""))
        if device is not None and is_ours(rule.metadata) and time is not None and time <= at:
            out.append((device, rule))
    return out


def _ended_by(
    rule: DeviceTaintRule, device: DeviceID | None, *, named: bool, ours: bool
) -> tuple[str, CommandLine | None]:
    if device is None:
        return "the rule selects more than this device, and deleting it removes the taint from all", deleting(
            "devicetaintrule", rule.metadata.name
        )
    if not named:
        return "untaint removes it", untainting((device,), f"{rule.taint.key}-", *(() if ours else ("--overwrite",)))
    return "kubectl dra did not make the rule; --overwrite removes it", None


def untainting(devices: Sequence[DeviceID], *words: str) -> CommandLine:
    """The command that takes taints off devices."""
    names = (name for device in devices for name in device)
    about = (*map(str, devices), *words)
    return kubectl("dra", "untaint", *about, others=tuple(names), effect=CommandEffect.WRITES)


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
    desired: DesiredRule
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
    interrupted. ``served``: the cluster serves DeviceTaintRules, None if that is unknown; without, no taint works.
    """

    dry_run: str
    done: tuple[RuleDone, ...]
    radius: Radius
    warnings: tuple[str, ...] = ()
    free: bool | None = None
    blockers: tuple[Blocker, ...] = ()
    held_parts: tuple[str, ...] = ()
    exit_code: int = 0
    served: bool | None = True


class RuleRemoved(Struct, frozen=True):
    """A rule and its outcome, in a dry run the expected one: removed, absent (already gone) or refused."""

    device: DeviceID
    name: str
    taint: DeviceTaint
    outcome: str
    why: str = ""


class Untainted(Struct, frozen=True):
    """The result of one ``untaint``. ``allocatable`` is None without waiting; ``left`` is what blocks it.

    ``allocatable`` means that nothing but claims keeps the devices; ``devices`` are they, as they were then.
    ``expired_only``: only rules whose time has passed were requested; it is normal that there are none.
    """

    dry_run: str
    removed: tuple[RuleRemoved, ...]
    staying: tuple[Staying, ...]
    warnings: tuple[str, ...] = ()
    allocatable: bool | None = None
    left: tuple[str, ...] = ()
    devices: tuple[DeviceRow, ...] = ()
    exit_code: int = 0
    expired_only: bool = False
