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


def conversation(folder: Path, answers: list[str]) -> tuple[int, str]:
    """Exit code, and all that is on the terminal; an answer is typed at each question."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execv(sys.executable, [sys.executable, "-m", "kubectl_dra", "migrate", "--interactive", "."])
    seen = b""
    waiting = list(answers)
    # Linux ends the reading with an error when the other side is closed.
    with suppress(OSError):
        while data := os.read(terminal, 4096):
            seen += data
            if seen.endswith(b"[q]uit: ") and waiting:
                os.write(terminal, f"{waiting.pop(0)}\n".encode())
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
