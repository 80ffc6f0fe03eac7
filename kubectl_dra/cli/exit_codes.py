"""The exit codes of all commands. What each means for a command is in its help; 0 is yes, or nothing is wrong."""

from __future__ import annotations

from typing import Final

EXIT_NO: Final = 1
"""The answer is no, or something was found, or is left to do."""
EXIT_ERROR: Final = 2
"""Usage, input, connection."""
EXIT_UNDETERMINED: Final = 3
"""A deciding fact could not be seen, or is not modelled."""
EXIT_INTERRUPTED: Final = 130
"""Ctrl-C, as a shell says it."""
