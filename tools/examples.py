"""Runs the examples as a person would: the line in ``command``, from the example's directory."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "explain"
FIT = ROOT / "examples" / "fit"
PREFIX = ["kubectl", "dra"]
GOLDENS = {"expected.txt": (), "full.txt": ("--full",)}
"""What is written into a file of each example, and the flags that it takes beside those of ``command``."""
# What would change colours, or let the command find a cluster.
LEFT_OUT = ("FORCE_COLOR", "NO_COLOR", "KUBECONFIG", "COLUMNS")


class Outcome(NamedTuple):
    """What a command wrote, and its exit code."""

    stdout: str
    stderr: str
    code: int


def examples() -> list[Path]:
    """The directories of all examples of ``explain``, sorted by name."""
    return sorted(path for path in EXAMPLES.iterdir() if path.is_dir())


def fit_examples() -> list[Path]:
    """The same of ``fit``, which have ``expected.txt`` alone."""
    return sorted(path for path in FIT.iterdir() if path.is_dir())


def arguments(example: Path) -> list[str]:
    """The words of the example's command after ``kubectl dra``. Raises ValueError for another command."""
    words = shlex.split((example / "command").read_text())
    if words[:2] != PREFIX:
        raise ValueError(f"{example.name}/command does not start with kubectl dra")
    return words[2:]


def run(example: Path, *flags: str) -> Outcome:
    """Runs the example's command with this Python, in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if key not in LEFT_OUT}
    path = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = f"{ROOT}{os.pathsep}{path}" if path else str(ROOT)
    environment["PYTHONUTF8"] = "1"
    done = subprocess.run(
        [sys.executable, "-m", "kubectl_dra", *arguments(example), *flags],
        cwd=example,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return Outcome(done.stdout, done.stderr, done.returncode)
