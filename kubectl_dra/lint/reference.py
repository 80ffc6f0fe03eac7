"""The page of a rule, for ``docs/rules`` and ``lint --rule``, and its path."""

from __future__ import annotations

from typing import Final

from kubectl_dra.lint.rule import ANY_KIND, Rule

_SAFETY: Final = {
    "safe": "`--fix` repairs it.",
    "unsafe": "`--unsafe-fixes` repairs it; read what it changes.",
    "none": "It is not repaired automatically.",
}


def page_of(code: str) -> str:
    """The path of a rule's page, from the root of the project."""
    return f"docs/rules/{code}.md"


def title(rule: type[Rule]) -> str:
    """The rule in a few words: its docstring, else its name."""
    lines = (rule.__doc__ or "").strip().splitlines()
    return lines[0].rstrip(".") if lines and rule.__doc__ != Rule.__doc__ else rule.name.replace("-", " ").capitalize()


def page(rule: type[Rule]) -> str:
    """The page of a rule, as Markdown."""
    return (
        f"# {rule.code}: {title(rule)}\n\n"
        f"`{rule.name}` · {rule.severity} · {_kinds(rule)}{_releases(rule)}\n\n"
        f"## Why it matters\n\n{rule.why}\n\n"
        f"## Example\n\n```yaml\n{rule.bad.rstrip()}\n```\n\n"
        f"## Instead\n\n```yaml\n{rule.good.rstrip()}\n```\n\n"
        f"## Fix\n\n{_SAFETY[rule.fixable]}\n\n"
        f"To accept one: `# kubectl-dra: ignore[{rule.code}] reason`, above it or on its line.\n"
    )


def _kinds(rule: type[Rule]) -> str:
    if rule.kinds == ANY_KIND:
        return "all kinds"
    return ", ".join(rule.kinds) if rule.kinds else "files"


def _releases(rule: type[Rule]) -> str:
    first, last = rule.releases
    if (first, last) == (31, None):
        return ""
    return f" · Kubernetes 1.{first} {'and later' if last is None else f'to 1.{last}'}"
