"""Names of new objects: valid, short, the same each time, free."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.api.limits import MAX_LABEL
from kubectl_dra.migrate.new_objects import as_label, free, free_object, roles, shortened, workload_name

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")


@pytest.mark.parametrize(
    ("text", "label"),
    [("gpu", "gpu"), ("GPU Node", "gpu-node"), ("mig-1g.5gb", "mig-1g-5gb"), ("--a_b--", "a-b"), ("日本", "")],
)
def test_as_label(text: str, label: str) -> None:
    assert as_label(text) == label


@given(st.text(max_size=200))
def test_a_label_is_valid_or_empty(text: str) -> None:
    label = as_label(text)
    assert not label or DNS_LABEL.match(label)
    assert as_label(text) == label


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,150}[a-z0-9])?", fullmatch=True), st.integers(0, 12))
def test_a_free_name_is_valid_and_free(name: str, others: int) -> None:
    taken: set[str] = set()
    for _ in range(others + 1):
        found = free(name, taken)
        assert found not in taken
        assert DNS_LABEL.match(found)
        taken.add(found)
    assert free(name, ()) == shortened(name, MAX_LABEL)


def test_long_names_that_begin_alike_stay_apart() -> None:
    one, other = (shortened("a" * 70 + letter, MAX_LABEL) for letter in "xy")
    assert one != other
    assert len(one) == len(other) == MAX_LABEL


def test_a_name_is_taken_in_its_namespace_and_kind_only() -> None:
    taken = {("ResourceClaimTemplate", "a", "x-gpu"), ("ResourceClaim", "b", "x-gpu")}
    assert free_object("ResourceClaimTemplate", "a", "x-gpu", taken) == "x-gpu-2"
    assert free_object("ResourceClaimTemplate", "b", "x-gpu", taken) == "x-gpu"


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"name": "trainer"}, "trainer"),
        ({"name": "a.b"}, "a.b"),
        ({"generateName": "train-"}, "train"),
        ({"name": "$NAME"}, None),
        ({"name": "{{ x }}"}, None),
        ({"name": 7}, None),
        ({}, None),
        (None, None),
        ({"name": "x" * 254}, None),
    ],
)
def test_workload_name(metadata: object, name: str | None) -> None:
    assert workload_name({"metadata": metadata}) == name


def test_roles_come_from_names_and_keys() -> None:
    raw = {
        "spec": {
            "headGroupSpec": {"template": {"spec": {}}},
            "workerGroupSpecs": [
                {"groupName": "Small_GPU", "template": {"spec": {}}},
                {"groupName": "large", "template": {"spec": {}}},
            ],
        }
    }
    paths = [
        ("spec", "headGroupSpec", "template", "spec"),
        ("spec", "workerGroupSpecs", 0, "template", "spec"),
        ("spec", "workerGroupSpecs", 1, "template", "spec"),
    ]
    assert roles(raw, paths) == ("head", "small-gpu", "large")
    assert roles(raw, paths[:1]) == ("",)
