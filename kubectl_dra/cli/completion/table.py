"""The command line as data, so that completion needs neither typer nor the commands; ``make completions`` writes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kubectl_dra.cli.completion.kinds import Kind

_TABLE: Final[dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_bytes())
COMMANDS: Final[dict[str, str]] = _TABLE["commands"]
"""Command to its summary."""
ARGUMENTS: Final[dict[str, Sequence[tuple[Kind, bool]]]] = _TABLE["arguments"]
"""Command to its arguments: kind (or the words themselves), and whether it may be repeated."""
FLAGS: Final[dict[str, dict[str, tuple[Kind, bool, str, str]]]] = _TABLE["flags"]
"""Command to its flags: kind (or the words; empty takes no value), repeatable, short form, summary."""
VALUES: Final[dict[str, Sequence[tuple[str, str]]]] = _TABLE["values"]
"""Kind to its values with their meaning, where they do not depend on a cluster."""
