"""Errors of an allocation attempt, by the scheduler's classes."""

from __future__ import annotations

from collections.abc import Mapping


class AllocationError(Exception):
    """A fatal error: the scheduler gives up on the pod in this cycle, whatever other nodes offer.

    ``check`` is a stable word for what failed, ``subject`` is the object concerned, and ``detail`` holds
    facts for an explanation (claim, request, class, selector index, device id).
    """

    def __init__(
        self, message: str, check: str = "", subject: str = "", detail: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.check = check
        self.subject = subject
        self.detail = detail or {}


class SearchBudgetExceeded(Exception):
    """The search took more steps than allowed, so the answer is undetermined.

    ``would_time_out``: it got far enough to say that the scheduler's search would probably time out as well.
    """

    def __init__(self, would_time_out: bool = False) -> None:
        super().__init__("search budget exceeded")
        self.would_time_out = would_time_out


class NodeRejected(Exception):
    """The node cannot serve the claims, for a reason found before the search. Other nodes may."""
