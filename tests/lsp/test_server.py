from __future__ import annotations

from pathlib import Path

from kubectl_dra.lsp.checks import migrated
from tests.lsp.editor import Editor, edit
from tests.migrate.runs import settings

SNAPSHOT = Path(__file__).parent.parent.parent / "examples" / "explain" / "no-device-matches" / "cluster.yaml"
CLAIM = """apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: gpu
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
        selectors:
        - cel:
            expression: device.attributes["gpu.nvidia.com"].productname == "NVIDIA A100-SXM4-40GB"
"""
POD = """apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  containers:
  - name: train
    image: train
    resources:
      limits:
        nvidia.com/gpu: 1
"""


def test_a_wrong_attribute_is_underlined_explained_and_fixed(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        (found,) = await editor.open("claim.yaml", CLAIM)
        assert found.code == "DRA601"
        lines = CLAIM.split("\n")
        underlined = lines[found.range.start.line][found.range.start.character : found.range.end.character]
        assert underlined == 'device.attributes["gpu.nvidia.com"].productname'
        assert "DRA601" in await editor.hover("productname")
        actions = await editor.actions("productname")
        fix = next(action for title, action in actions.items() if "productName" in title)
        fixed = editor.applied(fix)
        assert fixed == CLAIM.replace("productname", "productName")
        assert await editor.type(fixed) == []

    edit(tmp_path, act)


def test_a_finding_can_be_ignored(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        (found,) = await editor.open("claim.yaml", CLAIM)
        actions = await editor.actions("productname")
        silenced = editor.applied(actions[f"Ignore {found.code} here"])
        assert f"            # kubectl-dra: ignore[{found.code}]" in silenced
        assert await editor.type(silenced.replace("] \n", "] a driver of ours\n")) == []

    edit(tmp_path, act)


def test_device_plugins_are_rewritten(tmp_path: Path) -> None:
    async def act(editor: Editor) -> str:
        await editor.open("pod.yaml", POD)
        actions = await editor.actions("nvidia.com/gpu")
        return editor.applied(next(action for title, action in actions.items() if "kubectl dra migrate" in title))

    after = edit(tmp_path, act)
    assert "kind: ResourceClaimTemplate" in after and "nvidia.com/gpu: 1" not in after


def test_counts_in_patches_are_not_taken_out_without_a_build() -> None:
    text = (
        "patches:\n- target: {kind: Pod}\n  patch: |-\n    - op: replace\n"
        "      path: /spec/containers/0/resources/limits/nvidia.com~1gpu\n      value: 8\n"
    )
    assert migrated("kustomization.yaml", text, settings()) == text
    assert migrated("pod.yaml", POD, settings()) != POD


def test_attributes_are_those_of_the_snapshot(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        text = CLAIM.replace("productname", "productName")
        await editor.open("claim.yaml", text)
        told = await editor.hover("productName")
        assert "string" in told and "On 16 of 16 devices" in told and "`NVIDIA A100-SXM4-40GB` (16)" in told
        assert "**Default**" not in told
        typed = text.replace('"].productName == "NVIDIA A100-SXM4-40GB"', '"].')
        await editor.type(typed)
        names = await editor.complete('gpu.nvidia.com"].', len('gpu.nvidia.com"].'))
        assert names["architecture"].detail == "string, on 16 devices"
        await editor.type(text.replace('"NVIDIA A100-SXM4-40GB"', '"'))
        assert [*await editor.complete('productName == "', len('productName == "'))] == ["NVIDIA A100-SXM4-40GB"]

    edit(tmp_path, act, "--snapshot", str(SNAPSHOT))


def test_fields_and_classes_are_proposed_and_explained(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        await editor.open("claim.yaml", CLAIM)
        assert "DeviceClass **gpu.nvidia.com**" in await editor.hover("gpu.nvidia.com\n")
        assert (await editor.hover("selectors")).startswith("**selectors**: list of DeviceSelector")
        typed = CLAIM.replace("        selectors:", "        \n        selectors:")
        await editor.type(typed)
        fields = await editor.complete("        \n        selectors", 8)
        assert "allocationMode" in fields and "deviceClassName" not in fields
        await editor.type(CLAIM.replace("deviceClassName: gpu.nvidia.com", "deviceClassName: g"))
        assert "mig.nvidia.com" in await editor.complete("deviceClassName: g", len("deviceClassName: g"))

    edit(tmp_path, act)


def test_a_text_that_is_being_typed_is_no_reason_to_end(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        await editor.open("claim.yaml", CLAIM)
        for end in range(0, len(CLAIM), 23):
            await editor.type(CLAIM[:end])
            await editor.complete(CLAIM[:end], end)
            await editor.hover(CLAIM[:end], end)
        assert len(await editor.type(CLAIM)) == 1

    edit(tmp_path, act)
