"""One word for one thing: what is printed has none of the words that the glossary replaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
GLOSSARY: Final = ROOT / "docs" / "glossary.md"
PRINTED: Final = (
    *("tests/golden/*.txt", "tests/golden/html/*.txt", "kubectl_dra/cli/help/*.txt", "docs/commands/*.md"),
    *("docs/causes/*.md", "docs/usage.md", "docs/start.md", "docs/pending.md", "docs/fit.md", "README.md"),
)


def replaced() -> Iterator[tuple[str, str]]:
    """The words of the second table: what is not said, and what is instead."""
    table = GLOSSARY.read_text().partition("## One word for one thing")[2]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == 3 and cells[0] not in ("word", "---"):
            yield from ((wrong.strip(), cells[0]) for wrong in cells[1].split(","))


WORDS: Final = dict(replaced())


def test_the_table_is_read() -> None:
    assert WORDS["nearest:"] == "did you mean" and WORDS["UNUSED"] == "idle" and len(WORDS) > 8


@pytest.mark.parametrize("wrong", sorted(WORDS.keys() - {"url"}))
def test_nothing_that_is_printed_has_the_other_word(wrong: str) -> None:
    pattern = re.compile(rf"(?<![\w-]){re.escape(wrong)}(?![\w-])".replace(r"\ ", r"\s+"))
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for part in PRINTED
        for path in ROOT.glob(part)
        for match in pattern.finditer(path.read_text())
    ]
    assert not found, f"say {WORDS[wrong]}"


def test_pages_are_called_so_in_every_report() -> None:
    # Of a defect of Kubernetes that a message names, message.json has the address of the issue.
    schemas = (path for path in (ROOT / "schemas").glob("*.json") if path.name != "message.json")
    assert [path.name for path in schemas if re.search(r'"url"\s*:', path.read_text())] == []
