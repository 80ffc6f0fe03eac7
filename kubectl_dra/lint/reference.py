"""Writes one page per rule under ``docs/rules``, from the rule classes; and where such a page is to be found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kubectl_dra.lint.registry import FAMILIES, RULES
from kubectl_dra.lint.rule import ANY_KIND, Rule
from kubectl_dra.pages import write

_SAFETY: Final = {
    "safe": "`--fix` repairs it.",
    "unsafe": "`--unsafe-fixes` repairs it; read what it changes.",
    "none": "It is not repaired automatically.",
}


def page_of(code: str) -> str:
    """Where the rule is described, from the root of the project."""
    return f"docs/rules/{code}.md"


def title(rule: type[Rule]) -> str:
    """The rule in a few words: its docstring, else its name."""
    lines = (rule.__doc__ or "").strip().splitlines()
    return lines[0].rstrip(".") if lines and rule.__doc__ != Rule.__doc__ else rule.name.replace("-", " ").capitalize()


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of every page, the index first."""
    yield "README.md", _index()
    for rule in RULES:
        yield f"{rule.code}.md", page(rule)


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


def _index() -> str:
    lines = [
        "# Rules",
        "",
        "What `kubectl dra lint` finds. A code never changes its meaning. These pages are generated (`make docs`).",
        "",
    ]
    for prefix, family in FAMILIES.items():
        mine = [rule for rule in RULES if rule.code.startswith(prefix)]
        if not mine:
            continue
        lines += [f"## {family}", "", "| code | name | severity | fix | meaning |", "|---|---|---|---|---|"]
        lines += [
            f"| [{rule.code}]({rule.code}.md) | `{rule.name}` | {rule.severity} | "
            f"{'' if rule.fixable == 'none' else rule.fixable} | {title(rule)} |"
            for rule in mine
        ]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    write(Path(sys.argv[1]), pages())
