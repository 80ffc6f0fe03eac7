"""Limits on the work for an answer, for all commands; beyond them it is undetermined.

They are counted in steps, so that an answer depends neither on the machine nor on what else runs there. A step is one
device tried, or as much work of another kind: about 5 µs.
"""

from __future__ import annotations

import sys
from typing import Final

from msgspec import Struct

from kubectl_dra.allocation.errors import SearchBudgetExceeded

# What work that tries no device counts as.
ATTEMPT: Final = 20
"""An attempt on a node, before the first device is tried."""
FILTERED_NODE: Final = 3
"""A node that the other filters look at."""
SCORED_PER_STEP: Final = 2
"""Number of nodes that are scored for a pod, for one step."""
PLACED_POD: Final = 150
"""A pod that is given a node, in the cluster with it."""
COMPARED_PER_STEP: Final = 32
"""Number of devices that are compared with what is remembered of a search, for one step."""

# A search on one node.
SEARCH_STEPS: Final = 2_000_000
"""Where a caller sets no limit of its own."""
PLAIN_STEPS: Final = 20_000
"""The plain search, before the merged search starts."""
COUNTING_STEPS: Final = 30_000
"""The merged search that finds out how long the plain one is."""
KNOWN_STEPS: Final = 200_000
"""The plain search before an easier question, if nothing can be merged."""
SCHEDULER_STEPS: Final = 20_000_000
"""Number of devices that the scheduler tries before its time-out: 10 s (``filterTimeout``) at 2 million a second."""

# The answer to one question.
NODE_STEPS: Final = 600_000
"""An attempt on one node."""
ATTEMPTS_STEPS: Final = 1_400_000
"""The attempts on all nodes; ``STEPS_PER_NODE`` if that is more."""
ANSWER_STEPS: Final = 1_600_000
STEPS_PER_NODE: Final = 200
"""The answer, the attempts that prove changes included, and what each node adds."""

# Changes that help, each proved by attempts with it.
PROOF_STEPS: Final = 200_000
"""An attempt that proves a change."""
QUICK_STEPS: Final = 20_000
"""An attempt that looks for one."""
PROOF_NODES: Final = 200
"""Nodes on which a change is tried, of those that differ."""
NODES_COUNTED: Final = 64
COUNTING_NODES_STEPS: Final = 100_000
"""Nodes on which a proved change is tried to say how many take the pod, and all these attempts together."""
TRIES_ALONE: Final = 400
"""Attempts with one change each."""
TRIES_TOGETHER: Final = 1_200
"""Attempts with two or three changes together."""
HOLDERS_TRIED: Final = 60
"""Holders whose end is tried."""
HOLDERS_COUNTED: Final = 500
"""Nodes on which holders are counted for that, those that lack the fewest devices."""
NODE_KINDS_TRIED: Final = 8
"""Kinds of nodes of which one more is tried, the most frequent first."""
COUNTS_TRIED: Final = 12
"""Lower counts of a request that are tried."""
REREAD_PER_STEP: Final = 4
"""Number of nodes and pods that are counted again for a change, for one step."""

# Several questions.
SHAPE_STEPS: Final = 20_000
"""One of several questions, besides ``ANSWER_STEPS`` for all, and ``STEPS_PER_NODE``."""
TAINT_STEPS: Final = 1_200_000
"""Which pending pods a taint keeps from fitting."""

# Pods of a workload.
PLACE_STEPS: Final = 200_000
"""An attempt on one node for a pod of a workload."""
MOST_SCORED: Final = 60_000
"""Number of nodes that are scored in all; after that, pods go where the fewest of the workload are."""
CHOICES: Final = 8
CHOICES_STEPS: Final = 600_000
"""Number of other choices among equal nodes that are tried, and steps after which no further one begins."""
ROLES_TRIED: Final = 4
"""Of so many roles each is tried last."""
MOST_TRIED: Final = 100_000
"""Pods of a role: more than the largest clusters run."""
FEWEST_TRIED: Final = 1_000
MOST_PODS: Final = 5_000
"""Pods placed to find out how many fit."""
FOLLOWING_TRIED: Final = 64
"""Pods after those that fit, tried with each change."""
ROOM_STEPS: Final = 1_600_000
"""Looking for holders that would make room. Each try places groups as a whole."""

# Pods that are placed together.
GANG_WORK: Final = 60_000
"""Members times nodes and slices; larger groups are not tried."""
GANG_TRIES: Final = 6
SMALL_GANG_TRIES: Final = 30
"""Number of tries for a small group, with different choices where the scheduler chooses at random."""
SMALL_GANG_WORK: Final = 1_000
"""The work up to which a group counts as small."""
GANG_STEPS: Final = 3_000_000
"""All tries of a group together."""

# Other pods that want the same devices.
RIVALS_WORK: Final = 20_000
RIVALS_TRIED: Final = 300
"""Pods that are tried times nodes and slices, and pods; with more of them it stays open what they leave."""
RIVALS_TRIES: Final = 6
"""Number of tries where the scheduler chooses at random, or it is unknown which of two pods is tried first."""
RIVALS_STEPS: Final = 3_000_000
"""All these pods, each time that they are placed."""

LARGEST_NODES: Final = 50
"""Nodes on which the largest request is looked for; devices that share counters need more than the first."""


class Budget(Struct):
    """Work that a search, or all of the searches for an answer, may still do.

    ``steps`` are those that were taken, ``charged`` those of them that tried no device. What a part takes is taken from
    the ``whole`` as well, which does not limit the part. ``each`` is the limit of a search on one node.
    """

    max_steps: int = SEARCH_STEPS
    steps: int = 0
    charged: int = 0
    whole: Budget | None = None
    each: int = NODE_STEPS

    @property
    def tried(self) -> int:
        """Number of devices that were tried."""
        return self.steps - self.charged

    @property
    def left(self) -> int:
        """The steps that may still be taken."""
        return max(0, self.max_steps - self.steps)

    def part(self, steps: int | None = None, each: int = NODE_STEPS) -> Budget:
        """A share of what is left, by default all of it."""
        return Budget(self.left if steps is None else min(steps, self.left), whole=self, each=each)

    def search(self) -> Budget:
        """The share of one search: at least a step, so that what needs none is answered as long as anything is left."""
        spent = self.whole is not None and not self.whole.left
        return Budget(0 if spent else max(1, min(self.each, self.left)), whole=self)

    def tick(self) -> None:
        """Count one device tried.

        Raises:
            SearchBudgetExceeded: the budget is used up.
        """
        self.steps += 1
        if self.steps >= self.max_steps:
            raise SearchBudgetExceeded

    def charge(self, steps: int) -> None:
        """Count work of another kind. The next ``tick`` tells whether it was too much."""
        self._take(steps, steps)

    def add(self, part: Budget) -> None:
        """Count what was taken from another budget."""
        self._take(part.steps, part.charged)

    def _take(self, steps: int, charged: int) -> None:
        self.steps += steps
        self.charged += charged
        if self.whole is not None:
            self.whole._take(steps, charged)


def unlimited(each: int = NODE_STEPS) -> Budget:
    """A budget that only counts; its searches have a limit."""
    return Budget(sys.maxsize, each=each)


def of_answer(nodes: int, whole: Budget | None = None) -> Budget:
    """The budget of one answer in a cluster of so many nodes."""
    return Budget(ANSWER_STEPS + STEPS_PER_NODE * nodes, whole=whole)
