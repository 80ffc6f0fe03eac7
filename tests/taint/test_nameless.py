"""A slice that no server stores: a device without a pool cannot be tainted, which is a sentence."""

from __future__ import annotations

import pytest

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.errors import InputError
from kubectl_dra.taint.rules import RuleStage, Wish, content
from kubectl_dra.taint.typed import TaintSpec


@pytest.mark.parametrize("device", [("d", "", "x"), ("", "p", "x"), ("d", "p", "")])
def test_a_rule_names_its_device(device: tuple[str, str, str]) -> None:
    wish = Wish(DeviceID(*device), TaintSpec("k", "", "NoSchedule"))
    with pytest.raises(InputError, match="needs the device's driver, pool and name"):
        content(wish, RuleStage("NoSchedule"), "v1")
