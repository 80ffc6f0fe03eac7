"""Virtual machines of KubeVirt of which no pod could be made.

A VirtualMachine makes a VirtualMachineInstance of its name, and that a virt-launcher pod. Where the API server refuses
the pod, the instance has a condition and an event (``pkg/virt-controller/watch/vmi``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kubectl_dra.api.neighbour_kinds import Conditioned
from kubectl_dra.cluster.snapshot import Snapshot

INSTANCE: Final = "VirtualMachineInstance.kubevirt.io"
_KIND: Final = "VirtualMachineInstance"
_FAILED: Final = "FailedCreate"
_TWICE: Final = re.compile(r"spec\.resourceClaims\[\d+\]\.name: Duplicate value")


class UnmadeLauncher(Struct, frozen=True):
    """An instance without its pod, and the server's words. ``twice``: it refuses a claim that is listed twice."""

    namespace: str
    name: str
    message: str
    count: int = 0
    since: str = ""

    @property
    def twice(self) -> bool:
        """Whether KubeVirt listed one claim for each of several devices (kubevirt#16769)."""
        return _TWICE.search(self.message) is not None


def unmade(snapshot: Snapshot, namespace: str = "") -> Iterator[UnmadeLauncher]:
    """The instances of which no pod exists and none could be made, by their newest event, else their condition."""
    launchers: dict[tuple[str, str], UnmadeLauncher] = {}
    known: dict[tuple[str, str], Conditioned] = snapshot.others.get(INSTANCE, {})  # type: ignore[assignment]
    for (space, name), instance in known.items():
        for condition in instance.status.conditions:
            if condition.type == "Synchronized" and condition.status == "False" and condition.reason == _FAILED:
                since = condition.last_transition_time
                launchers[space, name] = UnmadeLauncher(space, name, condition.message, since=since)
    for event in sorted(snapshot.events, key=lambda event: event.last):
        if event.kind == _KIND and event.reason == _FAILED:
            key = event.namespace, event.name
            launchers[key] = UnmadeLauncher(*key, event.message, event.count, event.first or event.last)
    if not launchers:
        return
    have = {
        (space, owner.name)
        for (space, _), pod in snapshot.pods.items()
        if (owner := pod.metadata.controller()) is not None and owner.kind == _KIND
    }
    for key, each in sorted(launchers.items()):
        if namespace in ("", key[0]) and key not in have:
            yield each
