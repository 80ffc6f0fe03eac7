"""What a scenario expects where releases of Kubernetes differ, and what it needs of one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

import pytest

from kubectl_dra.api.releases import Release, parse_release
from tools.controlplane.plane import ControlPlane, gates_of, release_of

T = TypeVar("T")


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
            backport.minor == release.minor and release.patch >= backport.patch for backport in backports
        )
        return self.new if changed else self.old


@overload
def expected(value: Changed[T], plane: ControlPlane) -> T: ...


@overload
def expected(value: T | Changed[T], plane: ControlPlane) -> T: ...


def expected(value: T | Changed[T], plane: ControlPlane) -> T:
    """What is expected of the release that a control plane runs."""
    return value.on(release_of(plane)) if isinstance(value, Changed) else value


PARTITIONS = "DRAPartitionableDevices"
SHARES = "DRAConsumableCapacity"
_GATES_OF_FIELDS: dict[str, str | Changed[str]] = {
    "allowMultipleAllocations": SHARES,
    # 1.34 accepts it without the gate.
    "distinctAttribute": Changed("", SHARES, ("1.35",)),
    "consumesCounters": PARTITIONS,
}

RANDOM_ORDER = Changed(True, False, ("1.36",))
"""Whether schedulers try pools, and slices in a pool, in random order."""
LOOSE_POOLS = Changed(True, False, ("1.35",))
"""Whether a number of devices may come from pools and generations that are incomplete."""
EFFECT_NONE = Changed(False, True, ("1.35",))
"""Whether the API server knows the taint effect None."""


def gates_of_fields(value: object, plane: ControlPlane) -> set[str]:
    """The feature gates without which a server drops fields of a table's value. It holds what `json` writes."""
    text = json.dumps(value, default=str)
    gates = {field: expected(gate, plane) for field, gate in _GATES_OF_FIELDS.items() if f'"{field}"' in text}
    return {gate for gate in gates.values() if gate}


def needs(plane: ControlPlane, *gates: str) -> None:
    """Skip the test where a feature gate is off."""
    on = gates_of(plane)
    for gate in gates:
        if not on.get(gate):
            release = release_of(plane)
            pytest.skip(f"Kubernetes {release} {'has no' if gate not in on else 'runs without'} {gate}")


def needs_effect_none(plane: ControlPlane) -> None:
    """Skip the test where the API server does not know the taint effect None."""
    if not expected(EFFECT_NONE, plane):
        pytest.skip(f"Kubernetes {release_of(plane)} has no taint effect None")
