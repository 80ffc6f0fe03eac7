"""What a scenario expects where releases of Kubernetes differ, and what it needs of one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Generic, TypeVar

import pytest

from kubectl_dra.api.versions import Release, parse_release
from tests.controlplane.plane import ControlPlane, gates_of, release_of

T = TypeVar("T")

PARTITIONS = "DRAPartitionableDevices"
SHARES = "DRAConsumableCapacity"
_GATES_OF_FIELDS = {
    "allowMultipleAllocations": SHARES,
    "distinctAttribute": SHARES,
    "consumesCounters": PARTITIONS,
}


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """An expectation that is one value in older releases, and another `since` a release.

    `since` names the first release with the new value and, in front of it, the first patches of earlier minor releases
    that have it too: `("1.35.9", "1.36.5", "1.37")`.
    """

    old: T
    new: T
    since: tuple[str, ...]

    def on(self, release: Release) -> T:
        """What is expected of a release."""
        *backports, first = map(parse_release, self.since)
        changed = release >= first or any(
            each.minor == release.minor and release.patch >= each.patch for each in backports
        )
        return self.new if changed else self.old


def expected(value: T | Changed[T], plane: ControlPlane) -> T:
    """What is expected of the release that a control plane runs."""
    return value.on(release_of(plane)) if isinstance(value, Changed) else value


def gates_of_fields(value: object) -> set[str]:
    """The feature gates without which a server drops fields of a table's value. It holds what `json` writes."""
    text = json.dumps(value, default=str)
    return {gate for field, gate in _GATES_OF_FIELDS.items() if f'"{field}"' in text}


def needs(plane: ControlPlane, *gates: str) -> None:
    """Skip the test where a feature gate is off."""
    on = gates_of(plane)
    for gate in gates:
        if not on.get(gate):
            release = release_of(plane)
            pytest.skip(f"Kubernetes {release} {'has no' if gate not in on else 'runs without'} {gate}")
