"""Every taint of a cluster: device, owner, reason, since when, until when, and affected pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from kubectl_dra.api.behaviour import RULE_FOR_ALL
from kubectl_dra.api.slices import DeviceID, hardware_id
from kubectl_dra.api.taints import DeviceTaint, DeviceTaintRule
from kubectl_dra.cluster.claim_relation import consumers_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.taint import times
from kubectl_dra.taint.device_taint_rules import (
    EXPIRES,
    HARDWARE,
    NEXT_AT,
    NEXT_EFFECT,
    REASON,
    TICKET,
    is_ours,
    only_device,
)

DRIVER: Final = "driver"
RULE: Final = "rule"


class TaintLine(Struct, frozen=True):
    """One taint that a driver set on one device, or one DeviceTaintRule with all devices that it selects.

    ``owner`` is "driver" or "rule", ``name`` the ResourceSlice or the rule. ``selects`` describes what a rule
    selects if it is not a single device. ``pods`` are the users, as ``namespace/name``.
    """

    owner: str
    name: str
    taint: DeviceTaint
    devices: tuple[DeviceID, ...]
    selects: str = ""
    where: str = ""
    ours: bool = False
    reason: str = ""
    ticket: str = ""
    since: str = ""
    expires: str = ""
    expired: bool = False
    next_effect: str = ""
    next_at: str = ""
    pods: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def list_taints(rows: Sequence[DeviceRow], snapshot: Snapshot, at: datetime) -> list[TaintLine]:
    """Rules that can select several devices first, by name; then by device, rules before drivers' taints."""
    users = _users(snapshot)
    by_id = {row.id: row for row in rows}
    lines = [
        _rule(rule, rows, by_id, users, at)
        for rule in sorted(snapshot.taint_rules, key=lambda rule: rule.metadata.name)
    ]
    for row in sorted(by_id.values(), key=lambda row: row.id):
        for taint in row.taints:
            if not taint.rule:
                lines.append(
                    TaintLine(
                        owner=DRIVER,
                        name=row.slice.name,
                        taint=taint,
                        devices=(row.id,),
                        where=row.where,
                        since=taint.time_added,
                        pods=_pods([row.id], users),
                    )
                )
    lines.sort(key=lambda line: (not line.selects, line.devices if not line.selects else (), line.owner == DRIVER))
    return lines


def _rule(
    rule: DeviceTaintRule,
    rows: Sequence[DeviceRow],
    by_id: dict[DeviceID, DeviceRow],
    users: dict[DeviceID, list[str]],
    at: datetime,
) -> TaintLine:
    notes = rule.metadata.annotations
    device = only_device(rule)
    devices = (device,) if device else tuple(dict.fromkeys(row.id for row in rows if rule.selects(*row.id)))
    held = devices if device else tuple(id for id in users if rule.selects(*id))
    row = by_id.get(device) if device else None
    expires = times.parse(notes.get(EXPIRES, ""))
    warnings: list[str] = []
    if device is not None and row is None:
        warnings.append("no driver publishes this device now")
    recorded, actual = notes.get(HARDWARE, ""), hardware_id(row.device) if row else ""
    if recorded and actual and recorded != actual:
        warnings.append(f"the name now belongs to other hardware: {actual}; the rule was made for {recorded}")
    if device is None:
        warnings.append(_breadth(rule, len(devices)))
    if expires is not None and expires <= at:
        warnings.append("it has expired: untaint --expired removes it")
    return TaintLine(
        owner=RULE,
        name=rule.metadata.name,
        taint=rule.taint,
        devices=devices,
        selects="" if device else _selects(rule),
        where=row.where if row else "",
        ours=is_ours(rule.metadata),
        reason=notes.get(REASON, ""),
        ticket=notes.get(TICKET, ""),
        since=rule.taint.time_added or rule.metadata.creation_timestamp,
        expires=notes.get(EXPIRES, ""),
        expired=expires is not None and expires <= at,
        next_effect=notes.get(NEXT_EFFECT, ""),
        next_at=notes.get(NEXT_AT, ""),
        pods=_pods(held, users),
        warnings=tuple(warnings),
    )


def _breadth(rule: DeviceTaintRule, count: int) -> str:
    if rule.unmodelled:
        return f"it selects by {', '.join(rule.unmodelled)}, which is not modelled"
    if rule.selector is None:
        return f"it has no deviceSelector: schedulers before {RULE_FOR_ALL.fixes[0]} take it to select every device"
    if not any(rule.selector):
        return "its deviceSelector is empty: it selects every device of the cluster"
    return f"it selects {count} published device{'' if count == 1 else 's'}, and any that appears later"


def _selects(rule: DeviceTaintRule) -> str:
    if rule.selector is None:
        return "no selector"
    parts = [f"{what} {name}" for what, name in zip(("driver", "pool", "device"), rule.selector, strict=True) if name]
    return ", ".join(parts) or "every device"


def _users(snapshot: Snapshot) -> dict[DeviceID, list[str]]:
    """The pods that use each allocated device, and its other users; pods that have ended do not use it."""
    out: dict[DeviceID, list[str]] = {}
    for claim in snapshot.claims.values():
        space = claim.metadata.namespace
        pods = [
            f"{space}/{use.entry.name}" + ("" if use.relation.of_pod else f" ({use.entry.resource})")
            for use in consumers_of(claim, snapshot.pods).entries
            if not use.relation.stale
        ]
        for result in claim.results:
            out.setdefault(result.device, []).extend(pods)
    return out


def _pods(devices: Iterable[DeviceID], users: dict[DeviceID, list[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pod for device in devices for pod in users.get(device, ())))
