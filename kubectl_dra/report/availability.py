"""Whether devices of a class, or one device, can be had now: the sentence, the fix, and what JSON adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_dra.allocation.capacity import CapacityLack
from kubectl_dra.command import ClusterFlags, CommandLine
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.diagnosis import Remedy
from kubectl_dra.explain.driver_words import at_fault
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.unread_kind import Unread
from kubectl_dra.report.blocks import TONES, Answer, Tone
from kubectl_dra.report.devices import summary, taints_of
from kubectl_dra.report.explain_commands import Invocation, command, making
from kubectl_dra.report.explain_words import parts
from kubectl_dra.report.json_output import filled
from kubectl_dra.report.phrases import written
from kubectl_dra.report.remedy_json import command_json, commands_json
from kubectl_dra.report.top import defects_of
from kubectl_dra.text import amount, some
from kubectl_dra.usage.availability import ClassNow, DeviceNow
from kubectl_dra.usage.choices import ClaimState
from kubectl_dra.usage.claim_use import ClaimUse

_SHOWN = 3


def class_answer(now: ClassNow) -> Answer:
    """What a request for the class gets now, and its devices by state."""
    lead = f"DeviceClass {now.name}"
    by_state = f"; {summary(now.inventory)}" if now.inventory.rows else ""
    said = f"{_of_class(now)}{_tainted(now)}{_unsure(now.unsure)}{by_state}"
    return Answer(lead, said, TONES[now.verdict])


def _tainted(now: ClassNow) -> str:
    """Note that pods need a toleration for the nodes of what can be had."""
    if now.verdict is Verdict.UNSCHEDULABLE or not now.node_taints:
        return ""
    return f", by a pod that tolerates node taint {some(now.node_taints, 2)}"


def _unsure(unsure: Sequence[Words]) -> str:
    """What is unknown of a yes."""
    first = next(iter(unsure), None)
    if first is None:
        return ""
    return f"; but {first.gap}, so {written(first.unknown)}" if isinstance(first, Unread) else f"; but {written(first)}"


def _of_class(now: ClassNow) -> str:
    largest = now.largest
    if not now.inventory.rows:
        if now.verdict is Verdict.UNDETERMINED:
            return "whether a request can get a device of it is unknown, because not all slices were read"
        fault = next(iter(now.broken), None)
        if now.flaw is not None:
            return f"no request can get a device of it: {written(now.flaw.summary)}"
        cause = "" if fault is None else f": {written(at_fault(fault))}"
        return f"no request can get a device of it now, because no published device matches it{cause}"
    if now.verdict is Verdict.UNDETERMINED and not now.unsure:
        return "whether a request can get a device of it now is unknown"
    if largest is None and (now.unsure or now.verdict is Verdict.SCHEDULABLE):
        return f"a request can get a share of its devices now{_of_capacity(now)}"
    if largest is not None and largest.count:
        count = "one device" if largest.count == 1 else f"up to {largest.count:,} devices"
        more = ", or more elsewhere" if largest.at_least else ""
        part = now.refused
        if part is not None:
            return (
                f"no pod can use a device of it now: a request gets {count}, on node {largest.node}, and driver "
                f"{part.driver} refuses a claim for less than all {part.of:,} of that node"
            )
        if now.whole:
            return f"a request for all devices of a node can get {largest.count:,} of it now, on node {largest.node}"
        return f"a request can get {count} of it now, on node {largest.node}{more}"
    if largest is not None and largest.defects:
        return f"no plain request can get a device of it now, though {_free(now)}: {defects_of(largest)}"
    if now.free:
        free = _free(now)
        if now.cordoned:
            nodes = f"node {now.cordoned[0]} is" if len(now.cordoned) == 1 else f"nodes {some(now.cordoned, 3)} are"
            return f"no request can get a device of it now, though {free}: {nodes} cordoned"
        return f"no request can get a device of it now, though {free}: no node can take a pod for it"
    if now.unserved:
        return f"no pod can use a device of it now: {written(now.unserved[0].unserved)}"
    fault = next((row for row in now.broken if row.state.broken and not row.wanted_by), None)
    whys = [written(at_fault(fault))] if fault is not None else []
    rows = now.inventory.rows
    if rows and all(row.state is DeviceState.HELD for row in rows):
        whys.insert(0, "the only one is held" if len(rows) == 1 else f"all {len(rows):,} are held")
    return "no request can get a device of it now" + (f": {'; besides, '.join(whys)}" if whys else "")


def _of_capacity(now: ClassNow) -> str:
    """Most that one device has left of the scarcest capacity, and whether an amount must be named to get some."""
    scarcest = next(iter(now.room), None)
    if scarcest is None or scarcest.on is None:
        return ""
    most = f", at most {scarcest.most} of {scarcest.name} on one device ({written(scarcest.on, 'short')})"
    short = now.unnamed
    if short is None or short.reason is not CapacityLack.INSUFFICIENT:
        return most
    wanted = f"all {short.amount}" if short.amount == short.value else f"the default, {short.amount},"
    return f"{most}; one that names no amount gets none: it wants {wanted} of {short.capacity}"


def _free(now: ClassNow) -> str:
    return f"{now.free:,} {'is' if now.free == 1 else 'are'} free"


def device_answer(now: DeviceNow, *, whole: bool = True) -> Answer:
    """Whether the device can be had now, who has it, and what keeps it from others; ``whole``: also ``why_stuck``."""
    tone = Tone.BAD if now.exit_code == 1 else TONES[now.verdict]
    return Answer(f"Device {now.row.id}", f"{_of_device(now, whole)}{_unsure(now.unsure)}", tone)


def _of_device(now: DeviceNow, whole: bool) -> str:
    row = now.row
    tainted = ", ".join(taints_of(row))
    said = written(row.reason)
    if row.state is DeviceState.FREE:
        if not now.selected:
            return "free, and no request can ask for it: no DeviceClass selects it"
        if now.cordoned:
            return f"free, and no new pod gets it: node {now.cordoned} is cordoned"
        if now.whole > 1:
            return f"free: a request for all {now.whole:,} devices of its node can get it now"
        if now.largest is not None:
            no = f"no plain request for DeviceClass {some(row.classes, 2)} gets it: {defects_of(now.largest)}"
            return f"free for a request with selector {now.selector}: {no}" if now.selector else f"free, but {no}"
        return "free: a request can get it now"
    if row.state is DeviceState.UNSERVED:
        return f"free, but a pod that gets it does not start: {said}"
    if row.state is DeviceState.HELD:
        holders = some([_holder(use) for use in now.uses] or [claim.key for claim in row.holders], _SHOWN)
        after = f"; it is tainted with {tainted}: afterwards only a request that tolerates that gets it"
        also = after if row.also_tainted else ""
        also = f"; afterwards nobody gets it: {said}" if row.also_unusable else also
        return f"held by {holders or 'a claim that was not read'}{_stuck(now, whole)}{also}"
    if row.state is DeviceState.SHARED:
        left = f"it is tainted with {tainted}: only a request that tolerates that gets what is left"
        also = left if row.also_tainted else ""
        also = also or (f"a pod that gets what is left does not start: {written(row.unserved)}" if row.unserved else "")
        also = also or (f"no new pod gets a share: node {now.cordoned} is cordoned" if now.cordoned else "")
        return f"shared by {amount(len(row.holders), 'claim')} ({said}); {also or 'what is left can be given'}"
    if row.state is DeviceState.BLOCKED and now.blockers:
        (device, use), *others = now.blockers
        more = f", and {amount(len(others), 'more')}" if others else ""
        return f"blocked by {device} of the same hardware, held by {_holder(use)}{more}: {said}"
    if row.state is DeviceState.TAINTED:
        return f"tainted: only a request that tolerates {tainted} gets it"
    return f"{row.state}: {said}"


def _stuck(now: DeviceNow, whole: bool) -> str:
    """Note that the pod that has a device does not run with it; ``whole``: and why."""
    if now.stuck is None or now.stuck.kind != "pod":
        return ""
    said, why = parts(now.stuck)
    return f"; {said[:1].lower()}{said[1:]}{f': {why}' if whole and why else ''}"


def why_stuck(now: DeviceNow) -> str:
    """What keeps the pod that has a device from running with it, as its own answer says; empty where nothing does."""
    return parts(now.stuck)[1] if now.stuck is not None and now.stuck.kind == "pod" else ""


def _holder(use: ClaimUse) -> str:
    if use.state is ClaimState.UNUSED:
        return f"unused claim {use.claim.key}: nothing frees it until that claim is deleted"
    if use.state is ClaimState.ENDED:
        return f"claim {use.claim.key}, whose pods have ended ({some(use.pods, 1)})"
    if use.state is ClaimState.TERMINATING and use.waits_for:
        return f"claim {use.claim.key} (which waits for {written(use.waits_for)})"
    pods = f" (pod {some(use.pods, 1)}, {use.state})" if use.pods else f" ({use.state})"
    return f"claim {use.claim.key}{pods}"


def fix_commands(fix: Remedy) -> tuple[CommandLine, ...]:
    """The commands that make a fix, or show what to repair."""
    return fix.commands or making(fix.offers)


def answer_json(kind: str, name: str, now: ClassNow | DeviceNow, answer: Answer, where: ClusterFlags) -> dict[str, Any]:
    """What a list has besides where it explains one object."""
    commands = fix_commands(now.fix) if now.fix is not None else ()
    return {
        "subject": {"kind": kind, "name": name},
        "verdict": now.verdict.value,
        "answer": answer.text,
        "fix": {
            "text": written(now.fix.change) if now.fix is not None else "",
            **filled(commands=commands_json(*commands, where=where)),
        },
        **filled(next=command_json(command(now.next, Invocation()), where=where)),
    }
