"""``taint`` and ``untaint`` as text: what is meant, who is hit, what was done, what is left."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TextIO

from kubectl_dra.explain.phrases import amount, some
from kubectl_dra.report.paint import Painter
from kubectl_dra.report.table import fitted
from kubectl_dra.taint import times
from kubectl_dra.taint.apply import UNCHANGED
from kubectl_dra.taint.listing import DRIVER, TaintLine
from kubectl_dra.taint.radius import ENDED, LATER, NOW, STAYS, UNKNOWN, PodHit, Radius
from kubectl_dra.taint.result import ABSENT, PLANNED, REFUSED, REMOVED, RuleDone, Tainted, Untainted
from kubectl_dra.taint.rules import RESOURCE, Wish
from kubectl_dra.taint.spec import TaintSpec
from kubectl_dra.taint.targets import Target

EMPTY = "-"
_PODS = ("POD", "OWNER", "AGE", "PRIORITY", "NODE", "CLAIM", "TOLERATES", "FATE")
_PODS_BELOW = ("PRIORITY", "OWNER", "AGE", "TOLERATES", "CLAIM", "NODE", "FATE")
_LIST = ("DEVICE", "TAINT", "OWNER", "REASON", "TICKET", "AGE", "EXPIRES", "PODS")
_LIST_BELOW = ("REASON", "TICKET", "OWNER", "PODS", "EXPIRES", "AGE", "TAINT")
_STYLES = {NOW: "red", LATER: "yellow", UNKNOWN: "yellow"}
_SUFFIX = {"client": " (dry run)", "server": " (server dry run)"}


def write_targets(targets: Sequence[Target], taints: Sequence[TaintSpec], stream: TextIO) -> None:
    """Which devices the command is about, by full name."""
    out = Painter(stream, "never")
    out.sentence(f"{', '.join(map(str, taints))} on {amount(len(targets))}:")
    for target in targets:
        details = [f"node {target.where}" if target.where and " " not in target.where else target.where]
        details += [target.hardware, "" if target.published else "not published"]
        shown = ", ".join(detail for detail in details if detail)
        out.sentence(f"{target.id}" + (f" ({shown})" if shown else ""), indent="    ", first="  ")


def write_radius(
    radius: Radius, wishes: Sequence[Wish], color: str = "auto", *, at: datetime, stream: TextIO | None = None
) -> None:
    """Who is hit, who cannot be placed any more, and what is left."""
    out = Painter(stream, color)
    _write_pods(radius, wishes, out, at)
    for lost in radius.lost:
        all_mode = " (it asks for all devices)" if lost.all_mode else ""
        out.paragraph(
            f"Pending {lost.kind} {lost.namespace}/{lost.name} fits now, and will fit nowhere{all_mode}.",
            style="yellow",
        )
    if radius.all_requests:
        names = sorted({f"{r.kind} {r.namespace}/{r.name} ({r.request})" for r in radius.all_requests})
        out.paragraph(f"Requests for all devices that become impossible where a device is tainted: {some(names, 6)}.")
    for left in radius.classes:
        out.sentence(
            f"Class {left.name}: {left.free_after:,} of {amount(left.devices)} free afterwards, {left.free:,} now."
        )
    for note in radius.notes:
        out.paragraph(f"Note: {note}")


def _write_pods(radius: Radius, wishes: Sequence[Wish], out: Painter, at: datetime) -> None:
    if not radius.claims:
        out.write("No claim uses " + ("it." if len({wish.device for wish in wishes}) == 1 else "them."))
        return
    rows: list[tuple[str, ...]] = []
    fates: list[str] = []
    for hit in radius.claims:
        claim = hit.claim.key + (" (admin access)" if hit.admin_access else "")
        for pod in hit.pods:
            rows.append(_pod_cells(pod, claim, at))
            fates.append(pod.fate)
        rows += [(other, EMPTY, EMPTY, EMPTY, EMPTY, claim, EMPTY, _other_fate(other)) for other in hit.others]
        fates += [UNKNOWN] * len(hit.others)
        if not hit.pods and not hit.others:
            rows.append(("(none)", EMPTY, times.age(hit.claim.metadata.creation_timestamp, at), *[EMPTY] * 2, claim))
            rows[-1] = (*rows[-1], EMPTY, "holds the device without a pod")
            fates.append(UNKNOWN)
    out.sentence(_sum(radius, wishes))
    header, *blocks = fitted([_PODS, *rows], out.limit, _PODS_BELOW)
    out.write((header[0], "bold"))
    for block, fate in zip(blocks, fates, strict=True):
        for line in block:
            out.write((line, _STYLES.get(fate, "")))


def _sum(radius: Radius, wishes: Sequence[Wish]) -> str:
    """The pods in one sentence."""
    pods = radius.pods()
    if any(wish.taint.effect == "NoExecute" for wish in wishes):
        unknown = sum(pod.fate == UNKNOWN for pod in pods.values())
        rest = f", of {unknown:,} it is not known" if unknown else ""
        whom = f"{radius.deleted():,} of {amount(len(pods), 'pod')} will be deleted{rest}"
        return f"{whom}; no PodDisruptionBudget is consulted."
    return f"{amount(len(pods), 'pod')} {'uses' if len(pods) == 1 else 'use'} the device and {_stay(len(pods))}."


def _other_fate(consumer: str) -> str:
    """Of a consumer that is not a pod: the server ends the pods of a group, but which these are is not known here."""
    return "unknown: its pods were not found" if consumer.startswith("podgroups ") else "nothing ends it"


def _stay(pods: int) -> str:
    return "stays" if pods == 1 else "stay"


def _pod_cells(pod: PodHit, claim: str, at: datetime) -> tuple[str, ...]:
    fate = {NOW: "deleted at once", LATER: f"deleted at {pod.at}", ENDED: "has ended", STAYS: "stays"}.get(
        pod.fate, pod.fate
    )
    why = f" ({pod.why})" if pod.why else ""
    return (
        f"{pod.namespace}/{pod.name}",
        pod.owner or EMPTY,
        times.age(pod.created, at) if pod.created else EMPTY,
        str(pod.priority),
        pod.node or EMPTY,
        claim,
        "yes" if pod.tolerates else "no",
        f"{fate}{why}",
    )


def write_done(entry: RuleDone, dry_run: str, stream: TextIO) -> None:
    """One line for a rule, as kubectl says it."""
    out = Painter(stream, "never")
    name = f"{RESOURCE}/{entry.wish.name}"
    what = f"{entry.target.id} {entry.wish.taint}"
    if entry.outcome == REFUSED:
        out.sentence(f"{name} refused: {what}: {entry.why}")
    elif entry.outcome == PLANNED:
        out.sentence(f"{name} would be applied ({what}){_SUFFIX.get(dry_run, '')}")
    else:
        expires = (entry.rule.get("metadata") or {}).get("annotations", {}).get("kubectl-dra/expires", "")
        until = f", until {expires}" if expires else ""
        out.sentence(f"{name} {entry.outcome} ({what}{until}){_SUFFIX.get(dry_run, '')}")


def write_end(result: Tainted, color: str = "auto", stream: TextIO | None = None) -> None:
    """What waiting came to, and what to do next."""
    out = Painter(stream, color)
    devices = [str(entry.target.id) for entry in result.done]
    if result.free and result.held_parts:
        each = "is free, but" if len(devices) == 1 else "are free, but"
        out.write(
            (f"{some(devices, 8)} {each} what may be the same hardware is in use. Do not take it offline:", "red")
        )
        for sentence in result.held_parts:
            out.paragraph(sentence, indent="  ")
    elif result.free:
        each = "is free: no claim holds it. It" if len(devices) == 1 else "are free: no claim holds them. They"
        out.sentence(f"{some(devices, 8)} {each} can be taken offline.", style="green")
        _write_way_back(devices, out)
    elif result.free is False:
        out.write(("Not free in time. Left:", "red"))
        for blocker in result.blockers:
            out.paragraph(str(blocker), indent="  ")
        out.write("The rules stay; run the same command again to go on waiting.")
    elif result.exit_code and any(entry.outcome == REFUSED for entry in result.done):
        out.write("Nothing was changed.")
    elif result.dry_run == "none" and any(entry.outcome != UNCHANGED for entry in result.done):
        _write_way_back(devices, out)
    elif result.dry_run != "none":
        out.write("Nothing was changed. The same command without --dry-run does it.")


def _write_way_back(devices: Sequence[str], out: Painter) -> None:
    out.write(("Back into service: ", "bold"), f"kubectl dra untaint {' '.join(dict.fromkeys(devices))}")


def write_names(result: Tainted, stream: TextIO) -> None:
    """The rules as kubectl names them, one a line."""
    stream.write("".join(f"{RESOURCE}/{entry.wish.name}\n" for entry in result.done if entry.outcome != REFUSED))


def write_untainted(result: Untainted, color: str = "auto", stream: TextIO | None = None) -> None:
    """The rules removed, what stays on the devices, and whether they can be given again."""
    out = Painter(stream, color)
    words = {PLANNED: "would be deleted", REMOVED: "deleted", ABSENT: "was gone already", REFUSED: "stays"}
    for entry in result.removed:
        why = f": {entry.why}" if entry.why else ""
        suffix = _SUFFIX.get(result.dry_run, "")
        out.sentence(f"{RESOURCE}/{entry.name} {words[entry.outcome]} ({entry.device} {entry.taint}){why}{suffix}")
    if not result.removed and result.expired_only:
        out.write("No rule has expired.")
    elif not result.removed:
        out.write("There is no rule of kubectl dra to remove. Every taint: kubectl dra taint --list")
    for stays in result.staying:
        text = f"{stays.device} keeps taint {stays.taint} of {stays.owner}; removed by: {stays.ended_by}."
        out.paragraph(text, indent="  ", first="")
    if result.allocatable:
        out.write(("Allocatable again.", "green"))
    elif result.allocatable is False:
        out.write(("Not allocatable in time:", "red"))
        for sentence in result.left:
            out.paragraph(sentence, indent="  ")


def write_removed_names(result: Untainted, stream: TextIO) -> None:
    """The rules removed, one a line."""
    stream.write("".join(f"{RESOURCE}/{entry.name}\n" for entry in result.removed if entry.outcome != REFUSED))


def write_list(lines: Sequence[TaintLine], color: str = "auto", *, at: datetime, stream: TextIO | None = None) -> None:
    """Every taint as a table, then the warnings."""
    out = Painter(stream, color)
    if not lines:
        out.write("No device is tainted.")
        return
    header, *blocks = fitted([_LIST, *(_list_cells(line, at) for line in lines)], out.limit, _LIST_BELOW)
    out.write((header[0], "bold"))
    for block, line in zip(blocks, lines, strict=True):
        for text in block:
            out.write((text, "yellow" if line.warnings else ""))
    for line in lines:
        for warning in line.warnings:
            out.paragraph(f"Warning: {_owner(line)}: {warning}.", style="yellow")


def write_rule_names(lines: Sequence[TaintLine], stream: TextIO) -> None:
    """The rules, one a line; what drivers set has no name of its own."""
    stream.write("".join(f"{RESOURCE}/{line.name}\n" for line in lines if line.owner != DRIVER))


def _list_cells(line: TaintLine, at: datetime) -> tuple[str, ...]:
    device = str(line.devices[0]) if not line.selects else f"({line.selects}: {amount(len(line.devices))})"
    taint = str(line.taint)
    if line.next_effect:
        taint += f", then {line.next_effect}"
    until = times.parse(line.expires)
    expires = EMPTY
    if until is not None:
        expires = "expired" if line.expired else f"in {times.span((until - at).total_seconds())}"
    return (
        device,
        taint,
        _owner(line),
        line.reason or EMPTY,
        line.ticket or EMPTY,
        times.age(line.since, at) if line.since else EMPTY,
        expires,
        some(line.pods, 2) or EMPTY,
    )


def _owner(line: TaintLine) -> str:
    if line.owner == DRIVER:
        return f"driver (ResourceSlice {line.name})"
    return f"rule {line.name}" + ("" if line.ours else " (not made by kubectl dra)")
