"""No fix of a toleration lets a request tolerate less."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
import yaml

from kubectl_dra.api.taints import DeviceTaint, DeviceToleration, seconds_tolerated
from tests.lint.cases import mended
from tests.lint.support import CLAIM

OPERATORS = (None, "Exists", "Equal")
KEYS = (None, "example.com/a")
VALUES = (None, "v")
EFFECTS = (None, "NoSchedule", "NoExecute")
SECONDS = (None, 30)
TAINTS = [
    DeviceTaint.from_json({"key": key, "value": value, "effect": effect})
    for key, value, effect in product(("example.com/a", "example.com/b"), ("", "v"), ("NoSchedule", "NoExecute"))
]


def given() -> list[dict[str, Any]]:
    names = ("operator", "key", "value", "effect", "tolerationSeconds")
    every = product(OPERATORS, KEYS, VALUES, EFFECTS, SECONDS)
    return [{name: value for name, value in zip(names, values, strict=True) if value is not None} for values in every]


def tolerations(text: str) -> list[DeviceToleration]:
    exactly = yaml.safe_load(text)["spec"]["devices"]["requests"][0]["exactly"]
    return [DeviceToleration.from_json(toleration) for toleration in exactly["tolerations"]]


@pytest.mark.parametrize("toleration", given(), ids=json.dumps)
def test_what_was_tolerated_still_is(toleration: dict[str, Any]) -> None:
    text = f"{CLAIM}        tolerations: [{json.dumps(toleration)}]\n"
    fixed = mended(text).text.after
    before, after = tolerations(text), tolerations(fixed)
    for taint in TAINTS:
        if any(device_toleration.tolerates(taint) for device_toleration in before):
            assert any(device_toleration.tolerates(taint) for device_toleration in after), f"{taint} in {fixed}"
        stayed, stays = seconds_tolerated(taint, before), seconds_tolerated(taint, after)
        assert stays is None or (stayed is not None and stays >= stayed)
