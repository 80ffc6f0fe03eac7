"""A pod that does not end is told the same way, whether the pod, its claim, node or device, or all is asked about."""

from __future__ import annotations

import pytest

from tests.ran import ran
from tools.examples import EXAMPLES

CLUSTER = str(EXAMPLES / "all-held" / "cluster.yaml")
FORCE = "Destructive (in the cluster, not the snapshot): $ kubectl delete pod/video-prep-1 -n research --force"


def said(*words: str) -> str:
    _, out, _ = ran(*words, "--snapshot", CLUSTER)
    return " ".join(out.split())


@pytest.mark.parametrize(
    "about",
    [
        ("pod/video-prep-1", "-n", "research"),
        ("claim/video-prep-1-gpu-877fk", "-n", "research"),
        ("node/l40s-1",),
        ("device/l40s-1/gpu-3",),
        ("-A",),
    ],
)
def test_its_grace_period_is_over_in_every_answer(about: tuple[str, ...]) -> None:
    text = said("explain", *about)
    assert "its grace period ended 88 minutes ago" in text
    assert "Start driver" not in text


@pytest.mark.parametrize("about", ["pod/video-prep-1", "claim/video-prep-1-gpu-877fk", "node/l40s-1"])
def test_force_is_the_last_resort_and_is_marked(about: str) -> None:
    text = said("explain", about, "-n", "research")
    assert "delete the pod by force, and only once its containers have certainly ended" in text
    assert FORCE in text


def test_who_waits_for_its_devices_is_sent_to_it() -> None:
    text = said("explain", "pod/sdxl-66d9f7b8c-h7m6r", "-n", "inference", "--full")
    assert "Get pod research/video-prep-1 to end (Terminating, its grace period ended 88 minutes ago" in text
    assert f"$ kubectl dra explain pod/video-prep-1 -n research --snapshot {CLUSTER}" in text
    assert "wait until pod research/video-prep-1" not in text
