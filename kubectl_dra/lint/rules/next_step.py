"""The command that does what a finding asks for, where it is another of kubectl-dra's."""

from __future__ import annotations

import shlex

from kubectl_dra.lint.context import Item


def migrate(item: Item) -> str:
    """``kubectl dra migrate FILE``, for the file that the item is in."""
    file = item.place.file
    # What has no file of its own, such as standard input, comes in as it came here.
    return f"kubectl dra migrate {'-' if file.startswith('<') or file.endswith(')') else shlex.quote(file)}"
