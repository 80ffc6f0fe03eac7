"""Runs of all kinds, one after the other, and what is counted of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from tools.fuzz import editor, kubeconfigs, manifests, names, served, snapshots
from tools.fuzz.judged import Outcome

Run: TypeAlias = Callable[[int, Path], Outcome]
"""The run of a number: the same number makes the same input."""
KINDS: Final[Mapping[str, Run]] = {
    "snapshots": snapshots.run,
    "manifests": manifests.run,
    "kubeconfigs": kubeconfigs.run,
    "servers": served.run,
    "editor": editor.run,
    "names": names.run,
}

TELL_AFTER: Final = 1000
"""Runs."""


@dataclass
class Count:
    """Of one kind: how many runs, how many of them whose input was accepted, and what went wrong."""

    runs: int = 0
    accepted: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome, number: int, kind: str) -> None:
        """One more run."""
        self.runs += 1
        self.accepted += outcome.accepted
        if outcome.failure:
            self.failures.append(f"--kind {kind} --seed {number} --runs 1: {outcome.failure}")


def fuzz(
    kinds: Sequence[str],
    seed: int,
    folder: Path,
    *,
    seconds: float | None = None,
    runs: int | None = None,
    tell: Callable[[Mapping[str, Count]], None] = lambda counts: None,
) -> dict[str, Count]:
    """Runs of these kinds in turn, until the time is over or there were so many, from the number ``seed`` on.

    ``tell`` gets the counts now and then.
    """
    counts = {kind: Count() for kind in kinds}
    end = None if seconds is None else time.monotonic() + seconds
    number = seed
    while (runs is None or number - seed < runs) and (end is None or time.monotonic() < end):
        kind = kinds[number % len(kinds)]
        counts[kind].add(KINDS[kind](number, folder), number, kind)
        number += 1
        if (number - seed) % TELL_AFTER == 0:
            tell(counts)
    return counts
