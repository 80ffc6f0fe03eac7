"""``device.attributes["DOMAIN/NAME"]``: one finding says what is meant, and no other attribute is written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest

from kubectl_dra.data.drivers import catalogue, vendor_files
from kubectl_dra.lint.finding import LocatedFinding
from kubectl_dra.lint.fixes import fix_text
from kubectl_dra.manifests.source import decode
from tests.lint.cases import FILE, mended, report_of
from tests.lint.support import selecting

CODES = ("DRA216", "DRA218", "DRA601")
WORD = re.compile(r"\w+")


def findings(text: str) -> Sequence[LocatedFinding]:
    return report_of(text).findings


def resources() -> Iterator[str]:
    for file in vendor_files().values():
        yield from (each["name"] for each in file.raw.get("resources", ()) if "/" in each.get("name", ""))


def keys() -> Iterator[tuple[str, str]]:
    """Keys with the class of the request."""
    for driver in catalogue().drivers.values():
        own = next((name for name in driver.attributes if "/" not in name), "model")
        device_class = next(iter(driver.classes), "gpu.example.com")
        for domain in (driver.name, *driver.classes, driver.name.partition(".")[2] or driver.name):
            for name in (own, "gpu", "zzz"):
                yield f"{domain}/{name}", device_class
    for resource in sorted(set(resources())):
        driver_of = catalogue().of_resource(resource)
        device_class = next(iter(driver_of.classes), "gpu.nvidia.com") if driver_of else "gpu.nvidia.com"
        yield resource, device_class


@pytest.mark.parametrize(("key", "device_class"), sorted(set(keys())), ids=str)
def test_a_key_is_explained_once_and_no_attribute_is_invented(key: str, device_class: str) -> None:
    for behind in ("", ".x", ".productName", ".string"):
        text = selecting(f'device.attributes["{key}"]{behind} == "a"', device_class)
        found = [finding for finding in findings(text) if finding.code in CODES]
        if not behind:
            # A map and a text do not compare, which the compiler says.
            assert not found
        else:
            assert [finding.code for finding in found] == ["DRA218"], (behind, found)
        after = mended(text).text.after
        added = set(WORD.findall(after.partition("expression")[2])) - set(WORD.findall(text.partition("expression")[2]))
        domains = {word for name in catalogue().names for word in WORD.findall(name)}
        known = {name for driver in catalogue().drivers.values() for name in driver.attributes}
        # Other words than domains are the right names for what was written, and guards of these.
        instead = {
            word
            for driver in catalogue().drivers.values()
            for names in driver.instead.values()
            for word in WORD.findall(names)
        }
        assert added <= domains | instead | {"has", "contains", "quantity", "compareTo", "semver"}, added
        assert not (added & known - instead), added
        if after != text and behind:
            assert not [finding for finding in findings(after) if finding.code in ("DRA216", "DRA218")]


@pytest.mark.parametrize(
    ("expression", "after"),
    [
        ('["nvidia.com/gpu"].productName == "a"', '["gpu.nvidia.com"].productName == "a"'),
        ('["nvidia.com/gpu"].x == "a"', None),
        ('["gpu.nvidia.com/gpu"].productName == "a"', '["gpu.nvidia.com"].productName == "a"'),
        ('["gpu.nvidia.com/productName"].string == "a"', '["gpu.nvidia.com"].productName == "a"'),
        ('["gpu.nvidia.com/productName"].x == "a"', None),
        ('["mig.nvidia.com/profile"].string == "1g.10gb"', '["gpu.nvidia.com"].profile == "1g.10gb"'),
        ('["nvidia.com/productName"].string == "a"', '["gpu.nvidia.com"].productName == "a"'),
        ('["nvidia.com/zzz"].string == "a"', None),
        ('["gpu.nvida.com/productName"].string == "a"', '["gpu.nvidia.com"].productName == "a"'),
        ('["gpu.nvidia.com/productName"] == "a"', '["gpu.nvidia.com"].productName == "a"'),
        ('["nvidia.com/gpu"] == "a"', None),
        ('["x.example.com/a-b"].string == "a"', None),
    ],
)
def test_what_is_written(expression: str, after: str | None) -> None:
    text = selecting(f"device.attributes{expression}")
    found = [finding for finding in findings(text) if finding.code in (*CODES, "DRA112")]
    assert len(found) == 1 and found[0].advice
    changed = fix_text(decode(text, FILE), found, ("safe", "unsafe"), lambda _, data: []).text.after
    assert changed == (text if after is None else text.replace(expression, after))
