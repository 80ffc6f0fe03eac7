"""Machine types of clouds name products that a driver publishes."""

from __future__ import annotations

import pytest

from kubectl_dra.data.drivers import catalogue
from kubectl_dra.data.machine_types import MachineType, machine_types

PRODUCTS = {product for driver in catalogue().drivers.values() for product in driver.products}


@pytest.mark.parametrize(("name", "machine"), machine_types().items(), ids=list(machine_types()))
def test_the_product_is_in_the_catalogue(name: str, machine: MachineType) -> None:
    assert machine.product in PRODUCTS
    assert 1 <= machine.devices <= 16


def test_names_differ_but_for_capitals() -> None:
    assert len({name.lower() for name in machine_types()}) == len(machine_types())
