from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.objects import ManifestObject, is_object, objects


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
