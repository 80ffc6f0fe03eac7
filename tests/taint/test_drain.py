"""What of a drain can be said without a cluster."""

from __future__ import annotations

import pytest

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.taint.drain import slices_of


@pytest.mark.parametrize(
    ("drivers", "query"),
    [
        (["gpu.example.com"], {"fieldSelector": "spec.driver=gpu.example.com"}),
        (["gpu.example.com", "gpu.example.com"], {"fieldSelector": "spec.driver=gpu.example.com"}),
        (["gpu.example.com", "nic.example.com"], {}),
        ([], {}),
    ],
)
def test_slices_of_one_driver_are_asked_for_by_the_driver(drivers: list[str], query: dict[str, str]) -> None:
    assert slices_of([DeviceID(driver, "n1", f"d-{number}") for number, driver in enumerate(drivers)]) == query
