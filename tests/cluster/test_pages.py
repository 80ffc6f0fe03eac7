"""A page is taken apart without decoding its items."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_dra.cluster.reader import page, whole
from kubectl_dra.cluster.transport import side_by_side


def test_head_and_items() -> None:
    items = [{"metadata": {"name": "a", "managedFields": [1]}}, {"kind": "Other", "metadata": {"name": "b"}}]
    head = {"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": "t", "remainingItemCount": 7}}
    found = page(json.dumps({**head, "items": items}, indent=1).encode())
    assert found is not None
    assert (found.item_kind, found.metadata.token, found.metadata.remaining_item_count) == ("Pod", "t", 7)
    assert [whole(item, found) for item in found.items] == [
        {"metadata": {"name": "a"}, "apiVersion": "v1", "kind": "Pod"},
        {"kind": "Other", "metadata": {"name": "b"}, "apiVersion": "v1"},
    ]


_TEXT = st.sampled_from(["", "a", '},{"metadata":{', '"items":[', "]", "\\", "ü"]) | st.text(max_size=4)
_INNER = st.recursive(
    _TEXT | st.integers(-9, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=4,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.dictionaries(_TEXT, _INNER, max_size=3), max_size=4), st.sampled_from([None, 2]))
def test_the_items_of_any_list(items: list[dict[str, Any]], indent: int | None) -> None:
    data = json.dumps({"kind": "XList", "items": items}, indent=indent, ensure_ascii=False)
    found = page(data.encode())
    assert found is not None and [msgspec.json.decode(item) for item in found.items] == items


@pytest.mark.parametrize("empty", [b"{}", b'{"items": null}', b'{"items": []}'])
def test_an_empty_page(empty: bytes) -> None:
    found = page(empty)
    assert found is not None and found.items == []


@pytest.mark.parametrize("text", [b"", b"[]", b"[{}]", b'"x"', b"{", b'{"items": [{]}', b"<html>", b"\xff\xfe"])
def test_what_is_no_object(text: bytes) -> None:
    with pytest.raises(ValueError):
        page(text)


@pytest.mark.parametrize(
    "text", [b'{"items": {}}', b'{"items": "x"}', b'{"items": [1]}', b'{"items": [{}, "x"]}', b'{"metadata": "x"}']
)
def test_what_is_no_list(text: bytes) -> None:
    assert page(text) is None


def test_each_stream_comes_in_order_and_all_at_once() -> None:
    together = threading.Barrier(3)

    def job(number: int) -> Iterator[int]:
        together.wait(10)
        yield from range(number, number + 20)

    found: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for index, item in side_by_side([lambda number=number: job(number) for number in (0, 100, 200)]):  # type: ignore[misc]
        found[index].append(item)
    assert found == {0: [*range(20)], 1: [*range(100, 120)], 2: [*range(200, 220)]}


def test_more_jobs_than_workers_and_none() -> None:
    jobs = [lambda number=number: iter((number, number)) for number in range(9)]
    assert sorted(side_by_side(jobs, 2)) == [(number, number) for number in range(9) for _ in range(2)]
    assert list(side_by_side([])) == []


def test_an_error_ends_all() -> None:
    before = threading.active_count()

    def endless() -> Iterator[int]:
        while True:
            yield 1

    def failing() -> Iterator[int]:
        yield 2
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        for _ in side_by_side([endless, failing, endless]):
            pass
    for _ in range(100):
        if threading.active_count() <= before:
            break
        threading.Event().wait(0.05)
    assert threading.active_count() <= before
