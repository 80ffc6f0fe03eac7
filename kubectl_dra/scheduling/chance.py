"""What chance decides in a scheduler: which of several nodes that are as good, which of several pods that are due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

from kubectl_dra.api.pods import Pod

T = TypeVar("T")


class Chance:
    """The choices of one try: any, by ``random``, or always the first. ``taken``: another choice was possible."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = random
        self.taken = False

    @staticmethod
    def of_try(number: int) -> Chance:
        """Always the first in try 0, any in the others."""
        return Chance(Random(number) if number else None)

    @property
    def always_first(self) -> bool:
        """Whether it takes the first of each."""
        return self._random is None

    def of(self, choices: Sequence[T]) -> T:
        """One of them."""
        self.taken = self.taken or len(choices) > 1
        return choices[0] if self._random is None else self._random.choice(choices)

    def in_order(self, pods: Sequence[Pod], turn: Callable[[Pod], Any]) -> list[Pod]:
        """The pods by their turns; those with equal ones come in any order."""
        self.taken = self.taken or len({turn(pod) for pod in pods}) < len(pods)
        # Whichever of them is asked about, the first try is the same.
        mixed = sorted(pods, key=lambda pod: pod.key)
        if self._random is not None:
            self._random.shuffle(mixed)
        return sorted(mixed, key=turn)
