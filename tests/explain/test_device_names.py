"""What a device is called for people: the product, and which part of it."""

from __future__ import annotations

import pytest

from kubectl_dra.explain.devices.device_state import model_of


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({"productName": "NVIDIA A30", "profile": "1g.6gb"}, "NVIDIA A30 1g.6gb"),
        (
            {"productName": "AMD_Instinct_MI300X_OAM", "partitionProfile": "dpx_nps1"},
            "AMD_Instinct_MI300X_OAM dpx_nps1",
        ),
        ({"productName": "MI300X", "computePartition": "cpx", "memoryPartition": "nps4"}, "MI300X cpx nps4"),
        ({"family": "AI"}, "AI"),
    ],
)
def test_the_part_follows_the_product(attributes: dict[str, str], name: str) -> None:
    assert model_of({f"gpu.example.com/{key}": {"string": value} for key, value in attributes.items()}) == name
