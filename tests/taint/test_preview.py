from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.taint.preview import ServerAnswer, server_answer

# As Kubernetes 1.36.4 writes it.
MESSAGE = (
    "3 published devices selected. 1 allocated device selected. 2 pods would be evicted in 1 namespace if the "
    "effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an "
    "update."
)


def rule(reason: str = "NoEffect", message: str = MESSAGE, observed: int = 2) -> dict[str, Any]:
    condition = {"type": "EvictionInProgress", "status": "False", "reason": reason, "message": message}
    return {"metadata": {"generation": 2}, "status": {"conditions": [{**condition, "observedGeneration": observed}]}}


def test_counts() -> None:
    assert server_answer(rule()) == ServerAnswer(3, 1, 2, MESSAGE)
    assert server_answer(rule(message="1 pod would be evicted")) == ServerAnswer(
        None, None, 1, "1 pod would be evicted"
    )
    assert server_answer(rule(message="other words")) == ServerAnswer(None, None, None, "other words")


@pytest.mark.parametrize("raw", [rule(reason="NotStarted"), rule(observed=1), {}, {"status": {"conditions": []}}])
def test_no_answer_yet(raw: dict[str, Any]) -> None:
    assert server_answer(raw) is None
