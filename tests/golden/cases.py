"""What each command prints on a terminal of 80 and of 160 columns.

``python -m tests.golden.cases`` writes the files again; look at the difference before you keep it.
"""

from __future__ import annotations

import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from tests.terminal import Terminal

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = Path(__file__).parent
WIDTHS: Final = (80, 160)
EXPLAIN: Final = "examples/explain/no-device-matches"
SAMPLE: Final = "examples/ci/sample"


class Case(NamedTuple):
    """A command line, the folder (of which a copy is used) in which it runs, and its exit code."""

    name: str
    words: str
    folder: str = EXPLAIN
    code: int = 0


CASES: Final = (
    Case("explain", "explain pod/train-0 -n ml --snapshot cluster.yaml", code=1),
    Case("explain-fits", "explain -f manifest.yaml --snapshot cluster.yaml", "examples/explain/fits"),
    Case("explain-devices", "explain pod/train-0 -n ml --snapshot cluster.yaml --devices", code=1),
    Case("explain-all", "explain -A --snapshot cluster.yaml", code=1),
    Case("explain-no-such-pod", "explain pod/trian-0 -n ml --snapshot cluster.yaml", code=2),
    Case("devices", "devices --snapshot cluster.yaml"),
    Case("devices-wide", "devices --snapshot cluster.yaml -o wide --node gpu-1"),
    Case("snapshot", "snapshot --snapshot cluster.yaml -o saved.json"),
    Case("lint", "lint .", SAMPLE, 1),
    Case("lint-clean", "lint manifests/good.yaml", SAMPLE),
    Case("lint-diff", "lint --diff .", SAMPLE, 1),
    Case("lint-rule", "lint --rule DRA101", SAMPLE),
    Case("migrate", "migrate pod.yaml", "tests/golden/before", 1),
    Case("migrate-check", "migrate --check pod.yaml", "tests/golden/before", 1),
    Case("migrate-diff", "migrate --diff pod.yaml", "tests/golden/before", 1),
    Case("taint-list", "taint --list --snapshot cluster.yaml", "examples/explain/all-tainted"),
    Case("version", "version --client"),
)


def shown(case: Case, columns: int) -> tuple[int, str]:
    """The exit code and what the terminal shows, without colours."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(shutil.copytree(ROOT / case.folder, Path(scratch) / "work"))
        environment = {"NO_COLOR": "1", "PYTHONPATH": str(ROOT), "KUBECONFIG": f"{scratch}/none", "HOME": scratch}
        command = [sys.executable, "-m", "kubectl_dra", *case.words.split()]
        with Terminal(command, columns=columns, environment=environment, folder=folder) as terminal:
            code = terminal.end()
            return code, _settled(terminal.text)


def path(case: Case, columns: int) -> Path:
    """The golden file."""
    return FOLDER / f"{case.name}.{columns}.txt"


def _settled(text: str) -> str:
    """Without what differs between machines."""
    # Ages grow, and their column with them.
    text = re.sub(r" {2,}\d+d {2,}", "   (age)   ", text)
    text = re.sub(r"AGE {2,}", "AGE   ", text)
    machine = f"{platform.system().lower()}/{platform.machine().lower()}"
    return re.sub(rf"{re.escape(platform.python_version())} on {re.escape(machine)}", "3.x on this machine", text)


if __name__ == "__main__":
    for each in CASES:
        for width in WIDTHS:
            path(each, width).write_text(shown(each, width)[1])
