"""matchAttribute and distinctAttribute as devices come and go, and where attributes may be lists."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_dra.allocation.constraints import attribute_of, values_of
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.search import constraint_state
from kubectl_dra.api.claims import DeviceConstraint
from kubectl_dra.api.slices import Device
from tools.builders import claim, device, request, slice_of


def with_attributes(**attributes: Any) -> Device:
    table = {name.replace("__", "/"): value for name, value in attributes.items()}
    return slice_of(device("one", attributes=table)).devices[0]


def string(text: str) -> Device:
    return with_attributes(a={"string": text})


def constraint(**fields: Any) -> DeviceConstraint:
    return claim(request("x"), request("y"), constraints=[fields]).constraints[0]


def test_an_attribute_is_found_with_and_without_its_drivers_domain() -> None:
    assert attribute_of(string("v"), "d/a") == ("string", "v")
    assert attribute_of(string("v"), "e/a") is None
    assert attribute_of(with_attributes(e__a={"int": 1}), "e/a") == ("int", 1)


@pytest.mark.parametrize(
    ("first", "second", "accepted"),
    [
        ({"string": "1"}, {"string": "1"}, True),
        ({"string": "1"}, {"string": "2"}, False),
        ({"string": "1.0.0"}, {"version": "1.0.0"}, False),
        ({"int": 1}, {"bool": True}, False),
        # Versions compare as texts.
        ({"version": "1.0.0"}, {"version": "1.0.0+build"}, False),
    ],
)
def test_match(first: dict[str, Any], second: dict[str, Any], accepted: bool) -> None:
    state = constraint_state(constraint(matchAttribute="d/a"), Features(), KnownDefects())
    assert state.add("x", "", with_attributes(a=first))
    assert state.add("y", "", with_attributes(a=second)) is accepted


def test_match_forgets_its_value_with_the_last_device() -> None:
    state = constraint_state(constraint(matchAttribute="d/a"), Features(), KnownDefects())
    assert state.add("x", "", string("1")) and state.add("y", "", string("1"))
    state.remove("y", "")
    assert not state.add("y", "", string("2"))
    state.remove("x", "")
    assert state.seen() is None
    assert state.add("y", "", string("2"))


@pytest.mark.parametrize("kind", ["matchAttribute", "distinctAttribute"])
def test_a_device_without_the_attribute_is_refused(kind: str) -> None:
    state = constraint_state(constraint(**{kind: "d/b"}), Features(), KnownDefects())
    assert not state.add("x", "", string("1"))
    assert not state.seen() or state.seen() == (False, frozenset())


@pytest.mark.parametrize("kind", ["matchAttribute", "distinctAttribute"])
def test_a_constraint_does_not_look_at_other_requests(kind: str) -> None:
    state = constraint_state(constraint(**{kind: "d/a"}, requests=["x"]), Features(), KnownDefects())
    before = state.seen()
    assert state.add("y", "", with_attributes())
    assert state.seen() == before


def test_a_subrequest_is_covered_by_its_request_and_by_its_own_name() -> None:
    assert constraint(matchAttribute="d/a", requests=["x"]).covers("x", "s")
    assert constraint(matchAttribute="d/a", requests=["x/s"]).covers("x", "s")
    assert not constraint(matchAttribute="d/a", requests=["x/s"]).covers("x", "t")


def test_distinct_remembers_the_last_value_of_a_request() -> None:
    state = constraint_state(constraint(distinctAttribute="d/a"), Features(), KnownDefects())
    assert state.add("x", "", string("1"))
    assert not state.add("x", "", string("1"))
    assert state.add("x", "", string("2"))
    # The first value is forgotten: kubernetes/kubernetes#140600.
    assert state.add("y", "", string("1"))
    exact = constraint_state(
        constraint(distinctAttribute="d/a"), Features(), KnownDefects(distinct_remembers_one=False)
    )
    assert exact.add("x", "", string("1")) and exact.add("x", "", string("2"))
    assert not exact.add("y", "", string("1"))


def test_distinct_frees_a_value_with_its_device() -> None:
    for defects in (KnownDefects(), KnownDefects.none()):
        state = constraint_state(constraint(distinctAttribute="d/a"), Features(), defects)
        assert state.add("x", "", string("1"))
        state.remove("x", "")
        assert state.add("y", "", string("1"))


# Constraints on attributes that may be lists.

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
