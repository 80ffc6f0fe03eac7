from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.api.codec import mismatch


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        ("Pod", {"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}, "limits.cpu must be"),
        ("Pod", {"spec": {"resourceClaims": {}}}, "spec.resourceClaims must be a list, not an object"),
        ("Node", {"metadata": {"name": 5}}, "metadata.name must be a string, not the number 5"),
        ("Node", {"metadata": []}, "metadata must be an object, not a list"),
        ("Node", {"spec": {"unschedulable": 1}}, "must be true or false, not the number 1"),
        ("DeviceClass", {"spec": {"selectors": [{"cel": {"expression": True}}]}}, "a string, not true"),
    ],
)
def test_mismatch(kind: str, raw: dict[str, Any], text: str) -> None:
    assert text in str(mismatch(raw, kind))


def test_null_is_allowed_everywhere_and_other_things_are_not_looked_at() -> None:
    raw = {"metadata": None, "spec": {"containers": None, "dnsConfig": "x", "priority": None}, "status": None}
    assert mismatch(raw, "Pod") is None
    assert str(mismatch("x", "Pod")).endswith('must be an object, not "x"')
