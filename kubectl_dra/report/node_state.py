"""The state of a node as text and as JSON, the latter in the shape of ``schemas/explain.json``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import distinct
from kubectl_dra.command import CommandLine, kubectl
from kubectl_dra.drivers.hardware import served_by
from kubectl_dra.drivers.health import DriverState, NodeDriver
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.driver_words import why
from kubectl_dra.explain.holders import ClaimHolder, HolderState
from kubectl_dra.explain.node_state import NodeAnswer
from kubectl_dra.explain.phrase import with_owner
from kubectl_dra.grouped import grouped
from kubectl_dra.report.blocks import Answer, Block, Items, Section, TableBlock, Tone, noted, prose, shell
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.color import Painter
from kubectl_dra.report.devices_json import taint_of
from kubectl_dra.report.explain_commands import Invocation, command, making
from kubectl_dra.report.explain_json import items_json
from kubectl_dra.report.explain_words import fix, parts
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import device_json, object_json
from kubectl_dra.report.phrases import commands_of, compressed, sentences, written
from kubectl_dra.report.remedy_json import command_json, commands_json, unread_json
from kubectl_dra.report.table import EMPTY, UNKNOWN
from kubectl_dra.text import amount, are, some

_ROWS: Final = 5
"""Pods of which short text has a row."""


def node_answer(state: NodeAnswer) -> tuple[str, str]:
    """The first sentence: what is wrong with the node, a driver of it or a pod on it."""
    subject, said = _but_cordon(state)
    if state.cordoned and not state.fault and not state.troubled:
        return subject, f"it is cordoned, so no new pod comes here; {said}"
    return subject, said


def _but_cordon(state: NodeAnswer) -> tuple[str, str]:
    subject = f"Node {state.name}"
    if state.fault:
        return subject, f"{written(state.fault)}{_waiting(state)}"
    if state.troubled:
        more = f" (and {amount(len(state.troubled) - 1, 'more pod')})" if state.troubled[1:] else ""
        said = ": ".join(filter(None, parts(state.troubled[0])))
        return subject, f"{said[:1].lower()}{said[1:]}{more}"
    if state.out_of_service:
        return subject, f"{_out_of_service(state)}{_idle(state)}"
    if state.unread:
        return f"{subject}: undetermined", written(state.unread[0])
    if state.unclear:
        said = ": ".join(filter(None, parts(state.unclear[0])))
        return subject, f"no fault was found; {said[:1].lower()}{said[1:]}"
    if state.unseen:
        return subject, f"no fault was found{_unseen(state)}{_idle(state)}{_limits(state)}"
    if not state.drivers:
        return subject, f"nothing is wrong here; it has no DRA driver{_limits(state)}"
    new = [row.driver for row in state.drivers if row.state is DriverState.STARTING]
    if new:
        return subject, f"nothing is wrong here; {some(new)} {are(len(new))} starting"
    drivers, idle = some([row.driver for row in state.drivers]), f"{_idle(state)}{_limits(state)}"
    if not state.pods:
        return subject, f"nothing is wrong with {drivers}; no pod here needs devices{idle}"
    pods = "the pod" if len(state.pods) == 1 else f"the {amount(len(state.pods), 'pod')}"
    it = "it serves" if len(state.drivers) == 1 else "they serve"
    return subject, f"nothing is wrong with {drivers} or with {pods} that {it} here{idle}"


def _idle(state: NodeAnswer) -> str:
    """Note on devices that are held for no pod."""
    unused = [held for held in state.others if held.holder.standing in (HolderState.UNUSED, HolderState.ENDED)]
    count = len({device for held in unused for device in held.devices})
    return f"; {amount(count)} {are(count)} idle" if count else ""


def _unseen(state: NodeAnswer) -> str:
    """Note on a driver whose state is unknown."""
    if not state.unseen:
        return ""
    first, *rest = state.unseen
    more = f" (and of {amount(len(rest), 'more driver')})" if rest else ""
    return f"; the state of driver {first.driver}{more} is unknown: {written(why(first))}"


def _out_of_service(state: NodeAnswer) -> str:
    """Note that no new claim gets a device of the node."""
    taints = list(dict.fromkeys(str(taint) for row in state.tainted for taint in row.taints))
    rules = f" (DeviceTaintRule {some(state.rules, 2)})" if state.rules else ""
    which = "its only device is" if state.published == 1 else f"all {amount(state.published)} are"
    it = "it" if state.published == 1 else "one"
    return f"{which} tainted with {some(taints, 2)}{rules}, so only a request that tolerates that gets {it}"


def _limits(state: NodeAnswer) -> str:
    """What else keeps pods from devices here: taints of some, and device plugins that have nothing left."""
    said = []
    if state.tainted:
        said.append(f"{len(state.tainted):,} of {amount(state.published)} {are(len(state.tainted))} tainted")
    for share in state.plugins:
        unhealthy = f", and {share.unhealthy:,} unhealthy" if share.unhealthy else ""
        used = "all" if share.full and share.offered else f"{share.used:,}"
        offer = f"a device plugin offers {share.offered:,} {share.resource}, {used} in use{unhealthy}"
        both = any(row.driver == served_by(share.resource) and row.devices for row in state.drivers)
        said.append(f"{offer}{', and the driver may give a pod the same ones' if both else ''}")
    return "".join(f"; {text}" for text in said)


def _waiting(state: NodeAnswer) -> str:
    """The pods without a node that ask for devices of the driver at fault."""
    pods = [str(pod) for pod in state.awaiting]
    these = "pod" if len(pods) == 1 else "pods"
    return f"; {these} {some(pods, 3)} {'waits' if these == 'pod' else 'wait'} for its devices" if pods else ""


def write_node_state(state: NodeAnswer, invocation: Invocation, color: str = "auto", *, full: bool = False) -> None:
    """Write who is at fault, the drivers, the pods that need devices, and the next command."""
    write_blocks(Painter(color=color), list(_blocks(state, invocation, full=full)))


def _blocks(state: NodeAnswer, invocation: Invocation, *, full: bool) -> Iterator[Block]:
    yield Answer(*node_answer(state), {0: Tone.GOOD, 1: Tone.BAD}.get(state.exit_code, Tone.WARNING))
    if state.drivers:
        # The one at fault is in the answer.
        said = [EMPTY if _in_answer(row, state) else written(why(row)) or EMPTY for row in state.drivers]
        cells = ((row.driver, row.state.value, f"{row.devices:,}") for row in state.drivers)
        told = {*said} != {EMPTY}
        rows = [("DRIVER", "STATE", "DEVICES", *(("WHY",) if told else ()))]
        rows += [(*row, *((text,) if told else ())) for row, text in zip(cells, said, strict=True)]
        yield Section("Drivers", (TableBlock(rows, rows[0][3:], True, amid=True),))
    if state.pods:
        # The first of them is in the answer, and each has one of its own.
        header: tuple[str, ...] = ("POD", "DEVICES", "CAUSE", "STATE")
        columns = slice(None if full else 3)
        ranked = [_row(pod, state)[columns] for pod in sorted(state.pods, key=lambda pod: -pod.exit_code)]
        table = _table(header[columns], ranked, ("STATE", "CAUSE"), full, prose=full)
        yield Section("Pods that need devices", (table,))
    if state.plugins:
        rows = [("RESOURCE", "OFFERED", "IN-USE", "PODS")]
        rows += [(of.resource, f"{of.offered:,}", f"{of.used:,}", some(of.pods, 3) or EMPTY) for of in state.plugins]
        yield Section("Device plugins here", (TableBlock(rows, ("PODS",), amid=True),))
    if state.others:
        claims = [(h.holder.claim.key, _names(h.devices, state), _for_whom(h.holder)) for h in state.others]
        table = _table(("CLAIM", "DEVICES", "STATE"), claims, ("STATE",), full, prose=full)
        unseen = any(reason.gap.kind == "Pod" for reason in state.unread)
        yield Section(
            "Claims that hold devices here" if unseen else "Claims that hold devices for no pod here", (table,)
        )
    if state.tainted:
        groups = grouped((tuple((str(taint), taint.rule) for taint in row.taints), row) for row in state.tainted)
        tainted: list[tuple[str, ...]] = [
            (_names([row.id for row in rows], state), *_taints(rows)) for rows in groups.values()
        ]
        if state.troubled and len(tainted) == 1:
            # The pods come first, and one line says the rest.
            devices, taints, since = tainted[0]
            after = f" since {since}" if since != EMPTY else ""
            yield prose(f"Out of service here: {devices} with taint {taints}{after}", hang=2)
        else:
            shown = tainted if full else tainted[:_ROWS]
            columns = slice(None if any(since != EMPTY for _, _, since in shown) else 2)
            first, *rows = [row[columns] for row in (("DEVICES", "TAINT", "SINCE"), *tainted)]
            table = _table(first, rows, ("SINCE", "TAINT"), full)
            yield Section("Devices out of service here", (table,))
    shown_commands = [shell((command_line,), invocation.where) for command_line in _fix_commands(state, invocation)]
    fixes: list[tuple[Block, ...]] = [(prose(text, Tone.GOOD, 0), *shown_commands)] if (text := _fix(state)) else []
    frees = [free for held in state.others if (free := held.freeing) is not None]
    for free in frees if full else frees[:1]:
        what = written(free.what)
        ends = prose(f"{what[:1].upper()}{what[1:]}.", Tone.GOOD, 0)
        fixes.append((ends, shell(making([free]), invocation.where)))
    if fixes:
        yield Section("Fixes", (Items(tuple(fixes)),))
    # The first of what was not read is the answer where nothing is wrong.
    unread = state.unread if state.exit_code == 1 else state.unread[1:]
    gone = {row.driver for row in state.drivers if row.state is DriverState.GONE}
    held = (written(unpublished.words) for unpublished in state.held if unpublished.driver not in gone)
    notes = [*held, *sentences(unread)]
    if notes:
        yield noted(notes, commands_of(unread), invocation.where)
    if (following := _next(state, invocation)) and following not in _fix_commands(state, invocation):
        yield shell((following,), invocation.where, "Next")


def _table(
    header: tuple[str, ...], rows: Sequence[tuple[str, ...]], below: Sequence[str], full: bool, *, prose: bool = False
) -> TableBlock:
    """The first rows; in ``full`` all of them."""
    shown = rows if full else rows[:_ROWS]
    hidden = len(rows) - len(shown)
    return TableBlock([header, *shown], below, prose, left=hidden, how="--full shows them", amid=True)


def _taints(rows: Sequence[DeviceRow]) -> tuple[str, str]:
    """The taints of devices that have the same, and the first time of each."""
    taints = distinct(taint for row in rows for taint in row.taints)
    said = "; ".join(written(with_owner(taint)) for taint in taints)
    return said, "; ".join(taint.time_added or EMPTY for taint in taints)


def _in_answer(row: NodeDriver, state: NodeAnswer) -> bool:
    """Whether the first sentence says what ails a driver: of itself, or of the pod that waits for it."""
    if row is state.of:
        return True
    first, call = state.troubled[0] if state.troubled and not state.fault else None, row.failing
    if first is not None and call is not None and row.left_out is None:
        return (first.namespace, first.name) == (call.namespace, call.pod)
    ahead = state.exit_code == 1 or state.unread or state.unclear
    return not ahead and row.state is DriverState.UNKNOWN and why(row) == why(state.unseen[0])


def _names(devices: Sequence[DeviceID], state: NodeAnswer) -> str:
    """Names of devices, with the driver where the node has several, and the pool where it is not called like it."""
    several = len({row.driver for row in state.drivers}) > 1

    def place(device: DeviceID) -> str:
        parts = (device.driver if several else "", device.pool if device.pool != state.name else "")
        return "".join(f"{part}/" for part in parts if part)

    by_pool = grouped((place(device), device.device) for device in devices)
    return some([f"{pool}{compressed(names)}" for pool, names in by_pool.items()], 3) or EMPTY


def _for_whom(holder: ClaimHolder) -> str:
    """What the claim is held for."""
    text = {
        HolderState.UNUSED: "unused: nothing frees its devices until it is deleted",
        HolderState.ENDED: "its pods have ended, and it is still reserved for them",
    }.get(holder.standing)
    return text or f"reserved for {written(holder.users)}"


def _row(pod: Diagnosis, state: NodeAnswer) -> tuple[str, ...]:
    first = pod.findings[0] if pod.findings else None
    devices = _names(pod.held, state)
    cause = first.kind.code if first is not None else EMPTY
    said = written(first.summary) if first is not None else EMPTY
    if pod.verdict is Verdict.UNDETERMINED:
        devices = UNKNOWN if devices == EMPTY else devices
        cause, said = pod.verdict.value, written(pod.unclear[0]) if pod.unclear else said
    return f"{pod.namespace}/{pod.name}", devices, cause, said


def _fix(state: NodeAnswer) -> str:
    if state.fix:
        return written(state.fix)
    first = state.troubled[0].findings[0] if state.troubled and state.troubled[0].findings else None
    return fix(first) if first is not None else ""


def _fix_commands(state: NodeAnswer, invocation: Invocation) -> tuple[CommandLine, ...]:
    """The commands that make the fix, or show what to repair."""
    if state.fix:
        look = command(state.next, invocation)
        return state.commands or ((look,) if look is not None else ())
    first = state.troubled[0].findings[0] if state.troubled and state.troubled[0].findings else None
    if first is None or (first.remedy is not None and first.remedy.commands):
        return tuple(first.remedy.commands) if first is not None and first.remedy is not None else ()
    place = command(first.place_of_fix, invocation)
    return (place,) if place is not None else ()


def _next(state: NodeAnswer, invocation: Invocation) -> CommandLine | None:
    stuck = state.awaiting if state.fault else state.troubled
    if not stuck:
        return command(state.next, invocation)
    return kubectl("dra", "explain", kind="pod", name=stuck[0].name, namespace=stuck[0].namespace)


def node_state_json(state: NodeAnswer, invocation: Invocation) -> dict[str, Any]:
    """The same as data, with the whole answer about each pod."""
    lead, reason = node_answer(state)
    where = invocation.where
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "NodeAnswer",
        "subject": {"kind": "Node", "name": state.name},
        "exists": state.object is not None,
        **filled(ready=state.object.ready if state.object is not None else None),
        "answer": f"{lead}: {reason}.",
        "fix": {"text": _fix(state), **filled(commands=commands_json(*_fix_commands(state, invocation), where=where))},
        "drivers": [
            {"driver": row.driver, "state": row.state.value, "deviceCount": row.devices, "why": written(why(row))}
            for row in state.drivers
        ],
        "heldAndNotPublished": [device_json(device) for unpublished in state.held for device in unpublished.devices],
        "otherClaims": [
            {
                **object_json(held.holder.claim.metadata.namespace, held.holder.claim.metadata.name),
                "state": held.holder.standing.name.lower(),
                "devices": [*map(device_json, held.devices)],
                **filled(commands=commands_json(*making([held.freeing]), where=where)),
            }
            for held in state.others
        ],
        "taintedDevices": [
            {**device_json(row.id), "taints": [taint_of(taint, row) for taint in row.taints]} for row in state.tainted
        ],
        "devicePlugins": [
            {
                "resource": share.resource,
                "offered": share.offered,
                "inUse": share.used,
                "unhealthy": share.unhealthy,
                "pods": [object_json(*key.split("/", 1)) for key in share.pods],
            }
            for share in state.plugins
        ],
        **filled(awaiting=[object_json(pod.namespace, pod.name) for pod in state.awaiting]),
        "unread": unread_json(state.unread),
        "items": items_json(state.pods, invocation),
        **filled(next=command_json(_next(state, invocation), where=where)),
    }
