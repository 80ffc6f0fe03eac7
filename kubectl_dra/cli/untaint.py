"""``untaint``: find our rules, delete them, list what remains, wait until only claims keep the devices."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

from msgspec.structs import asdict, replace

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import BLOCKING_EFFECTS, DeviceTaintRule
from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.taint import DeviceFlags, TaintFlags, UntaintFlags, session
from kubectl_dra.cli.taint.session import TaintedCluster, confirmed
from kubectl_dra.cluster.client import Answered
from kubectl_dra.cluster.snapshot import FORBIDDEN, UNREADABLE
from kubectl_dra.cluster.time_read import moment
from kubectl_dra.cluster.writer import Writer
from kubectl_dra.command import ClusterFlags
from kubectl_dra.errors import ClusterError, InputError, UndeterminedError, UsageError
from kubectl_dra.exit_codes import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_NO
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.explain.phrase import with_owner
from kubectl_dra.report import taint_text as text
from kubectl_dra.report.color import tell
from kubectl_dra.report.phrases import written
from kubectl_dra.taint import times
from kubectl_dra.taint.apply import RuleRefused, RuleWriter
from kubectl_dra.taint.device_taint_rules import KIND, REFUSED
from kubectl_dra.taint.result import ABSENT, REMOVED, Removals, RuleRemoved, Untainted, expired, plan_removals
from kubectl_dra.taint.steady_watches import REFRESH_SECONDS, Patience, TimedOut, Watcher
from kubectl_dra.taint.typed import Removal, Words, read_words
from kubectl_dra.taint.wait_until_drained import slices_of

LOOK_SECONDS = 2.0
_SEEN_KINDS = ("ResourceSlice", "ResourceClaim", "DeviceTaintRule", "Node")
_LEFT_TO_CLAIMS = (DeviceState.FREE, DeviceState.SHARED, DeviceState.HELD, DeviceState.UNSERVED, DeviceState.UNKNOWN)
_DECISIVE = ("ResourceSlice", "DeviceTaintRule")


def from_taint(flags: TaintFlags) -> UntaintFlags:
    """``taint DEVICE KEY-`` as ``untaint``. Raises UsageError: a flag that only makes sense for adding."""
    for given, flag in (
        (flags.reason, "--reason"),
        (flags.ticket, "--ticket"),
        (flags.expires, "--expires"),
        (flags.drain, "--drain"),
    ):
        if given:
            raise UsageError(f"{flag} goes with a taint to add, not with one to remove")
    own = UntaintFlags.__struct_fields__
    return UntaintFlags(**{name: value for name, value in asdict(flags).items() if name in own})


def run(flags: UntaintFlags, connection: ConnectionFlags) -> int:
    """Remove and report; returns the exit code."""
    output, color = flags.output.value, flags.color.value
    words = _checked(flags)
    where = cluster_flags(flags, connection)
    started = time.monotonic()
    deadline = None if flags.wait in ("", times.FOREVER) else started + times.seconds(flags.wait, "--wait")
    tainted = session.read_tainted(connection, flags, kinds=_kinds(flags))
    session.say_gaps(tainted)
    plan, ids = _plan(tainted, flags, words)
    if flags.select and len(plan.rules) > 1 and flags.dry_run == "none" and not _agreed(plan, yes=flags.yes):
        tell("nothing was changed")
        return EXIT_NO
    result = Untainted(flags.dry_run.value, (), plan.staying, expired_only=flags.expired)
    removed: list[RuleRemoved] = []
    try:
        for removal in _removals(tainted, flags, plan, deadline):
            removed.append(removal)
            if output == "text":
                text.write_removed(removal, flags.dry_run)
        # Whoever looks for expired rules now and then is done when there are none.
        remains = not removed and not flags.expired
        refused = any(removal.outcome == REFUSED for removal in removed)
        result = replace(result, removed=tuple(removed), exit_code=EXIT_NO if remains or refused else 0)
        if output == "text":
            text.write_staying(result, color, where=where)
        if flags.wait and flags.dry_run == "none" and (removed or not flags.expired):
            result = _wait(tainted, ids, deadline, result)
    except ClusterError:
        # What was done before is told, and then what went wrong.
        if removed:
            _report(replace(result, removed=tuple(removed), exit_code=EXIT_ERROR), output, color, where)
        raise
    except KeyboardInterrupt:
        tell("")
        if removed:
            _report(replace(result, removed=tuple(removed), exit_code=EXIT_INTERRUPTED), output, color, where)
        tell("interrupted: run the same command again to go on from here")
        return EXIT_INTERRUPTED
    _report(result, output, color, where)
    return result.exit_code


def _checked(flags: UntaintFlags) -> Words:
    """The parsed arguments. Raises UsageError for contradictions."""
    words = read_words(flags.words, removing=True)
    if flags.expired and (flags.words or flags.select):
        raise UsageError("--expired is about every rule whose time is over; leave devices and keys out")
    if flags.snapshots and flags.dry_run != "client":
        raise UsageError("--snapshot goes with --dry-run=client only: nothing can be removed from saved objects")
    if flags.wait and flags.wait != times.FOREVER:
        times.seconds(flags.wait, "--wait")
    return words


def _kinds(selection: DeviceFlags) -> list[str]:
    extra = [kind for kind, given in (("DeviceClass", selection.classes), ("Pod", selection.pods)) if given]
    return [*_SEEN_KINDS, *extra]


def _plan(tainted: TaintedCluster, flags: UntaintFlags, words: Words) -> tuple[Removals, list[DeviceID]]:
    """What to remove, and the devices concerned, with or without rules."""
    rules = tainted.snapshot.taint_rules
    if tainted.cluster is None and (hidden := tainted.snapshot.unread(("DeviceTaintRule",))):
        raise UndeterminedError(f"{hidden[0]}, so which rules there are to remove is unknown{hidden[0].help}")
    if tainted.cluster is not None:
        # Not from the snapshot: rules that may not be listed must not look as if there were none.
        rules = tuple(DeviceTaintRule.from_json(raw) for raw in tainted.cluster.objects(KIND))
    if flags.expired:
        over = tuple(expired(rules, moment(tainted.snapshot).at))
        return Removals(over, ()), list(dict.fromkeys(device for device, _ in over))
    try:
        targets = session.resolve(tainted, words.devices, flags)
    except InputError as error:
        told = InputError(f"{error}{_meant_as_key(tainted, words.devices)}")
        told.commands = error.commands
        raise told from None
    plan = plan_removals(rules, targets, words.removals or (Removal(),), overwrite=flags.overwrite)
    return plan, [target.id for target in targets]


def _meant_as_key(tainted: TaintedCluster, names: Sequence[str]) -> str:
    """A hint if an argument taken for a device may be the key of a taint, without its ``-``."""
    keys = {taint.key for row in tainted.inventory.rows for taint in row.taints}
    for index, name in enumerate(names):
        if not tainted.devices.knows(name) and (index or name in keys):
            return f". To remove a taint with this key write {name}-"
    return ""


def _agreed(plan: Removals, *, yes: bool) -> bool:
    for device, rule in plan.rules:
        tell(f"{device}: DeviceTaintRule {rule.metadata.name}")
    return confirmed(f"Remove these {len(plan.rules)} rules?", yes=yes)


def _removals(
    tainted: TaintedCluster, flags: UntaintFlags, plan: Removals, deadline: float | None
) -> Iterator[RuleRemoved]:
    """Remove one rule after another, or only report it. Raises ClusterError."""
    if tainted.cluster is None or tainted.serving is None or flags.dry_run == "client":
        for device, rule in plan.rules:
            yield RuleRemoved(device, rule.metadata.name, rule.taint, REMOVED)
        return
    writer = Writer(tainted.cluster.client, flags.field_manager, dry_run=flags.dry_run == "server")
    rules = RuleWriter(tainted.cluster, writer, tainted.serving.version)
    for device, rule in plan.rules:
        with tainted.cluster.client.until(deadline):
            yield _remove(rules, device, rule)


def _remove(rules: RuleWriter, device: DeviceID, rule: DeviceTaintRule) -> RuleRemoved:
    name, taint = rule.metadata.name, rule.taint
    try:
        return RuleRemoved(device, name, taint, REMOVED if rules.delete(rule.metadata) else ABSENT)
    except RuleRefused as stop:
        return RuleRemoved(device, name, taint, REFUSED, str(stop))


def _wait(tainted: TaintedCluster, ids: Sequence[DeviceID], deadline: float | None, result: Untainted) -> Untainted:
    """Wait until no taint blocks the devices and their pools are usable, as ``devices`` and ``explain`` see it."""
    assert tainted.cluster is not None
    patience = Patience(tell, deadline, limit=tainted.cluster.client.until)
    reported: tuple[str, ...] = ()
    with Watcher(tainted.cluster, patience) as watcher:
        try:
            while True:
                obstacles, rows = patience.ask(lambda: _looked_at(tainted, ids))
                if not obstacles:
                    break
                if obstacles != reported:
                    for sentence in obstacles:
                        tell(f"waiting: {sentence}")
                    reported = obstacles
                if patience.expired():
                    return replace(result, allocatable=False, left=reported, exit_code=EXIT_NO)
                watcher.follow("DeviceTaintRule", whole=True)
                watcher.follow("ResourceSlice", query=slices_of(ids), whole=True)
                watcher.pause(REFRESH_SECONDS, unwatched=LOOK_SECONDS)
        except TimedOut:
            reported = reported or ("the API server did not answer",)
            return replace(result, allocatable=False, left=reported, exit_code=EXIT_NO)
    # Having nothing left to remove is fine for somebody who waits.
    code = EXIT_NO if any(removal.outcome == REFUSED for removal in result.removed) else 0
    return replace(result, allocatable=True, devices=rows, exit_code=code)


def _looked_at(tainted: TaintedCluster, ids: Sequence[DeviceID]) -> tuple[tuple[str, ...], tuple[DeviceRow, ...]]:
    """What is in the way now, and the devices."""
    assert tainted.cluster is not None
    snapshot = tainted.cluster.read_snapshot(_SEEN_KINDS)
    for gap in snapshot.gaps:
        # What was not read must not look as if nothing were there.
        if gap.kind in _DECISIVE and gap.reason in (FORBIDDEN, UNREADABLE):
            raise Answered(403 if gap.reason == FORBIDDEN else 503, gap.detail)
    now = session.tainted_cluster(snapshot, tainted.namespace)
    out: list[str] = []
    rows: list[DeviceRow] = []
    for id in ids:
        target = now.devices.get(id)
        row = target.row if target else None
        if row is None:
            out.append(f"{id} is not published")
            continue
        rows.append(row)
        blocking = [taint for taint in row.taints if taint.effect in BLOCKING_EFFECTS]
        out.extend(f"{id} has taint {written(with_owner(taint))}" for taint in blocking)
        # A claim that holds the device is not waited for, so it need not be known.
        if not blocking and (row.state not in _LEFT_TO_CLAIMS or row.also_unusable):
            out.append(f"{id} is {row.state}: {written(row.reason)}")
    return tuple(out), tuple(rows)


def _report(result: Untainted, output: str, color: str, where: ClusterFlags) -> None:
    if output == "text":
        text.write_allocatable(result, color)
    elif output == "name":
        text.write_removed_names(result, sys.stdout)
        if not result.removed:
            text.write_staying(result, "never", sys.stderr, where=where)
        for removal in result.removed:
            if removal.outcome == REFUSED:
                text.write_removed(removal, result.dry_run, sys.stderr)
    else:
        from kubectl_dra.report.json_output import write
        from kubectl_dra.report.taint_json import untainted_json

        write(untainted_json(result), output, sys.stdout, result.exit_code)
