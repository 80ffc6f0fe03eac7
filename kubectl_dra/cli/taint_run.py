"""What ``taint`` does: read, resolve, foresee, ask, write, wait."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from kubectl_dra.api.versions import Release
from kubectl_dra.cli import taint_session as session
from kubectl_dra.cli.live import Progress
from kubectl_dra.cli.options import Connection
from kubectl_dra.cli.taint import FOREVER
from kubectl_dra.cli.taint_session import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_LEFT, Selection, World, confirmed, say
from kubectl_dra.cli.taint_wait import let_end, wait
from kubectl_dra.cluster.writer import Writer
from kubectl_dra.errors import ClusterError, InputError, UsageError
from kubectl_dra.explain.inventory import taint_owner
from kubectl_dra.explain.phrases import amount, some
from kubectl_dra.report import taint_text as text
from kubectl_dra.taint import times
from kubectl_dra.taint.apply import UNCHANGED, Refused, Rules
from kubectl_dra.taint.drain import RuleGone
from kubectl_dra.taint.parts import parts_of
from kubectl_dra.taint.patience import Patience, TimedOut
from kubectl_dra.taint.preview import ANSWER_SECONDS, Asking, ServerAnswer, question_of
from kubectl_dra.taint.radius import Radius, blast_radius
from kubectl_dra.taint.result import PLANNED, REFUSED, RuleDone, Tainted
from kubectl_dra.taint.rules import Decision, Stage, Wish, content
from kubectl_dra.taint.serving import FIRST_WITH_NONE, blind_scheduler, how_to_turn_on, undetermined
from kubectl_dra.taint.spec import TaintSpec, read_words
from kubectl_dra.taint.targets import Target

OFFLINE_VERSION = "v1"
DEFAULT_GRACE = "5m"


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line of one ``taint``."""

    words: tuple[str, ...] = ()
    selection: Selection = field(default_factory=Selection)
    list_taints: bool = False
    reason: str = ""
    ticket: str = ""
    expires: str = ""
    overwrite: bool = False
    wait: str = ""
    drain: bool = False
    grace: str = ""
    yes: bool = False
    dry_run: str = "none"
    field_manager: str = "kubectl-dra"
    snapshots: tuple[str, ...] = ()
    namespace: str = ""


def run(asked: Asked, connection: Connection, output: str, color: str) -> int:
    """Taints and reports; returns the exit code.

    Raises:
        DraError: wrong usage, devices that do not exist, a cluster that does not take rules or does not answer.
    """
    words = read_words(asked.words)
    if asked.list_taints:
        if asked.words or asked.selection:
            raise UsageError("--list lists every taint; leave devices and taints out")
        from kubectl_dra.cli import taint_list

        return taint_list.run(connection, asked.namespace, asked.snapshots, output, color)
    if words.removals:
        if words.taints:
            raise UsageError("add and remove in two commands: they show different things before they write")
        from kubectl_dra.cli import untaint_run

        return untaint_run.run(untaint_run.from_taint(asked), connection, output, color)
    if not words.taints:
        hint = f'; "{words.devices[-1]}" has no effect and is taken for a device' if words.devices else ""
        raise UsageError(f"say which taint: KEY[=VALUE]:EFFECT such as maintenance:NoSchedule, or KEY- to remove{hint}")
    _check(asked, words.taints)
    return _Tainting(asked, words.devices, words.taints, connection, output, color).run()


def _check(asked: Asked, taints: Sequence[TaintSpec]) -> None:
    if asked.drain and any(taint.effect != "NoExecute" for taint in taints):
        raise UsageError("--drain ends with NoExecute: write KEY[=VALUE]:NoExecute")
    if asked.wait and any(taint.effect == "None" for taint in taints):
        raise UsageError("--wait: a taint with effect None keeps nobody off the device, so it may never be free")
    if asked.snapshots and asked.dry_run != "client":
        raise UsageError("--snapshot goes with --dry-run=client or --list only: saved objects cannot be tainted")
    if asked.expires:
        times.seconds(asked.expires, "--expires")
    if asked.wait and asked.wait != FOREVER:
        times.seconds(asked.wait, "--wait")
    if asked.grace and not asked.drain:
        raise UsageError("--grace goes with --drain")
    times.seconds(asked.grace or DEFAULT_GRACE, "--grace")


class _Tainting:
    """One run of the command."""

    def __init__(
        self,
        asked: Asked,
        names: Sequence[str],
        taints: Sequence[TaintSpec],
        connection: Connection,
        output: str,
        color: str,
    ) -> None:
        self._asked = asked
        self._names = names
        self._taints = taints
        self._connection = connection
        self._output = output
        self._color = color
        self._at = times.now()
        self._started = time.monotonic()
        self._answers: dict[str, ServerAnswer] = {}

    def run(self) -> int:
        asked = self._asked
        world = session.read_world(self._connection, asked.namespace, asked.snapshots)
        try:
            targets = session.resolve(world, self._names, asked.selection)
        except InputError:
            # What is said not to exist may only not be visible.
            session.say_gaps(world)
            raise
        wishes = [self._wish(target, taint) for target in targets for taint in self._taints]
        radius = self._radius(world, targets, wishes)
        warnings = tuple(self._warnings(world, targets, {wish.name for wish in wishes}))
        if self._output == "text":
            text.write_targets(targets, self._taints, sys.stdout)
            text.write_radius(radius, wishes, self._color, at=self._at)
        for warning in warnings:
            say(f"warning: {warning}")
        if world.cluster is None:
            return self._finish(Tainted(asked.dry_run, tuple(self._planned(world, targets, wishes)), radius, warnings))
        assert world.serving is not None
        writer = Writer(world.cluster.client, asked.field_manager, dry_run=asked.dry_run == "server")
        rules = Rules(world.cluster, writer, world.serving.version, overwrite=asked.overwrite)
        decisions = {wish.name: rules.decide(wish) for wish in wishes}
        warnings += tuple(self._notes(wishes, decisions))
        refused = [decision for decision in decisions.values() if decision.action == "refuse"]
        if refused or asked.dry_run != "none":
            return self._without_writing(world, rules, targets, wishes, decisions, radius, warnings)
        if not self._agreed(targets, warnings):
            say("nothing was changed")
            return EXIT_LEFT
        return self._write(world, rules, targets, wishes, decisions, radius, warnings)

    def _wish(self, target: Target, taint: TaintSpec) -> Wish:
        asked = self._asked
        expires = ""
        if asked.expires:
            expires = times.stamp(times.later(self._at, times.seconds(asked.expires, "--expires")))
        grace = times.seconds(asked.grace or DEFAULT_GRACE, "--grace") if asked.drain else None
        return Wish(target.id, taint, asked.reason, asked.ticket, expires, target.hardware, grace)

    def _radius(self, world: World, targets: Sequence[Target], wishes: Sequence[Wish]) -> Radius:
        progress = Progress()
        by_id = {target.id: target for target in targets}
        try:
            return blast_radius(wishes, by_id, world.inventory.rows, world.snapshot, world.settings, self._at, progress)
        finally:
            progress.done()

    def _warnings(self, world: World, targets: Sequence[Target], own: Set[str]) -> Iterator[str]:
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

    def _notes(self, wishes: Sequence[Wish], decisions: Mapping[str, Decision]) -> Iterator[str]:
        """What the rules that are there keep of what was asked to change; said at once."""
        for wish in wishes:
            note = decisions[wish.name].note
            if note:
                say(f"warning: {wish.device}: {note}")
                yield f"{wish.device}: {note}"

    def _agreed(self, targets: Sequence[Target], warnings: Sequence[str]) -> bool:
        if self._asked.selection and len(targets) > 1:
            if self._output != "text":
                for target in targets:
                    say(str(target.id))
            return confirmed(f"Taint these {len(targets)} devices?", yes=self._asked.yes)
        if any("kube-scheduler" in warning for warning in warnings):
            return confirmed("Taint all the same?", yes=self._asked.yes)
        return True

    def _planned(self, world: World, targets: Sequence[Target], wishes: Sequence[Wish]) -> Iterator[RuleDone]:
        version = world.serving.version if world.serving else OFFLINE_VERSION
        for target, wish in _pairs(targets, wishes):
            yield RuleDone(target, wish, PLANNED, content(wish, Stage(wish.taint.effect), version))

    def _without_writing(
        self,
        world: World,
        rules: Rules,
        targets: Sequence[Target],
        wishes: Sequence[Wish],
        decisions: dict[str, Decision],
        radius: Radius,
        warnings: tuple[str, ...],
    ) -> int:
        """A dry run; or a refusal, and then no rule is written, not even those that could be."""
        assert world.serving is not None
        refused = any(decision.action == "refuse" for decision in decisions.values())
        done: list[RuleDone] = []
        for target, wish in _pairs(targets, wishes):
            decision = decisions[wish.name]
            final = content(decision.wish, Stage(wish.taint.effect), world.serving.version)
            if decision.action == "refuse":
                done.append(RuleDone(target, wish, REFUSED, final, decision.why))
            elif decision.action == "keep":
                done.append(RuleDone(target, wish, UNCHANGED, final, decision.why))
            elif self._asked.dry_run == "server" and not refused:
                written = rules.write(wish, Stage(wish.taint.effect))
                done.append(RuleDone(target, wish, written.outcome, written.rule))
            else:
                done.append(RuleDone(target, wish, PLANNED, final))
        code = EXIT_LEFT if refused else 0
        return self._finish(Tainted(self._asked.dry_run, tuple(done), radius, warnings, exit_code=code))

    def _write(
        self,
        world: World,
        rules: Rules,
        targets: Sequence[Target],
        wishes: Sequence[Wish],
        decisions: dict[str, Decision],
        radius: Radius,
        warnings: tuple[str, ...],
    ) -> int:
        done: list[RuleDone] = []
        result = Tainted("none", (), radius, warnings)
        try:
            self._preview(world, rules, wishes, decisions, radius)
            for target, wish in _pairs(targets, wishes):
                with rules.client.until(self._deadline()):
                    written = rules.write(wish, self._first_stage(wish, decisions[wish.name]))
                entry = RuleDone(target, wish, written.outcome, written.rule)
                if wish.name in self._answers:
                    entry = replace(entry, server=self._answers[wish.name], predicted=radius.deleted(wish.device))
                done.append(entry)
                if self._output == "text":
                    text.write_done(entry, "none", sys.stdout)
            result = replace(result, done=tuple(done))
            if self._asked.wait:
                result = wait(world, rules, wishes, result, self._deadline(), escalate=self._asked.drain)
            elif self._asked.drain:
                let_end(world, rules, wishes, result)
            return self._finish(result, told=True)
        except (Refused, RuleGone) as stop:
            say(f"error: {stop}")
            return self._finish(replace(result, done=tuple(done), exit_code=EXIT_LEFT), told=True)
        except _Declined:
            say("nothing is left changed")
            return EXIT_LEFT
        except ClusterError:
            # What was done before is told, and then what went wrong.
            if done:
                missing = len(wishes) - len(done)
                warnings += (f"it broke off: {amount(missing, 'rule')} not written",) if missing else ()
                self._finish(replace(result, done=tuple(done), warnings=warnings, exit_code=EXIT_ERROR), told=True)
            raise
        except KeyboardInterrupt:
            say("")
            say("interrupted: the rules stay as they are; run the same command again to go on from here")
            return EXIT_INTERRUPTED

    def _first_stage(self, wish: Wish, decision: Decision) -> Stage:
        """What to write now: the effect itself, or with --drain NoSchedule with the time at which NoExecute comes."""
        if wish.grace is None or (decision.stage is not None and decision.stage.effect == "NoExecute"):
            return Stage(wish.taint.effect)
        started = decision.stage is not None and decision.stage.effect == "NoSchedule" and decision.stage.next_at
        due = (
            decision.stage.next_at if started and decision.stage else times.stamp(times.later(times.now(), wish.grace))
        )
        return Stage("NoSchedule", wish.taint.effect, due)

    def _deadline(self) -> float | None:
        if self._asked.wait in ("", FOREVER):
            return None
        return self._started + times.seconds(self._asked.wait, "--wait")

    # The server's own answer

    def _preview(
        self,
        world: World,
        rules: Rules,
        wishes: Sequence[Wish],
        decisions: dict[str, Decision],
        radius: Radius,
    ) -> None:
        """Asks by rules with effect None first, and compares what the server says with the prediction.

        Raises:
            ClusterError: nothing answers: the gate is off in kube-controller-manager.
            _Declined: the server says more pods would go, and nobody agreed to that.
        """
        assert world.serving is not None
        questions = {wish: asked for wish in wishes if (asked := question_of(wish, decisions[wish.name]))}
        release = world.serving.release
        if not questions:
            return
        if release is None or not release.at_least(FIRST_WITH_NONE):
            say(f"the server was not asked whom it would delete: {_no_effect_none(release)}")
            return
        asking = Asking(rules)
        until = time.monotonic() + ANSWER_SECONDS
        try:
            with rules.client.until(until):
                asking.ask(tuple(questions.values()), Patience(say, until))
        except TimedOut:
            raise ClusterError(
                f"nothing was changed: kube-controller-manager did not answer a rule with effect None within "
                f"{ANSWER_SECONDS:g} s, so it does not evict either. Is its feature gate off? {how_to_turn_on(release)}"
            ) from None
        surprised = False
        for wish, asked in questions.items():
            if asked.name not in asking.answers:
                continue
            answer = self._answers[wish.name] = asking.answers[asked.name]
            pods, predicted = answer.pods, radius.deleted(wish.device)
            if pods is not None:
                verdict = "as predicted" if pods == predicted else f"predicted were {predicted}"
                say(f"{wish.device}: the server would delete {amount(pods, 'pod')}: {verdict}")
                surprised = surprised or pods > predicted
        if surprised and not self._goes_on():
            asking.take_back()
            raise _Declined

    def _goes_on(self) -> bool:
        try:
            return confirmed("The server would delete more pods than shown. Go on?", yes=self._asked.yes)
        except UsageError as error:
            say(f"error: {error}")
            return False

    def _finish(self, result: Tainted, *, told: bool = False) -> int:
        if self._output == "text":
            if not told:
                for entry in result.done:
                    text.write_done(entry, result.dry_run, sys.stdout)
            text.write_end(result, self._color)
        elif self._output == "name":
            text.write_names(result, sys.stdout)
        else:
            from kubectl_dra.report.explain_json import write
            from kubectl_dra.report.taint_json import tainted_json

            write(tainted_json(result), self._output, sys.stdout)
        return result.exit_code


def _no_effect_none(release: Release | None) -> str:
    """Why a server cannot be asked."""
    known = f"Kubernetes 1.{FIRST_WITH_NONE} is the first with effect None"
    return f"{known}, and this is {release}" if release else f"{known}, and the server does not say its release"


class _Declined(Exception):
    """The user does not want to go on."""


def _pairs(targets: Sequence[Target], wishes: Sequence[Wish]) -> Iterator[tuple[Target, Wish]]:
    by_id = {target.id: target for target in targets}
    for wish in wishes:
        yield by_id[wish.device], wish
