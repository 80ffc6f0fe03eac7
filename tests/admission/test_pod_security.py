"""What the PodSecurity plugin of a real API server said about made-up pods, word for word."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kubectl_dra.admission.pod_security import ENFORCE, ENFORCE_VERSION, enforced, refusal

RECORDED = Path(__file__).parent / "pod-security.jsonl.gz"


def test_the_words_of_a_real_server() -> None:
    differ, refused = [], 0
    with gzip.open(RECORDED, "rt") as stream:
        for line in stream:
            case = json.loads(line)
            found = refusal(case["manifest"], "ns", {ENFORCE: case["level"]})
            refused += bool(case["words"])
            if (found.words if found else "") != case["words"]:
                differ.append((found.words if found else "", case["words"]))
    assert differ == []
    assert refused > 100


@pytest.mark.parametrize(
    ("labels", "policy"),
    [
        ({}, "None"),
        ({ENFORCE: "privileged"}, "None"),
        ({ENFORCE: "baseline"}, "baseline:latest"),
        ({ENFORCE: "restricted", ENFORCE_VERSION: "v1.30"}, "restricted:v1.30"),
        ({ENFORCE: "strict"}, "restricted:latest"),
    ],
)
def test_what_labels_enforce(labels: dict[str, str], policy: str) -> None:
    assert str(enforced(labels)) == policy
