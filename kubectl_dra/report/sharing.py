"""Ways of sharing as a table: how many pods run, what is shared, what is needed; and what to write for one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubectl_dra.command import ClusterFlags, CommandLine, creating_namespace
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.causes.known_defects import KNOWN_DEFECT
from kubectl_dra.explain.driver_refusals import refused
from kubectl_dra.explain.not_starting import NotStarting
from kubectl_dra.fit.result import WorkloadFit
from kubectl_dra.fit.sharing import MAX_CONSUMERS, SharingNeed, SharingWay, WrittenWay
from kubectl_dra.fit.sharing_parts import Amount
from kubectl_dra.fit.sharing_proof import Divided, ShareAnswer, TriedWay
from kubectl_dra.grouped import grouped
from kubectl_dra.report.blocks import Block, ShellCommand, TableBlock, Tone, prose, shell
from kubectl_dra.report.blocks_text import write_blocks, write_command
from kubectl_dra.report.color import Painter, tell
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.report.fit_stop_words import fix_commands, own_fix, stop
from kubectl_dra.report.fit_words import missing
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import object_json
from kubectl_dra.report.phrases import written
from kubectl_dra.report.remedy_json import commands_json, unread_json
from kubectl_dra.report.table import EMPTY
from kubectl_dra.text import amount, some

_SHARED: Final = {
    SharingWay.EACH: "nothing: a device for each pod",
    SharingWay.CLAIM: "a device of one node, no limits",
    SharingWay.TIME_SLICES: "a device of one node, in turns",
    SharingWay.MPS: "a device of one node, by MPS",
    SharingWay.PARTITIONS: "a device, in parts of hardware",
    SharingWay.CAPACITY: "a device, by amounts",
    SharingWay.ADMIN: "what others hold, to watch it: no work",
}
_BEST: Final = (
    SharingWay.EACH,
    SharingWay.PARTITIONS,
    SharingWay.CAPACITY,
    SharingWay.CLAIM,
    SharingWay.TIME_SLICES,
    SharingWay.MPS,
)
"""Of the ways with which all pods get a node, the one whose command is printed."""


def headline(answer: ShareAnswer) -> str:
    """The answer in one sentence."""
    who = f"{answer.containers} containers of one pod" if answer.containers else amount(answer.pods, "pod")
    return f"{who}, class {answer.device_class}: {_said(answer)[0]}."


def _said(answer: ShareAnswer) -> tuple[str, Tone]:
    """Headline on how the pods run, with its tone."""
    ways, one = answer.ways, answer.pods == 1 and not answer.containers
    if SharingWay.EACH in answer.works:
        if amount_today := _amount_today(ways):
            asks = "it asks for" if answer.pods == 1 else "each asks for"
            return f"there is room for what {asks}, {_of(amount_today)} of a device that several share", Tone.GOOD
        return f"there is {_each(ways, answer.pods)}", Tone.GOOD
    if names := _by(ways):
        placed = "it would be placed" if one else "all would be placed"
        lack = "they would be placed" if answer.containers else f"{_lack(answer)}; {placed}"
        after = all(way.after for way in ways if way.works and way.written.way is not SharingWay.ADMIN)
        first = " once the pods that run now have ended" if after else ""
        return f"{lack} {names}{first}", Tone.GOOD if answer.containers else Tone.WARNING
    if any(way.fit is not None and way.fit.verdict is Verdict.UNDETERMINED for way in ways):
        if idle := next((way.fit.begin.maybe for way in ways if way.fit is not None and way.fit.begin.maybe), ()):
            start = "it starts" if one else "all of them start"
            return f"whether {start} is undetermined: {_elsewhere(idle)}", Tone.WARNING
        unclear = next((written(why) for way in ways if way.fit is not None for why in way.fit.unclear), "")
        why = f": {unclear}" if unclear else ""
        return f"whether {'it' if one else 'all of them'} can run is undetermined{why}", Tone.WARNING
    if not answer.devices and not any(way.placed for way in answer.working):
        return "no device here is of this class, so there is nothing to share", Tone.BAD
    if not any(way.placed for way in answer.working):
        return f"{'it does not run' if one else 'none of them runs'} on the cluster as it is, shared or not", Tone.BAD
    return "they do not all run in any way of sharing on the cluster as it is", Tone.BAD


def write_ways(
    answer: ShareAnswer,
    command: CommandLine,
    color: str = "auto",
    *,
    where: ClusterFlags,
    otherwise: CommandLine,
    amount_typed: bool = False,
) -> None:
    """Write the table, and the command that writes the best way: by capacity if an amount was typed.

    Where they do not all run in any way, it is what helps the first pod, and ``otherwise``, which says more.
    """
    out = Painter(color=color)
    ways, works = answer.working, answer.works
    write_blocks(out, missing(answer.missing_namespaces, where))
    write_blocks(out, [prose(headline(answer), _said(answer)[1])])
    out.write("")
    # A table of noughts says nothing but what the ways need.
    needed = any(not need.driver or need in way.refused for way in ways for need in way.written.needs)
    if needed or any(way.placed or (way.fit is not None and way.fit.unclear) for way in ways):
        rows = [("BY", "PODS", "SHARED", "NEEDS"), *map(_row, _different(ways))]
        write_blocks(out, [TableBlock(rows, ("NEEDS", "SHARED"))])
        out.write("")
    blocks = [*_why_not(answer), *_tolerating(answer), *_beside(answer)]
    # Of the way in which most of them run, what helps the next one.
    stopped = [way for way in ways if way.fit is not None and way.fit.stop is not None]
    helped = max(stopped, key=lambda way: way.placed).fit if stopped else None
    if answer.divided is not None:
        blocks += [prose(f"Fix: {_division(answer.divided, answer.pods)}", Tone.GOOD)]
    elif not works and helped is not None and answer.tolerating is None and (fix := own_fix(helped)):
        blocks += [prose(f"Fix: {fix}", Tone.GOOD)]
        blocks += [shell(how, where)] if (how := fix_commands(helped, Invocation(where=where))) else []
    write_blocks(out, blocks)
    first = (SharingWay.CAPACITY,) if amount_typed else ()
    best = next((way for way in (*first, *_BEST) if way in works), None)
    if blocks:
        out.write("")
    if best is SharingWay.EACH and answer.given == next(way.written.text for way in ways if way.written.way is best):
        write_blocks(out, [prose("To share, the manifest can stay as it is.", Tone.GOOD)])
    elif best is not None:
        amount_each = next((_part(way) for way in ways if way.written.way is best), ())
        argv = (*command.argv, "--by", best.value, *amount_each)
        write_command(out, ShellCommand((CommandLine(argv),), "Next"))
    else:
        if amount_typed and otherwise == command:
            write_blocks(
                out, [prose("Without --part it proposes an amount with which all pods have room, if there is one.")]
            )
        write_command(out, ShellCommand((otherwise,), "Next"))


def _why_not(answer: ShareAnswer) -> Iterator[Block]:
    """Why not by a way, or not for all pods."""
    for (placed, why), of_ways in _stopped(answer.working).items():
        yield prose(f"{'Not all by' if placed else 'Not by'} {', '.join(of_ways)}: {_after(placed, why)}.")
    # Where nothing matches the class, what would share a device is no advice.
    ways = [way.written for way in answer.working if way.fit is None and (answer.devices or answer.works)]
    for why, of_ways in grouped((written(way.impossible), way.way) for way in ways).items():
        yield prose(f"Not by {', '.join(of_ways)}: {why}.")
    for way in answer.working:
        for need in way.refused:
            yield prose(f"{way.written.way} is refused here: {_refused(way, need)}.", Tone.WARNING)


def _division(divided: Divided, pods: int) -> str:
    """What lets pods run of which one shared claim serves too few."""
    claims, most, enough = divided
    why = f"the pods of a claim run on its node, which takes {most:,} of them"
    if not enough:
        return f"Add nodes with such devices, and make {claims:,} shared claims: {why}."
    return f"Make {claims:,} shared claims, each for {-(-pods // claims):,} pods of a workload of its own: {why}."


def _tolerating(answer: ShareAnswer) -> Iterator[Block]:
    """What keeps the pods behind the taints of nodes."""
    if answer.tolerating is None or answer.tolerating.answer.works:
        return
    flags = " ".join(f"--tolerate {taint}" for taint in answer.tolerating.taints)
    for (placed, why), of_ways in _stopped(answer.tolerating.answer.working).items():
        none = "Not all" if placed else "Not"
        yield prose(f"{none} by {', '.join(of_ways)} with {flags}, either: {_after(placed, why)}.")


def _beside(answer: ShareAnswer) -> Iterator[Block]:
    """What else to know of the ways."""
    for way in answer.working:
        if way.written.device_class and (answer.devices or way.works):
            yield prose(f"By {way.written.way}: {_other_class(way.written, answer.device_class)}.")
    said_of = ((finding, way.written.way) for way in answer.working for finding in way.findings)
    for finding, of in grouped(said_of).items():
        # Nobody applies what does not work.
        if answer.works.isdisjoint(of):
            continue
        yield prose(f"Lint says of {', '.join(of)}: {finding}.", Tone.WARNING)
    if SharingWay.CLAIM in answer.works and answer.pods > MAX_CONSUMERS:
        yield prose(f"Note: one claim serves at most {MAX_CONSUMERS} pods; make one for each group.")


def _other_class(way: WrittenWay, device_class: str) -> str:
    """Note that a way takes devices that the class asked about does not admit."""
    return f"class {device_class} takes whole devices only, so the claims ask for class {way.device_class}"


def _lack(answer: ShareAnswer) -> str:
    """Why not each pod gets a device of its own: too few are free, or a defect of the scheduler refuses them."""
    ways, one = answer.ways, answer.pods == 1
    own_device = next((way.fit for way in ways if way.fit is not None and way.written.way is SharingWay.EACH), None)
    findings = own_device.stop.diagnosis.findings if own_device is not None and own_device.stop is not None else ()
    if findings and findings[0].kind is KNOWN_DEFECT:
        return f"a known defect of this release's scheduler refuses {'it' if one else 'each'} a device"
    if own_device is not None and own_device.begin.lost and own_device.begin.nodes:
        there = own_device.begin.nodes[0]
        lost = f"with a device each, {amount(own_device.begin.lost, 'pod')} would not start on {there.node}"
        return f"{lost}: {written(there.why)}"
    if amount_today := _amount_today(ways):
        return f"there is not room for what {'it' if one else 'each'} asks for, {_of(amount_today)}"
    if own_device is not None and any(way.spread.shared for way in ways):
        return f"there is not a share of a device for {'it' if one else 'each'}"
    if any(way.written.way is SharingWay.CAPACITY and way.written.amount is not None for way in ways):
        return "no device is free as a whole" if one else "there is not a whole device for each"
    return "there is no free device for it" if one else "there is not a device for each"


def _each(ways: Sequence[TriedWay], pods: int) -> str:
    """Note that there is a device for each pod, or a share of one, where several claims may have a device."""
    spread = next(way.spread for way in ways if way.written.way is SharingWay.EACH)
    if not spread.shared:
        return f"a device for {'it' if pods == 1 else 'each'}, nothing has to be shared"
    serve = "serves another claim" if spread.others == 1 else "serve other claims"
    others = f", of which {spread.others:,} {serve}, too" if spread.others else ""
    on = f"{amount(spread.claims, 'claim')} on {amount(spread.devices)}"
    return f"a share of a device for {'it' if pods == 1 else 'each'} ({on}{others})"


def _elsewhere(idle: Sequence[NotStarting]) -> str:
    """Note that the scheduler may choose a node where pods do not start."""
    return f"the scheduler may as well take {idle[0].node}, where {written(idle[0].why)}"


def _stopped(ways: Sequence[TriedWay]) -> dict[tuple[int, str], list[SharingWay]]:
    """Number of pods that start and why not all do, with the ways of which that is true."""
    return grouped(
        ((way.placed, why), way.written.way)
        for way in ways
        if way.fit is not None and not way.fit.all_placed and not way.refused and (why := _why(way.fit))
    )


def _after(placed: int, why: str) -> str:
    return f"after {amount(placed, 'pod')}, {why}" if placed else why


def _why(fit: WorkloadFit) -> str:
    """Why not all pods of a way get a node, or start."""
    begin = fit.begin
    if fit.verdict is not Verdict.NOT_STARTING:
        return stop(fit)
    return (
        written(refused(begin.refused)) if begin.refused else f"on {begin.nodes[0].node} {written(begin.nodes[0].why)}"
    )


def _by(ways: Sequence[TriedWay]) -> str:
    """The ways by which all pods would be placed, last those that the driver refuses unless a gate of it is on."""
    working = [way for way in ways if way.works and way.written.way not in (SharingWay.ADMIN, SharingWay.EACH)]
    sure = [f"by {_named(way)}" for way in working if not way.gates]
    gated = [f"by {way.written.way.value} if {_gates(way)}" for way in working if way.gates]
    *names, last = [*sure, *gated] or [""]
    # A way with a condition is long: the comma says where the next one begins.
    return f"{', '.join(names)}{',' if gated else ''} or {last}" if names else last


def _named(way: TriedWay) -> str:
    """A way, with the amount where that is another one than today's."""
    amount_each = way.written.amount if way.written.way is SharingWay.CAPACITY else None
    return f"{way.written.way.value} with {_of(amount_each)} each" if amount_each is not None else way.written.way.value


def _of(share: Amount) -> str:
    return f"{share.value} of {share.capacity}"


def _amount_today(ways: Sequence[TriedWay]) -> Amount | None:
    """What each pod asks of a device that several may have, as it is written."""
    return next((way.written.amount for way in ways if way.written.way is SharingWay.EACH), None)


def _part(way: TriedWay) -> tuple[str, ...]:
    """The flag that gives each pod its amount."""
    share = way.written.amount if way.written.way is SharingWay.CAPACITY else None
    return ("--part", share.value) if share is not None else ()


def _gates(way: TriedWay) -> str:
    gates = way.gates
    return f"the driver's gate{'s' if gates[1:] else ''} {', '.join(gates)} {'are' if gates[1:] else 'is'} on"


def _different(ways: Sequence[TriedWay]) -> list[TriedWay]:
    """The ways that were tried; of those with the same manifest the first."""
    first: dict[str, TriedWay] = {}
    for way in ways:
        if way.fit is not None:
            first.setdefault(way.written.text, way)
    return list(first.values())


def _row(tried_way: TriedWay) -> tuple[str, ...]:
    way = tried_way.written.way
    assert tried_way.fit is not None
    pods = "?" if tried_way.fit.unclear else f"{tried_way.placed:,} of {tried_way.fit.pods:,}"
    share = tried_way.written.amount
    shared = f"a device, by amounts: {_of(share)}" if share is not None else _SHARED[way]
    if share is None and tried_way.spread.shared:
        shared = "a device: a share for each pod"
    return way, pods, shared, ", ".join(need.name for need in tried_way.written.needs) or EMPTY


def _refused(way: TriedWay, need: SharingNeed) -> str:
    """Evidence that the driver refuses the pods, and the number that would run otherwise."""
    if need.refused is not None:
        return f"the driver's error for pod {need.refused} names gate {need.name}"
    placed, pods = (way.fit.placed, way.fit.pods) if way.fit is not None else (0, 0)
    every = "the pod" if pods == 1 else f"all {pods:,} pods"
    who = every if placed == pods else f"{placed:,} of {amount(pods, 'pod')}"
    off = f"gate {need.name} of driver {need.driver} is off on {some(need.off_on, 2)}"
    return f"{off}; with it {who} would be placed"


def write_needs(answer: ShareAnswer, where: ClusterFlags) -> None:
    """On standard error, so that standard output is the manifest: how many pods run with it, and what it needs."""
    (way,) = answer.ways
    assert way.fit is not None
    write_blocks(Painter(sys.stderr, "never"), missing(answer.missing_namespaces, where))
    if way.fit.verdict is Verdict.UNDETERMINED:
        fit, idle = way.fit, way.fit.begin.maybe
        why = written(fit.unclear[0]) if fit.unclear else _elsewhere(idle) if idle else "the search did not end"
        tell(f"note: whether all pods {'start' if idle else 'fit'} is undetermined: {why}")
    else:
        after = " once the pods that run now have ended" if way.after else ""
        verb = "start" if way.fit.begin.lost else "fit"
        does = {1: f"{verb}s", 0: f"does not {verb}"}[way.placed] if way.fit.pods == 1 else verb
        who = f"{way.placed:,} of {amount(way.fit.pods, 'pod')}" if way.fit.pods > 1 else "the pod"
        tell(f"note: {who} {does} with it{after}, by the scheduler's steps")
        for placed, why in _stopped([way]):
            tell(f"note: {_after(placed, why)}")
    if way.written.device_class:
        tell(f"note: {_other_class(way.written, answer.device_class)}")
    for need in way.written.needs:
        here = f"; here {_refused(way, need)}" if need in way.refused else ""
        tell(f"note: needs {written(need.how)}{here}")
        if need.commands:
            write_blocks(Painter(sys.stderr, "never"), [shell(need.commands, where)])
    for finding in way.findings:
        tell(f"warning: lint says {finding}")


# As JSON or YAML, in the shape of ``schemas/share.json``.


def to_json(answer: ShareAnswer, where: ClusterFlags) -> dict[str, Any]:
    """A ShareReport: every way with its manifest."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "ShareReport",
        "answer": headline(answer),
        "missingNamespaces": [*answer.missing_namespaces],
        **filled(commands=commands_json(*map(creating_namespace, answer.missing_namespaces), where=where)),
        "deviceClass": answer.device_class,
        **filled(containers=answer.containers or None),
        "items": [_way_json(way, where) for way in answer.ways],
        **_helping_json(answer),
    }


def _helping_json(answer: ShareAnswer) -> dict[str, Any]:
    """What keeps pods behind taints of nodes, and what several shared claims would do, where these are the question."""
    out: dict[str, Any] = {}
    if answer.tolerating is not None:
        taints, again = answer.tolerating
        ways = [
            {"way": way.written.way.value, "placed": way.placed, **filled(reason=_why(way.fit))}
            for way in again.working
            if way.fit is not None
        ]
        out["tolerating"] = {"nodeTaints": list(taints), "items": ways}
    if answer.divided is not None:
        claims, most, enough = answer.divided
        out["divided"] = {"claimCount": claims, "podsOfClaim": most, "nodesSuffice": enough}
    return out


def _way_json(way: TriedWay, where: ClusterFlags) -> dict[str, Any]:
    share = way.written.amount
    out: dict[str, Any] = {
        "way": way.written.way.value,
        **filled(sharedCapacity={"name": share.capacity, "requested": share.value} if share is not None else None),
        "needs": [
            {
                "name": need.name,
                "how": written(need.how),
                **filled(
                    driver=need.driver,
                    refused=object_json(need.refused.namespace, need.refused.name) if need.refused else None,
                    offOn=[*need.off_on],
                    commands=commands_json(*need.commands, where=where),
                ),
            }
            for need in way.written.needs
        ],
        **filled(deviceClass=way.written.device_class),
    }
    if way.fit is None:
        return {**out, "verdict": "impossible", "reason": written(way.written.impossible)}
    return {
        **out,
        "verdict": way.fit.verdict.value,
        "podCount": way.fit.pods,
        "placed": way.placed,
        **filled(reason="" if way.fit.all_placed else _why(way.fit)),
        "undetermined": [written(why) for why in way.fit.unclear],
        "unread": unread_json(way.fit.unclear),
        "warnings": list(way.findings),
        "manifest": way.written.text,
    }
