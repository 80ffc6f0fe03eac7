"""Files that are no Python: packed into the program, or beside the package in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_IN_CHECKOUT: Final = {
    "schemas": "schemas",
    "examples": "examples/explain",
    "causes": "docs/causes",
    "rules": "docs/rules",
    "changes": "docs/changes",
}


def packed(name: str) -> Path:
    """The folder of such files, which need not exist in a damaged installation. Raises KeyError for an unknown name."""
    installed = _PACKAGE / f"_{name}"
    return installed if installed.is_dir() else _PACKAGE.parent / _IN_CHECKOUT[name]
