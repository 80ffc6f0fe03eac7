"""The commands beside a cluster that never rests, for half a minute. ``tools.live.churn`` runs for longer."""

from __future__ import annotations

import os

import pytest

from tools.controlplane.program import VERSION_VARIABLE, Program, is_built
from tools.live.churn import RULES, churned

SECONDS = float(os.environ.get("CHURN_SECONDS", "30"))


@pytest.mark.parametrize("release", RULES)
def test_nothing_crashes_and_nothing_false_is_said(
    release: str, control_plane_program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not control_plane_program.schedules:
        pytest.skip("no scheduler")
    monkeypatch.setenv(VERSION_VARIABLE, release)
    if control_plane_program.built and not is_built():
        pytest.skip(f"Kubernetes {release} is not built: python -m tools.controlplane.program --kubernetes {release}")
    watcher = churned(release, 1, SECONDS)
    assert watcher.problems == []
    commands = ("explain", "claims", "devices", "top", "fit", "taint")
    assert all(any(name.startswith(f"{command} ") for name in watcher.counts) for command in commands), watcher.counts
    assert any(name.startswith("new pod ") for name in watcher.counts), watcher.counts
