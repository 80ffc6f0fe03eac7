"""What a rule finds, by object path; its place in the text is computed later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.manifests.changes import Change, Path

if TYPE_CHECKING:
    from kubectl_dra.lint.context import Item

Severity = Literal["error", "warning", "info"]
"""error: the API server rejects it, or it can never work. warning: it is likely to fail. info: worth knowing."""

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")
"""Worst first."""

Safety = Literal["safe", "unsafe", "none"]
"""safe: the meaning stays, or the manifest was rejected before and can only mean this. unsafe: a likely guess."""


class Fix(Struct, frozen=True):
    """What to change. ``title`` is an imperative sentence for people; without ``changes`` it is only advice.

    All changes are made, or none. ``safety`` must be the rule's ``fixable``, or safer.
    """

    title: str
    changes: tuple[Change, ...] = ()
    safety: Safety = "none"


class LintFinding(Struct, frozen=True):
    """One thing that is wrong in one object.

    ``path`` leads from the item's root to the culprit, in v1's shape or the manifest's own; missing fields
    are shown at their nearest parent. ``cel`` is a range of code points in the text at the path. ``on_key``
    marks the key instead of the value. ``item`` is the item with the finding, if not the one being checked.
    ``field`` is the field path as the API server writes it, if it differs from ``path``; ``detail`` names the
    server's own rule and reason.
    """

    code: str
    severity: Severity
    path: Path
    message: str
    fix: Fix | None = None
    cel: tuple[int, int] | None = None
    on_key: bool = False
    item: Item | None = None
    field: str = ""
    detail: str = ""

    def at_home(self) -> LintFinding:
        """The finding without ``item``, for callers that know its item."""
        return self if self.item is None else replace(self, item=None)
