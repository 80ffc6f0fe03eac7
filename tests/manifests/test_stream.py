from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.objects import NotAList, objects, yaml_list
from kubectl_dra.manifests.source import Source

_TEXTS = st.text(max_size=5) | st.sampled_from(["a\n- b\n", "- x", "\n{", "items:\n- ", "---\n", "# c"])
_VALUES = st.integers(-(2**63), 2**64 - 1) | _TEXTS | st.lists(_TEXTS, max_size=2) | st.none()
_ITEMS = st.lists(
    st.fixed_dictionaries(
        {"metadata": st.dictionaries(st.text(max_size=3), _VALUES)},
        optional={"kind": st.just("Node")},
    ),
    max_size=5,
)

EASY = settings(suppress_health_check=[HealthCheck.too_slow])


@EASY
@given(_ITEMS, st.permutations(["apiVersion", "kind", "metadata", "items"]), st.booleans(), st.booleans())
def test_the_same_objects_as_reading_yaml_whole(items: list[Any], order: list[str], marker: bool, flow: bool) -> None:
    items = [{"apiVersion": "v1", **item} if "kind" in item else item for item in items]
    fields = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": items}
    written = {key: fields[key] for key in order}
    text = yaml.safe_dump(written, sort_keys=False, explicit_start=marker, default_flow_style=flow)
    try:
        head, found = yaml_list(Source("f", text))
    except NotAList:
        assert flow or not items
        return
    assert head == {key: fields[key] for key in order if key != "items"}
    expected = [entry.object for entry in objects(read_documents(text, "f"))]
    assert [item for _, item in found] == expected


LIST = "apiVersion: v1\nkind: List\nitems:\n- a: 1\n- b: 2\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: 1",
        "items:\n- a: 1\n",
        LIST.replace("List", "Pod"),
        LIST.replace("\n", "\r\n"),
        LIST + "---\na: 1\n",
        LIST + "items: []\n",
        LIST + "-\n  c: 3\n",
        LIST + "- 5\n",
        LIST + "- c: [\n",
        LIST + "- &x {c: 3}\n- *x\n",
        LIST + "- c: '\n- d'\n",
        LIST + "- {{ .Values.c }}: 3\n",
        "- a\nitems:\n- a: 1\n",
    ],
)
def test_not_a_list_in_yaml(text: str) -> None:
    with pytest.raises(NotAList):
        list(yaml_list(Source("f", text))[1])
