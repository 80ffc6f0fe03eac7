"""The objects of documents and of streams."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.objects import ManifestObject, NotAList, is_object, objects, yaml_list
from kubectl_dra.manifests.source import Source


def _objects(text: str) -> list[ManifestObject]:
    return list(objects(read_documents(text, "f.yaml")))


def test_lists_are_unpacked() -> None:
    text = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: a}}
- apiVersion: resource.k8s.io/v1
  kind: ResourceSliceList
  items:
  - metadata: {name: s}
  - {apiVersion: resource.k8s.io/v1beta1, kind: ResourceSlice, metadata: {name: t}}
---
apiVersion: v1
kind: Node
metadata: {name: n}
"""
    pod, first, second, node = _objects(text)
    assert (pod.kind, pod.path, pod.place()) == ("Pod", ("items", 0), "f.yaml:1 (item 0)")
    assert (first.api_version, first.kind) == ("resource.k8s.io/v1", "ResourceSlice")
    assert first.path == ("items", 1, "items", 0)
    assert first.document.position((*first.path, "metadata", "name")).line == 8
    assert second.api_version == "resource.k8s.io/v1beta1"
    assert (node.path, node.place()) == ((), "f.yaml:11")


@pytest.mark.parametrize("items", ["", "items: []", "items: null"])
def test_empty_lists(items: str) -> None:
    found = _objects(f"apiVersion: v1\nkind: PodList\n{items}\n")
    # Without the field it is an object whose kind happens to end so.
    assert [entry.kind for entry in found] == ([] if items else ["PodList"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: Pod", "f.yaml:1: not a Kubernetes object: it has no apiVersion"),
        ("# x\napiVersion: v1", "f.yaml:2: not a Kubernetes object: it has no kind"),
        ("apiVersion: v1\nkind: [x]", "it has no kind"),
        ("apiVersion: v1\nkind: List\nitems: x", "f.yaml:3:1: items of a List must be a list"),
        ("apiVersion: v1\nkind: List\nitems: [x]", "f.yaml:3:9: item 0 of the List has no apiVersion and kind"),
        ("apiVersion: v1\nkind: List\nitems: [{kind: Pod}]", "item 0 of the List"),
        ("apiVersion: v1\nkind: PodList\nitems: [1]", "item 0 of the PodList"),
    ],
)
def test_not_objects(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        _objects(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, True),
        ({"apiVersion": "", "kind": "Pod"}, False),
        ({"apiVersion": 1, "kind": "Pod"}, False),
        (["apiVersion", "kind"], False),
        (None, False),
    ],
)
def test_is_object(raw: Any, expected: bool) -> None:
    assert is_object(raw) is expected


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
