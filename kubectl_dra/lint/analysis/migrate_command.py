"""The command that does what a finding asks for, where it is another of kubectl-dra's."""

from __future__ import annotations

from kubectl_dra.lint.context import Item
from kubectl_dra.manifests.inputs import argument


def migrate(item: Item) -> str:
    """``kubectl dra migrate FILE``, for the file that the item is in; what has no file comes in as it came here."""
    return f"kubectl dra migrate {argument(item.place.file)}"
