"""The base class of a rule, whose documentation stands beside its check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypedDict, Unpack

from kubectl_dra.api.releases import EVERY, Releases
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data import code_pages
from kubectl_dra.data.code_pages import CodePage
from kubectl_dra.lint.finding import Fix, LintFinding, Safety, Severity

if TYPE_CHECKING:
    from kubectl_dra.lint.context import Context, Item

Scope = Literal["object", "set"]
ANY_KIND = ("*",)
"""For ``kinds``: every item: all of resource.k8s.io, pods and pod templates, workloads, quotas, namespaces."""


class TextPart(Protocol):
    """A part of an expression, from one character to another."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


class RuleFacts(TypedDict, total=False):
    """What a rule says in its class statement.

    ``code`` is DRA and three digits: 1 structure and API, 2 selectors, 3 requests and constraints, 4 wiring
    between objects, 5 lifecycle and gates, 6 drivers, 7 device plugins, 8 taints and admin access, 9 files.
    ``name`` is in lower case with hyphens. ``kinds`` are the kinds that are checked; "Pod" means pods and the
    pod templates of workloads. ``releases`` are those for which the rule holds. ``scope`` is "set" if the rule
    examines ``context.given``: it then runs after all files are read. ``migrates``: ``kubectl dra migrate`` makes the
    change, or says what is in the way. ``otherwise`` are the severities that a finding can have besides ``severity``,
    each with where. ``fixed_where`` says which findings can be fixed if not all can; ``some_safe``: some fixes are
    safe though ``fixable`` is unsafe.
    ``told_by`` are the codes of rules that tell the cause of what this one finds: where one of them has a finding in
    the same place that is not milder, its own is left out.
    """

    code: str
    name: str
    severity: Severity
    kinds: tuple[str, ...]
    releases: Releases
    fixable: Safety
    scope: Scope
    migrates: bool
    otherwise: Mapping[Severity, str]
    fixed_where: str
    some_safe: bool
    told_by: tuple[str, ...]


class Rule:
    """The base of all rules. A code never changes its meaning; a removed rule takes its code with it.

    A rule's docstring is for readers of the code; its texts are on its page, ``docs/rules/CODE.md``.
    """

    code: ClassVar[str] = ""
    name: ClassVar[str] = ""
    severity: ClassVar[Severity] = "error"
    kinds: ClassVar[tuple[str, ...]] = ()
    releases: ClassVar[Releases] = EVERY
    fixable: ClassVar[Safety] = "none"
    scope: ClassVar[Scope] = "object"
    migrates: ClassVar[bool] = False
    otherwise: ClassVar[Mapping[Severity, str]] = MappingProxyType({})
    fixed_where: ClassVar[str] = ""
    some_safe: ClassVar[bool] = False
    told_by: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **facts: Unpack[RuleFacts]) -> None:
        for fact, value in facts.items():
            setattr(cls, fact, value)

    @classmethod
    def page(cls) -> CodePage:
        """Its page."""
        return code_pages.page("rules", cls.code)

    @classmethod
    def title(cls) -> str:
        """The rule in a few words."""
        return cls.page().title

    @classmethod
    def severities(cls) -> tuple[Severity, ...]:
        """What a finding can be, the usual first."""
        return cls.severity, *cls.otherwise

    @classmethod
    def safeties(cls) -> tuple[Safety, ...]:
        """What a fix of a finding can be; empty if none is ever made."""
        if cls.fixable == "none":
            return ()
        return ("safe", "unsafe") if cls.some_safe else (cls.fixable,)

    @classmethod
    def why(cls) -> str:
        """The consequence of leaving the finding as it is."""
        return cls.page().sections["Why it matters"]

    @classmethod
    def bad(cls) -> str:
        """A manifest with the mistake."""
        return cls.page().code("Example")

    @classmethod
    def good(cls) -> str:
        """The same without it."""
        return cls.page().code("Instead")

    def check(self, context: Context) -> Iterator[LintFinding]:
        """Yield what is wrong with ``context.item``."""
        raise NotImplementedError

    def part(
        self,
        path: FieldPath,
        part: TextPart,
        message: str,
        *,
        fix: Fix | str | None = None,
        severity: Severity | None = None,
    ) -> LintFinding:
        """A finding about a part of the text at a path."""
        return self.finding(path, message, fix=fix, cel=(part.start, part.end), severity=severity)

    def finding(
        self,
        path: FieldPath,
        message: str,
        *,
        fix: Fix | str | None = None,
        cel: tuple[int, int] | None = None,
        on_key: bool = False,
        severity: Severity | None = None,
        item: Item | None = None,
        field: str = "",
        detail: str = "",
    ) -> LintFinding:
        """A finding of this rule. A ``fix`` given as text is only advice."""
        return LintFinding(
            self.code,
            severity or self.severity,
            path,
            message,
            Fix(fix) if isinstance(fix, str) else fix,
            cel,
            on_key,
            item,
            field,
            detail,
        )
