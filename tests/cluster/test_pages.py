from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_dra.cluster.pages import Ahead, split

_TEXT = st.sampled_from(["", "a", '},{"metadata":{', '"items":[{"metadata":{', "]", "\\", "ü"]) | st.text(max_size=4)
_INNER = st.recursive(
    _TEXT | st.integers(-9, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("metadata") | _TEXT, inner, max_size=3),
    max_leaves=4,
)
_ITEMS = st.lists(
    st.fixed_dictionaries({"metadata": st.dictionaries(_TEXT, _INNER, max_size=2)}, optional={"spec": _INNER}),
    max_size=4,
)

EASY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@EASY
@given(_ITEMS, st.sampled_from([(",", ":"), (", ", ": ")]), st.sampled_from(["", "\n"]), st.booleans())
def test_the_items_of_any_list(items: list[Any], separators: tuple[str, str], end: str, behind: bool) -> None:
    page: dict[str, Any] = {"kind": "PodList", "metadata": {"continue": "x"}, "items": items}
    if behind:
        page["apiVersion"] = "v1"
    data = (json.dumps(page, separators=separators, ensure_ascii=False) + end).encode()
    found = split(data)
    assert found is not None
    assert found.head["metadata"] == {"continue": "x"} and found.head.get("apiVersion") == ("v1" if behind else None)
    assert list(found.items) == items


def test_items_come_one_by_one() -> None:
    items = [{"metadata": {"name": str(index)}, "spec": {}} for index in range(3)]
    found = split(json.dumps({"items": items}, separators=(",", ":")).encode())
    assert found is not None and found.size == 3 and found.head == {"items": []}
    assert next(found.items) == items[0]


@pytest.mark.parametrize("text", ["", "<html>", "[]", "5", '{"items":[{"metadata":{}},{"metadata":{]}'])
def test_what_is_no_json_object(text: str) -> None:
    with pytest.raises(ValueError):
        found = split(text.encode())
        list(found.items if found else ())


@pytest.mark.parametrize("text", ['{"items":{"a":1}}', '{"items":"x"}'])
def test_what_is_no_list(text: str) -> None:
    assert split(text.encode()) is None


def test_work_goes_on_meanwhile() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work() -> int:
        begun.set()
        assert go_on.wait(10)
        return 7

    ahead = Ahead(work)
    assert begun.wait(10)
    go_on.set()
    assert ahead.result() == 7


def test_an_error_comes_with_the_result() -> None:
    def work() -> int:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        Ahead(work).result()
