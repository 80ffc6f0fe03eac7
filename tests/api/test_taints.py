from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.api.taints import DeviceTaint, DeviceTaintRule, DeviceToleration, blocking_taint

TAINT = DeviceTaint("example.com/ecc", "bad", "NoExecute")


@pytest.mark.parametrize(
    ("toleration", "mismatch"),
    [
        ({"operator": "Exists"}, None),
        ({"key": "example.com/ecc", "operator": "Exists"}, None),
        ({"key": "example.com/ecc", "value": "bad"}, None),
        ({"key": "example.com/ecc", "value": "good"}, "value"),
        ({"key": "example.com/ecc"}, "value"),
        ({"key": "other", "operator": "Exists"}, "key"),
        ({"operator": "Exists", "effect": "NoSchedule"}, "effect"),
        ({"operator": "Exists", "effect": "NoExecute"}, None),
        ({"operator": "Like", "value": "bad"}, "operator"),
    ],
)
def test_toleration(toleration: dict[str, Any], mismatch: str | None) -> None:
    parsed = DeviceToleration.from_json(toleration)
    assert parsed.mismatch(TAINT) == mismatch
    assert parsed.tolerates(TAINT) is (mismatch is None)


def test_blocking_taint() -> None:
    none = DeviceTaint("a", effect="None")
    future = DeviceTaint("b", effect="PreferNoSchedule")
    schedule = DeviceTaint("c", effect="NoSchedule")
    assert blocking_taint((none, future), ()) is None
    assert blocking_taint((none, schedule, TAINT), ()) is schedule
    assert blocking_taint((schedule, TAINT), (DeviceToleration("c", "Exists"),)) is TAINT
    assert blocking_taint((schedule, TAINT), (DeviceToleration(operator="Exists"),)) is None


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        ({}, True),
        ({"driver": "d"}, True),
        ({"driver": "d", "pool": "p", "device": "x"}, True),
        ({"driver": "d", "pool": "p", "device": "y"}, False),
        ({"pool": "other"}, False),
    ],
)
def test_rule_selects(selector: dict[str, str] | None, selected: bool) -> None:
    spec: dict[str, Any] = {"taint": {"key": "k", "effect": "NoSchedule"}}
    if selector is not None:
        spec["deviceSelector"] = selector
    rule = DeviceTaintRule.from_json({"metadata": {"name": "r"}, "spec": spec})
    assert rule.selects("d", "p", "x") is selected
    assert rule.taint == DeviceTaint("k", effect="NoSchedule", rule="r")
    assert rule.unmodelled == ()


def test_rule_that_selects_by_class_says_so() -> None:
    raw = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {"deviceClassName": "c"}}}
    assert DeviceTaintRule.from_json(raw).unmodelled == ("deviceClassName",)
