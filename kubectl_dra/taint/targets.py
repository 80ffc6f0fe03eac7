"""Which devices are meant: full or short names, or a selection, always resolved to driver, pool and device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.slices import DeviceID, hardware_id
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import deleting
from kubectl_dra.errors import InputError, UndeterminedError
from kubectl_dra.explain.devices.device_state import Superseded
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory
from kubectl_dra.explain.devices.wanted import is_called, near_names, single_names
from kubectl_dra.taint import times
from kubectl_dra.taint.device_taint_rules import CHANGED, CREATED, REFUSED, UNCHANGED, Decision, DesiredRule, RuleStage
from kubectl_dra.text import did_you_mean, nearest, some

_NODE_WORDS: Final = ("node", "nodes", "no")
"""Kinds that ``kubectl taint`` takes before names of nodes."""


class Target(Struct, frozen=True, eq=False):
    """One device, compared by identity.

    ``where`` is its node, or a description of its nodes. ``row`` is None if no slice that was read has it;
    ``slices_read``: all were. ``superseded``: only an older slice of its pool has it. ``hardware`` is its UUID or
    serial number, empty if the driver publishes none.
    """

    id: DeviceID
    where: str = ""
    hardware: str = ""
    row: DeviceRow | None = None
    slices_read: bool = True
    superseded: Superseded | None = None

    @property
    def published(self) -> bool | None:
        """Whether a ResourceSlice currently has it; None if that is unknown."""
        return True if self.row is not None else False if self.slices_read else None


class Devices:
    """Every device that can be named: in a slice, held by a claim, or selected by name in a DeviceTaintRule."""

    def __init__(self, inventory: Inventory, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._targets: dict[DeviceID, Target] = {}
        read = not snapshot.unread(("ResourceSlice",))
        for row in inventory.rows:
            self._targets.setdefault(row.id, Target(row.id, row.where, hardware_id(row.device), row))
        for old in inventory.superseded:
            self._targets.setdefault(old.id, Target(old.id, slices_read=read, superseded=old))
        for claim in snapshot.claims.values():
            for result in claim.results:
                self._targets.setdefault(result.device, Target(result.device, slices_read=read))
        for rule in snapshot.taint_rules:
            selected = rule.selector
            if selected is not None and selected[0] and selected[1] and selected[2]:
                id = DeviceID(selected[0], selected[1], selected[2])
                self._targets.setdefault(id, Target(id, slices_read=read))

    def get(self, id: DeviceID) -> Target | None:
        """The device of that name."""
        return self._targets.get(id)

    def named(self, words: Iterable[str]) -> tuple[Target, ...]:
        """The devices with these names, in order, each once.

        A name is ``driver/pool/device`` or any unambiguous end of that; the node may stand for the pool. Several of
        one pool may be written as ``devices`` prints them: ``n1/gpu-0,1`` or ``n1/gpu-0..3``.

        Raises InputError: no device of that name, or several.
        """
        words = list(words)
        first, *others = words or [""]
        if first in _NODE_WORDS and others and others[0] in self._snapshot.nodes:
            # As kubectl taint has it.
            raise InputError(f"{first} {others[0]} is no device; for all devices of the node write --node {others[0]}")
        return tuple(dict.fromkeys(self._one(name) for word in words for name in single_names(word)))

    def knows(self, word: str) -> bool:
        """Whether it is the name of one device or several."""
        return any(self._meant(name) for name in single_names(word))

    def _meant(self, word: str) -> list[Target]:
        exact = [target for target in self._targets.values() if str(target.id) == word]
        return exact or [target for target in self._targets.values() if is_called(target.id, target.where, word)]

    def _one(self, word: str) -> Target:
        targets = self._meant(word)
        published = [target for target in targets if target.published]
        targets = published or targets
        if len(targets) == 1:
            return targets[0]
        if targets:
            names = sorted(str(target.id) for target in targets)
            raise InputError(f'"{word}" is the name of {len(targets)} devices: {some(names, 6)}; write a longer name')
        for gap in self._snapshot.unread(("ResourceSlice",)):
            raise UndeterminedError(f"{gap}, so whether there is a device {word} is unknown{gap.help}")
        error = InputError(f'there is no device "{word}"{self._hint(word)}')
        if word in {rule.metadata.name for rule in self._snapshot.taint_rules}:
            error = InputError(f'there is no device "{word}"; it is a DeviceTaintRule, which tells of devices')
            error.commands = (("To end it", deleting("devicetaintrule", word)),)
        raise error

    def _hint(self, word: str) -> str:
        if not self._targets:
            return "; no device is published"
        if (node := word.partition("/")[2] if word.startswith(("node/", "nodes/")) else word) in self._snapshot.nodes:
            return f"; it is a node: write --node {node}"
        if word in _NODE_WORDS:
            return "; for all devices of a node write --node NODE"
        if near := near_names(word, self._targets):
            return f"; {did_you_mean(near)}"
        return f"; there are: {some(sorted({id.device for id in self._targets}), 3)}"

    def with_hardware(self, hardware: Iterable[str]) -> tuple[Target, ...]:
        """The published devices with these UUIDs or serial numbers. Raises InputError: no device has one of them."""
        out: list[Target] = []
        for wanted in hardware:
            targets = [target for target in self._targets.values() if target.hardware.lower() == wanted.lower()]
            if not targets:
                near = nearest(wanted, {target.hardware for target in self._targets.values() if target.hardware})
                hint = f"; {did_you_mean(near)}" if near else ""
                raise InputError(f"--uuid: no published device has uuid or serial number {wanted}{hint}")
            out.extend(targets)
        return tuple(dict.fromkeys(out))

    def of_claim(self, name: str, namespace: str) -> tuple[Target, ...]:
        """The devices that a claim holds; ``name`` may be ``namespace/name``.

        Raises InputError: no such claim, or it is not allocated.
        """
        key = _key(name, namespace)
        claim = self._snapshot.claims.get(key)
        if claim is None:
            raise _absent("--claim", "ResourceClaim", key, self._snapshot.claims, self._snapshot)
        return self._allocated([claim], f"--claim: ResourceClaim {claim.key}")

    def of_pod(self, name: str, namespace: str) -> tuple[Target, ...]:
        """The devices of all claims of a pod; ``name`` may be ``namespace/name``.

        Raises InputError: no such pod, or none of its claims is allocated.
        """
        key = _key(name, namespace)
        pod = self._snapshot.pods.get(key)
        if pod is None:
            raise _absent("--pod", "Pod", key, self._snapshot.pods, self._snapshot)
        names = {(key[0], name) for name in pod.claim_names}
        claims = [claim for key, claim in self._snapshot.claims.items() if key in names]
        return self._allocated(claims, f"--pod: Pod {pod.key}")

    def _allocated(self, claims: Iterable[ResourceClaim], what: str) -> tuple[Target, ...]:
        ids = [device for claim in claims for device in claim.devices]
        if not ids:
            raise InputError(f"{what} holds no device")
        return tuple(dict.fromkeys(self._targets[id] for id in ids))


def _key(name: str, namespace: str) -> tuple[str, str]:
    space, slash, own = name.rpartition("/")
    return (space if slash else namespace, own)


def _absent(
    flag: str, kind: str, key: tuple[str, str], table: Iterable[tuple[str, str]], snapshot: Snapshot
) -> InputError | UndeterminedError:
    """The error for an object that was not found, or was not read."""
    gap = snapshot.missing(kind, key[0])
    if gap is not None:
        return UndeterminedError(f"{flag}: {gap}, so whether there is {kind} {key[0]}/{key[1]} is unknown{gap.help}")
    elsewhere = sorted(space for space, name in table if name == key[1])
    near = nearest(key[1], [name for space, name in table if space == key[0]])
    hint = f"; there is one in namespace {elsewhere[0]}" if elsewhere else (f"; {did_you_mean(near)}" if near else "")
    return InputError(f"{flag}: {kind} {key[1]} does not exist in namespace {key[0]}{hint}")


# Devices that may be the same hardware: a taint on one does not affect the others (KEP-4815).

Counters = tuple[str, str, str]
"""Driver, pool and name of a counter set."""


def parts_of(devices: Iterable[DeviceID], rows: Sequence[DeviceRow]) -> dict[DeviceID, tuple[DeviceID, ...]]:
    """For each of the devices, the other devices that consume counters of the same sets.

    A driver publishes a GPU and its partitions as devices of one counter set, so they may be one piece of
    hardware.
    """
    wanted = set(devices)
    sets: dict[DeviceID, list[Counters]] = {}
    members: dict[Counters, list[DeviceID]] = {}
    for row in rows:
        for consumption in row.device.consumes_counters:
            counters = (row.id.driver, row.id.pool, consumption.counter_set)
            members.setdefault(counters, []).append(row.id)
            sets.setdefault(row.id, []).append(counters)
    out: dict[DeviceID, tuple[DeviceID, ...]] = {}
    for device in sorted(wanted & sets.keys()):
        others = dict.fromkeys(id for counters in sets[device] for id in members[counters] if id not in wanted)
        if others:
            out[device] = tuple(others)
    return out


# What becomes of each rule of one ``taint``: decided once, and then either shown or carried out.


NO_EXECUTE = "NoExecute"


class RuleStep(Struct, frozen=True):
    """One rule: the device, the desired rule, and how that compares with the rule that is there."""

    target: Target
    desired: DesiredRule
    decision: Decision

    def stage(self, at: datetime) -> RuleStage:
        """What to write at a time: the effect itself, or with --drain NoSchedule and the time at which NoExecute comes.

        A drain that goes on keeps its time, and one that is over is not begun again.
        """
        now = self.decision.stage
        if self.desired.grace is None or (now is not None and now.effect == NO_EXECUTE):
            return RuleStage(self.desired.taint.effect)
        started = now is not None and now.effect == "NoSchedule" and now.next_at
        due = now.next_at if started and now else times.stamp(times.later(at, self.desired.grace))
        return RuleStage("NoSchedule", self.desired.taint.effect, due)

    def outcome(self, at: datetime) -> str:
        """What writing that comes to: created, changed, unchanged or refused."""
        if self.decision.action == "refuse":
            return REFUSED
        if self.decision.stage is None:
            return CREATED
        return UNCHANGED if self.decision.same_facts and self.decision.stage == self.stage(at) else CHANGED

    def evicts(self, at: datetime) -> datetime | None:
        """When the rule, written at a time, evicts pods without a toleration; None for effects that never do.

        The server counts tolerationSeconds from the change of the effect to NoExecute.
        """
        now, stage = self.decision.stage, self.stage(at)
        if stage.next_at:
            return times.parse(stage.next_at)
        if stage.effect != NO_EXECUTE:
            return None
        since = times.parse(self.decision.since) if now is not None and now.effect == NO_EXECUTE else None
        return since or at
