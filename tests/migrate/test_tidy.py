"""What deletions leave empty goes with them, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.manifests.changes import Append, Change, Delete, Set
from kubectl_dra.migrate.device_plugins.pods import tidied

RAW: dict[str, Any] = {
    "resources": {"limits": {"a": 1, "b": 2}, "requests": {"a": 1}},
    "env": [{"name": "X"}, {"name": "Y"}],
    "other": {"a": 1},
}
LIMITS = ("resources", "limits")
REQUESTS = ("resources", "requests")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([Delete((*LIMITS, "a"))], [Delete((*LIMITS, "a"))]),
        ([Delete((*LIMITS, "a")), Delete((*LIMITS, "a"))], [Delete((*LIMITS, "a"))]),
        ([Delete((*LIMITS, "a")), Delete((*LIMITS, "b"))], [Delete(LIMITS)]),
        ([Delete((*LIMITS, "a")), Delete((*LIMITS, "b")), Delete((*REQUESTS, "a"))], [Delete(("resources",))]),
        (
            [Delete((*REQUESTS, "a")), Set(("resources", "claims"), [])],
            [Set(("resources", "claims"), []), Delete(REQUESTS)],
        ),
        ([Delete((*REQUESTS, "a")), Set((*REQUESTS, "c"), 1)], [Delete((*REQUESTS, "a")), Set((*REQUESTS, "c"), 1)]),
        ([Delete(("env", 0)), Delete(("env", 1))], [Delete(("env",))]),
        ([Delete(("env", 0)), Append(("env",), {})], [Delete(("env", 0)), Append(("env",), {})]),
        ([Delete(("other", "a"))], [Delete(("other", "a"))]),
    ],
)
def test_tidied(changes: list[Change], expected: list[Change]) -> None:
    assert list(tidied(RAW, changes)) == expected
