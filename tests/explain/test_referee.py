"""The referee of the live tests compares numbers, but for nodes of other tests."""

from __future__ import annotations

import pytest

from tools.live.referee import of_own_nodes

AFFINITY = "node(s) didn't match Pod's node affinity/selector"
ALONE = (
    "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: "
    "0/2 nodes are available: 2 No preemption victims found for incoming pod."
)


@pytest.mark.parametrize("others", [1, 5])
def test_nodes_of_other_tests_do_not_count(others: int) -> None:
    message = (
        f"0/{2 + others} nodes are available: 2 cannot allocate all claims, {others} {AFFINITY}. still not "
        f"schedulable, preemption: 0/{2 + others} nodes are available: 2 No preemption victims found for incoming pod, "
        f"{others} Preemption is not helpful for scheduling."
    )
    assert of_own_nodes(message) == ALONE


def test_nodes_of_its_own_do() -> None:
    assert of_own_nodes(ALONE) == ALONE
    assert of_own_nodes(ALONE.replace("2", "3")) != ALONE
    unhelpful = "preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
    message = f"0/5 nodes are available: 2 unbound claim, 3 {AFFINITY}. {unhelpful}"
    expected = (
        "0/2 nodes are available: 2 unbound claim. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert of_own_nodes(message) == expected
