"""A kind that decides and was not read: what is unknown without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kubectl_dra.cluster.snapshot import ABSENT, Gap, Snapshot
from kubectl_dra.explain.phrase import Statement, Words

DEVICE_KINDS: Final = ("ResourceSlice", "ResourceClaim", "DeviceTaintRule", "Node")
"""The kinds that decide whether a device is free."""


class Unread(Statement, frozen=True):
    """A kind that decides and was not read whole, and what is unknown without it."""

    TEXT = "{gap}, so {unknown}{gap.help}"
    gap: Gap
    unknown: Words


class NotSeen(Statement, frozen=True):
    """A kind that was not read whole, where that does not decide."""

    TEXT = "not seen: {gap}"
    gap: Gap


def not_read(kind: str, notes: Iterable[Words]) -> bool:
    """Whether notes say that a kind was not read whole."""
    return any(isinstance(note, (Unread, NotSeen)) and note.gap.kind == kind for note in notes)


class NotProved(Statement, frozen=True):
    """Kinds that were not read whole, and of which an object could end what a fix achieves."""

    TEXT = "no fix was proved: {gaps}{help}"
    gaps: tuple[Gap, ...]

    @property
    def help(self) -> str:
        """What somebody can do who knows that there are no such objects."""
        return next((gap.help for gap in self.gaps if gap.help), "")


def gaps_of(said: Iterable[Words]) -> dict[Gap, bool]:
    """The gaps among what is said about an answer, each once, and whether the answer depends on it."""
    found: dict[Gap, bool] = {}
    for words in said:
        gaps = (
            words.gaps if isinstance(words, NotProved) else (words.gap,) if isinstance(words, Unread | NotSeen) else ()
        )
        for gap in gaps:
            found[gap] = found.get(gap, False) or isinstance(words, Unread)
    return found


CHANGE_PODS: Final = ("LimitRange", "ResourceQuota", "DeviceTaintRule")
"""Kinds of which a cluster without objects does what was worked out."""


def if_none(unclear: Sequence[Words]) -> tuple[Gap, ...]:
    """The kinds of which no file has an object, where the answer is known if the cluster has none either; empty where
    something else is open.
    """
    known = [
        unread_kind.gap
        for unread_kind in unclear
        if isinstance(unread_kind, Unread) and unread_kind.gap.kind in CHANGE_PODS
    ]
    if len(known) < len(unclear) or any(gap.reason != ABSENT for gap in known):
        return ()
    return tuple(dict.fromkeys(known))


class Stake(NamedTuple):
    """A kind on which the answer depends, in a namespace or (empty) everywhere, and what it decides."""

    kind: str
    namespace: str
    unknown: Words


def unread_devices(snapshot: Snapshot) -> tuple[Unread, ...]:
    """What was not read of the kinds that decide which devices there are, and which are free."""
    unknown = {**UNKNOWN, "Node": "whether the nodes of devices exist is unknown"}
    return tuple(unread_of((Stake(kind, "", unknown[kind]) for kind in DEVICE_KINDS), snapshot))


def unread_of_start(snapshot: Snapshot) -> tuple[Unread, ...]:
    """The Pods that were not read: those of drivers tell whether a pod starts with what the scheduler gives it."""
    return tuple(unread_of((Stake("Pod", "", STARTING),), snapshot))


def unread_of_share(snapshot: Snapshot) -> tuple[Unread, ...]:
    """What was not read and may keep from new claims what is left of a shared device."""
    return tuple(unread for unread in unread_devices(snapshot) if unread.gap.kind != "ResourceSlice")


def unread_of(stakes: Iterable[Stake], snapshot: Snapshot) -> Iterator[Unread]:
    """What was not read of these."""
    for stake in stakes:
        for gap in snapshot.unread((stake.kind,), stake.namespace):
            yield Unread(gap, stake.unknown)


STARTING: Final = "whether a pod starts with the device that it gets is unknown"

UNKNOWN: Final = {
    "Node": "cpu, memory, taints and labels are unknown",
    "Pod": "what other pods use of the nodes is unknown",
    "ResourceSlice": "which devices exist is unknown",
    "DeviceClass": "what the classes select is unknown",
    "ResourceClaim": "which devices are held is unknown",
    "DeviceTaintRule": "whether a rule taints devices is unknown",
    "PodGroup": "whether the pod waits for others of its group is unknown",
    "Workload": "whether the pod waits for others of its group is unknown",
}
