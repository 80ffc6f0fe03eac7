"""Problems of files rather than objects. The engine finds them; this module documents them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import LintFinding
from kubectl_dra.lint.rule import Rule


class FileRule(Rule):
    """A rule about a whole file."""

    kinds = ()

    def check(self, context: Context) -> Iterator[LintFinding]:
        return iter(())


class Unreadable(FileRule):
    """Text that is not a manifest."""

    code = "DRA901"
    name = "unreadable-manifest"
    severity = "error"


class DuplicateKey(FileRule):
    """A duplicate key."""

    code = "DRA902"
    name = "duplicate-key"
    severity = "warning"


class UnusedSuppression(FileRule):
    """A comment that silences nothing."""

    code = "DRA903"
    name = "unused-suppression"
    severity = "warning"


class BadSuppression(FileRule):
    """A comment that cannot be understood."""

    code = "DRA904"
    name = "malformed-suppression"
    severity = "warning"


class TooLarge(FileRule):
    """A file that is too large to check."""

    code = "DRA905"
    name = "file-too-large"
    severity = "error"


class Unavailable(FileRule):
    """A file or directory that cannot be read."""

    code = "DRA906"
    name = "file-not-readable"
    severity = "error"


RULES: Final[tuple[type[Rule], ...]] = (
    Unreadable,
    DuplicateKey,
    UnusedSuppression,
    BadSuppression,
    TooLarge,
    Unavailable,
)
