"""Comments about a request stand at the claim afterwards; all others stay where they are."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.manifests.changes import Append, Change, Delete, Set
from kubectl_dra.migrate.device_plugins.pods import tidied
from kubectl_dra.migrate.engine import MIGRATIONS
from tests.migrate.runs import after

DEVICE_PLUGINS = MIGRATIONS[1]

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  containers:
  - name: train
    image: registry.example.com/train:1
    resources:
"""
CLAIMS = """\
      claims:
      - name: gpu
        request: gpu
"""

# (resources before, resources after)
MOVED = {
    "above": (
        "      limits:\n        memory: 8Gi\n        # the model does not fit on one\n        nvidia.com/gpu: 2\n",
        f"      limits:\n        memory: 8Gi\n      # the model does not fit on one\n{CLAIMS}",
    ),
    "beside": (
        "      limits:\n        nvidia.com/gpu: 2  # tensor parallel\n        memory: 8Gi  # for the cache\n",
        f"      limits:\n        memory: 8Gi  # for the cache\n      # tensor parallel\n{CLAIMS}",
    ),
    "of limits and requests": (
        "      limits:\n        nvidia.com/gpu: 2  # one\n      requests:\n        # two\n        nvidia.com/gpu: 2\n"
        "        # of the cpu\n        cpu: 1\n",
        f"      requests:\n        # of the cpu\n        cpu: 1\n      # one\n      # two\n{CLAIMS}",
    ),
    "around the only limit": (
        "      # GPUs\n      limits:\n        # one\n        nvidia.com/gpu: 1 # two\n        # three\n",
        f"      # GPUs\n      # one\n      # two\n      # three\n{CLAIMS}",
    ),
    "what is switched off stays": (
        "      limits:\n        memory: 8Gi\n        # cpu: 4\n        # two\n        nvidia.com/gpu: 2\n",
        f"      limits:\n        memory: 8Gi\n        # cpu: 4\n      # two\n{CLAIMS}",
    ),
    "of another one": (
        "      limits:\n        # for the cache\n        memory: 8Gi\n\n        nvidia.com/gpu: 2\n",
        f"      limits:\n        # for the cache\n        memory: 8Gi\n\n{CLAIMS}",
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_comments_of_a_request_go_with_it(name: str) -> None:
    before, wanted = MOVED[name]
    for newline in ("\n", "\r\n"):
        text = (POD + before).replace("\n", newline)
        found = after(text, migrations=(DEVICE_PLUGINS,))
        assert found.startswith((POD + wanted).replace("\n", newline))


def test_a_comment_of_a_label_goes_with_the_claim() -> None:
    labels = "  nodeSelector:\n    # only these are large enough\n    nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3\n"
    text = f"{POD}      limits:\n        nvidia.com/gpu: 1\n{labels}    disk: ssd # fast\n"
    found = after(text, migrations=(DEVICE_PLUGINS,))
    assert "  # only these are large enough\n  resourceClaims:\n" in found
    assert "  nodeSelector:\n    disk: ssd # fast\n" in found


def test_comments_of_each_document_stay_in_it() -> None:
    text = f"{POD}      limits:\n        # for {{}}\n        nvidia.com/gpu: 1\n        cpu: 1\n"
    names = ("a", "b", "c")
    found = after("---\n".join(text.format(name).replace("name: train\nspec", f"name: {name}\nspec") for name in names))
    assert found.count("# for") == 3
    found = after(
        "---\n".join(text.format(name).replace("name: train\nspec", f"name: {name}\nspec") for name in names),
        migrations=(DEVICE_PLUGINS,),
    )
    parts = [part for part in found.split("---\n") if "kind: Pod" in part]
    for name, part in zip(names, parts, strict=True):
        assert f"      # for {name}\n      claims:" in part and f"name: {name}\n" in part


# What deletions leave empty goes with them, and nothing else.


RAW: dict[str, Any] = {
    "resources": {"limits": {"a": 1, "b": 2}, "requests": {"a": 1}},
    "env": [{"name": "X"}, {"name": "Y"}],
    "other": {"a": 1},
}
LIMITS = ("resources", "limits")
REQUESTS = ("resources", "requests")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([Delete((*LIMITS, "a"))], [Delete((*LIMITS, "a"))]),
        ([Delete((*LIMITS, "a")), Delete((*LIMITS, "a"))], [Delete((*LIMITS, "a"))]),
        ([Delete((*LIMITS, "a")), Delete((*LIMITS, "b"))], [Delete(LIMITS)]),
        ([Delete((*LIMITS, "a")), Delete((*LIMITS, "b")), Delete((*REQUESTS, "a"))], [Delete(("resources",))]),
        (
            [Delete((*REQUESTS, "a")), Set(("resources", "claims"), [])],
            [Set(("resources", "claims"), []), Delete(REQUESTS)],
        ),
        ([Delete((*REQUESTS, "a")), Set((*REQUESTS, "c"), 1)], [Delete((*REQUESTS, "a")), Set((*REQUESTS, "c"), 1)]),
        ([Delete(("env", 0)), Delete(("env", 1))], [Delete(("env",))]),
        ([Delete(("env", 0)), Append(("env",), {})], [Delete(("env", 0)), Append(("env",), {})]),
        ([Delete(("other", "a"))], [Delete(("other", "a"))]),
    ],
)
def test_tidied(changes: list[Change], expected: list[Change]) -> None:
    assert list(tidied(RAW, changes)) == expected
