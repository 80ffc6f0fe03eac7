"""What ``taint`` does: show the plan, ask, write, wait."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence, Set

from msgspec.structs import replace

from kubectl_dra.api.behaviour import EFFECT_NONE
from kubectl_dra.api.releases import Release
from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.listing import tell_age
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.taint import TaintFlags
from kubectl_dra.cli.taint.plan import DEFAULT_GRACE, Plan, make_plan
from kubectl_dra.cli.taint.session import Confirm, confirmed, let_end, wait
from kubectl_dra.cluster.time_read import moment
from kubectl_dra.command import ClusterFlags
from kubectl_dra.errors import ClusterError, UsageError
from kubectl_dra.exit_codes import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_NO, EXIT_UNDETERMINED
from kubectl_dra.report import taint_text as text
from kubectl_dra.report.color import tell
from kubectl_dra.report.taint_text import write_served
from kubectl_dra.safe_output import put
from kubectl_dra.taint import times
from kubectl_dra.taint.apply import ANSWER_SECONDS, Asking, RuleRefused, RuleWriter, ServerAnswer, question_of
from kubectl_dra.taint.device_taint_rules import CREATED, REFUSED, how_to_turn_on, rules_unseen
from kubectl_dra.taint.result import RuleDone, Tainted
from kubectl_dra.taint.steady_watches import Patience, TimedOut
from kubectl_dra.taint.typed import TaintSpec, read_words
from kubectl_dra.taint.wait_until_drained import RuleGone
from kubectl_dra.text import amount

MANY_WARNINGS = 20


def run(flags: TaintFlags, connection: ConnectionFlags, ask: Confirm = confirmed) -> int:
    """Taints and reports; returns the exit code. ``ask`` asks a person."""
    started = time.monotonic()
    words = read_words(flags.words)
    if flags.list_taints:
        if flags.words or flags.select:
            raise UsageError("--list lists every taint; leave devices and taints out")
        if flags.namespace:
            raise UsageError("-n: devices and their taints are in no namespace; --list lists every taint")
        from kubectl_dra.cli.taint import plan as taint_list

        return taint_list.run(flags, connection)
    if flags.no_headers or flags.all_namespaces:
        raise UsageError(f"{'--no-headers' if flags.no_headers else '-A'} goes with --list")
    if words.removals:
        if words.taints:
            raise UsageError("add and remove in two commands: they show different things before they write")
        from kubectl_dra.cli import untaint

        return untaint.run(untaint.from_taint(flags), connection)
    if not words.taints:
        hint = f'; "{words.devices[-1]}" has no effect and is taken for a device' if words.devices else ""
        raise UsageError(f"say which taint: KEY[=VALUE]:EFFECT such as maintenance:NoSchedule, or KEY- to remove{hint}")
    _check(flags, words.taints)
    where = cluster_flags(flags, connection)
    return _Tainting(make_plan(flags, words, connection), started, where, ask).run()


def _check(flags: TaintFlags, taints: Sequence[TaintSpec]) -> None:
    if flags.drain and any(taint.effect != "NoExecute" for taint in taints):
        raise UsageError("--drain ends with NoExecute: write KEY[=VALUE]:NoExecute")
    if flags.wait and any(taint.effect == "None" for taint in taints):
        raise UsageError("--wait: a taint with effect None keeps nobody off the device, so it may never be free")
    if flags.snapshots and flags.dry_run != "client":
        raise UsageError("--snapshot goes with --dry-run=client or --list only: saved objects cannot be tainted")
    if flags.expires and not times.seconds(flags.expires, "--expires"):
        raise UsageError(f"--expires: {flags.expires} is over at once; write a duration such as 4h")
    for flag, given in (("--reason", flags.reason), ("--ticket", flags.ticket)):
        if not given.isprintable():
            raise UsageError(f"{flag}: only printable characters on one line can be recorded")
    if flags.wait and flags.wait != times.FOREVER:
        times.seconds(flags.wait, "--wait")
    if flags.grace and not flags.drain:
        raise UsageError("--grace goes with --drain")
    times.seconds(flags.grace or DEFAULT_GRACE, "--grace")


class _Tainting:
    """One run of the command.

    ``started`` is when it began, of ``time.monotonic``; ``where`` are the flags that say which cluster; ``ask`` asks a
    person.
    """

    def __init__(self, plan: Plan, started: float, where: ClusterFlags, ask: Confirm) -> None:
        self._plan = plan
        self._asked = plan.asked
        self._output = plan.asked.output.value
        self._color = plan.asked.color.value
        self._started = started
        self._where = where
        self._ask = ask
        self._answers: dict[str, ServerAnswer] = {}
        self._new: Set[str] = frozenset()

    def run(self) -> int:
        plan = self._plan
        if self._output == "text":
            if plan.tainted.served is False:
                write_served(served=False, color=self._color)
            text.write_targets(plan.targets, self._headings(), sys.stdout)
            tell_age(moment(plan.tainted.snapshot))
            text.write_radius(plan.radius, plan.desired_rules, self._color, at=plan.at)
            if plan.tainted.served is None:
                write_served(served=None, color=self._color)
        self._warn(plan.warnings)
        if plan.rules is None or plan.refused or self._asked.dry_run != "none":
            return self._without_writing(plan.rules)
        try:
            agreed = self._agreed()
        except KeyboardInterrupt:
            tell("")
            tell("nothing was changed")
            return EXIT_INTERRUPTED
        if not agreed:
            tell("nothing was changed")
            return EXIT_NO
        return self._write(plan.rules)

    def _headings(self) -> tuple[str, ...]:
        """The taints, each once, as they are now and then."""
        plan = self._plan
        return tuple(dict.fromkeys(text.taint_words(step.desired, plan.stage(step)) for step in plan.steps))

    def _warn(self, warnings: Sequence[str]) -> None:
        for warning in warnings[:MANY_WARNINGS]:
            tell(f"warning: {warning}")
        if len(warnings) > MANY_WARNINGS:
            tell(f"warning: and {len(warnings) - MANY_WARNINGS:,} more: -o json has all of them")

    def _result(self, done: Sequence[RuleDone] = ()) -> Tainted:
        plan = self._plan
        return Tainted(self._asked.dry_run.value, tuple(done), plan.radius, plan.warnings, served=plan.tainted.served)

    def _agreed(self) -> bool:
        plan = self._plan
        if self._asked.select and len(plan.targets) > 1:
            if self._output != "text":
                text.write_targets(plan.targets, self._headings(), sys.stderr)
            return self._ask(f"Taint these {len(plan.targets):,} devices?", yes=self._asked.yes)
        evicts = any(desired.taint.effect == "NoExecute" for desired in plan.desired_rules)
        # A scheduler that ignores rules may crash on one.
        if (plan.radius.unread and evicts) or rules_unseen(plan.tainted.snapshot) is True:
            return self._ask("Taint all the same?", yes=self._asked.yes)
        return True

    def _without_writing(self, rules: RuleWriter | None) -> int:
        """A dry run; or a refusal, and then no rule is written, not even those that could be."""
        plan = self._plan
        done = [plan.done(step) for step in plan.steps]
        if rules is not None and self._asked.dry_run == "server" and not plan.refused:
            done = [plan.done(step, rules.write(step.desired, plan.stage(step))) for step in plan.steps]
        return self._finish(replace(self._result(done), exit_code=EXIT_NO if plan.refused else self._forecast_code()))

    def _forecast_code(self) -> int:
        """The exit code of a dry run: its answer is whom the taint hits, if it works at all."""
        plan = self._plan
        if plan.tainted.served is False:
            return EXIT_NO
        return EXIT_UNDETERMINED if plan.tainted.served is None or plan.tainted.unseen or plan.radius.open else 0

    def _write(self, rules: RuleWriter) -> int:
        # Somebody may have thought about it for a while: --grace begins with what is written.
        plan = self._plan = replace(self._plan, at=times.now())
        done: list[RuleDone] = []
        result = self._result()
        try:
            self._preview(rules)
            for step in plan.steps:
                desired = step.desired
                with rules.client.until(self._deadline()):
                    written = rules.write(desired, plan.stage(step))
                if desired.name in self._new:
                    # A rule that was made to ask the server is one that this command has created.
                    written = replace(written, outcome=CREATED)
                step_done = plan.done(step, written)
                if desired.name in self._answers:
                    predicted = plan.radius.deleted(desired.device)
                    step_done = replace(step_done, server=self._answers[desired.name], predicted=predicted)
                done.append(step_done)
                if self._output == "text":
                    text.write_done(step_done, "none", sys.stdout)
            result = replace(result, done=tuple(done))
            if self._asked.wait:
                deadline = self._deadline()
                result = wait(plan.tainted, rules, plan.desired_rules, result, deadline, escalate=self._asked.drain)
            elif self._asked.drain:
                let_end(plan.tainted, rules, plan.desired_rules, result)
            return self._finish(result, told=True)
        except (RuleRefused, RuleGone) as stop:
            tell(f"error: {stop}")
            return self._finish(replace(result, done=tuple(done), exit_code=EXIT_NO), told=True)
        except _Declined:
            tell("nothing is left changed")
            return EXIT_NO
        except ClusterError:
            # What was done before is told, and then what went wrong.
            if done:
                missing = len(plan.desired_rules) - len(done)
                more = (f"it broke off: {amount(missing, 'rule')} not written",) if missing else ()
                warnings = result.warnings + more
                self._finish(replace(result, done=tuple(done), warnings=warnings, exit_code=EXIT_ERROR), told=True)
            raise
        except KeyboardInterrupt:
            tell("")
            if done and self._output != "text":
                self._finish(replace(result, done=tuple(done), exit_code=EXIT_INTERRUPTED), told=True)
            tell("interrupted: the rules stay as they are; run the same command again to go on from here")
            return EXIT_INTERRUPTED

    def _deadline(self) -> float | None:
        if self._asked.wait in ("", times.FOREVER):
            return None
        return self._started + times.seconds(self._asked.wait, "--wait")

    # The server's own answer

    def _preview(self, rules: RuleWriter) -> None:
        """Asks by rules with effect None first, and compares what the server says with the prediction.

        Raises:
            ClusterError: nothing answers: the gate is off in kube-controller-manager.
            _Declined: the server says more pods would go, and nobody agreed to that.
        """
        steps, serving = self._plan.steps, self._plan.tainted.serving
        questions = {step.desired: desired for step in steps if (desired := question_of(step.desired, step.decision))}
        release = serving.release if serving else None
        if not questions:
            return
        if release is None or release not in EFFECT_NONE:
            tell(f"the server was not asked whom it would delete: {_no_effect_none(release)}")
            return
        asking = Asking(rules)
        until = time.monotonic() + ANSWER_SECONDS
        try:
            with rules.client.until(until):
                asking.ask(tuple(questions.values()), Patience(tell, until))
        except TimedOut:
            raise ClusterError(
                f"nothing was changed: kube-controller-manager did not answer a rule with effect None within "
                f"{ANSWER_SECONDS:g} s, so it does not evict either. Is its feature gate off? {how_to_turn_on(release)}"
            ) from None
        self._new = asking.made
        surprised = False
        for desired, wanted in questions.items():
            if wanted.name not in asking.answers:
                continue
            answer = self._answers[desired.name] = asking.answers[wanted.name]
            pods, predicted = answer.pods, self._plan.radius.deleted(desired.device)
            if pods is not None:
                verdict = "as predicted" if pods == predicted else f"predicted were {predicted}"
                if self._plan.radius.unread:
                    verdict = f"{predicted} of them are known here"
                tell(f"{desired.device}: the server would delete {amount(pods, 'pod')}: {verdict}")
                surprised = surprised or pods > predicted
        if surprised and not self._goes_on():
            asking.take_back()
            raise _Declined

    def _goes_on(self) -> bool:
        try:
            return self._ask("The server would delete more pods than shown. Go on?", yes=self._asked.yes)
        except UsageError as error:
            tell(f"error: {error}")
            return False

    def _finish(self, result: Tainted, *, told: bool = False) -> int:
        if self._output == "text":
            if not told:
                text.write_planned(result.done, result.dry_run, sys.stdout)
            text.write_end(result, self._color, where=self._where)
        elif self._output == "json":
            from kubectl_dra.report.json_output import write
            from kubectl_dra.report.taint_json import tainted_json

            write(tainted_json(result), self._output, sys.stdout, result.exit_code)
        else:
            if self._output == "name":
                text.write_names(result, sys.stdout)
            else:
                from kubectl_dra.report.taint_json import rules_yaml

                put(rules_yaml(result))
            for done in result.done:
                if done.outcome == REFUSED:
                    tell(f"error: {done.target.id} {done.desired.taint}: {done.why}")
        return result.exit_code


def _no_effect_none(release: Release | None) -> str:
    """Why a server cannot be asked."""
    known = f"Kubernetes 1.{EFFECT_NONE.since} is the first with effect None"
    return f"{known}, and this is {release}" if release else f"{known}, and the server does not say its release"


class _Declined(Exception):
    """The user does not want to go on."""
