"""The plan of one ``taint``: its arguments, the cluster, the devices, the desired rules and whom they affect."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from msgspec import Struct

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.listing import tell_age
from kubectl_dra.cli.live import Progress
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.taint import TaintFlags, session
from kubectl_dra.cli.taint.session import TaintedCluster
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.cluster.time_read import moment
from kubectl_dra.cluster.writer import Writer
from kubectl_dra.errors import InputError
from kubectl_dra.exit_codes import EXIT_UNDETERMINED
from kubectl_dra.explain.devices.device_state import older_slice
from kubectl_dra.explain.phrase import with_owner
from kubectl_dra.report import taint_list
from kubectl_dra.report.color import tell
from kubectl_dra.report.phrases import devices_named, written
from kubectl_dra.report.taint_text import why_unread
from kubectl_dra.taint import times
from kubectl_dra.taint.apply import RuleWriter, Written
from kubectl_dra.taint.blast_radius import Radius, blast_radius
from kubectl_dra.taint.device_taint_rules import (
    REFUSED,
    Decision,
    DesiredRule,
    RuleStage,
    blind_scheduler,
    content,
    decide,
    version_assumed,
    what_rules_need,
)
from kubectl_dra.taint.listing import list_taints
from kubectl_dra.taint.result import SKIPPED, RuleDone
from kubectl_dra.taint.targets import Devices, RuleStep, Target, parts_of
from kubectl_dra.taint.typed import TaintSpec, Words
from kubectl_dra.text import amount

DEFAULT_GRACE = "5m"


class Plan(Struct, frozen=True):
    """What to do, determined before anything is written: the same whether it is only shown or also done.

    ``steps`` are one rule for each of the ``targets`` and taints, taken at the time ``at``, and ``radius`` is whom they
    affect together. ``rules`` writes them, in ``version``; it is None for saved objects.
    """

    asked: TaintFlags
    at: datetime
    tainted: TaintedCluster
    targets: tuple[Target, ...]
    steps: tuple[RuleStep, ...]
    radius: Radius
    warnings: tuple[str, ...]
    version: str
    rules: RuleWriter | None

    @property
    def desired_rules(self) -> tuple[DesiredRule, ...]:
        """The desired rules."""
        return tuple(step.desired for step in self.steps)

    @property
    def refused(self) -> bool:
        """Whether an existing rule prevents the change."""
        return any(step.decision.action == "refuse" for step in self.steps)

    def stage(self, step: RuleStep) -> RuleStage:
        """What the step writes at once."""
        return step.stage(self.at)

    def done(self, step: RuleStep, written: Written | None = None) -> RuleDone:
        """The step as it ended; where nothing is written, as it is expected to. With one rule refused, none is."""
        outcome = expected = step.outcome(self.at)
        rule: Mapping[str, Any]
        if written is not None:
            outcome, rule = written.outcome, written.rule
        else:
            rule = content(step.decision.desired, self.stage(step), self.version)
            if self.refused and outcome != REFUSED:
                outcome = SKIPPED
        return RuleDone(step.target, step.desired, outcome, rule, step.decision.why if outcome == expected else "")


def make_plan(flags: TaintFlags, words: Words, connection: ConnectionFlags) -> Plan:
    """Read the cluster, resolve the devices, and find whom the taints would affect."""
    tainted = session.read_tainted(connection, flags)
    at = moment(tainted.snapshot).at
    try:
        targets = session.resolve(tainted, words.devices, flags)
    except InputError:
        # What is said not to exist may only not be visible.
        session.say_gaps(tainted)
        raise
    rules, version = _rules(flags, tainted)
    steps = tuple(
        RuleStep(target, desired, _decision(flags, desired, tainted, rules))
        for target in targets
        for desired in (_desired_rule(flags, target, taint, at) for taint in words.taints)
    )
    with Progress() as progress:
        radius = blast_radius(steps, tainted.inventory.rows, tainted.snapshot, tainted.settings, at, progress)
    warnings = [*_warnings(tainted, targets, {step.desired.name for step in steps})]
    if radius.unread:
        why = why_unread(radius.unread)
        warnings.insert(0, f"not all claims could be read, so whom the taint hits is not known: {why}")
    warnings += (f"{step.desired.device}: {step.decision.note}" for step in steps if step.decision.note)
    return Plan(flags, at, tainted, targets, steps, radius, tuple(warnings), version, rules)


def _rules(flags: TaintFlags, tainted: TaintedCluster) -> tuple[RuleWriter | None, str]:
    """What writes rules (None for saved objects), and the version to write."""
    cluster, serving = tainted.cluster, tainted.serving
    if cluster is None or serving is None:
        return None, tainted.snapshot.rule_version or version_assumed(tainted.settings.scheduler.release)
    writer = Writer(cluster.client, flags.field_manager, dry_run=flags.dry_run == "server")
    return RuleWriter(cluster, writer, serving.version, overwrite=flags.overwrite), serving.version


def _decision(flags: TaintFlags, desired: DesiredRule, tainted: TaintedCluster, rules: RuleWriter | None) -> Decision:
    """Decision on a desired rule, compared with the rule that is there. Raises ClusterError."""
    if rules is not None:
        return rules.decide(desired)
    saved = (rule for rule in tainted.snapshot.taint_rules if rule.metadata.name == desired.name)
    return decide(desired, next(saved, None), overwrite=flags.overwrite)


def _desired_rule(flags: TaintFlags, target: Target, taint: TaintSpec, at: datetime) -> DesiredRule:
    expires = times.stamp(times.later(at, times.seconds(flags.expires, "--expires"))) if flags.expires else ""
    grace = times.seconds(flags.grace or DEFAULT_GRACE, "--grace") if flags.drain else None
    return DesiredRule(target.id, taint, flags.reason, flags.ticket, expires, target.hardware, grace)


def _warnings(tainted: TaintedCluster, targets: Sequence[Target], own: Set[str]) -> Iterator[str]:
    if tainted.served is not True:
        yield what_rules_need(tainted.settings.scheduler.release)
    blind = blind_scheduler(tainted.snapshot)
    if blind:
        yield blind
    if unseen := tainted.unseen:
        yield unseen
    yield from _shared(parts_of([target.id for target in targets], tainted.inventory.rows), tainted.devices)
    # What is said of one device is said of all alike at once.
    alike: dict[tuple[str, str], list[DeviceID]] = {}
    for target in targets:
        for said in _of_target(target, own):
            alike.setdefault(said, []).append(target.id)
    for (one, several), ids in alike.items():
        yield (one if len(ids) == 1 else several).format(devices_named(ids))


def _shared(parts: Mapping[DeviceID, Sequence[DeviceID]], devices: Devices) -> Iterator[str]:
    """Note that devices share counters with others, first of all those in use."""
    others = sorted({part for siblings in parts.values() for part in siblings})
    held = [id for id in others if (target := devices.get(id)) and target.row and target.row.holders]
    if others:
        yield (
            f"{devices_named([*parts])} {'shares' if len(parts) == 1 else 'share'} counters with "
            f"{amount(len(others))} that the taint does not cover, {len(held) or 'none'} of them in use: "
            f"{devices_named(held or others)}"
        )


def _of_target(target: Target, own: Set[str]) -> Iterator[tuple[str, str]]:
    """What to know of a device before it is tainted, with a place for its name; and that of several."""
    old = target.superseded
    if target.published is None:
        text = "no ResourceSlices were read, so whether {{}} {} published is unknown"
        yield text.format("is"), text.format("are")
    elif old is not None:
        # The scheduler heeds a rule for slices of any generation, as soon as it heeds these.
        yield (
            f"{older_slice('{}', old)}; the rule names it, so it has the taint then",
            (f"{older_slice('{}', old, several=True)}; the rules name them, so they have the taint then"),
        )
    elif not target.published:
        yield (
            "{} is not published now: new pods do not get it anyway",
            ("{} are not published now: new pods do not get them anyway"),
        )
    for taint in target.row.taints if target.row else ():
        if taint.rule not in own:
            words = written(with_owner(taint)).replace("{", "{{").replace("}", "}}")
            yield f"{{}} has taint {words} already", f"{{}} have taint {words} already"


# ``taint --list``: every taint of the cluster.

TAINTED_BY = ("ResourceSlice", "DeviceTaintRule")
KINDS = ("ResourceSlice", "DeviceTaintRule", "ResourceClaim", "Node")


def run(flags: TaintFlags, connection: ConnectionFlags) -> int:
    """List and print; returns the exit code, which is 3 where taints may be there that could not be read.

    Raises:
        UndeterminedError: the ResourceSlices, which have taints, could not be read.
        DraError: a cluster that does not answer, or unreadable input.
    """
    tainted = session.read_tainted(connection, flags, kinds=KINDS, rules=False)
    at = moment(tainted.snapshot)
    lines = list_taints(tainted.inventory.rows, tainted.snapshot, at.at)
    notes = [*_not_seen(tainted.snapshot)]
    code = EXIT_UNDETERMINED if tainted.snapshot.unread(TAINTED_BY) else 0
    output = flags.output.value
    if output in ("json", "yaml"):
        from kubectl_dra.report.json_output import write
        from kubectl_dra.report.taint_json import list_json

        write(list_json(lines, notes), output, sys.stdout, code)
        return code
    for note in notes:
        tell(f"note: {note}")
    if output == "name":
        taint_list.write_rule_names(lines, sys.stdout)
    else:
        tell_age(at)
        where, headers = cluster_flags(flags, connection), not flags.no_headers
        taint_list.write_list(lines, flags.color.value, at=at.at, all_seen=not code, headers=headers, where=where)
    return code


def _not_seen(snapshot: Snapshot) -> Iterator[str]:
    for gap in snapshot.unread(KINDS):
        who = ": who uses a device is not known" if gap.kind == "ResourceClaim" else gap.help
        if gap.reason != ABSENT or gap.kind in (*TAINTED_BY, "ResourceClaim"):
            yield f"not seen: {gap}{who}"
