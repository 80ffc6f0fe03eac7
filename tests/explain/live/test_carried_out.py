"""The first fix that explain calls proved, carried out: the scheduler then places the pod.

LIVE_SEEDS=200 tries more.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.explain.live.carried_out import tried
from tools.controlplane.cluster import Cluster

SEEDS = int(os.environ.get("LIVE_SEEDS", "8"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_first_fix(cluster: Cluster, seed: int, tmp_path: Path) -> None:
    found = tried(cluster, Random(seed), 0, tmp_path)
    assert found is None or found["ran"] or found["rivals"], found
