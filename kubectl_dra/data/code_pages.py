"""The pages of causes, rules and changes: Markdown of the documentation, read when somebody asks for it.

A page is its title (``# CODE: title``), some lines, and sections. What the program knows better, such as a sample of
its output or the severity of a rule, is written into the page by ``make docs``; everything else is written by people.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from kubectl_dra.errors import InputError

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


class CodePage(NamedTuple):
    """A page: its whole text, its title without the code, the paragraphs before the first section, and the sections."""

    text: str
    title: str
    head: tuple[str, ...]
    sections: Mapping[str, str]

    def code(self, *names: str) -> str:
        """The first block of code of the first of these sections that the page has; empty if it has none."""
        body = next((self.sections[name] for name in names if name in self.sections), "")
        return next((code for _, code in blocks(body)), "")


@cache
def page(folder: str, code: str) -> CodePage:
    """The page of a code in ``causes``, ``rules`` or ``changes``. Raises InputError where the installation lacks it."""
    file = packed(folder) / f"{code}.md"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"the page of {code} is missing from this installation: {file}: {error.strerror}") from error
    return parsed(text)


def parsed(text: str) -> CodePage:
    """The parts of a page."""
    before, *rest = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    heading, _, head = before.partition("\n")
    sections = {name: body.strip("\n") for name, body in zip(rest[::2], rest[1::2], strict=True)}
    paragraphs = tuple(part.strip("\n") for part in head.split("\n\n") if part.strip())
    return CodePage(text, heading.removeprefix("# ").partition(": ")[2], paragraphs, sections)


def blocks(section: str) -> list[tuple[str, str]]:
    """The blocks of code of a section, each with the paragraph above it."""
    matches = re.findall(r"(?:([^\n]*)\n\n)?^```\w+\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)
    return [(above.strip(), code) for above, code in matches]


def replaced(text: str, name: str, body: str) -> str:
    """A page with another text in a section. Raises ValueError where the page has no such section."""
    pattern = re.compile(rf"^## {re.escape(name)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if pattern.search(text) is None:
        raise ValueError(f"the page has no section '{name}'")
    return pattern.sub(lambda match: f"## {name}\n\n{body.rstrip()}\n\n", text).rstrip("\n") + "\n"
