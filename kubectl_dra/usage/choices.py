"""What can be chosen on the command line: states of a claim, and what ``top`` counts. Free of imports, so that they can
be named at once.
"""

from __future__ import annotations

from enum import StrEnum


class ClaimState(StrEnum):
    """Where a claim is on its way, in the order in which a summary counts them."""

    PENDING = "pending"
    """A pod waits for its devices."""
    NO_POD = "no-pod"
    """No pod names it, so that nothing is allocated for it."""
    BINDING = "binding"
    """Its devices are chosen, and a driver prepares them before the pod is bound."""
    UNUSED = "unused"
    """It holds devices, and nothing is said to use them."""
    STARTING = "starting"
    """It holds devices for a pod that does not run yet."""
    IN_USE = "in-use"
    """A pod that runs uses its devices."""
    RESERVED = "reserved"
    """It holds devices for a consumer of which nothing more is known."""
    ENDED = "ended"
    """It holds devices for pods that have ended, or do not exist any more."""
    TERMINATING = "terminating"
    """The claim, or the last pod that uses it, is being deleted."""
    UNKNOWN = "unknown"
    """Nothing is allocated for it, and whether a pod waits for it could not be read."""


UNUSED = (ClaimState.UNUSED, ClaimState.ENDED)
"""States of claims whose devices are idle."""


# By what use is counted and sorted. Free of imports, so that the command line can name it at once.


class UseBy(StrEnum):
    """What the rows of ``top`` are."""

    nodes = "nodes"
    classes = "classes"
    namespaces = "namespaces"
    owners = "owners"
    claims = "claims"


class UseSort(StrEnum):
    """What rows are sorted by: names from the first to the last, numbers from the largest down."""

    name = "name"
    devices = "devices"
    free = "free"
    held = "held"
    idle = "idle"
    pending = "pending"


class ClaimSort(StrEnum):
    """What ``claims`` are sorted by: names from the first to the last, devices from the most down, the oldest first."""

    name = "name"
    state = "state"
    devices = "devices"
    age = "age"
