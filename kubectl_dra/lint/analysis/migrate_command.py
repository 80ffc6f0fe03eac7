"""The command line that does what a finding recommends, where ``migrate`` can do it."""

from __future__ import annotations

from kubectl_dra.lint.context import Item
from kubectl_dra.manifests.inputs import argument


def migrate(item: Item) -> str:
    """``kubectl dra migrate FILE``, for the file that the item is in; what has no file comes in as it came here."""
    return f"kubectl dra migrate {argument(item.place.file)}"
