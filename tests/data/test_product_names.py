"""Which products a part of a name means."""

from __future__ import annotations

import pytest

from kubectl_dra.data.product_names import meant

PRODUCTS = ("NVIDIA L4", "NVIDIA H100 NVL", "Tesla T4", "AMD_Instinct_MI300X_OAM", "tpu-v5-lite-device", "Gaudi")


@pytest.mark.parametrize(
    ("text", "products"),
    [
        ("L4", ["NVIDIA L4"]),
        ("nvidia-l4", ["NVIDIA L4"]),
        ("h100", ["NVIDIA H100 NVL"]),
        ("Instinct MI300X", ["AMD_Instinct_MI300X_OAM"]),
        ("TPU v5e", ["tpu-v5-lite-device"]),
        ("gaudi", ["Gaudi"]),
        # Vendors and brands.
        *((text, []) for text in ("nvidia", "NVIDIA", "amd", "AMD Instinct", "Tesla", "nvidia tesla", "tpu", "gpu")),
    ],
)
def test_a_model_means_products_and_a_vendor_none(text: str, products: list[str]) -> None:
    assert meant(text, PRODUCTS) == tuple(products)
