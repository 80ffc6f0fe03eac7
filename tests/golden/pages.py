"""What the pages of ``-o html`` consist of: their elements and texts, without the picture of the fleet.

``python -m tests.golden.pages`` writes the files again; look at the difference before you keep it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = Path(__file__).parent / "html"
_INLINE: Final = frozenset(("a", "b", "code", "small", "span", "strong"))
_SHOWN: Final = ("class", "id", "href", "scope", "data-v", "data-depth", "data-effect", "aria-label")
_LEFT_OUT: Final = frozenset(("head", "script", "footer", "form", "svg", "time"))
_VOID: Final = frozenset(("br", "input", "link", "meta"))


class Page(NamedTuple):
    """A command line and the folder, below ``examples``, in which it runs."""

    name: str
    words: str
    folder: str


PAGES: Final = (
    Page("no-device-matches", "explain pod/train-0 -n ml --snapshot cluster.yaml", "explain/no-device-matches"),
    Page("fits", "explain -f manifest.yaml --snapshot cluster.yaml", "explain/fits"),
    Page("prepare-fails", "explain pod/ide-lea -n dev --snapshot cluster.yaml", "explain/prepare-fails"),
    Page("all-held", "explain pod/sdxl-66d9f7b8c-h7m6r -n inference --snapshot cluster.yaml", "explain/all-held"),
    Page("two-changes", "explain pod/fp8-0 -n ml --snapshot cluster.yaml", "explain/two-changes-needed"),
    Page("nic-gpu", "explain -f manifest.yaml --snapshot cluster.yaml", "explain/nic-gpu-pcie-root"),
    Page("gaudi", "explain pod/llama-hpu-0 -n ml --snapshot cluster.yaml", "explain/gaudi-too-few"),
    Page(
        "trace",
        "explain pod/train-0 -n ml --snapshot cluster.yaml --trace gpu-1/gpu-0 --verify",
        "explain/no-device-matches",
    ),
    Page(
        "supposed", "explain pod/train-0 -n ml --snapshot cluster.yaml --what-if count=2", "explain/no-device-matches"
    ),
    Page("pending", "explain -A --snapshot cluster.yaml", "explain/mixed-fleet"),
    Page(
        "fit-in-part", "fit -f manifest.yaml --snapshot ../../explain/all-held/cluster.yaml", "fit/deployment-in-part"
    ),
    Page(
        "fit-groups", "fit -f manifest.yaml --snapshot ../../explain/gaudi-too-few/cluster.yaml", "fit/groups-of-pods"
    ),
    Page("devices", "devices --snapshot cluster.yaml --node gpu-1", "explain/no-device-matches"),
)


class _Outline(HTMLParser):
    """A line for each element that is a block, indented; its text, with the elements in it, behind it or below."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._text = ""
        self._depth = 0
        self._hidden = 0
        self._begun = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if self._hidden or tag in _LEFT_OUT or given.get("role") == "grid":
            self._hidden += tag not in _VOID
            return
        said = "".join(f' {name}="{given[name]}"' for name in _SHOWN if name in given)
        if tag in _INLINE:
            self._text += f"<{tag}{said}>"
            return
        self._end_text()
        self.lines.append("  " * self._depth + f"{tag}{said}")
        self._depth += tag not in _VOID
        self._begun = tag not in _VOID

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            self._hidden -= 1
        elif tag in _INLINE:
            self._text += f"</{tag}>"
        else:
            self._end_text()
            self._depth -= 1
            self._begun = False

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._text += data

    def _end_text(self) -> None:
        if text := " ".join(self._text.split()):
            if self._begun:
                self.lines[-1] += f" | {text}"
            else:
                self.lines.append("  " * self._depth + f"| {text}")
            self._begun = False
        self._text = ""


def outline(page: Page) -> str:
    """The elements of the page, and its exit code."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "HOME": str(FOLDER)}
    done = subprocess.run(
        [sys.executable, "-m", "kubectl_dra", *page.words.split(), "-o", "html"],
        cwd=ROOT / "examples" / page.folder,
        env=environment | {"SOURCE_DATE_EPOCH": "1767323045"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.stderr:
        raise ValueError(f"{page.name}: {done.stderr}")
    parser = _Outline()
    parser.feed(done.stdout)
    # The line with the version and the moment says nothing of the page.
    kept = [line for line in parser.lines if "· kubectl-dra " not in line]
    return "\n".join([f"exit code {done.returncode}", *kept, ""])


def path(page: Page) -> Path:
    """The golden file."""
    return FOLDER / f"{page.name}.txt"


if __name__ == "__main__":
    for each in PAGES:
        path(each).write_text(outline(each), encoding="utf-8")
