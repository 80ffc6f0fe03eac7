"""What ``untaint`` does: find our rules, delete them, say what stays, wait until the devices can be given again."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import BLOCKING_EFFECTS, DeviceTaint
from kubectl_dra.cli import taint_session as session
from kubectl_dra.cli.options import Connection
from kubectl_dra.cli.taint import FOREVER
from kubectl_dra.cli.taint_session import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_LEFT, Selection, World, confirmed, say
from kubectl_dra.cluster.client import Answered
from kubectl_dra.cluster.snapshot import FORBIDDEN, UNREADABLE
from kubectl_dra.cluster.writer import Writer
from kubectl_dra.errors import ClusterError, UsageError
from kubectl_dra.explain.inventory import FREE, HELD, SHARED, taint_owner
from kubectl_dra.report import taint_text as text
from kubectl_dra.taint import times
from kubectl_dra.taint.apply import KIND, Refused, Rules
from kubectl_dra.taint.patience import Patience, TimedOut
from kubectl_dra.taint.removing import Removals, expired, plan_removals
from kubectl_dra.taint.result import ABSENT, PLANNED, REFUSED, REMOVED, RuleRemoved, Untainted
from kubectl_dra.taint.spec import Removal, read_words

if TYPE_CHECKING:
    from kubectl_dra.cli import taint_run

LOOK_SECONDS = 2.0
_SEEN_KINDS = ("ResourceSlice", "ResourceClaim", "DeviceTaintRule", "Node")
_DECISIVE = ("ResourceSlice", "DeviceTaintRule")


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line of one ``untaint``."""

    words: tuple[str, ...] = ()
    selection: Selection = field(default_factory=Selection)
    expired: bool = False
    overwrite: bool = False
    wait: str = ""
    yes: bool = False
    dry_run: str = "none"
    field_manager: str = "kubectl-dra"
    namespace: str = ""


def from_taint(asked: taint_run.Asked) -> Asked:
    """``taint DEVICE KEY-`` as ``untaint``.

    Raises:
        UsageError: a flag that only makes sense for adding.
    """
    for given, flag in (
        (asked.reason, "--reason"),
        (asked.ticket, "--ticket"),
        (asked.expires, "--expires"),
        (asked.drain, "--drain"),
        (asked.snapshots, "--snapshot"),
    ):
        if given:
            raise UsageError(f"{flag} goes with a taint to add, not with one to remove")
    return Asked(
        words=asked.words,
        selection=asked.selection,
        overwrite=asked.overwrite,
        wait=asked.wait,
        yes=asked.yes,
        dry_run=asked.dry_run,
        field_manager=asked.field_manager,
        namespace=asked.namespace,
    )


def run(asked: Asked, connection: Connection, output: str, color: str) -> int:
    """Removes and reports; returns the exit code.

    Raises:
        DraError: wrong usage, devices that do not exist, a cluster that does not answer.
    """
    words = read_words(asked.words)
    if words.taints:
        raise UsageError(f'"{words.taints[0]}" is a taint to add; to remove it write {words.taints[0].key}-')
    if asked.expired and (asked.words or asked.selection):
        raise UsageError("--expired is about every rule whose time is over; leave devices and keys out")
    if asked.wait and asked.wait != FOREVER:
        times.seconds(asked.wait, "--wait")
    started = time.monotonic()
    deadline = None if asked.wait in ("", FOREVER) else started + times.seconds(asked.wait, "--wait")
    kinds = [*_SEEN_KINDS]
    kinds += ["DeviceClass"] if asked.selection.classes else []
    kinds += ["Pod"] if asked.selection.pods else []
    world = session.read_world(connection, asked.namespace, (), kinds=kinds)
    assert world.cluster is not None
    assert world.serving is not None
    session.say_gaps(world)
    raw_rules = world.cluster.objects(KIND)
    if asked.expired:
        plan = Removals(tuple(expired(raw_rules, times.now())), ())
    else:
        targets = session.resolve(world, words.devices, asked.selection)
        plan = plan_removals(raw_rules, targets, words.removals or (Removal(),), overwrite=asked.overwrite)
        if asked.selection and len(plan.rules) > 1 and asked.dry_run == "none":
            for device, raw in plan.rules:
                say(f"{device}: DeviceTaintRule {raw['metadata']['name']}")
            if not confirmed(f"Remove these {len(plan.rules)} rules?", yes=asked.yes):
                say("nothing was changed")
                return EXIT_LEFT
    writer = Writer(world.cluster.client, asked.field_manager, dry_run=asked.dry_run == "server")
    rules = Rules(world.cluster, writer, world.serving.version)
    result = Untainted(asked.dry_run, (), plan.staying, expired_only=asked.expired)
    removed: list[RuleRemoved] = []
    try:
        try:
            for device, raw in plan.rules:
                with world.cluster.client.until(deadline):
                    removed.append(_remove(rules, device, raw, asked.dry_run))
        except ClusterError:
            # What was done before is told, and then what went wrong.
            if removed:
                _report(replace(result, removed=tuple(removed), exit_code=EXIT_ERROR), output, color)
            raise
        # Whoever looks for expired rules now and then is done when there are none.
        code = (
            EXIT_LEFT
            if (not removed and not asked.expired) or any(entry.outcome == REFUSED for entry in removed)
            else 0
        )
        result = replace(result, removed=tuple(removed), exit_code=code)
        if asked.wait and asked.dry_run == "none" and (removed or not asked.expired):
            ids = list(dict.fromkeys([*(device for device, _ in plan.rules), *_named(world, asked, words.devices)]))
            result = _wait(world, ids, deadline, result)
    except KeyboardInterrupt:
        say("")
        say("interrupted: run the same command again to go on from here")
        return EXIT_INTERRUPTED
    _report(result, output, color)
    return result.exit_code


def _remove(rules: Rules, device: DeviceID, raw: Mapping[str, Any], dry_run: str) -> RuleRemoved:
    name = str(raw["metadata"]["name"])
    taint = str(DeviceTaint.from_json(raw["spec"]["taint"]))
    if dry_run == "client":
        return RuleRemoved(device, name, taint, PLANNED)
    try:
        return RuleRemoved(device, name, taint, REMOVED if rules.delete(raw) else ABSENT)
    except Refused as stop:
        return RuleRemoved(device, name, taint, REFUSED, str(stop))


def _named(world: World, asked: Asked, names: Sequence[str]) -> list[DeviceID]:
    return [] if asked.expired else [target.id for target in session.resolve(world, names, asked.selection)]


def _wait(world: World, ids: Sequence[DeviceID], deadline: float | None, result: Untainted) -> Untainted:
    """Waits until no taint keeps the devices back and their pools are usable, as ``devices`` and ``explain`` see it."""
    assert world.cluster is not None
    patience = Patience(say, deadline, limit=world.cluster.client.until)
    told: tuple[str, ...] = ()
    try:
        while True:
            left = patience.ask(lambda: _in_the_way(world, ids))
            if not left:
                # Having nothing left to remove is fine for somebody who waits.
                code = EXIT_LEFT if any(entry.outcome == REFUSED for entry in result.removed) else 0
                return replace(result, allocatable=True, exit_code=code)
            if left != told:
                for sentence in left:
                    say(f"waiting: {sentence}")
                told = left
            if patience.expired():
                break
            patience.pause(LOOK_SECONDS)
    except TimedOut:
        told = told or ("the API server did not answer",)
    return replace(result, allocatable=False, left=told, exit_code=EXIT_LEFT)


def _in_the_way(world: World, ids: Sequence[DeviceID]) -> tuple[str, ...]:
    assert world.cluster is not None
    snapshot = world.cluster.read_snapshot(_SEEN_KINDS)
    for gap in snapshot.gaps:
        # What was not read must not look as if nothing were there.
        if gap.kind in _DECISIVE and gap.reason in (FORBIDDEN, UNREADABLE):
            raise Answered(403 if gap.reason == FORBIDDEN else 503, gap.detail)
    now = session.make_world(snapshot, world.namespace)
    out: list[str] = []
    for id in ids:
        target = now.devices.get(id)
        row = target.row if target else None
        if row is None:
            out.append(f"{id} is not published")
            continue
        blocking = [taint for taint in row.taints if taint.effect in BLOCKING_EFFECTS]
        out.extend(f"{id} has taint {taint} ({taint_owner(taint)})" for taint in blocking)
        if not blocking and row.state not in (FREE, SHARED, HELD):
            out.append(f"{id} is {row.state}: {row.reason}")
    return tuple(out)


def _report(result: Untainted, output: str, color: str) -> None:
    if output == "text":
        text.write_untainted(result, color)
    elif output == "name":
        text.write_removed_names(result, sys.stdout)
    else:
        from kubectl_dra.report.explain_json import write
        from kubectl_dra.report.taint_json import untainted_json

        write(untainted_json(result), output, sys.stdout)
