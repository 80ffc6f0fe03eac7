"""What a pod asks for as a whole, after ``k8s.io/component-helpers/resource``."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.api.pod_resources import pod_limits, pod_requests
from kubectl_dra.api.pods import Pod


def asks(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}} | more


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [asks("1"), asks("500m")]}, "1500m"),
        ({"containers": [asks("1")], "initContainers": [asks("3")]}, "3"),
        ({"containers": [asks("1")], "initContainers": [asks("1", **SIDECAR), asks("3")]}, "4"),
        ({"containers": [asks("1")], "initContainers": [asks("3"), asks("1", **SIDECAR)]}, "3"),
        ({"containers": [asks("3")], "initContainers": [asks("1", **SIDECAR)], "overhead": {"cpu": "250m"}}, "4250m"),
        ({"containers": [asks("1")], "resources": {"requests": {"cpu": "5"}}}, "5"),
        ({"containers": [asks("1")], "resources": {"limits": {"cpu": "5"}}}, "1"),
        ({"containers": [{"name": "c"}], "resources": {"limits": {"cpu": "5"}}}, "5"),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}, "2"),
    ],
)
def test_what_a_pod_requests(spec: dict[str, Any], expected: str) -> None:
    assert str(pod_requests(Pod.from_json({"spec": spec}))["cpu"]) == expected


def test_overhead_counts_beside_a_limit_only() -> None:
    limited = {"name": "c", "resources": {"limits": {"cpu": "1"}}}
    made = Pod.from_json({"spec": {"containers": [limited], "overhead": {"cpu": "1", "memory": "1Gi"}}})
    assert {name: str(amount) for name, amount in pod_limits(made).items()} == {"cpu": "2"}
