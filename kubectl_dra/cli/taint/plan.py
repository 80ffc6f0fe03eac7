"""The plan of one ``taint``: its arguments, the cluster, the devices, the wished rules and whom they affect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime

from msgspec import Struct

from kubectl_dra.cli.live import Progress
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.taint import session
from kubectl_dra.cli.taint.flags import TaintFlags
from kubectl_dra.cli.taint.session import TaintWorld
from kubectl_dra.cluster.moment import moment
from kubectl_dra.cluster.writer import Writer
from kubectl_dra.errors import InputError
from kubectl_dra.explain.devices.device_state import taint_owner
from kubectl_dra.report.taint_gaps import why_unread
from kubectl_dra.taint import times
from kubectl_dra.taint.apply import RuleWriter
from kubectl_dra.taint.blast_radius import Radius, blast_radius
from kubectl_dra.taint.rules import Decision, Wish
from kubectl_dra.taint.rules_served import Serving, blind_scheduler, undetermined
from kubectl_dra.taint.shared_hardware import parts_of
from kubectl_dra.taint.targets import Target
from kubectl_dra.taint.typed_words import TaintSpec, Words
from kubectl_dra.wording import amount, some

DEFAULT_GRACE = "5m"


class Live(Struct, frozen=True):
    """The cluster to write to: its rules, in the version that it serves, and the decision for each wish.

    ``decisions`` is by the rule's name; ``notes`` say which requested changes existing rules ignore.
    """

    rules: RuleWriter
    serving: Serving
    decisions: Mapping[str, Decision]
    notes: tuple[str, ...]

    @property
    def refused(self) -> bool:
        """Whether an existing rule prevents the change."""
        return any(decision.action == "refuse" for decision in self.decisions.values())


class Plan(Struct, frozen=True):
    """What to do, determined before anything is written. ``live`` is None for saved objects.

    ``wishes`` are one rule for each of the ``targets`` and ``taints``, ``radius`` is whom they affect
    together.
    """

    asked: TaintFlags
    at: datetime
    world: TaintWorld
    targets: tuple[Target, ...]
    taints: tuple[TaintSpec, ...]
    wishes: tuple[Wish, ...]
    radius: Radius
    warnings: tuple[str, ...]

    @property
    def scheduler_is_blind(self) -> bool:
        """Whether the cluster's scheduler ignores DeviceTaintRules, so that writing one may do harm."""
        return bool(blind_scheduler(self.world.snapshot.release))

    def pairs(self) -> Iterator[tuple[Target, Wish]]:
        """Every wish with its device."""
        by_id = {target.id: target for target in self.targets}
        for wish in self.wishes:
            yield by_id[wish.device], wish

    def live(self) -> Live | None:
        """Compare the wishes with existing rules; None for saved objects. Raises ClusterError."""
        cluster, serving = self.world.cluster, self.world.serving
        if cluster is None or serving is None:
            return None
        writer = Writer(cluster.client, self.asked.field_manager, dry_run=self.asked.dry_run == "server")
        rules = RuleWriter(cluster, writer, serving.version, overwrite=self.asked.overwrite)
        decisions = {wish.name: rules.decide(wish) for wish in self.wishes}
        notes = tuple(f"{wish.device}: {note}" for wish in self.wishes if (note := decisions[wish.name].note))
        return Live(rules, serving, decisions, notes)


def make_plan(asked: TaintFlags, words: Words, connection: ConnectionFlags) -> Plan:
    """Read the cluster, resolve the devices, and find whom the taints would affect.

    Raises:
        DraError: devices that do not exist, a cluster without support for rules, or one that does not answer.
    """
    world = session.read_world(connection, asked)
    at = moment(world.snapshot).at
    try:
        targets = session.resolve(world, words.devices, asked)
    except InputError:
        # What is said not to exist may only not be visible.
        session.say_gaps(world)
        raise
    wishes = tuple(_wish(asked, target, taint, at) for target in targets for taint in words.taints)
    by_id = {target.id: target for target in targets}
    with Progress() as progress:
        radius = blast_radius(wishes, by_id, world.inventory.rows, world.snapshot, world.settings, at, progress)
    warnings = tuple(_warnings(world, targets, {wish.name for wish in wishes}))
    if radius.unread:
        why = why_unread(radius.unread)
        warnings = (f"not all claims could be read, so whom the taint hits is not known: {why}", *warnings)
    return Plan(asked, at, world, targets, words.taints, wishes, radius, warnings)


def _wish(asked: TaintFlags, target: Target, taint: TaintSpec, at: datetime) -> Wish:
    expires = times.stamp(times.later(at, times.seconds(asked.expires, "--expires"))) if asked.expires else ""
    grace = times.seconds(asked.grace or DEFAULT_GRACE, "--grace") if asked.drain else None
    return Wish(target.id, taint, asked.reason, asked.ticket, expires, target.hardware, grace)


def _warnings(world: TaintWorld, targets: Sequence[Target], own: Set[str]) -> Iterator[str]:
    blind = blind_scheduler(world.snapshot.release)
    if blind:
        yield blind
    unknown = undetermined(world.serving) if world.serving is not None else ""
    if unknown:
        yield unknown
    for id, parts in parts_of([target.id for target in targets], world.inventory.rows).items():
        held = [part for part in parts if (target := world.devices.get(part)) and target.row and target.row.holders]
        yield (
            f"{id} shares counters with {amount(len(parts))} that the taint does not cover, {len(held)} of them in "
            f"use: {some(sorted(map(str, parts)), 4)}"
        )
    for target in targets:
        if not target.published:
            yield f"{target.id} is not published now: new pods do not get it anyway"
        for taint in target.row.taints if target.row else ():
            if taint.rule not in own:
                yield f"{target.id} has taint {taint} already ({taint_owner(taint)})"
