"""``taint`` and ``untaint`` as text: the devices, who is affected, what was done, what remains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, TextIO, TypeVar

from kubectl_dra.api.claims import Consumer
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.snapshot import Gap
from kubectl_dra.command import ClusterFlags, kubectl
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.grouped import grouped
from kubectl_dra.report.blocks import TableBlock, shell
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.color import Painter
from kubectl_dra.report.devices import held_by
from kubectl_dra.report.phrases import devices_named, written
from kubectl_dra.report.table import EMPTY
from kubectl_dra.safe_output import lines as names
from kubectl_dra.taint import times
from kubectl_dra.taint.blast_radius import ENDED, GOING, LATER, NOW, STAYS, UNKNOWN, ClassLeft, PodHit, Radius, worse
from kubectl_dra.taint.device_taint_rules import REFUSED, RESOURCE, RULES, UNCHANGED, DesiredRule, RuleStage
from kubectl_dra.taint.pending_affected import ReplacementPod
from kubectl_dra.taint.result import ABSENT, REMOVED, SKIPPED, RuleDone, RuleRemoved, Tainted, Untainted, untainting
from kubectl_dra.taint.targets import Target
from kubectl_dra.text import amount, are, some


def why_unread(gap: Gap) -> str:
    """Why objects of a kind are not known."""
    return f"{gap}{gap.help}"


def not_seen(gap: Gap) -> str:
    """The note about a gap."""
    return f"not seen: {why_unread(gap)}"


T = TypeVar("T")
MANY: Final = 40
"""Number of devices, pods or rules that are shown one by one; of more, the first ones and the number."""
_FIRST: Final = 20
_NAMED: Final = 3
"""Number of names in a line that cannot be written as one range, or are made up."""
_LINES: Final = 3
"""So many planned rules have a line each."""
_PODS = ("POD", "OWNER", "AGE", "PRIORITY", "NODE", "CLAIM", "TOLERATES", "FATE")
_PODS_BELOW = ("PRIORITY", "OWNER", "AGE", "TOLERATES", "CLAIM", "NODE", "FATE")
_WORST = (NOW, LATER, UNKNOWN, STAYS, GOING, ENDED)
_STYLES = {NOW: "red", LATER: "yellow", UNKNOWN: "yellow"}
_SUFFIX = {"client": " (dry run)", "server": " (server dry run)"}


def taint_words(desired: DesiredRule, stage: RuleStage, *, when: bool = False) -> str:
    """A taint as it is now, and what follows it; ``when``: with the time."""
    now = str(desired.taint._replace(effect=stage.effect))
    if not stage.next_effect:
        return now
    return f"{now}, then {stage.next_effect}" + (f" at {stage.next_at}" if when and stage.next_at else "")


def write_targets(targets: Sequence[Target], taints: Sequence[str], stream: TextIO) -> None:
    """Write which devices the command is about, by full name, and in words what they get."""
    out = Painter(stream, "never")
    out.sentence(f"{', '.join(taints)} on {amount(len(targets))}:")
    alike = grouped((_whereabouts(target), target) for target in targets)
    for where, group in _first([*alike.items()]):
        details = [where, *(target.hardware for target in group if len(group) == 1)]
        shown = ", ".join(filter(None, details))
        named = devices_named([target.id for target in group], _NAMED)
        out.sentence(named + (f" ({shown})" if shown else ""), indent="    ", first="  ")
    _write_more(len(alike), "place", out, indent="  ")


def _whereabouts(target: Target) -> str:
    """Where a device is, and that it is not published, if so."""
    where = f"node {target.where}" if target.where and " " not in target.where else target.where
    absent = "in an older slice" if target.superseded is not None else "not published"
    return ", ".join(filter(None, (where, absent if target.published is False else "")))


def write_radius(
    radius: Radius,
    desired_rules: Sequence[DesiredRule],
    color: str = "auto",
    *,
    at: datetime,
) -> None:
    """Write who is affected, who can no longer be placed, and what is left."""
    out = Painter(color=color)
    _write_pods(radius, desired_rules, out, at)
    for text in replaced(radius.replacements):
        out.paragraph(text, style="yellow")
    for lost in _first(radius.lost):
        all_mode = " (it asks for all devices)" if lost.all_mode else ""
        out.paragraph(
            f"Pending {lost.kind} {lost.namespace}/{lost.name} fits now, and will fit nowhere{all_mode}.",
            style="yellow",
        )
    _write_more(len(radius.lost), "pending one", out)
    if radius.all_requests:
        names = sorted({f"{r.kind} {r.namespace}/{r.name} ({r.request})" for r in radius.all_requests})
        out.paragraph(f"Requests for all devices that become impossible where a device is tainted: {some(names, 6)}.")
    for left in radius.classes:
        out.sentence(f"Class {left.name}: {_left(left, radius.deleted())}.")
    # What keeps claims from being known heads the list of pods.
    unseen = [not_seen(gap) for gap in radius.gaps if gap != radius.unread]
    for note in (*unseen, *radius.notes):
        out.paragraph(f"note: {note}")


def _left(left: ClassLeft, deleted: int) -> str:
    """What is free of a class, or left of its devices that can be shared, now and with the taint, when the pods that
    it deletes have gone.
    """
    count = amount(left.devices)
    if left.free is None or left.free_after is None:
        return f"{count}; how many of them are free is unknown"
    when = f"once {'that pod is' if deleted == 1 else 'these pods are'} gone" if deleted else "once the taint is set"
    free = f"{left.free:,} of {count} {are(left.devices if left.free != 1 else 1)} free now, {left.free_after:,} {when}"
    if not left.capacities:
        return f"{free}, before other pods take any"
    scarcest = left.capacities[0]
    shares = f"{scarcest.now} of {scarcest.total} {scarcest.name} are left to share now, {scarcest.after} {when}"
    return f"{free}; {shares}" if left.free else shares


def _write_pods(radius: Radius, desired_rules: Sequence[DesiredRule], out: Painter, at: datetime) -> None:
    whom = "it" if len({desired.device for desired in desired_rules}) == 1 else "them"
    if radius.unread:
        unknown = f"More claims may use {whom}" if radius.claims else f"Which claims and pods use {whom} is unknown"
        out.paragraph(f"{unknown}: {why_unread(radius.unread)}.", style="yellow")
    elif not radius.claims:
        out.write(f"No claim uses {whom}.")
    if not radius.claims:
        return
    out.sentence(_sum(radius, desired_rules))
    fates = _fates(radius, at)
    if len(fates) > MANY:
        fates.sort(key=lambda item: _WORST.index(item[1]))
    marks = [("", _STYLES.get(fate, "")) for _, fate in _first(fates)]
    write_blocks(out, [TableBlock([_PODS, *(row for row, _ in _first(fates))], _PODS_BELOW, marks=marks)])
    _write_more(len(fates), "row", out)


def _fates(radius: Radius, at: datetime) -> list[tuple[tuple[str, ...], str]]:
    """The rows, each with its fate. A pod appears once per claim, even if the claim holds several of the devices."""
    users: dict[tuple[str, str, str], PodHit] = {}
    rows: dict[tuple[str, ...], str] = {}
    for hit in radius.claims:
        claim = hit.claim.key + (" (admin access)" if hit.admin_access else "")
        for pod in hit.pods:
            key = (claim, pod.name, pod.uid)
            users[key] = worse(users[key], pod) if key in users else pod
        for other in hit.others:
            rows[str(other), *[EMPTY] * 4, claim, EMPTY, _other_fate(other)] = UNKNOWN
        if not hit.pods and not hit.others:
            age = times.age(hit.claim.metadata.creation_timestamp, at)
            rows["(none)", EMPTY, age, *[EMPTY] * 2, claim, EMPTY, "holds the device without a pod"] = UNKNOWN
    return [*((_pod_cells(pod, claim, at), pod.fate) for (claim, _, _), pod in users.items()), *rows.items()]


def _first(entries: Sequence[T]) -> Sequence[T]:
    return entries if len(entries) <= MANY else entries[:_FIRST]


def _write_more(count: int, noun: str, out: Painter, indent: str = "") -> None:
    """Write how many entries there are if only the first were shown."""
    if count > MANY:
        out.write(f"{indent}and {amount(count - _FIRST, f'more {noun}')}: -o json has all of them")


def _sum(radius: Radius, desired_rules: Sequence[DesiredRule]) -> str:
    """A summary of the pods in one sentence."""
    pods = radius.pods()
    if not pods:
        return _without_pods(radius, desired_rules)
    going = sum(pod.fate == GOING for pod in pods.values())
    if any(desired.taint.effect == "NoExecute" for desired in desired_rules):
        drained = sum(pod.drained for pod in pods.values())
        unknown = sum(pod.fate == UNKNOWN for pod in pods.values())
        whom = "at least " if radius.unread else ""
        whom += f"{radius.deleted():,} of {amount(len(pods), 'pod')} will be deleted"
        if drained:
            each = "" if drained == radius.deleted() else f"{drained:,} of them only "
            whom += f"{', ' if each else ' '}{each}if still running when --grace is over"
        whom += f", {going:,} {are(going)} being deleted already" if going else ""
        whom += f", of {unknown:,} it is not known" if unknown else ""
        return f"{whom}; no PodDisruptionBudget is consulted."
    devices = "the device" if len({desired.device for desired in desired_rules}) == 1 else "the devices"
    uses = f"{amount(len(pods), 'pod')} {'uses' if len(pods) == 1 else 'use'} {devices}"
    if going:
        stay = len(pods) - going
        rest = f": {stay:,} {_stay(stay)}, {going:,}" if stay else " and"
        return f"{uses}{rest} {are(going)} being deleted already."
    return f"{uses} and {_stay(len(pods))}."


def _without_pods(radius: Radius, desired_rules: Sequence[DesiredRule]) -> str:
    """Note that no pod uses the devices, with the unused claims that hold them."""
    whom = "it" if len({desired.device for desired in desired_rules}) == 1 else "them"
    first = f"No pod is known to use {whom}" if radius.unread else f"No pod uses {whom}"
    unused = [hit.claim.key for hit in radius.claims if not hit.others]
    if not unused:
        return f"{first}."
    claims, hold = ("claim", "holds") if len(unused) == 1 else ("claims", "hold")
    return f"{first}; unused {claims} {some(unused)} {hold} {whom}."


def _other_fate(consumer: Consumer) -> str:
    """The fate of a consumer that is not a pod. The server evicts the pods of a group, but here they are unknown."""
    if consumer.resource == "podgroups":
        return "unknown: its pods were not found; it holds the device until it is deleted"
    return "nothing ends it"


def _stay(pods: int) -> str:
    return "stays" if pods == 1 else "stay"


def _pod_cells(pod: PodHit, claim: str, at: datetime) -> tuple[str, ...]:
    fate = {NOW: "deleted at once", LATER: f"deleted at {pod.at}", ENDED: "has ended", STAYS: "stays"}.get(
        pod.fate, pod.fate
    )
    reasons = [pod.why, "if it still runs" if pod.drained else ""]
    why = ", ".join(filter(None, reasons))
    why = f" ({why})" if why else ""
    return (
        f"{pod.namespace}/{pod.name}",
        pod.owner or EMPTY,
        times.age(pod.created, at) if pod.created else EMPTY,
        EMPTY if pod.priority is None else str(pod.priority),
        pod.node or EMPTY,
        claim,
        "yes" if pod.tolerates else "no",
        f"{fate}{why}",
    )


def write_done(done: RuleDone, dry_run: str, stream: TextIO) -> None:
    """Write one line for a rule, in kubectl's style: the same words in a dry run, and ``(dry run)`` behind them."""
    out = Painter(stream, "never")
    name = f"{RESOURCE}/{done.desired.name}"
    what = f"{done.target.id} {taint_words(done.desired, done.stage, when=True)}"
    if done.outcome == REFUSED:
        out.sentence(f"{name} refused: {done.target.id} {done.desired.taint}: {done.why}{_SUFFIX.get(dry_run, '')}")
    elif done.outcome == SKIPPED:
        out.sentence(f"{name} not written, because another is refused ({what}){_SUFFIX.get(dry_run, '')}")
    else:
        out.sentence(f"{name} {done.outcome} ({what}{_until(done)}){_SUFFIX.get(dry_run, '')}")


def _until(done: RuleDone) -> str:
    expires = (done.rule.get("metadata") or {}).get("annotations", {}).get("kubectl-dra/expires", "")
    return f", until {expires}" if expires else ""


def write_planned(entries: Sequence[RuleDone], dry_run: str, stream: TextIO) -> None:
    """Write the lines of rules not written, refused ones first if there are many; of many alike their names."""
    out = Painter(stream, "never")
    ranked = sorted(entries, key=lambda done: done.outcome != REFUSED) if len(entries) > MANY else entries
    words_of = ((done.outcome, f"{taint_words(done.desired, done.stage, when=True)}{_until(done)}") for done in ranked)
    for (outcome, words), group in grouped(zip(words_of, ranked, strict=True)).items():
        if len(group) <= _LINES or outcome in (REFUSED, SKIPPED):
            for done in _first(group):
                write_done(done, dry_run, stream)
            _write_more(len(group), "rule", out)
            continue
        rules = some([done.desired.name for done in group], _NAMED)
        out.sentence(f"{len(group):,} {RULES} {outcome} ({words}){_SUFFIX.get(dry_run, '')}: {rules}")


def write_end(result: Tainted, color: str = "auto", *, where: ClusterFlags) -> None:
    """Write the result of waiting and what to do next."""
    out = Painter(color=color)
    devices = [done.target.id for done in result.done]
    if result.free and result.held_parts:
        each = "is free, but" if len(devices) == 1 else "are free, but"
        listed = some([*map(str, devices)], 8)
        out.write((f"{listed} {each} what may be the same hardware is in use. Do not take it offline:", "red"))
        for sentence in result.held_parts:
            out.paragraph(sentence, indent="  ")
    elif result.free:
        each = "is free: no claim holds it. It" if len(devices) == 1 else "are free: no claim holds them. They"
        out.sentence(f"{some([*map(str, devices)], 8)} {each} can be taken offline.", style="green")
        _write_way_back(devices, where, out)
    elif result.free is False:
        heading = "Not free in time. Left:" if result.blockers else "Not free in time: the API server did not answer."
        out.write((heading, "red"))
        for blocker in result.blockers:
            out.paragraph(str(blocker), indent="  ")
            if blocker.command is not None:
                write_blocks(out, [shell((blocker.command,), where)], 2)
        out.write("The rules stay; run the same command again to go on waiting.")
    elif result.exit_code and any(done.outcome == REFUSED for done in result.done):
        out.write("Nothing was changed.")
    elif result.dry_run == "none" and any(done.outcome != UNCHANGED for done in result.done):
        _write_way_back(devices, where, out)
    elif result.dry_run != "none":
        there = " and --snapshot does it on the cluster" if where.saved else " does it"
        there += "" if result.served is True else ", if that serves DeviceTaintRules"
        out.sentence(f"Nothing was changed. The same command without --dry-run{there}.")


def _write_way_back(devices: Sequence[DeviceID], where: ClusterFlags, out: Painter) -> None:
    names = tuple(dict.fromkeys(devices))
    if len(names) <= 8:
        write_blocks(out, [shell((untainting(names),), where, "Back into service")])
    else:
        out.write(("Back into service: ", "bold"), "untaint with the same devices or flags")


def write_names(result: Tainted, stream: TextIO) -> None:
    """Write the rules in kubectl's notation, one per line."""
    names((f"{RESOURCE}/{done.desired.name}" for done in result.done if done.outcome != REFUSED), stream)


_REMOVED = {REMOVED: "deleted", ABSENT: "was gone already", REFUSED: "stays"}


def write_removed(removal: RuleRemoved, dry_run: str, stream: TextIO | None = None) -> None:
    """Write one line for a rule, in kubectl's style."""
    why = f": {removal.why}" if removal.why else ""
    what = f"{_REMOVED[removal.outcome]} ({removal.device} {removal.taint}){why}{_SUFFIX.get(dry_run, '')}"
    Painter(stream, "never").sentence(f"{RESOURCE}/{removal.name} {what}")


def write_staying(result: Untainted, color: str = "auto", stream: TextIO | None = None, *, where: ClusterFlags) -> None:
    """Write that there was nothing to remove, and what stays."""
    out = Painter(stream, color)
    if not result.removed and result.expired_only:
        out.write("No rule has expired.")
    elif not result.removed:
        out.sentence("There is no rule of kubectl dra to remove.")
    kept = grouped(
        ((str(stays.taint), stays.owner, stays.ended_by, stays.command), str(stays.device)) for stays in result.staying
    )
    for (taint, owner, ended_by, ending), devices in _first([*kept.items()]):
        keep = "keeps" if len(devices) == 1 else "keep"
        text = f"{some(devices, 8)} {keep} taint {taint} of {owner}: {ended_by}."
        out.paragraph(text, indent="  ", first="")
        if ending is not None:
            write_blocks(out, [shell((ending,), where)], 2)
    _write_more(len(kept), "taint", out)
    if not result.removed and not result.expired_only:
        write_blocks(out, [shell((kubectl("dra", "taint", "--list"),), where, "Every taint")])


def write_allocatable(result: Untainted, color: str = "auto") -> None:
    """Write whether the devices can be allocated again, if that was waited for."""
    out = Painter(color=color)
    taken = [row for row in result.devices if row.state in (DeviceState.HELD, DeviceState.UNKNOWN)]
    if result.allocatable and not taken:
        out.write(("Allocatable again.", "green"))
    elif result.allocatable:
        reasons = grouped(
            (f"held by {held_by(row.holders)}" if row.state is DeviceState.HELD else written(row.reason), str(row.id))
            for row in taken
        )
        for why, ids in _first([*reasons.items()]):
            out.paragraph(f"{some(ids, 8)} {are(len(ids))} untainted: {why}.", indent="  ", first="")
        _write_more(len(reasons), "reason", out)
        if rest := [str(row.id) for row in result.devices if row not in taken]:
            out.paragraph(f"Allocatable again: {some(rest, 8)}.")
    elif result.allocatable is False:
        out.write(("Not allocatable in time:", "red"))
        for sentence in result.left:
            out.paragraph(sentence, indent="  ")


def write_removed_names(result: Untainted, stream: TextIO) -> None:
    """Write the removed rules, one per line."""
    names((f"{RESOURCE}/{removal.name}" for removal in result.removed if removal.outcome != REFUSED), stream)


# Whether a taint would work, and what comes in place of the pods that it deletes.


_COMES: Final = (
    ((True, False), "the pod that its owner makes instead fits nowhere", "the pods made instead fit nowhere"),
    (
        (True, None),
        "whether the pod that its owner makes instead gets a place and starts is unknown",
        "whether the pods made instead get a place and start is unknown",
    ),
    ((False, None), "nobody is known to recreate it", "nobody is known to recreate them"),
    ((True, True), "the pod that its owner makes instead has a place", "the pods made instead have a place"),
)
"""By whether a pod is made in place of a deleted one, and whether it fits: what to say of one, and of several."""


def replaced(made: Sequence[ReplacementPod]) -> Iterator[str]:
    """What comes in place of the pods that are deleted."""
    groups = grouped(((replacement.made, replacement.fits), replacement) for replacement in made)
    for key, one, several in _COMES:
        if like := groups.get(key):
            names = some([replacement.key for replacement in like], 6)
            why = f": {like[0].unread}" if like[0].unread is not None else ""
            yield f"{names}: {one if len(like) == 1 else several}{why}."


_SERVED: Final = {
    None: "Whether it works there is unknown: nothing saved shows that the cluster serves DeviceTaintRules.",
    False: "The taint would not work: the cluster does not serve DeviceTaintRules. If it did:",
}


def write_served(*, served: bool | None, color: str) -> None:
    """Write that the taint would not work, before everything else, or that it may not, behind it."""
    if served is not True:
        Painter(color=color).paragraph(_SERVED[served], style="yellow")
