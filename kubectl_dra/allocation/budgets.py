"""How much work goes into an answer before it is undetermined: all limits of all commands.

A step is one device tried, 200,000 are about a second.
"""

from __future__ import annotations

import time
from typing import Final

from msgspec import Struct

from kubectl_dra.allocation.errors import SearchBudgetExceeded

# A search on one node.
STEPS: Final = 2_000_000
"""Where a caller sets no limit of its own."""
PLAIN_STEPS: Final = 20_000
"""How many devices the plain search tries before the merged search starts; 0.1 s or less."""
COUNTING_STEPS: Final = 30_000
"""How many devices the merged search may try to find out how long the plain search is."""
KNOWN_STEPS: Final = 200_000
"""How many devices the plain search tries before an easier question, if nothing can be merged."""
PRUNED_SECONDS: Final = 6.0
"""How long the pruned searches may take in total."""
SCHEDULER_STEPS: Final = 20_000_000
"""How many devices the scheduler can try before its time-out: 10 s (``filterTimeout``) at 2 million a second."""
TICKS_PER_CLOCK: Final = 256

# The answer to one question.
NODE_STEPS: Final = 400_000
NODE_SECONDS: Final = 4.0
"""An attempt on one node."""
ATTEMPTS_SECONDS: Final = 7.0
"""The attempts on all nodes."""
ANSWER_SECONDS: Final = 8.0
ANSWER_SECONDS_PER_NODE: Final = 0.001
"""The attempts in all, those that prove changes among them."""

# Changes that help, each proved by attempts with it.
PROOF_STEPS: Final = 200_000
"""An attempt that proves a change."""
QUICK_STEPS: Final = PROOF_STEPS // 10
"""An attempt that looks for one."""
PROOF_NODES: Final = 200
"""Nodes on which a change is tried, of those that differ."""
TRIES_ALONE: Final = 400
"""Attempts with one change each."""
TRIES_TOGETHER: Final = 1_200
"""Attempts with two or three changes together."""
HOLDERS_TRIED: Final = 60
"""Holders whose end is tried."""
MOST_REBUILDS: Final = 400
FEWEST_REBUILDS: Final = 6
REBUILT_OBJECTS: Final = 800_000
"""How many changed clusters are built, and how many nodes and pods may be counted again for them in total."""

# Several questions.
SHAPE_SECONDS: Final = 0.1
"""One of several questions, besides ``ANSWER_SECONDS`` for all."""
TAINT_SECONDS: Final = 6.0
"""Which pending pods a taint keeps from fitting."""

# Pods of a workload.
PLACE_STEPS: Final = 200_000
"""An attempt on one node for a pod of a workload."""
MOST_SCORED: Final = 60_000
"""How many nodes are scored in all; after that, pods go where the fewest of the workload are."""
CHOICES: Final = 8
CHOICES_SECONDS: Final = 3.0
"""How often, and how long, other choices among equal nodes are tried."""
ROOM_SECONDS: Final = 8.0
"""The search for holders that would make room. Each try places groups as a whole."""

# Pods that are placed together.
GANG_WORK: Final = 60_000
"""Members times nodes and slices; larger groups are not tried."""
GANG_TRIES: Final = 6
SMALL_GANG_TRIES: Final = 30
"""How often a small group is tried, with different choices where the scheduler chooses at random."""
SMALL_GANG_WORK: Final = 1_000
"""The work up to which a group counts as small."""

LARGEST_NODES: Final = 50
"""Nodes on which the largest request is looked for; devices that share counters need more than the first."""


class Budget(Struct):
    """How long a search may take. ``steps`` counts tried devices. ``deadline`` is in seconds of the process's
    own CPU time, so that the answer does not depend on other load on the machine.
    """

    max_steps: int = STEPS
    deadline: float = float("inf")
    steps: int = 0

    def tick(self) -> None:
        """Count one step.

        Raises:
            SearchBudgetExceeded: the budget is used up.
        """
        self.steps += 1
        if self.steps >= self.max_steps or (self.steps % TICKS_PER_CLOCK == 0 and time.process_time() > self.deadline):
            raise SearchBudgetExceeded
