"""Some runs of each kind, and half a minute of new inputs on every full run."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tools.fuzz.runs import KINDS, fuzz


@pytest.mark.parametrize("kind", KINDS)
def test_some_runs(tmp_path: Path, kind: str) -> None:
    """The same ones each time. Most inputs are accepted, so that more than the readers is tried."""
    count = fuzz([kind], 0, tmp_path, runs=24)[kind]
    assert count.runs == 24 and not count.failures
    assert count.accepted >= 12


@pytest.mark.slow
def test_new_inputs(tmp_path: Path) -> None:
    counts = fuzz([*KINDS], int(time.time()), tmp_path, seconds=float(os.environ.get("FUZZ_SECONDS", "30")))
    assert all(count.runs > 2 for count in counts.values())
    assert not [failure for count in counts.values() for failure in count.failures]
