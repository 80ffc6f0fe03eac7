"""Constraints on attributes that may be lists."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_dra.allocation.constraints import values_of
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.search import constraint_state
from kubectl_dra.api.claims import DeviceConstraint
from kubectl_dra.api.slices import Device
from tools.builders import device, slice_of

LISTS = replace(Features(), list_attributes=True)


def with_root(value: dict[str, Any]) -> Device:
    (only,) = slice_of(device("d1")).devices
    return replace(only, attributes={"d/root": value})


def accepted(kind: str, *values: dict[str, Any]) -> list[bool]:
    state = constraint_state(DeviceConstraint.from_json({kind: "d/root"}), LISTS, KnownDefects())
    return [state.add("r", "", with_root(value)) for value in values]


def test_a_scalar_is_a_list_of_one() -> None:
    assert values_of(with_root({"string": "a"}), "d/root") == values_of(with_root({"strings": ["a"]}), "d/root")
    assert values_of(with_root({"version": "1.0.0"}), "d/root") != values_of(with_root({"string": "1.0.0"}), "d/root")
    assert values_of(with_root({"int": 1}), "d/other") == frozenset()


@pytest.mark.parametrize(
    ("kind", "answers"),
    [("matchAttribute", [True, True, False, True]), ("distinctAttribute", [True, False, True, False])],
)
def test_devices_share_a_value_or_none(kind: str, answers: list[bool]) -> None:
    values = ({"strings": ["a", "b"]}, {"strings": ["b", "c"]}, {"string": "c"}, {"string": "b"})
    assert accepted(kind, *values) == answers


def test_what_is_undone_is_forgotten() -> None:
    state = constraint_state(DeviceConstraint.from_json({"matchAttribute": "d/root"}), LISTS, KnownDefects())
    assert state.add("r", "", with_root({"strings": ["a", "b"]}))
    assert state.add("r", "", with_root({"string": "a"}))
    assert not state.add("r", "", with_root({"string": "b"}))
    state.remove("r", "")
    assert state.add("r", "", with_root({"string": "b"}))
