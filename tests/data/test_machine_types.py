"""Machine types of clouds: each row is whole, and names a product that a driver publishes."""

from __future__ import annotations

import re

import pytest

from kubectl_dra.data.clouds import MachineType, machine_groups, machine_types
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.data.product_names import meant

PRODUCTS = {product for driver in catalogue().drivers.values() for product in driver.products}
NVIDIA = catalogue().drivers["gpu.nvidia.com"]
ROWS = pytest.mark.parametrize(("name", "machine"), machine_types().items(), ids=list(machine_types()))


@ROWS
def test_the_product_is_in_the_catalogue(name: str, machine: MachineType) -> None:
    assert machine.product in PRODUCTS
    assert 1 <= machine.devices <= 16


@ROWS
def test_the_node_has_cpus_and_memory(name: str, machine: MachineType) -> None:
    assert machine.cpu >= 1
    assert re.fullmatch(r"[1-9]\d*Gi", machine.memory)
    # Clouds give such machines 1.7 to 21.3 GiB for each CPU: a slip of a digit is outside.
    assert 1 <= int(machine.memory.removesuffix("Gi")) / machine.cpu <= 24


@pytest.mark.parametrize(
    "product", sorted({one.product for one in machine_types().values() if "tpu" not in one.product})
)
def test_an_nvidia_product_means_itself_and_its_kind_is_known(product: str) -> None:
    assert meant(product, NVIDIA.product_names) == (product,)
    assert NVIDIA.products[product].keys() >= {"architecture", "cudaComputeCapability"}


def test_names_differ_but_for_capitals() -> None:
    names = [name for group in machine_groups() for name in group.machines]
    assert len({name.lower() for name in names}) == len(names)


def test_each_group_says_where_its_figures_are_from() -> None:
    assert all(group.sources and all(url.startswith("https://") for url in group.sources) for group in machine_groups())
