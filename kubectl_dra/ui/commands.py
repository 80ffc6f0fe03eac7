"""What can be typed after ``:``, and the commands that a row stands for, to be pasted in a shell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.claim_relation import claims_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import ClusterFlags, CommandLine, kubectl
from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.drivers.health import DriverPod
from kubectl_dra.errors import InputError
from kubectl_dra.report.blocks import Block, FixOffer, Items, Section, ShellCommand
from kubectl_dra.text import nearest
from kubectl_dra.ui.tables import Asked, ScreenTable, Subject, Within
from kubectl_dra.usage.choices import UseBy


class Going(NamedTuple):
    """A table to show; ``by`` is what the fleet is counted by. ``namespace``: show only this one, "" for all."""

    view: ScreenTable | None = None
    by: UseBy | None = None
    namespace: str | None = None


_FLEET: Final = {
    UseBy.nodes: ("nodes", "node", "no", "fleet"),
    UseBy.classes: ("classes", "class", "deviceclasses", "deviceclass"),
    UseBy.namespaces: ("namespaces", "namespace", "ns"),
    UseBy.owners: ("owners", "owner"),
}
_LISTS: Final = {
    ScreenTable.PENDING: ("pods", "pod", "po", "pending"),
    ScreenTable.CLAIMS: ("claims", "claim", "resourceclaims", "resourceclaim"),
    ScreenTable.DEVICES: ("devices", "device", "resourceslices", "resourceslice"),
}
_GOALS: Final = {
    **{word: Going(ScreenTable.FLEET, by) for by, words in _FLEET.items() for word in words},
    **{word: Going(view) for view, words in _LISTS.items() for word in words},
}
ACTIONS: Final = {"notes": "notes", "help": "keys", "keys": "keys", "q": "leave(False)", "quit": "leave(False)"}
"""Words that do what a key does."""
WORDS: Final = (
    "nodes, classes, namespaces, owners, pods, claims, devices; then NAMESPACE or all; ns NAMESPACE, notes, quit"
)
ALL: Final = ("all", "-A")


def goal(typed: str) -> Going:
    """Where what was typed leads. Raises InputError, which says what was probably meant."""
    word, *more = typed.lower().removeprefix(":").split()
    going = _GOALS.get(word)
    if going is None:
        near = nearest(word, (*_GOALS, *ACTIONS), 1)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {WORDS}"
        raise InputError(f"there is no :{word}{hint}")
    if len(more) > 1:
        raise InputError(f":{word} takes one namespace, or all")
    if not more:
        return going
    namespace = "" if more[0] in (spelling.lower() for spelling in ALL) else more[0]
    # ``ns NAME`` stays in the table that is seen.
    return Going(namespace=namespace) if word in _FLEET[UseBy.namespaces] else going._replace(namespace=namespace)


# Commands to paste.


def of_row(subject: Subject, where: ClusterFlags) -> tuple[CommandLine, ...]:
    """The commands that say more about a row."""
    if isinstance(subject, Asked):
        command = kubectl("dra", "explain", kind=subject.kind, name=subject.name, namespace=subject.namespace)
    elif isinstance(subject, DeviceID):
        command = kubectl("dra", "explain", more=(f"device/{subject.pool}/{subject.device}",), others=(subject.device,))
    elif subject.by in (UseBy.nodes, UseBy.classes):
        flag = "--node" if subject.by is UseBy.nodes else "--class"
        command = kubectl("dra", "devices", more=(flag, subject.first), others=(subject.first,))
    else:
        command = kubectl("dra", "claims", namespace=subject.first)
    return (where.asks(command),)


def of_answer(blocks: list[Block]) -> tuple[CommandLine, ...]:
    """The commands of an answer: those of its fixes, those that only read first, then what to look at next."""
    commands = dict.fromkeys(command for block in blocks for command in _commands(block))
    return tuple(sorted(commands, key=lambda command: command.effect.changes))


def _commands(block: object) -> Iterator[CommandLine]:
    if isinstance(block, ShellCommand):
        yield from block.commands
    elif isinstance(block, (FixOffer, Section)):
        for below in block.blocks:
            yield from _commands(below)
    elif isinstance(block, Items):
        for item in block.items:
            for below in item:
                yield from _commands(below)


def logs(subject: Subject, snapshot: Snapshot, where: ClusterFlags) -> tuple[CommandLine, ...]:
    """The commands that show the logs of the drivers of a row's devices. Raises InputError where there are none."""
    pools = {*_pools(subject, snapshot)}
    on_node = subject.first if isinstance(subject, Within) and subject.by is UseBy.nodes else None
    rows = [
        row
        for row in joined(snapshot).rows
        if row.node == on_node or any((row.driver, pool) in pools for pool in row.pools)
    ]
    pods = dict.fromkeys(row.pod for row in rows if row.pod is not None)
    if pods:
        return tuple(where.asks(_log(pod)) for pod in pods)
    if not pools and on_node is None:
        raise InputError("it has no devices, so no driver works for it; rows of nodes and devices have drivers")
    names = ", ".join(dict.fromkeys(driver for driver, _ in pools)) or "its driver"
    raise InputError(f"the pod of {names} is not known: no pod was read that looks like it")


def _log(pod: DriverPod) -> CommandLine:
    more = ("-c", pod.container) if pod.container else ()
    return kubectl("logs", kind="pod", name=pod.name, namespace=pod.namespace, more=more)


def _pools(subject: Subject, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """The drivers and pools of the devices that a row is about."""
    if isinstance(subject, DeviceID):
        yield subject.driver, subject.pool
    elif isinstance(subject, Asked):
        key = (subject.namespace, subject.name)
        if subject.kind == "claim":
            claims = [snapshot.claims[key]] if key in snapshot.claims else []
        else:
            claims = claims_of(snapshot.pods[key], snapshot) if key in snapshot.pods else []
        yield from (device[:2] for claim in claims for device in claim.devices)
