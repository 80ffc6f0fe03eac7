"""The vendors' files as a whole: each name stands once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kubectl_dra.data.drivers import FOLDER, VendorFile, catalogue, parsed, vendor_files
from kubectl_dra.manifests.documents import read_documents

each_file = pytest.mark.parametrize("file", vendor_files().values(), ids=lambda file: file.id)


def twice(names: Iterator[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def described() -> Iterator[Mapping[str, Any]]:
    for file in vendor_files().values():
        yield from map(parsed, file.drivers.values())


@each_file
def test_no_key_stands_twice_in_a_document(file: VendorFile) -> None:
    documents = read_documents((FOLDER / f"{file.id}.yaml").read_bytes(), file.id, strict=True)
    assert len(documents) == 1 + len(file.drivers)
    for document in documents:
        assert document.object


def test_each_driver_is_described_once() -> None:
    assert twice(raw["driver"] for raw in described()) == []
    assert {raw["driver"] for raw in described()} == set(catalogue().names)


def test_each_class_belongs_to_one_driver() -> None:
    assert twice(each["name"] for raw in described() for each in raw.get("classes", ())) == []


def test_the_names_of_classes_alone_are_those_of_the_drivers() -> None:
    of_drivers = {name for driver in catalogue().drivers.values() for name in driver.classes}
    assert set(catalogue().classes) == of_drivers
    assert "mig.nvidia.com" in of_drivers


def test_each_resource_has_one_entry() -> None:
    """A name of a second vendor counts only where other signs show that the vendor is meant."""
    entries = [entry for file in vendor_files().values() for entry in file.raw["resources"]]
    sure = [entry for entry in entries if entry.get("when") != "detected"]
    assert twice(entry.get("name") or entry["pattern"] for entry in sure) == []


@pytest.mark.parametrize("part", ["labels", "annotations", "beside"])
@each_file
def test_each_name_beside_a_resource_has_one_entry(file: VendorFile, part: str) -> None:
    entries = [
        (entry.get("where"), entry.get("key") or entry.get("name") or entry["pattern"])
        for entry in file.raw.get(part, ())
    ]
    assert twice(map(str, entries)) == []


@each_file
def test_a_vendor_tells_of_no_driver_beside_its_documents(file: VendorFile) -> None:
    assert not {"drivers", "classes"} & file.raw.keys()


@each_file
def test_resources_name_classes_and_drivers_that_are_described(file: VendorFile) -> None:
    for entry in file.raw["resources"]:
        if "class" in entry:
            assert catalogue().of_class(entry["class"]) is not None, entry
        if "driver" in entry:
            assert "class" not in entry, entry
            assert entry["driver"] in catalogue().names, entry


@each_file
def test_what_is_read_without_parsing_is_what_the_file_says(file: VendorFile) -> None:
    assert file.raw["vendor"] == file.id
    assert file.domains == tuple(file.raw["domains"])
    assert file.everyone == file.raw.get("everyone", False)
    for name, text in file.drivers.items():
        assert parsed(text)["driver"] == name


@pytest.mark.parametrize(
    ("resource", "driver"),
    [
        ("nvidia.com/gpu", "gpu.nvidia.com"),
        ("nvidia.com/gpu.shared", "gpu.nvidia.com"),
        ("nvidia.com/mig-1g.5gb", "gpu.nvidia.com"),
        ("nvidia.com/our-own-name", None),
        ("nvidia.com/gpumem", None),
        ("amd.com/cpx_nps4", "gpu.amd.com"),
        ("qat.intel.com/sym", "qat.intel.com"),
        ("aws.amazon.com/neuroncore", "neuron.aws.com"),
        ("rdma/hca", None),
        ("intel.com/sriov_111", None),
        ("cpu", None),
    ],
)
def test_whose_devices_a_device_plugin_offers(resource: str, driver: str | None) -> None:
    found = catalogue().of_resource(resource)
    assert (found.name if found else None) == driver


def test_labels_of_nodes_with_devices() -> None:
    assert catalogue().labels_of_nodes("gpu.nvidia.com") == ("nvidia.com/gpu.present",)
    assert catalogue().labels_of_nodes("no.such.driver") == ()
    # Each driver has some, or none.
    assert all(isinstance(catalogue().labels_of_nodes(name), tuple) for name in catalogue().names)
