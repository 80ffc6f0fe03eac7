"""README shows what the tool really prints. ``python -m tests.test_readme`` writes its generated blocks again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- (?P<kind>example|help): (?P<what>[^>]+) -->\n```\n)(?P<text>.*?)(```)", re.DOTALL)


def generated(kind: str, what: str) -> str:
    """The text of one block: an example's command and golden output, or a command's help."""
    if kind == "example":
        folder = ROOT / what
        return f"$ {(folder / 'command').read_text().strip()}\n{(folder / 'expected.txt').read_text()}"
    arguments = [sys.executable, "-m", "kubectl_dra", *what.split()[2:], "--help"]
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    return done.stdout.strip("\n") + "\n"


def rewritten(text: str) -> str:
    """README with its generated blocks as they should be."""
    return BLOCK.sub(lambda match: match[1] + generated(match["kind"], match["what"].strip()) + match[5], text)


def test_readme_shows_the_real_output() -> None:
    text = README.read_text()
    assert len(BLOCK.findall(text)) == 2
    assert rewritten(text) == text, "run: python -m tests.test_readme"


def test_readme_links_exist() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text()):
        assert (ROOT / target).exists(), target


def test_make_targets_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z]+)", README.read_text(), re.MULTILINE)) <= targets


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text()))
