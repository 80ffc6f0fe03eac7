"""The command that carries out a finding's recommendation, if ``migrate`` can."""

from __future__ import annotations

from kubectl_dra.lint.context import Item
from kubectl_dra.manifests.inputs import argument


def migrate(item: Item) -> str:
    """``kubectl dra migrate FILE`` for the item's file; other inputs are given as they were here."""
    return f"kubectl dra migrate {argument(item.place.file)}"
