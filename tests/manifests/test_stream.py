from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.objects import objects
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.stream import NotAList, list_items

_ITEMS = st.lists(
    st.fixed_dictionaries(
        {"metadata": st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=5) | st.none())},
        optional={"kind": st.just("Node")},
    ),
    max_size=5,
)


@given(_ITEMS, st.permutations(["apiVersion", "kind", "metadata", "items"]), st.sampled_from([None, 2]))
def test_the_same_objects_as_reading_it_whole(items: list[Any], order: list[str], indent: int | None) -> None:
    items = [{"apiVersion": "v1", **item} if "kind" in item else item for item in items]
    fields = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": items}
    text = "\n" + json.dumps({key: fields[key] for key in order}, indent=indent) + "\n"
    expected = [entry.object for entry in objects(read_documents(text, "f"))]
    found = sorted(list_items(Source("f", text)), key=lambda entry: entry[0])
    assert [index for index, _ in found] == list(range(len(items)))
    assert [item for _, item in found] == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "a: 1",
        '{"kind": "Pod", "apiVersion": "v1"}',
        '{"kind": "PodList"}',
        '{"kind": "Pod", "items": []}',
        '{"kind": 1, "items": []}',
        '{"kind": "PodList", "items": {}}',
        '{"kind": "PodList", "items": [1 2]}',
        '{"kind": "PodList", "items": [1,]}',
        '{"kind": "PodList", "items": [1',
        '{"kind": "PodList", "items": [1]',
        '{"kind": "PodList", "items": [NaN]}',
        '{"kind": "PodList", "items": []} {"kind": "Pod"}',
        '{"kind" "PodList", "items": []}',
        "{1: 2}",
    ],
)
def test_not_a_list(text: str) -> None:
    with pytest.raises(NotAList):
        list(list_items(Source("f", text)))
