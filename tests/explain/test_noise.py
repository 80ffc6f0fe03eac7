"""Nothing is decided by a text: with noise for all of them, verdicts, exit codes and lists of causes are the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.explain.test_cases import EXIT_CODES
from tools.cases import QUICK_CASES

ROOT = Path(__file__).parents[2]


def test_texts_decide_nothing() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.explain.noise"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    found = {(file, name): (code, verdict, causes) for file, name, code, verdict, causes, _ in json.loads(ran.stdout)}
    expected = {}
    for case in QUICK_CASES:
        expect = case.raw["expect"]
        verdict = expect["verdict"]
        expected[case.file, case.name] = (expect.get("exit", EXIT_CODES[verdict]), verdict, expect.get("causes", []))
    assert found == expected
    answers = [answer for *_, answer in json.loads(ran.stdout)]
    assert not any("matching devices" in answer or "does not exist" in answer for answer in answers), "it was noise"
