"""Brings the pages of rules and their index up to date. ``python -m tools.docs.rules docs/rules``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kubectl_dra.api.releases import EVERY
from kubectl_dra.data.code_pages import replaced
from kubectl_dra.lint.rule import ANY_KIND, Rule
from kubectl_dra.lint.rules import FAMILIES, RULES
from tools.docs.folder import write

_SAFETY: Final = {
    "safe": "`--fix` repairs it{where}.",
    "unsafe": "`--fix --unsafe-fixes` repairs it{where}; read what it changes.",
    "safe or unsafe": "`--fix`, or `--fix --unsafe-fixes` for a guess, repairs it{where}; read what it changes.",
    "": "It is not repaired automatically.",
}
_MIGRATES: Final = (
    "`kubectl dra migrate FILE` shows the change, or says what is in the way; with `--write` it makes it."
)


def pages() -> Iterator[tuple[str, str]]:
    """(file name, text) of every page, the index first."""
    yield "README.md", _index()
    for rule in RULES:
        yield f"{rule.code}.md", _page(rule)


def _page(rule: type[Rule]) -> str:
    facts = f"`{rule.name}` · {_severity(rule)} · {_kinds(rule)}{_releases(rule)}"
    text = re.sub(r"\A(.*\n\n)((?!#).+\n\n)?", lambda match: f"{match[1]}{facts}\n\n", rule.page().text, count=1)
    if "\n## Fix\n" not in text:
        text = f"{text.rstrip()}\n\n## Fix\n"
    ignored = f"To accept one: `# kubectl-dra: ignore[{rule.code}] reason`, above it or on its line."
    return replaced(text, "Fix", f"{_MIGRATES if rule.migrates else _fix(rule)}\n\n{ignored}")


def _severity(rule: type[Rule]) -> str:
    return ", ".join([rule.severity, *(f"or {severity} where {where}" for severity, where in rule.otherwise.items())])


def _fix(rule: type[Rule]) -> str:
    return _SAFETY[" or ".join(rule.safeties())].format(where=f" where {rule.fixed_where}" if rule.fixed_where else "")


def _kinds(rule: type[Rule]) -> str:
    if rule.kinds == ANY_KIND:
        return "all kinds"
    return ", ".join(rule.kinds) if rule.kinds else "files"


def _releases(rule: type[Rule]) -> str:
    return "" if rule.releases == EVERY else f" · Kubernetes {rule.releases}"


def _index() -> str:
    lines = [
        "# Rules",
        "",
        "What `kubectl dra lint` finds. A code never changes its meaning. Findings can be [accepted](../accepting.md). "
        "`make docs` writes this list.",
        "",
    ]
    for prefix, family in FAMILIES.items():
        mine = [rule for rule in RULES if rule.code.startswith(prefix)]
        if not mine:
            continue
        lines += [f"## {family}", "", "| code | name | severity | fix | meaning |", "|---|---|---|---|---|"]
        lines += [
            f"| [{rule.code}]({rule.code}.md) | `{rule.name}` | {', '.join(rule.severities())} | "
            f"{', '.join(rule.safeties())} | {rule.title()} |"
            for rule in mine
        ]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    write(Path(sys.argv[1]), pages())
