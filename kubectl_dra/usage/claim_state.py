"""The states of a claim. Free of imports, so that the command line can name them at once."""

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
"""States of claims whose devices nobody uses."""
