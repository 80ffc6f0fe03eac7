"""Where the project's pages are on the web."""

from __future__ import annotations

from typing import Final

REPOSITORY: Final = "https://github.com/kubectl-dra/kubectl-dra"
DOCS: Final = f"{REPOSITORY}/blob/main/docs"
"""The base of all links to the documentation: its pages, as they are in the repository."""


def path_of_page(folder: str, code: str) -> str:
    """The path of a code's page in ``rules`` or ``changes``, from the root of the project."""
    return f"docs/{folder}/{code}.md"


def page_of_causes() -> str:
    """The list of all causes."""
    return f"{DOCS}/causes/README.md"


def page_of_cause(code: str) -> str:
    """The page of a cause of ``explain``."""
    return f"{DOCS}/causes/{code}.md"
