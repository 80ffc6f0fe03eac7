"""``migrate --interactive`` on a real terminal."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

pty = pytest.importorskip("pty")

OLD = """\
apiVersion: v1
kind: Pod
metadata:
  name: {}
spec:
  containers:
  - name: main
    image: registry.example.com/a:1
    resources:
      limits:
        nvidia.com/gpu: 1
"""


INTERRUPT = "\x03"


def conversation(folder: Path, answers: list[str], *flags: str) -> tuple[int, str]:
    """Exit code, and all that is on the terminal; an answer is typed at each question."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execv(sys.executable, [sys.executable, "-m", "kubectl_dra", "migrate", "--interactive", *flags, "."])
    seen = b""
    waiting = list(answers)
    # Linux ends the reading with an error when the other side is closed.
    with suppress(OSError):
        while data := os.read(terminal, 4096):
            seen += data
            if seen.endswith(b"[q]uit: ") and waiting:
                answer = waiting.pop(0)
                os.write(terminal, answer.encode() if answer == INTERRUPT else f"{answer}\n".encode())
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), seen.decode()


def test_each_file_is_asked_about(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    for name in names:
        (tmp_path / f"{name}.yaml").write_text(OLD.format(name))
    code, seen = conversation(tmp_path, ["n", "what?", "y", "q"])
    assert code == 1
    assert "1 file written, 2 left as they are." in seen and "+      claims:" in seen
    changed = [(tmp_path / f"{name}.yaml").read_text() != OLD.format(name) for name in names]
    assert changed == [False, True, False]
    code, seen = conversation(tmp_path, ["a"])
    assert (code, "2 files written, 0 left as they are." in seen) == (0, True)


def test_who_stops_in_the_middle_has_the_claims_of_what_is_written(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(OLD.format(name))
    code, _ = conversation(tmp_path, ["y", INTERRUPT], "--claims-file", "claims.txt")
    assert code == 130
    assert "a-gpu" in (tmp_path / "a.yaml").read_text() and "a-gpu" in (tmp_path / "claims.txt").read_text()
    assert (tmp_path / "b.yaml").read_text() == OLD.format("b")
