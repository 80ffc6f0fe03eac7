"""The documentation of a code, for ``docs/changes`` and ``migrate --code``, and its path."""

from __future__ import annotations

from typing import Final

from kubectl_dra.migrate.model import ChangePage

_SAFETY: Final = {
    "safe": "Safe: the devices that a pod gets, and where it can run, stay what they were.",
    "unsafe": "Unsafe: likely what is meant, but for people to judge. `--unsafe` makes it.",
    "note": "A note: nothing is changed for it.",
    "refusal": "A refusal: nothing is changed, and the exit code is 1.",
}


def page_of(code: str) -> str:
    """The path of a code's page, from the root of the project."""
    return f"docs/changes/{code}.md"


def page(one: ChangePage) -> str:
    """A code's page, as Markdown."""
    text = f"# {one.code}: {one.title}\n\n`{one.name}`\n\n{_SAFETY[one.safety]}\n\n{one.why}\n"
    if one.before:
        text += f"\n## Before\n\n```yaml\n{one.before.rstrip()}\n```\n"
    if one.after:
        text += f"\n## {'Instead' if one.safety in ('note', 'refusal') else 'After'}\n\n```yaml\n"
        text += f"{one.after.rstrip()}\n```\n"
    return text
