"""Recorded clusters: devices that share all they can get the answers of devices that share nothing."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.conformance.alloc import lines
from tests.explain.sharing import DATA, compared


@pytest.mark.parametrize(
    ("corpus", "step"),
    [("alloc-1.34.jsonl.gz", 8), ("alloc-1.36.jsonl.gz", 16), ("pods.jsonl.gz", 8), ("pod-node-resources.jsonl.gz", 2)],
)
def test_the_answers_are_the_same(corpus: str, step: int) -> None:
    asked = apart = 0
    for case in islice(lines(DATA / corpus), 0, None, step):
        count, kept, different = compared(case)
        asked, apart = asked + count, apart + kept
        assert not different
    assert asked > 20 and apart > 10
