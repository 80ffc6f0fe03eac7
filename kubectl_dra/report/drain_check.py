"""The pods that need a node's drivers while they are away: as a table with what to do first, and as JSON.

JSON and YAML have the shape of ``schemas/drivers.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.command import ClusterFlags, CommandEffect, CommandLine, deleting, kubectl, pods_on_node
from kubectl_dra.drivers.drain_check import ClaimOfDriver, DriverUsers, PodOfDriver, Update, WhileAway
from kubectl_dra.drivers.health import DriverState, NodeDriver
from kubectl_dra.explain.clock import Clock
from kubectl_dra.explain.diagnosis import Remedy
from kubectl_dra.explain.driver_repair import labelling, repair
from kubectl_dra.explain.driver_words import at_fault, why
from kubectl_dra.report.blocks import TableBlock, shell
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.color import Painter
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import device_json, gap_json, object_json
from kubectl_dra.report.phrases import compressed, written
from kubectl_dra.report.remedy_json import command_json, commands_json
from kubectl_dra.report.table import EMPTY
from kubectl_dra.text import amount, some

_SAID: Final = {
    WhileAway.RUNS: "runs on",
    WhileAway.WAITS: "cannot start",
    WhileAway.HANGS: "cannot end",
    WhileAway.MAY_FAIL: "may fail",
    WhileAway.LOST: "unknown",
    WhileAway.UNKNOWN: "was not read",
}
_HEADER: Final = ("POD", "WHILE-AWAY", "DEVICES", "CLAIM", "OWNER", "DRIVER")
_READ: Final = {*WhileAway} - {WhileAway.UNKNOWN}
_DELETED: Final = 3
"""Unused claims whose command is printed."""
_MINUTES: Final = 5
"""So long a drain waits for a pod that may not end; pods that it can end do so in less."""


def write_drain(
    users: DriverUsers,
    node: str,
    color: str = "auto",
    *,
    where: ClusterFlags,
    mends: Mapping[str, Remedy],
    clock: Clock,
) -> None:
    """Write which pods and claims a restart of the node's drivers concerns.

    ``mends`` is what ends the failures of drivers to prepare devices, where the reason is known.
    """
    out = Painter(color=color)
    out.sentence(_drain_answer(users, node))
    for sentence in _lacking(users):
        out.sentence(sentence)
    for driver in dict.fromkeys(claim.driver for claim in users.claims):
        mend = _mend(users.row(driver), mends)
        own = users.of_driver(driver)
        if not own.pods(WhileAway.WAITS, WhileAway.HANGS):
            continue
        out.sentence(_advice(own, driver, mend, clock))
        if mend is not None:
            write_blocks(out, [shell((command,), where) for command in mend.commands])
        elif unseen := _unseen(users.row(driver), driver):
            out.sentence(unseen)
            write_blocks(out, [shell((pods_on_node(node),), where)])
    for update in users.updates:
        out.sentence(_updated(update))
    if not users.claims and not users.of_plugins:
        _write_next(out, users, where)
        return
    out.write("")
    columns = slice(None if len({row[-1] for row in _rows(users)}) > 1 else -1)
    rows = [row[columns] for row in (_HEADER, *_rows(users))]
    write_blocks(out, [TableBlock(rows, ("DRIVER", "OWNER", "CLAIM"))])
    if users.down:
        out.write("")
        _write_lost(out, node, where)
    elif pods := users.pods(*_READ):
        out.write("")
        _write_removal(out, users, node, pods, where)
    if users.unused:
        out.write("")
        _write_unused(out, users.unused, where)
    _write_next(out, users, where)


def _write_next(out: Painter, users: DriverUsers, where: ClusterFlags) -> None:
    """Write the command that explains the first pod that waits."""
    if explain := _following(users):
        write_blocks(out, [shell((explain,), where, "Next")])


def _following(users: DriverUsers) -> CommandLine | None:
    hangs = sorted(users.pods(WhileAway.HANGS), key=lambda pod: pod.ends)
    stuck = [(pod.namespace, pod.name) for pod in (*hangs, *users.pods(WhileAway.WAITS))]
    stuck += [pod for pods in users.awaiting.values() for pod in pods]
    return next((kubectl("dra", "explain", kind="pod", name=name, namespace=space) for space, name in stuck), None)


def _write_removal(
    out: Painter, users: DriverUsers, node: str, pods: Sequence[PodOfDriver], where: ClusterFlags
) -> None:
    """Write what to end before the driver is removed, and what else the command ends."""
    these = "end this pod first" if len(pods) == 1 else "end all of these pods first"
    out.sentence(f"To remove {_removed(users)}, {these}:")
    alone = _alone(users)
    write_blocks(out, [shell((_drain(users, node),), where)])
    if users.beside:
        out.sentence(
            f"It also evicts {_named(users.beside)}, which {'uses' if len(users.beside) == 1 else 'use'} no devices."
        )
    if alone:
        out.sentence(f"--force ends what nothing creates again: {_named(alone)}.")
    out.sentence("If kubectl names emptyDir volumes, add --delete-emptydir-data: what is in them is lost.")
    if hangs := users.pods(WhileAway.HANGS):
        is_deleted = "is being deleted already and ends" if len(hangs) == 1 else "are being deleted already and end"
        waits = f"The drain waits at most {_MINUTES} minutes (--timeout) for {_named(hangs)}"
        out.sentence(f"{waits}, which {is_deleted} only with the driver.")


def _write_lost(out: Painter, node: str, where: ClusterFlags) -> None:
    """Write what to do about a node whose kubelet ends no pod."""
    out.sentence(f"A drain would wait: the kubelet of {node} ends no pod until it is back. To see what it lacks:")
    write_blocks(out, [shell((_described(node),), where)])
    out.sentence("If the machine never comes back, the end of its Node ends its pods and frees their devices:")
    write_blocks(out, [shell((deleting("node", node),), where)])


def _described(node: str) -> CommandLine:
    return kubectl("describe", kind="node", name=node)


def _alone(users: DriverUsers) -> list[PodOfDriver]:
    """The pods that a drain ends and nothing creates again."""
    return [pod for pod in (*users.pods(*_READ), *users.beside) if not pod.owner]


def _drain(users: DriverUsers, node: str) -> CommandLine:
    force = ("--force",) if _alone(users) else ()
    # It would wait without end for a pod that does not end.
    timeout = (f"--timeout={_MINUTES}m",) if users.pods(WhileAway.HANGS) else ()
    return kubectl(
        "drain", node, "--ignore-daemonsets", *force, *timeout, others=(node,), effect=CommandEffect.DESTROYS
    )


def _freeing(unused: Sequence[ClaimOfDriver]) -> list[CommandLine]:
    """The commands that delete claims that no pod uses."""
    return [deleting("resourceclaim", claim.name, claim.namespace) for claim in unused[:_DELETED]]


def _write_unused(out: Painter, unused: Sequence[ClaimOfDriver], where: ClusterFlags) -> None:
    """Write how the devices of claims that no pod uses are freed."""
    names = some([f"{claim.namespace}/{claim.name}" for claim in unused], _DELETED)
    if len(unused) == 1:
        out.sentence(f"A drain does not free the devices of claim {names}. If nobody is going to use it:")
    else:
        out.sentence(f"A drain does not free the devices of claims {names}. If nobody is going to use them:")
    for command in _freeing(unused):
        write_blocks(out, [shell((command,), where)])


def _rows(users: DriverUsers) -> Iterator[tuple[str, ...]]:
    for claim in users.claims:
        devices, name = compressed([device.device for device in claim.devices]), f"{claim.namespace}/{claim.name}"
        for pod in claim.pods:
            pod_name = f"{pod.namespace}/{pod.name}"
            yield pod_name, _SAID[pod.outcome], devices, name, pod.owner or EMPTY, claim.driver
        if not claim.pods:
            yield EMPTY, "unused" if claim.unused else "waits", devices, name, EMPTY, claim.driver
    for resource, count, pod in users.of_plugins:
        name = f"{pod.namespace}/{pod.name}"
        yield name, _SAID[pod.outcome], f"{resource}: {count:,}", EMPTY, pod.owner or EMPTY, "device plugin"


def _removed(users: DriverUsers) -> str:
    driver = "the driver for good, or to change how it divides its devices"
    if not users.of_plugins:
        return driver
    plugin = "the device plugin or the devices' own driver"
    return f"{driver}, or to replace {plugin}" if users.claims else f"{plugin} for good"


def _named(pods: Sequence[PodOfDriver]) -> str:
    names = some([f"{pod.namespace}/{pod.name}" for pod in pods], 3)
    return f"pod {names}" if len(pods) == 1 else f"pods {names}"


def _mend(row: NodeDriver | None, mends: Mapping[str, Remedy]) -> Remedy | None:
    """What ends it that pods of a driver do not start; None where the log of its pod says that."""
    if row is None or row.state.open:
        return None
    if row.state is not DriverState.PREPARE_FAILING and (row.pod is not None or not row.state.starts_no_pod):
        return None
    return (
        mends.get(row.driver)
        if row.state is DriverState.PREPARE_FAILING
        else Remedy(repair(row), commands=labelling(row))
    )


def _advice(users: DriverUsers, driver: str, mend: Remedy | None, clock: Clock) -> str:
    """What to wait for before a driver is stopped, or what is wrong with it now."""
    waits, hangs = users.pods(WhileAway.WAITS), users.pods(WhileAway.HANGS)
    which, does = _which(waits, hangs)
    row = users.row(driver)
    if row is not None and (row.state is DriverState.PREPARE_FAILING or row.state.starts_no_pod):
        now = "do" if which == "those pods" else "does"
        said = f"Driver {driver} is {row.state.value}: {written(why(row))}."
        repaired = f" {written(mend.change)}" if mend is not None else ""
        return f"{which.capitalize()} {now} not {does} now, either. {said}{repaired}"
    late = sorted((pod for pod in hangs if clock.overdue(pod.ends)), key=lambda pod: pod.ends)
    which, does = _which(waits, [pod for pod in hangs if pod not in late])
    stop = f" before you stop driver {driver}."
    waiting = f"Let {which} {does}{stop}" if does else ""
    if not late:
        return waiting
    names, ago = _named(late), written(clock.ago(late[0].ends))
    over, it = (f"its grace period ended {ago}", "it")
    if late[1:]:
        over, it = f"their grace periods ended, the first {ago}", "them"
    found = f"{names[:1].upper()}{names[1:]} may never end: {over}. Find out what keeps {it}{'.' if does else stop}"
    return f"{waiting} {found}".strip()


def _which(waits: Sequence[PodOfDriver], hangs: Sequence[PodOfDriver]) -> tuple[str, str]:
    """Words for the pods that wait for a driver, and for what they wait to do."""
    does = " or ".join(does for pods, does in ((waits, "start"), (hangs, "end")) if pods)
    return "that pod" if len(waits) + len(hangs) == 1 else "those pods", does


def _unseen(row: NodeDriver | None, driver: str) -> str:
    """Note on a driver whose state on the node is unknown; empty where it is known."""
    if row is not None and not row.state.open:
        return ""
    seen = written(why(row)) if row is not None else "no pod was recognized as the driver's"
    return f"Whether driver {driver} runs there is unknown ({seen}); if not, start it first. The pods of the node:"


def _lacking(users: DriverUsers) -> Iterator[str]:
    """What is wrong with the drivers for which pods without a node wait."""
    for driver, waiting in users.awaiting.items():
        row = users.row(driver)
        if row is not None:
            wait = "waits" if len(waiting) == 1 else "wait"
            pods = f"{'pod' if len(waiting) == 1 else 'pods'} {some(['/'.join(pod) for pod in waiting], 3)}"
            fault = written(at_fault(row))
            now = f"{fault[:1].upper()}{fault[1:]}; {pods} {wait} for devices of this driver."
            yield f"{now} A restart makes it no worse."


def _updated(update: Update) -> str:
    name = f"DaemonSet {update.namespace}/{update.name} of {update.driver}"
    if update.strategy == "OnDelete":
        return f"{name} replaces its pod only when somebody deletes that (OnDelete)."
    if update.surge:
        return (
            f"{name} starts the new pod before the old one ends (maxSurge): nobody waits during an update, if the "
            "driver supports two instances of itself on a node."
        )
    return f"{name} ends its pod before it starts the new one (RollingUpdate); the driver is away in between."


def _drain_answer(users: DriverUsers, node: str) -> str:
    if users.gaps or (unknown := users.pods(WhileAway.UNKNOWN)):
        kinds = ", ".join(gap.kind for gap in users.gaps)
        why = (
            f"not all was read ({kinds})"
            if users.gaps
            else f"{_named(unknown)} {'was' if len(unknown) == 1 else 'were'} not read"
        )
        seen = "; what was read is below" if users.claims or users.of_plugins else ""
        return f"Who needs the driver on node {node} is unknown, because {why}{seen}."
    if users.down:
        lost = users.pods(WhileAway.LOST)
        whose = (
            f" {amount(len(lost), 'pod')} with devices {'is' if len(lost) == 1 else 'are'} recorded there."
            if lost
            else ""
        )
        return f"Node {node} is not ready, so nobody knows what runs there, and no driver can be restarted.{whose}"
    if not users.claims and not users.of_plugins:
        none = f"No claim has devices of a driver on node {node}, and no pod there has devices of a device plugin"
        if users.absent:
            which = f"driver {some(users.asked, 3)} is not there" if users.asked else "no driver is there"
            return f"{none}; {which}."
        return f"{none}." if users.awaiting else f"{none}; nobody notices a restart.{_new_pods(users)}"
    return " ".join((_of_claims(users, node), *_of_plugins(users)))


def _new_pods(users: DriverUsers) -> str:
    """What becomes of pods that come to the node while the driver is away."""
    if not users.free:
        return ""
    return f" {amount(users.free, 'device')} there may get a claim: its pod starts once the driver is back."


def _of_claims(users: DriverUsers, node: str) -> str:
    """What becomes of the pods that have claims."""
    of_claims = users._replace(of_plugins=())
    runs, waits, hangs = (of_claims.pods(state) for state in (WhileAway.RUNS, WhileAway.WAITS, WhileAway.HANGS))
    if not users.claims:
        return f"No claim has devices of a driver on node {node}."
    if not waits and not hangs:
        each = "Each" if len(users.rows) > 1 else "The"
        return (
            f"{each} driver on node {node} can be restarted or upgraded: {amount(len(runs), 'pod')} "
            f"{'runs' if len(runs) == 1 else 'run'} on, and no pod there starts or ends now.{_new_pods(users)}"
        )
    parts = [(waits, "cannot start"), (hangs, "cannot end")]
    listed = ", ".join(f"{amount(len(pods), 'pod')} {does}" for pods, does in parts if pods)
    runs_on = ""
    if runs:
        runs_on = f"; {amount(len(runs), 'pod')} {'runs' if len(runs) == 1 else 'run'} on, and can end when it is back"
    return f"While the driver on node {node} is away, {listed}{runs_on}."


def _of_plugins(users: DriverUsers) -> Iterator[str]:
    """What becomes of the pods that have devices of a device plugin while that is away."""
    resources = some(sorted({user.resource for user in users.of_plugins}), 2)
    runs, starting = (users._replace(claims=()).pods(state) for state in (WhileAway.RUNS, WhileAway.MAY_FAIL))
    if runs:
        have, run = ("has", "runs") if len(runs) == 1 else ("have", "run")
        yield (
            f"{amount(len(runs), 'pod')} {have} devices of a device plugin ({resources}) and {run} on while that is "
            "restarted."
        )
    if starting:
        have, them = ("has", "it") if len(starting) == 1 else ("have", "them")
        yield (
            f"Undetermined: {_named(starting)} {have} not started, and may fail if the device plugin ({resources}) is "
            f"away; let {them} start first."
        )


def drain_json(users: DriverUsers, node: str, where: ClusterFlags) -> dict[str, Any]:
    """A DrainCheck; its commands end the pods before the driver is removed, and free what no pod uses."""
    ends: tuple[CommandLine, ...] = (_drain(users, node),) if users.pods(*_READ) else ()
    if users.down:
        ends = (_described(node), deleting("node", node))
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "DrainCheck",
        "node": node,
        "answer": " ".join((_drain_answer(users, node), *_lacking(users))),
        **filled(
            commands=commands_json(*ends, *_freeing(users.unused), where=where),
            next=command_json(_following(users), where=where),
        ),
        "evictedBeside": [
            {**object_json(pod.namespace, pod.name), **filled(ownedBy=pod.owner)} for pod in users.beside
        ],
        "updates": [
            {
                "driver": update.driver,
                **object_json(update.namespace, update.name),
                "strategy": update.strategy or "RollingUpdate",
                "newPodFirst": update.surge,
            }
            for update in users.updates
        ],
        "claims": [
            {
                "driver": claim.driver,
                **object_json(claim.namespace, claim.name),
                "devices": [*map(device_json, claim.devices)],
                "pods": [*map(_pod_json, claim.pods)],
            }
            for claim in users.claims
        ],
        "devicePlugins": [
            {"resource": user.resource, "deviceCount": user.amount, "pod": _pod_json(user.pod)}
            for user in users.of_plugins
        ],
        "awaiting": [
            {
                "driver": driver,
                **({"state": row.state.value} if (row := users.row(driver)) is not None else {}),
                "pods": [object_json(*pod) for pod in pods],
            }
            for driver, pods in users.awaiting.items()
        ],
        "unread": [*map(gap_json, users.gaps)],
    }


def _pod_json(pod: PodOfDriver) -> dict[str, Any]:
    more = filled(ownedBy=pod.owner, deletionTimestamp=pod.ends)
    return {**object_json(pod.namespace, pod.name), "whileAway": pod.outcome.value, **more}
