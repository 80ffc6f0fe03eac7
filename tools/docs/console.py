"""Commands in Markdown pages, run as a reader would run them, and what they print.

A block is marked with where its commands are run, and with the exit code of the last one where that is not 0:

    <!-- run in examples/explain/fits; exit 1 -->
    ```console
    $ kubectl dra explain pod/a --snapshot cluster.yaml
    ...
    ```

They run in a copy of the directory, 80 columns wide, with no cluster and no kubeconfig. What is printed is standard
output and then standard error. ``…`` in a page stands for anything, within a line or over several. Blocks marked ``run
in a cluster`` are run by tests that have a control plane, and show standard output.

``python -m tools.docs.console [PAGE...]`` writes what is printed now into the blocks that have no ``…``; without a page
into all pages that have blocks.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"<!-- run in (?P<where>[^;\n]+?)(?:; exit (?P<code>\d+))? -->\n```console\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
ANY_BLOCK = re.compile(r"^```console$", re.MULTILINE)
SCRIPT = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
GAP = "…"
CLUSTER = "a cluster"
COLUMNS = 80
"""What fits a block of the site."""
_LEFT_OUT = ("FORCE_COLOR", "NO_COLOR")
_TIMEOUT_SECONDS = 60


class Step(NamedTuple):
    """One command line without its ``$``, and what the page says that it prints."""

    line: str
    printed: str


class Block(NamedTuple):
    """The commands of one block; ``where`` is a directory of the repository, ``code`` the last one's exit code."""

    where: str
    code: int
    steps: tuple[Step, ...]


def blocks(page: str) -> Iterator[Block]:
    """The marked blocks of a page."""
    for match in BLOCK.finditer(page):
        yield Block(match["where"].strip(), int(match["code"] or 0), tuple(_steps(match["text"])))


def _steps(text: str) -> Iterator[Step]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, printed = part.partition("\n")
        yield Step(line, printed)


def answers(block: Block) -> Iterator[tuple[Step, str, int]]:
    """Runs the commands of a block one after the other: each with what it printed and its exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = shutil.copytree(ROOT / block.where, Path(scratch) / Path(block.where).name)
        for step in block.steps:
            done = _run(step.line, folder)
            yield step, done.stdout + done.stderr, done.returncode


def shell(script: str, folder: Path) -> str:
    """What lines of shell print that call ``kubectl dra``, in a folder. Raises CalledProcessError where they fail."""
    done = _run(script, folder)
    done.check_returncode()
    return done.stdout


def _run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in _LEFT_OUT}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "KUBECONFIG": os.devnull, "COLUMNS": str(COLUMNS)}
    kubectl = f'kubectl() {{ shift; {shlex.quote(sys.executable)} -m kubectl_dra "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", kubectl + script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )


def matches(expected: str, printed: str) -> bool:
    """Whether that is what the page says; ``…`` is anything, and alone on a line any lines, or none."""
    parts = re.split(f"^{GAP}\n", expected, flags=re.MULTILINE)
    pattern = r"(?:[^\n]*\n)*?".join(_line_gaps(part) for part in parts)
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def _line_gaps(text: str) -> str:
    """Columns after a gap may be aligned in the page: there, any number of spaces is as good as another."""
    first, *others = text.split(GAP)
    return ".*?".join((re.escape(first), *(re.sub(r"^(\\ ){2,}", r"\\ +", re.escape(other)) for other in others)))


def complaint(block: Block) -> str:
    """What is not as the page says, empty where all is."""
    for number, (step, printed, code) in enumerate(answers(block), start=1):
        expected = block.code if number == len(block.steps) else 0
        if not matches(step.printed, printed):
            return f"$ {step.line}\nprinted:\n{printed}\nthe page says:\n{step.printed}"
        if code != expected:
            return f"$ {step.line}\nended with {code}, not {expected}"
    return ""


def lines(page: str) -> Iterator[str]:
    """Every line of the page's ``sh`` blocks that calls ``kubectl dra``, as it is typed."""
    for match in SCRIPT.finditer(page):
        for line in match[1].replace("\\\n", " ").split("\n"):
            if re.search(r"(^|[|;] *)kubectl[ -]dra ", line) and not line.lstrip().startswith("#"):
                yield line.strip()


def rewritten(page: str) -> str:
    """The page with what its commands print now; blocks with a gap stay as they are."""

    def again(match: re.Match[str]) -> str:
        if GAP in match["text"] or match["where"] == CLUSTER:
            return match[0]
        block = next(blocks(match[0]))
        text = "".join(f"$ {step.line}\n{printed}" for step, printed, _ in answers(block))
        return match[0].replace(match["text"], text)

    return BLOCK.sub(again, page)


if __name__ == "__main__":
    for page in [*map(Path, sys.argv[1:])] or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        before = page.read_text(encoding="utf-8")
        if (after := rewritten(before)) != before:
            page.write_text(after, encoding="utf-8")
