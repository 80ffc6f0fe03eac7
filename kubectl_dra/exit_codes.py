"""The exit codes of all commands, and the verdicts that give them. What a code means for a command is in its help."""

from __future__ import annotations

from enum import Enum
from typing import Final

EXIT_YES: Final = 0
"""The answer is yes, nothing is wrong, or there was no question."""
EXIT_NO: Final = 1
"""The answer is no, or something was found, or is left to do."""
EXIT_ERROR: Final = 2
"""Usage, input, connection."""
EXIT_UNDETERMINED: Final = 3
"""A deciding fact could not be seen, or is not modelled."""
EXIT_INTERRUPTED: Final = 130
"""Ctrl-C, as a shell says it."""


class Verdict(Enum):
    """The answer of a pod, a claim or a workload, as a word; see also ``Diagnosis.exit_code``."""

    ALLOCATED = "allocated"
    SCHEDULABLE = "can-be-scheduled"
    PARTLY = "can-be-scheduled-in-part"
    NOT_STARTING = "does-not-start"
    """The scheduler places it, and it does not start there."""
    UNSCHEDULABLE = "cannot-be-scheduled"
    UNDETERMINED = "undetermined"

    @property
    def word(self) -> str:
        """The word as people read it."""
        return self.value.replace("-", " ")

    @property
    def exit_code(self) -> int:
        """What the command returns: a part that fits, or a pod that does not start, is a no."""
        if self is Verdict.UNDETERMINED:
            return EXIT_UNDETERMINED
        return EXIT_YES if self in (Verdict.ALLOCATED, Verdict.SCHEDULABLE) else EXIT_NO
