"""What ``explain`` does: pose the questions, diagnose, report."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubectl_dra.api.releases import UNTOLD
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cli.command_line import assumed_flags, cluster_flags, repeated, with_other_values
from kubectl_dra.cli.explain import RELEASE, SCHEDULER_CONFIG, ExplainFlags, ExplainOutput
from kubectl_dra.cli.explain.questions import Answers, Posed, asked_targets, fleet, questions_of
from kubectl_dra.cli.explain.reading import (
    all_completed,
    asked_settings,
    read_cluster,
    scheduler_config,
    taken_then,
    with_daemon_sets,
)
from kubectl_dra.cli.explain.target import (
    BY_ITSELF,
    KindAbsent,
    MadeFrom,
    NotMade,
    NotThere,
    Picked,
    UsedBy,
    targets_of,
)
from kubectl_dra.cli.live import Progress
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.command import Argv, CommandLine
from kubectl_dra.errors import ClusterError, FlagValueError, InputError, UsageError
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.assumptions import AfterOthers
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.causes.devices_published import NO_SLICES
from kubectl_dra.explain.causes.not_tried import REFUSED
from kubectl_dra.explain.causes.pod_does_not_start import NO_ANSWER, NOT_REGISTERED
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.question.what_if_flag import WhatIfChange, parse
from kubectl_dra.process import keep
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.safe_output import put
from kubectl_dra.text import some

if TYPE_CHECKING:
    from kubectl_dra.cluster.snapshot import Snapshot
    from kubectl_dra.explain.devices.inventory import Inventory
    from kubectl_dra.fit.result import WorkloadFit

WATCH_SECONDS = 3.0


def run(flags: ExplainFlags, connection: ConnectionFlags) -> int:
    """Explains and prints; returns the exit code."""
    rows_only = "-o name" if flags.output is ExplainOutput.name else "--no-headers" if flags.no_headers else ""
    if rows_only and (flags.cause or flags.message or not flags.everything):
        raise UsageError(f"{rows_only} is for the list of what is pending: name no object, or write -A")
    if flags.cause or flags.message:
        from kubectl_dra.cli.explain.pages import print_message, print_page

        return print_page(flags) if flags.cause else print_message(flags)
    if flags.at:
        flags = replace(flags, snapshots=(taken_then(flags.at, flags.snapshots),))
    try:
        return _run(flags, connection)
    except FlagValueError as error:
        raise with_other_values(error, _asked(flags, connection)) from None


def _run(flags: ExplainFlags, connection: ConnectionFlags) -> int:
    changes = [parse(text) for text in flags.what_if]
    # What is wrong with it is said before anything is read.
    if flags.with_nodes:
        from kubectl_dra.explain.question.new_nodes import check

        check(flags.with_nodes)
    scheduler_config(flags, UNTOLD)
    targets = () if flags.everything and not flags.labels else asked_targets(flags)
    if any(target.kind in BY_ITSELF for target in targets):
        from kubectl_dra.cli.explain.single_object import run_by_itself

        return run_by_itself(targets, flags, connection)
    if flags.everything:
        return _run_all(flags, connection, flags.output.value, flags.color.value)
    if flags.watch and flags.output is not ExplainOutput.html:
        return _run_watch(flags, connection, changes)
    try:
        if flags.output is ExplainOutput.html:
            return _run_html(flags, connection, changes)
        posed = questions_of(flags, connection, changes)
    except NotThere as absent:
        if len(targets) != 1 or targets[0].kind not in ("VirtualMachine", "VirtualMachineInstance"):
            raise
        from kubectl_dra.cli.explain.single_object import run_without_pod

        return run_without_pod(targets[0].name, absent, flags, connection)
    _tell_stand_ins(posed)
    answers = _answered(posed, [_diagnosed(case, flags, connection) for case in posed], flags, connection)
    _print(answers, flags, _invocation(flags, connection))
    keep(posed, answers)
    return answers.code


def _tell_stand_ins(posed: Sequence[Posed]) -> None:
    """Says what answers for a workload or a template, as ``kubectl logs deployment/NAME`` does."""
    from kubectl_dra.report.color import tell

    for case in posed:
        if case.stand_in is not None:
            tell(f"note: {_stands_for(case.question, case.stand_in)}")


def _stands_for(question: Question, stand_in: Picked | MadeFrom | NotMade | UsedBy) -> str:
    if isinstance(stand_in, UsedBy):
        runs = "may not run" if stand_in.started else "does not run"
        return f"claim {stand_in.of} is allocated; this is about pod/{question.name}, which {runs} with it"
    if isinstance(stand_in, NotMade):
        return f"{stand_in.of} has no pod; this is about one as it would make it"
    if isinstance(stand_in, MadeFrom):
        users = f"; used by {some(stand_in.users)}" if stand_in.users else "; no pod names it"
        return f"this is about a claim as ResourceClaimTemplate {question.name} makes it{users}"
    of, pods, hanging = stand_in
    if pods == 1:
        return f"{of} has one pod; this is about it, pod/{question.name}"
    many, which = "none is stuck", "the newest"
    if hanging:
        many = "1 is stuck" if hanging == 1 else f"{hanging} are stuck"
        which = "that one" if hanging == 1 else "the newest of those that have come least far"
    return f"{of} has {pods} pods, {many}; this is about {which}, pod/{question.name}"


def _answered(
    posed: Sequence[Posed], diagnoses: Sequence[Diagnosis], flags: ExplainFlags, connection: ConnectionFlags
) -> Answers:
    if not flags.manifests:
        return Answers.of(diagnoses)
    from kubectl_dra.cli.explain.of_workloads import answered

    return answered(posed, diagnoses, flags, lambda case: _diagnosed(case, flags, connection))


def _asks_for_daemons(diagnosis: Diagnosis, snapshot: Snapshot) -> bool:
    if any(finding.kind in (NO_SLICES, NOT_REGISTERED, NO_ANSWER) for finding in diagnosis.findings):
        return True
    from kubectl_dra.drivers.drivers_on_nodes import bare_nodes

    return diagnosis.verdict is Verdict.UNSCHEDULABLE and any(True for _ in bare_nodes(snapshot))


def _diagnosed(posed: Posed, flags: ExplainFlags, connection: ConnectionFlags) -> Diagnosis:
    diagnosis = diagnose(posed.question, posed.snapshot, posed.settings)
    if not flags.snapshots and _asks_for_daemons(diagnosis, posed.snapshot):
        # Where no pod of the driver was found, its DaemonSet may say why there is none.
        posed = posed._replace(snapshot=with_daemon_sets(posed.snapshot, connection))
        diagnosis = diagnose(posed.question, posed.snapshot, posed.settings)
    if posed.settings.added:
        from kubectl_dra.explain.on_new_nodes import narrowed, with_new_nodes

        if certain := narrowed(diagnosis, posed.question, posed.snapshot, posed.settings):
            posed = posed._replace(snapshot=certain.snapshot, settings=certain.settings)
            diagnosis = diagnose(posed.question, posed.snapshot, posed.settings)
            diagnosis = replace(diagnosis, notes=(certain.note, *diagnosis.notes))
        diagnosis = with_new_nodes(diagnosis, posed.question, posed.snapshot, posed.settings)
    if diagnosis.verdict is Verdict.SCHEDULABLE and posed.before is not None:
        from kubectl_dra.explain.on_new_nodes import unless_unexplained

        diagnosis = unless_unexplained(diagnosis, *posed.before, posed.settings)
    if diagnosis.verdict in (Verdict.SCHEDULABLE, Verdict.UNSCHEDULABLE):
        from kubectl_dra.explain.rivals import with_rivals

        diagnosis = with_rivals(diagnosis, posed.question, posed.snapshot, posed.settings)
    if diagnosis.not_starting or diagnosis.refused:
        from kubectl_dra.explain.driver_refusals import judged_by_start

        diagnosis = judged_by_start(diagnosis)
    if flags.whole_page or flags.output is not ExplainOutput.text:
        from kubectl_dra.explain.pod_timeline import also_possible, way_of

        elsewhere = also_possible(posed.question, posed.snapshot, posed.settings) if flags.whole_page else ""
        diagnosis = replace(diagnosis, way=way_of(posed.question, posed.snapshot), elsewhere=elsewhere)
    if flags.trace:
        from kubectl_dra.explain.selector_trace import trace

        traces = trace(posed.question, posed.snapshot, posed.settings, flags.trace)
        if diagnosis.next in [NextStep(Look.ONE_DEVICE, str(traced.device)) for traced in traces]:
            # From the device that was just shown on to all of them.
            diagnosis = replace(diagnosis, next=NextStep(Look.DEVICES))
        diagnosis = replace(diagnosis, traces=traces)
    if flags.verify:
        from kubectl_dra.explain.selector_trace import verify

        diagnosis = replace(diagnosis, second_opinion=verify(posed.question, posed.snapshot, posed.settings))
    return diagnosis


def _run_html(flags: ExplainFlags, connection: ConnectionFlags, changes: Sequence[WhatIfChange]) -> int:
    """Writes one page: each answer with the devices of the cluster that it was given for."""
    if flags.watch:
        raise UsageError("--watch prints repeatedly; -o html is one page")
    from kubectl_dra.report.html.page import PageOrigin
    from kubectl_dra.report.html.pages import MAX_FLEETS, to_html

    diagnoses: list[Diagnosis] = []
    fleets: ByIdentity[Snapshot, Inventory] = ByIdentity()
    drawn: dict[tuple[str, str, str], Inventory] = {}
    posed = questions_of(flags, connection, changes)
    _tell_stand_ins(posed)
    for number, case in enumerate(posed):
        pictured = number < MAX_FLEETS
        diagnosis = _diagnosed(case._replace(settings=replace(case.settings, with_devices=pictured)), flags, connection)
        diagnoses.append(diagnosis)
        devices = (
            (fleets.get(case.snapshot) or fleet(case.question, case.snapshot, case.settings)) if pictured else None
        )
        if devices is not None:
            fleets.put(case.snapshot, devices)
            drawn[_subject(diagnosis)] = devices
    origin = PageOrigin.of(posed[0].snapshot, posed[0].settings.scheduler.release)
    answers = _answered(posed, diagnoses, flags, connection)
    shown = [(diagnosis, drawn.get(_subject(diagnosis))) for diagnosis in (*answers.refused, *answers.diagnoses)]
    put(to_html(shown, origin, _invocation(flags, connection)))
    return answers.code


def _subject(diagnosis: Diagnosis) -> tuple[str, str, str]:
    return diagnosis.kind, diagnosis.namespace, diagnosis.name


def _run_watch(flags: ExplainFlags, connection: ConnectionFlags, changes: Sequence[WhatIfChange]) -> int:
    """Prints whenever the answer changes, until everything asked about is allocated, or has ended without.

    A server that does not answer for a while is asked again.
    """
    from kubectl_dra.cluster.client import passes
    from kubectl_dra.report.color import tell

    # This may take hours, and each answer leaves garbage.
    gc.enable()
    shown: list[Diagnosis] = []
    waiting, silent = False, ""
    while True:
        try:
            diagnoses = [_diagnosed(posed, flags, connection) for posed in questions_of(flags, connection, changes)]
        except ClusterError as error:
            if not shown or not passes(error):
                raise
            if str(error) != silent:
                silent = str(error)
                tell(f"note: {silent}; asking again")
            time.sleep(WATCH_SECONDS)
            continue
        except (NotThere, KindAbsent) as error:
            if shown:
                raise InputError(f"{error.subject} was deleted while it was watched") from None
            raise
        silent = ""
        if diagnoses != shown:
            if shown and flags.output is ExplainOutput.text:
                put("\n")
            _print(Answers.of(diagnoses), flags, _invocation(flags, connection))
            sys.stdout.flush()
            shown = diagnoses
        if all(diagnosis.verdict is Verdict.ALLOCATED or diagnosis.ended for diagnosis in diagnoses):
            return Answers.of(diagnoses).code
        if not waiting:
            waiting = True
            tell(f"note: waiting for {'the snapshot' if flags.snapshots else 'the cluster'} to change; Ctrl-C ends it")
        time.sleep(WATCH_SECONDS)


def _run_all(flags: ExplainFlags, connection: ConnectionFlags, output: str, color: str) -> int:
    if flags.target or flags.manifests:
        raise UsageError("--all and -A explain every pending claim; leave the pod, claim or manifest out")
    how = "say which: pod/NAME, claim/NAME or -f MANIFEST" if flags.summary else "it excludes --all and -A"
    flags.refuse(f"one pod or claim; {how}", ("--node", SCHEDULER_CONFIG, *RELEASE))
    if flags.with_devices and output == "text":
        raise UsageError("--devices of all that is pending needs -o json or yaml; as text, name one pod or claim")
    from kubectl_dra.explain.overview import pending

    snapshot, namespace = read_cluster(flags, connection, everything=True)
    with Progress() as progress:
        snapshot = all_completed(snapshot, flags, connection)
        settings = asked_settings(flags, snapshot)
        overview = pending(snapshot, "" if flags.of_all_namespaces else namespace, settings, progress)
    where = cluster_flags(flags, connection)
    if output == "text":
        from kubectl_dra.report.overview import write_overview

        short = flags.summary and not flags.full
        headers = not flags.no_headers
        # The question about one pod is to repeat them.
        of = repeated({"--node": (flags.node,), **assumed_flags(flags)})
        write_overview(overview, color, flags=of, where=where, short=short, full=flags.full, headers=headers)
    elif output == "name":
        names = [name for alike in overview.found for name in alike.names]
        put("".join(f"{name}\n" for name in (*names, *(f"vmi/{launcher.name}" for launcher in overview.unmade))))
    elif output == "html":
        from kubectl_dra.report.html.page import PageOrigin
        from kubectl_dra.report.html.pages import overview_html

        devices = fleet(None, snapshot, settings)
        origin = PageOrigin.of(snapshot, settings.scheduler.release)
        put(overview_html(overview, devices, origin, Invocation(where=where)))
    else:
        from kubectl_dra.report.json_output import write
        from kubectl_dra.report.overview import overview_json

        write(overview_json(overview, Invocation(where=where)), output, sys.stdout, overview.exit_code)
    return overview.exit_code


def _invocation(typed: ExplainFlags, connection: ConnectionFlags) -> Invocation:
    """The command line without what only refines the output, to be repeated with other flags."""
    where = cluster_flags(typed, connection)
    if typed.target and len(targets_of(typed.target)) > 1:
        flags = repeated(_flags(replace(typed, namespace="")))
        return Invocation(("kubectl", "dra", "explain", *flags, *where.flags), where, several=True)
    return Invocation(_asked(typed, connection), where, files=typed.manifests)


def _asked(typed: ExplainFlags, connection: ConnectionFlags) -> Argv:
    """The command line without what only refines the output."""
    targets = map(str, targets_of(typed.target)) if typed.target else ()
    flags = repeated({**_flags(typed), "--node": (typed.node,), "--request": (typed.request,)})
    return ("kubectl", "dra", "explain", *targets, *flags, *cluster_flags(typed, connection).flags)


def _flags(flags: ExplainFlags) -> dict[str, Sequence[str]]:
    """What is supposed of the cluster, and what of it is asked about."""
    asked = {"-f": flags.manifests, "-l": (flags.labels,), "-n": (flags.namespace,)}
    return {**asked, "--what-if": flags.what_if, "--with-node": flags.with_nodes, **assumed_flags(flags)}


def _print(answers: Answers, flags: ExplainFlags, invocation: Invocation) -> None:
    output = flags.output.value
    stopped = any(workload.stop is not None for workload in answers.workloads)
    if stopped or any(isinstance(note, AfterOthers) for diagnosis in answers.diagnoses for note in diagnosis.notes):
        alike = stopped and len(answers.workloads) == 1 == len(answers.workloads[0].workload.roles)
        invocation = invocation._replace(counted=True, alike=alike and len(answers.diagnoses) == 1)
    if output == "text":
        from kubectl_dra.report.blocks import ShellCommand
        from kubectl_dra.report.blocks_text import write_blocks
        from kubectl_dra.report.color import Painter
        from kubectl_dra.report.explain_blocks import write_text

        if answers.workloads:
            from kubectl_dra.report.fit_words import missing

            write_blocks(Painter(color=flags.color.value), missing(answers.missing, invocation.where))
            _print_headlines(answers.workloads, flags)
        write_text(answers.diagnoses, flags.color.value, invocation=invocation, full=flags.whole_page)
        stops = [each.stop.diagnosis for each in answers.workloads if each.stop is not None]
        refused_first = any(first.kind in REFUSED for stop in stops for first in stop.findings[:1])
        # What the API server refuses is mended first: placing all would say it again.
        if stopped and not flags.what_if and not refused_first:
            following = invocation.where.asks(CommandLine(("kubectl", "dra", "fit", *repeated(_flags(flags)))))
            write_blocks(Painter(color=flags.color.value), [ShellCommand((following,), "Next")])
        return
    from kubectl_dra.report.explain_json import to_json
    from kubectl_dra.report.json_output import write

    write(
        to_json((*answers.refused, *answers.diagnoses), invocation, answers.workloads, answers.missing),
        output,
        sys.stdout,
        answers.code,
    )


def _print_headlines(workloads: Sequence[WorkloadFit], flags: ExplainFlags) -> None:
    """Says first how many replicas of each workload fit."""
    from kubectl_dra.report.color import Painter
    from kubectl_dra.report.fit_words import headline

    for workload in workloads:
        Painter(color=flags.color.value).paragraph(headline(workload))
