from __future__ import annotations

import pytest

from kubectl_dra.text import nearest


@pytest.mark.parametrize(
    ("name", "candidates", "near"),
    [
        ("gpu.exmaple.com", ["gpu.example.com", "nic.example.org"], ("gpu.example.com",)),
        ("prod", ["production", "staging", "prod-eu"], ("prod-eu", "production")),
        ("GPU-Claim", ["gpu-claim", "x"], ("gpu-claim",)),
        ("worker-1", ["worker-2", "worker-1", "worker-10", "db"], ("worker-10", "worker-2")),
        ("claim", ["my-claim-a"], ("my-claim-a",)),
        ("ab", ["ba", "zz"], ("ba",)),
        ("x", [], ()),
        ("c", ["j", "C"], ("C",)),
        ("", ["a"], ()),
        ("completely", ["different"], ()),
    ],
)
def test_nearest(name: str, candidates: list[str], near: tuple[str, ...]) -> None:
    assert nearest(name, candidates) == near


def test_limit() -> None:
    assert len(nearest("node-1", [f"node-{i}" for i in range(2, 9)], limit=2)) == 2
