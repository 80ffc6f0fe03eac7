"""What the files say of each driver is consistent in itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import kubectl_dra.data.drivers
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.releases import Release
from kubectl_dra.api.semver import Semver
from kubectl_dra.cel import Environment, compile_expression
from kubectl_dra.data.driver_releases import DriverDefect, DriverGate, newest_before
from kubectl_dra.data.drivers import (
    Attribute,
    Driver,
    InstalledClass,
    PodLook,
    catalogue,
    parsed,
    vendor_files,
)
from kubectl_dra.manifests.changes import value_at

MESSAGES = Path(kubectl_dra.data.drivers.__file__).with_name("messages")
TO_ONE_POD = re.compile(r"(into|to) one pod\b|one claim per container")
OF_WHOLE_NODE = re.compile(r"all \w+ of a node (go to one claim|or none)", re.IGNORECASE)
each_driver = pytest.mark.parametrize("driver", catalogue().drivers.values(), ids=lambda driver: driver.name)


@each_driver
def test_kinds_and_classes_name_what_there_is(driver: Driver) -> None:
    kinds = {kind.name for kind in driver.kinds}
    for name, installed in driver.classes.items():
        assert set(installed.kinds) <= kinds, name
        assert bool(installed.extended_resource) == bool(installed.since), name
        for release in (Release(1, 34), Release(1, 36)) if installed.selector else ():
            compile_expression(Environment.for_release(release), installed.selector)
    for kind in driver.kinds:
        assert kind.always <= set(driver.attributes), kind.name
        assert kind.sometimes is None or kind.sometimes <= set(driver.attributes), kind.name
        assert kind.capacities <= set(driver.capacities), kind.name
        for name, value in kind.given.items():
            known = driver.attributes[name]
            assert value in (known.values or (True, False)), name


@each_driver
def test_what_products_have_is_of_the_right_type(driver: Driver) -> None:
    """A list of products needs the attribute that names them, and the other way round."""
    assert bool(driver.products) == bool(driver.product_attribute)
    names = driver.attributes[driver.product_attribute].values if driver.products else ()
    assert not names or names == driver.product_names
    for product, facts in driver.products.items():
        for name, value in facts.items():
            assert isinstance(value, str), product
            if name in driver.capacities:
                Quantity.parse(value)
                continue
            known = driver.attributes[name]
            assert known.type in ("string", "version") and not known.unique, (product, name)
            assert not known.values or value in known.values, (product, name)
            if known.type == "version":
                Semver.parse(value)


@each_driver
def test_attributes_have_types_and_examples_of_them(driver: Driver) -> None:
    for name, attribute in driver.attributes.items():
        assert attribute.type in ("", "string", "int", "bool", "version"), name
        if attribute.type == "version" and attribute.example:
            Semver.parse(attribute.example)
    for capacity in driver.capacities.values():
        if "example" in capacity:
            Quantity.parse(str(capacity["example"]))


@each_driver
def test_hints_lead_to_what_there_is(driver: Driver) -> None:
    for wrong, instead in driver.instead.items():
        kind, _, name = instead.partition(" ")
        assert wrong not in driver.attributes, wrong
        assert name in (driver.capacities if kind == "capacity" else driver.attributes), wrong
    assert not set(driver.removed) & set(driver.attributes)


@each_driver
def test_config_fields_have_known_types(driver: Driver) -> None:
    def check(fields: Any) -> None:
        if isinstance(fields, Mapping):
            for below in fields.values():
                check(below)
        else:
            assert isinstance(fields, list) or fields in ("int", "percent", "string", "bool", "quantity", "any"), fields

    for config in driver.configs or ():
        check(config.fields)
        assert set(config.devices) <= {kind.name for kind in driver.kinds}
        for field, others in config.beside.items():
            assert value_at(config.fields, tuple(field.split("."))) is not None
            assert all(value in value_at(config.fields, tuple(path.split("."))) for path, value in others.items())


def test_mig_profiles_fit_their_own_pattern() -> None:
    driver = catalogue().drivers["gpu.nvidia.com"]
    assert driver.mig_pattern is not None
    assert [one for one in driver.mig_profiles if not driver.mig_pattern.fullmatch(one)] == []


@pytest.mark.parametrize(
    ("product", "profile", "has"),
    [
        ("NVIDIA A100-SXM4-40GB", "3g.20gb", True),
        ("NVIDIA A100-SXM4-40GB", "1c.3g.20gb+me", True),
        ("NVIDIA A100-SXM4-40GB", "1c.3g.40gb+me", False),
        ("NVIDIA A100-SXM4-40GB", "", True),
        ("NVIDIA L4", "", False),
        ("NVIDIA A100X", "3g.40gb", None),
    ],
)
def test_which_partitions_a_product_can_have(product: str, profile: str, has: bool | None) -> None:
    assert catalogue().drivers["gpu.nvidia.com"].has_mig_profile(product, profile) is has


def test_what_drivers_refuse_is_known_without_reading_all_of_them() -> None:
    assert catalogue().whole_node == {"tpu.google.com"}
    assert catalogue().one_pod == {"dra.cpu", "dra.net", "sriovnetwork.k8snetworkplumbingwg.io"}


def test_what_is_told_of_a_driver_is_in_its_file() -> None:
    """A note, or what a message of its means, that says whom it gives a claim's devices: answers ask the fields."""
    told: dict[str, list[str]] = {name: list(driver.notes) for name, driver in catalogue().drivers.items()}
    for path in MESSAGES.glob("*.yaml"):
        file = yaml.safe_load(path.read_text())
        for name in {file["says"]} & set(told):
            told[name] += [entry["means"] for entry in file["messages"]]
    to_one = {name for name, texts in told.items() if any(TO_ONE_POD.search(text) for text in texts)}
    whole = {name for name, texts in told.items() if any(OF_WHOLE_NODE.search(text) for text in texts)}
    assert to_one == set(catalogue().one_pod) and whole == set(catalogue().whole_node)


def test_no_field_is_misspelled() -> None:
    own = {"driver", "mig", "hints", "pod", "whole_node", "one_pod"}
    known = own | set(Driver.__struct_fields__) - {"name", "mig_profiles", "mig_pattern", "mig_label", "without_mig"}
    known -= {"mig_by_product"}
    for file in vendor_files().values():
        for text in file.drivers.values():
            raw = parsed(text)
            assert set(raw) <= known, raw["driver"]
            assert set(raw.get("pod", ())) <= set(PodLook.__struct_fields__) - {"driver"}, raw["driver"]
            for name, attribute in (raw.get("attributes") or {}).items():
                assert set(attribute) <= set(Attribute.__struct_fields__), name
            for entry in raw.get("defects", ()):
                assert set(entry) <= set(DriverDefect.__struct_fields__), entry
            for entry in raw.get("gates", ()):
                assert set(entry) <= set(DriverGate.__struct_fields__), entry
            for entry in raw.get("classes", ()):
                assert set(entry) <= set(InstalledClass.__struct_fields__) - {"driver"}, entry
            for entry in raw.get("kinds", ()):
                assert set(entry) <= {"name", "where", "always", "sometimes", "always_capacities"}, entry


@pytest.mark.parametrize(
    ("driver", "release", "written"),
    [
        ("gpu.intel.com", "v0.8.0", "v1beta1"),
        ("gpu.intel.com", "v0.9.1", "v1"),
        ("gpu.intel.com", "v0.10.0-rc.1", "v1"),
        ("gpu.intel.com", "v0.5.1", ""),
        ("gpu.intel.com", "", ""),
        ("gpu.intel.com", "latest", ""),
        ("gaudi.intel.com", "v0.5.1", "v1beta1"),
        ("gpu.nvidia.com", "v25.8.1", "v1"),
        ("gpu.example.com", "v0.4.0", ""),
    ],
)
def test_the_api_version_that_a_release_writes(driver: str, release: str, written: str) -> None:
    assert catalogue().drivers[driver].api_version(release) == written


def test_names_hold_from_a_release_on() -> None:
    firsts = {"b": "1.10", "a": "1.9.2"}
    assert [newest_before(version, firsts) for version in ("1.9.1", "1.9.2", "1.10", "2")] == ["", "a", "b", "b"]


def test_a_taint_that_says_no_fault_is_one_that_the_driver_sets() -> None:
    passing = {driver.name: driver.passing_taints for driver in catalogue().drivers.values() if driver.passing_taints}
    assert passing and all(set(keys) <= set(catalogue().drivers[name].taints) for name, keys in passing.items())
