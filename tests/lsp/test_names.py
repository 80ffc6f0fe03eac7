"""Names in manifests: completion of what is there, go to definition across files, the outline of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types as lsp

from tests.lsp.editor import Editor, edit

CLASS = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata:\n  name: big.example.com\nspec: {}\n"
TEMPLATE = """apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: two-gpus
spec:
  spec:
    devices:
      requests:
      - name: large
        exactly:
          deviceClassName: big.example.com
      - name: small
        exactly:
          deviceClassName: big.example.com
      constraints:
      - requests: [large, small]
        matchAttribute: example.com/zone
"""
POD = """apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  containers:
  - name: main
    image: train
    resources:
      claims:
      - name: gpus
        request: large
  resourceClaims:
  - name: gpus
    resourceClaimTemplateName: two-gpus
"""


def named(places: list[lsp.Location], folder: Path, *texts: str) -> list[tuple[str, str]]:
    """The files and the lines of places."""
    by_name = dict(zip(("pod.yaml", "template.yaml", "class.yaml"), texts, strict=False))
    return [
        (name := place.uri.rpartition("/")[2], by_name[name].split("\n")[place.range.start.line].strip())
        for place in places
    ]


def test_from_pod_to_template_to_class_across_files(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    texts = (POD, TEMPLATE, CLASS)

    async def act(editor: Editor) -> None:
        # The class is open and in another folder; the template is beside the pod, and not open.
        await editor.open("beside/class.yaml", CLASS)
        await editor.open("pod.yaml", POD)
        found = await editor.definition("two-gpus")
        assert named(found, tmp_path, *texts) == [("template.yaml", "name: two-gpus")]
        assert named(await editor.definition("gpus\n        request"), tmp_path, *texts) == [
            ("pod.yaml", "- name: gpus")
        ]
        assert named(await editor.definition("large"), tmp_path, *texts) == [("template.yaml", "- name: large")]
        assert await editor.definition("image") == []
        await editor.open("template.yaml", TEMPLATE)
        assert named(await editor.definition("big.example"), tmp_path, *texts) == [
            ("class.yaml", "name: big.example.com")
        ]
        assert named(await editor.definition("small]"), tmp_path, *texts) == [("template.yaml", "- name: small")]

    edit(tmp_path, act)


def test_names_are_proposed(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        await editor.open("template.yaml", TEMPLATE)
        await editor.open("pod.yaml", POD)
        behind = len("resourceClaimTemplateName: ")
        assert [*await editor.complete("resourceClaimTemplateName: ", behind)] == ["two-gpus"]
        assert [*await editor.complete("request: large", len("request: "))] == ["large", "small"]
        await editor.type(POD.replace("      - name: gpus\n        request: large", "      - name: "))
        assert [*await editor.complete("      - name: ", len("      - name: "))] == ["gpus"]

    edit(tmp_path, act)


def test_values_are_proposed(tmp_path: Path) -> None:
    text = TEMPLATE.replace("apiVersion: resource.k8s.io/v1", "apiVersion: ", 1)

    async def act(editor: Editor) -> None:
        await editor.open("template.yaml", text)
        assert "resource.k8s.io/v1" in await editor.complete("apiVersion: ", len("apiVersion: "))
        await editor.type(TEMPLATE.replace("ResourceClaimTemplate", "", 1))
        assert "ResourceClaimTemplate" in await editor.complete("kind: ", len("kind: "))
        await editor.type(TEMPLATE.replace("big.example.com\n", "gpu.nvidia.com\n          allocationMode: \n", 1))
        modes = await editor.complete("allocationMode: ", len("allocationMode: "))
        assert {*modes} == {"All", "ExactCount"} and modes["ExactCount"].detail == "default"
        await editor.type(TEMPLATE.replace("example.com/zone", "gpu"))
        assert "gpu.nvidia.com/productName" in await editor.complete("matchAttribute: gpu", len("matchAttribute: gpu"))
        selector = 'expression: device.attributes["gpu.nvidia.com"].productName == "'
        under = f"big.example.com\n          selectors:\n          - cel:\n              {selector}\n"
        await editor.type(TEMPLATE.replace("big.example.com\n", under, 1))
        products = await editor.complete(selector, len(selector))
        assert len(products) > 5 and "NVIDIA A100-SXM4-40GB" in products

    edit(tmp_path, act)


def test_kinds_and_claims_are_explained(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        await editor.open("pod.yaml", POD)
        assert "a claim of its own" in await editor.hover("resourceClaimTemplateName")
        assert "Containers name them" in await editor.hover("resourceClaims")
        assert "Only the devices of this request" in await editor.hover("request: large")
        await editor.open("template.yaml", TEMPLATE)
        assert (await editor.hover("ResourceClaimTemplate")).startswith("**ResourceClaimTemplate**: ")
        assert "group and version" in await editor.hover("apiVersion")
        assert "serves `resource.k8s.io/v1`" in await editor.hover("resource.k8s.io/v1")

    edit(tmp_path, act)


def test_the_outline_of_a_file(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        await editor.open("all.yaml", f"{POD}---\n{TEMPLATE}---\n: broken [\n---\n{CLASS}")
        symbols = await editor.symbols()
        assert [(symbol.detail, symbol.name) for symbol in symbols] == [
            ("Pod", "train"),
            ("ResourceClaimTemplate", "two-gpus"),
            ("DeviceClass", "big.example.com"),
        ]
        assert [(symbol.detail, symbol.name) for symbol in symbols[1].children or ()] == [
            ("request", "large"),
            ("request", "small"),
        ]
        assert [(symbol.detail, symbol.name) for symbol in symbols[0].children or ()] == [("claim", "gpus")]
        for symbol in symbols:
            assert symbol.range.start <= symbol.selection_range.start and symbol.selection_range.end <= symbol.range.end

    edit(tmp_path, act)


GUESSES = [
    ("allocationMode: exactcont", "exactcont", "allocationMode: ExactCount", "Did you mean ExactCount? (DRA108)"),
    (
        "tolerations: [{operator: Exits, effect: NoExecute}]",
        "Exits",
        "operator: Exists",
        "Did you mean Exists? (DRA108)",
    ),
]


@pytest.mark.parametrize(("written", "wrong", "right", "title"), GUESSES)
def test_what_was_probably_meant_is_offered_and_not_made(
    tmp_path: Path, written: str, wrong: str, right: str, title: str
) -> None:
    text = TEMPLATE.replace("big.example.com\n", f"big.example.com\n          {written}\n", 1)

    async def act(editor: Editor) -> None:
        await editor.open("template.yaml", text)
        actions = await editor.actions(wrong)
        assert right in editor.applied(actions[title]) and not actions[title].is_preferred
        assert not any("--fix" in action for action in actions)

    edit(tmp_path, act)


def test_all_safe_fixes_at_once(tmp_path: Path) -> None:
    text = TEMPLATE.replace("deviceClassName", "deviceClasName").replace("matchAttribute", "matchAtribute")

    async def act(editor: Editor) -> None:
        await editor.open("template.yaml", text)
        actions = await editor.actions("kind")
        fixed = actions["Make all safe fixes in this file (kubectl dra lint --fix)"]
        assert fixed.kind == lsp.CodeActionKind.SourceFixAll
        assert editor.applied(fixed) == TEMPLATE

    edit(tmp_path, act)
