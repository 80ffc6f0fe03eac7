"""A few of the kills, meetings and outages that ``tools/live`` has many of."""

from __future__ import annotations

from pathlib import Path

from tools.controlplane.cluster import Cluster
from tools.live.interrupted import interrupted
from tools.live.outages import tried


def test_ended_in_the_middle(cluster: Cluster, tmp_path: Path) -> None:
    wrong, happened = interrupted(cluster, tmp_path, seed=7, kills=4, meetings=2)
    assert not wrong and happened.total() == 6


def test_a_proxy_that_is_cut(cluster: Cluster, tmp_path: Path) -> None:
    """While ``explain --watch``, ``top --watch`` and ``taint --wait`` run, and ``snapshot`` begins."""
    assert not tried(cluster.plane, "the proxy in between is cut", tmp_path)
