"""A minute of new inputs on every full run; and the runs that once went wrong."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tools.fuzz.runs import fuzz, once
from tools.fuzz.served import served_once


@pytest.mark.parametrize("seed", range(6))
def test_some_runs(tmp_path: Path, seed: int) -> None:
    assert once(seed, tmp_path) == ""


@pytest.mark.parametrize("seed", range(12))
def test_some_live_runs(tmp_path: Path, seed: int) -> None:
    assert served_once(seed, tmp_path) == ""


@pytest.mark.slow
def test_a_minute(tmp_path: Path) -> None:
    seed = int(time.time())
    runs, found = fuzz(float(os.environ.get("FUZZ_SECONDS", "60")), seed, tmp_path)
    assert runs > 10 and not found, found
