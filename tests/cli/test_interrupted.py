"""Ctrl-C and SIGTERM at any moment: no traceback, and no file left behind."""

from __future__ import annotations

import ast
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.examples import ROOT
from tools.fuzz.kills import POD


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_end_at_any_moment(tmp_path: Path, sent: signal.Signals) -> None:
    chance = random.Random(int(sent))
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        before = {}
        for index in range(20):
            (folder / f"{index}.yaml").write_text(POD.format(index))
            before[f"{index}.yaml"] = POD.format(index)
        words = [sys.executable, "-m", "kubectl_dra", "migrate", "--write", str(folder)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.04 + chance.random() * 1.2)
        process.send_signal(sent)
        _, err = process.communicate(timeout=60)
        # Before our first line runs, the interpreter's own start can be hit.
        assert not re.search(r'kubectl_dra/__main__.py", line \d+, in main', err), err
        found = {path.name: path.read_text() for path in folder.iterdir()}
        assert found.keys() == before.keys()
        assert all(text == before[name] or "resourceClaims" in text for name, text in found.items())


IN_A_CALLBACK = """
import os, sys, time, weakref
from kubectl_dra import __main__ as entry

class Thing:
    pass

def callback(_):
    os.kill(os.getpid(), {0})
    # Here the signal's handler raises, at the latest.
    for _ in range(1000):
        pass

def main():
    thing = Thing()
    kept = weakref.ref(thing, callback)
    del thing
    time.sleep(30)

entry._main = main
entry.main()
"""


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_end_in_a_callback(sent: signal.Signals, code: int) -> None:
    words = [sys.executable, "-c", IN_A_CALLBACK.format(int(sent))]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", "")


def test_nothing_is_imported_where_ctrl_c_is_a_traceback() -> None:
    """All that takes time is imported in ``main``."""
    body = ast.parse((ROOT / "kubectl_dra" / "__main__.py").read_text(encoding="utf-8")).body
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == ["from __future__ import annotations", "import sys"]
