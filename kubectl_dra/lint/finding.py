"""What a rule finds, by object path; its place in the text is computed later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_dra.api.releases import Release
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Change, Set

if TYPE_CHECKING:
    from kubectl_dra.cluster.snapshot import Gap
    from kubectl_dra.lint.context import Item
    from kubectl_dra.lint.upgrade import Upgrade

Severity = Literal["error", "warning", "info"]
"""error: the API server rejects it, or it can never work. warning: it is likely to fail. info: worth knowing."""
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")
"""Worst first."""
Safety = Literal["safe", "unsafe", "none"]
"""safe: the meaning stays, or the manifest was rejected before and can only mean this. unsafe: a likely guess.
none: nothing makes the changes by itself; where there are any, an editor offers them to somebody who looks at them."""


class AsWritten(Struct, frozen=True):
    """As the value of a ``Set``: the characters of the scalar there, which a rule does not see, as a string."""


class Fix(Struct, frozen=True):
    """What to change. ``title`` is a sentence for people; without ``changes`` it is only advice.

    All changes are made, or none. ``safety`` must be the rule's ``fixable``, or safer. ``command`` is one to paste; the
    title leads to it. ``block``: what the title says to write, as lines of YAML. ``expression``: the CEL in the title,
    which is shown on one line, however long.
    """

    title: str
    changes: tuple[Change, ...] = ()
    safety: Safety = "none"
    command: str = ""
    block: tuple[str, ...] = ()
    expression: str = ""

    @classmethod
    def sure(cls, title: str, *changes: Change, expression: str = "") -> Fix:
        """Changes that are safe; without any it is only advice."""
        return cls(title, changes, "safe" if changes else "none", expression=expression)

    @classmethod
    def guess(cls, title: str, *changes: Change, expression: str = "") -> Fix:
        """Changes that are likely meant; without any it is only advice."""
        return cls(title, changes, "unsafe" if changes else "none", expression=expression)

    @classmethod
    def named(cls, path: FieldPath, near: Sequence[str]) -> Fix | None:
        """To write the first of the names that are like the one at a path; None if there is none."""
        return cls.guess(f"Did you mean {near[0]}?", Set(path, near[0])) if near else None

    @property
    def advice(self) -> Fix:
        """The same for people alone, without changes."""
        return replace(self, changes=(), safety="none")


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
    path: FieldPath
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


# The result of a run of lint, ready to report: everything is located, only rule texts must be looked up.


class LocatedFinding(Struct, frozen=True):
    """A finding with its position.

    Lines and columns count from 1, in characters; the end is after the last one; offsets count characters of
    the text without its byte order mark. ``excerpt`` is the text of the first line, of a long one
    only what is around the place: ``excerpt_start`` characters come before it. ``object`` is the kind
    with namespace and name. ``advice`` says what to change, ``safety`` whether ``changes`` do it.
    ``document`` and ``path`` lead to the culprit in the file; ``root`` is the path of the item's own root.
    ``lines`` are the lines where its enclosing parts begin; a suppression there covers it. ``command``,
    ``block`` and ``expression`` are those of the fix. ``obstacle`` says why the changes cannot be made in this text.
    """

    code: str
    severity: Severity
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    offset: int
    end_offset: int
    object: str
    field: str
    message: str
    advice: str = ""
    safety: Safety = "none"
    detail: str = ""
    excerpt: str = ""
    excerpt_start: int = 0
    document: int = 0
    path: FieldPath = ()
    root: FieldPath = ()
    changes: tuple[Change, ...] = ()
    lines: tuple[int, ...] = ()
    command: str = ""
    block: tuple[str, ...] = ()
    expression: str = ""
    obstacle: str = ""

    @property
    def promised(self) -> Safety:
        """The safety of a fix that can be made in this text; none for any other."""
        return "none" if self.obstacle else self.safety

    @property
    def told(self) -> str:
        """The message for those who show no field: the API server's own say what is wrong with one, not with which."""
        return f"{self.field}: {self.message}" if self.detail and self.field else self.message

    @property
    def advised(self) -> str:
        """The advice with its command, for those who show both as one text."""
        return f"{self.advice} {self.command}" if self.command else self.advice

    @property
    def order(self) -> tuple[int, int, int, int, str, str]:
        """Sorts findings of one file by place."""
        return self.line, self.column, self.end_line, self.end_column, self.code, self.message


_SHOWN: Final = 3
"""So many reasons are named for which answers cannot be compared."""


class SelectorOpinion(Struct, frozen=True):
    """Number of evaluations that agree; those that differ, in words; number not compared, by reason."""

    expressions: int
    devices: int
    agree: int
    differ: tuple[str, ...]
    not_comparable: int
    reasons: tuple[tuple[str, int], ...]

    @property
    def told(self) -> str:
        """One sentence for people."""
        if not self.expressions:
            return "--verify: there is no selector that compiles"
        if not self.devices:
            return "--verify: there are no devices: give ResourceSlices, or use --snapshot or --live"
        text = f"--verify: {self.expressions} selectors on {self.devices} devices by cel-python: "
        text += f"{self.agree} answers agree, {len(self.differ)} differ"
        if self.not_comparable:
            why = "; ".join(f"{reason}: {number}" for reason, number in self.reasons[:_SHOWN])
            text += f", {self.not_comparable} cannot be compared ({why})"
        return text


class Report(Struct, frozen=True):
    """The findings of a run, by file in input order and then by place.

    ``files`` are the names of the files that were read, ``objects`` the (file, title) of objects that rules
    examine, ``unchecked`` the numbers of the others by kind, ``manifests`` counts all Kubernetes objects. ``notes``
    are sentences about what was left out, ``left_out`` counts the files left out as a whole. ``defects`` are failures
    of lint itself. ``suppressed`` counts findings silenced by comments in the files. ``second_opinion`` is set if
    requested, ``upgrade`` if one was judged. ``unread``: the gaps of the cluster because of which rules could not
    decide. ``not_given`` are the claims, templates and classes that are used and no file has. ``checked_partly`` are
    the (file, title) of objects of which the API server validates nothing before it can decode them.
    """

    findings: tuple[LocatedFinding, ...]
    files: tuple[str, ...]
    objects: tuple[tuple[str, str], ...]
    manifests: int
    suppressed: int
    notes: tuple[str, ...]
    defects: tuple[str, ...]
    release: Release
    features: frozenset[str]
    second_opinion: SelectorOpinion | None = None
    left_out: int = 0
    upgrade: Upgrade | None = None
    unread: tuple[Gap, ...] = ()
    unchecked: Mapping[str, int] = field(default_factory=dict)
    not_given: tuple[str, ...] = ()
    checked_partly: tuple[tuple[str, str], ...] = ()

    def counts(self) -> dict[str, int]:
        """Findings by severity, worst first."""
        out = {"error": 0, "warning": 0, "info": 0}
        for finding in self.findings:
            out[finding.severity] += 1
        return out
