"""What is opaque to Kubernetes and not to drivers: their parameters in claims and classes, as an editor shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lsp.cursor import cursor_at
from kubectl_dra.lsp.fields import STRUCT, parameter_page, parameters_at, prose
from tests.lsp.editor import Editor, edit

CLAIM = """apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: shared
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
    config:
    - opaque:
        driver: compute-domain.nvidia.com
        parameters:
          apiVersion: resource.nvidia.com/v1beta1
          kind: ComputeDomainChannelConfig
          allocationMode: All
    - requests: [gpu]
      opaque:
        driver: gpu.nvidia.com
        parameters:
          apiVersion: resource.nvidia.com/v1beta1
          kind: GpuConfig
          sharing:
            strategy: TimeSlicing
            timeSlicingConfig:
              interval: Short
"""


def test_hover_says_what_a_parameter_is(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        assert [found.code for found in await editor.open("claim.yaml", CLAIM)] == ["DRA608"]
        told = await editor.hover("strategy", 1)
        assert told.startswith("**strategy** of GpuConfig") and "`TimeSlicing`, `MPS`" in told and "turn" in told
        assert "interval" in await editor.hover("timeSlicingConfig:", 1)
        told = await editor.hover("allocationMode", 1)
        assert "ComputeDomainChannelConfig" in told and "`Single`, `All`" in told
        assert "`MigDeviceConfig`" in await editor.hover("GpuConfig", 1)

    edit(tmp_path, act)


def test_keys_and_values_are_proposed(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        await editor.open("claim.yaml", CLAIM)
        assert {*await editor.complete("Short", 0)} == {"Default", "Short", "Medium", "Long"}
        assert {*await editor.complete("GpuConfig", 0)} == {"GpuConfig", "MigDeviceConfig", "VfioDeviceConfig"}
        assert {*await editor.complete("kind: ComputeDomainChannelConfig", 6)} == {
            "ComputeDomainChannelConfig",
            "ComputeDomainDaemonConfig",
        }
        assert {*await editor.complete("resource.nvidia.com/v1beta1", 0)} == {"resource.nvidia.com/v1beta1"}
        await editor.type(CLAIM + "            m")
        (proposed,) = (await editor.complete("Short\n            m", 19)).values()
        assert proposed.label == "mpsConfig"
        await editor.type(CLAIM.replace("          kind: GpuConfig\n", "          k\n"))
        assert "kind" in await editor.complete("          k\n", 11)
        vfio = CLAIM[: CLAIM.index("          kind: GpuConfig")] + "          kind: VfioDeviceConfig\n          "
        await editor.type(vfio)
        assert {*await editor.complete("VfioDeviceConfig\n          ", 27)} == {"iommu"}
        await editor.type(f"{vfio}iommu:\n            enableAPIDevice: ")
        assert {*await editor.complete("enableAPIDevice: ", 17)} == {"true", "false"}

    edit(tmp_path, act)


def test_a_wrong_key_or_value_is_found_and_can_be_mended(tmp_path: Path) -> None:
    async def act(editor: Editor) -> None:
        (found,) = await editor.open("claim.yaml", CLAIM.replace("strategy", "stategy"))
        assert found.code == "DRA604"
        actions = await editor.actions("stategy")
        assert any(editor.applied(action) == CLAIM for action in actions.values() if action.edit)
        assert "DRA604" in [found.code for found in await editor.type(CLAIM.replace("Short", "short"))]

    edit(tmp_path, act)


@pytest.mark.parametrize("name", [name for name in catalogue().drivers if catalogue().drivers[name].configs])
def test_every_parameter_of_the_catalogue_has_a_page(name: str) -> None:
    """Also in a map on one line."""
    for config in catalogue().drivers[name].configs or ():
        text = (
            "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a}\nspec:\n  config:\n"
            f"  - opaque: {{driver: {name}, parameters: {{kind: {config.kind or 'x'}, here: 1}}}}\n"
        )
        offset = text.index("here") + 1
        inside = parameters_at(text, offset, cursor_at(text, offset))
        assert inside is not None and inside.driver.name == name and inside.config == config
        for field in config.fields:
            assert parameter_page(inside, (field,)).startswith(f"**{field}** of ")


def test_other_places_have_no_parameters() -> None:
    for words in ("requests: [gpu]", "driver: gpu.nvidia.com", "parameters:", "deviceClassName"):
        offset = CLAIM.index(words) + 1
        assert parameters_at(CLAIM, offset, cursor_at(CLAIM, offset)) is None, words
    unknown = CLAIM.replace("gpu.nvidia.com\n        param", "gpu.unknown.example\n        param")
    offset = unknown.index("strategy") + 1
    assert parameters_at(unknown, offset, cursor_at(unknown, offset)) is None


def test_parameters_of_nvidia_have_prose() -> None:
    for name in ("apiVersion", "kind", "sharing", "strategy", "interval", "domainID", "allocationMode"):
        assert prose(STRUCT, name)
