"""Virtual machines of KubeVirt: their devices become claims where a file for --vendors says which class they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ran import ran

JSON = dict[str, Any]
VENDORS = r"""
vendor: machines
title: Our virtual machines
resources:
  - pattern: example\.org/A10
    kind: passthrough
    outcome: auto
    class: vfio.gpu.nvidia.com
    selectors: ["device.attributes['gpu.nvidia.com'].productName == 'NVIDIA A10'"]
  - pattern: example\.org/whole
    kind: whole
    outcome: auto
    class: gpu.nvidia.com
"""


def machine(devices: JSON, kind: str = "VirtualMachine", **spec: Any) -> JSON:
    instance = {"domain": {"devices": devices}, **spec}
    whole = {"VirtualMachineInstance": instance, "VirtualMachine": {"template": {"spec": instance}}}
    return {"apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": {"name": "vm"}, "spec": whole[kind]}


def migrated(folder: Path, raw: JSON, *flags: str) -> tuple[int, list[JSON], str]:
    """Exit code, the documents after ``--write --unsafe``, and what was said."""
    file, vendors = folder / "vm.yaml", folder / "vendors.yaml"
    file.write_text(yaml.safe_dump(raw, sort_keys=False))
    vendors.write_text(VENDORS)
    code, out, errors = ran("migrate", str(file), "--vendors", str(vendors), "--write", "--unsafe", *flags)
    return code, list(yaml.safe_load_all(file.read_text())), " ".join((out + errors).split())


def gpu(name: str, device: str = "example.org/A10") -> JSON:
    return {"name": name, "deviceName": device}


@pytest.mark.parametrize("kind", ["VirtualMachine", "VirtualMachineInstance"])
def test_devices_become_claims(kind: str, tmp_path: Path) -> None:
    raw = machine({"gpus": [gpu("a"), gpu("b")], "hostDevices": [gpu("c")]}, kind)
    code, (after, template), _ = migrated(tmp_path, raw)
    spec = after["spec"] if kind == "VirtualMachineInstance" else after["spec"]["template"]["spec"]
    names = [entry["name"] for entry in spec["resourceClaims"]]
    devices = spec["domain"]["devices"]
    assert code == 0 and len(set(names)) == 3
    assert {entry["resourceClaimTemplateName"] for entry in spec["resourceClaims"]} == {template["metadata"]["name"]}
    # Each has a claim of its own, and names no device any more.
    assert [one["claimName"] for one in (*devices["gpus"], *devices["hostDevices"])] == names
    assert "deviceName" not in json.dumps(after)
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert {one["requestName"] for one in devices["gpus"]} == {request["name"]}
    assert request["exactly"]["deviceClassName"] == "vfio.gpu.nvidia.com" and request["exactly"]["selectors"]
    code, out, _ = ran("lint", str(tmp_path / "vm.yaml"))
    assert "DRA413" not in out and "DRA414" not in out
    assert migrated(tmp_path, after)[1] == [after], "a second run changes nothing"


def test_it_is_unsafe_as_only_a_new_kubevirt_takes_it(tmp_path: Path) -> None:
    vendors, file = tmp_path / "vendors.yaml", tmp_path / "vm.yaml"
    vendors.write_text(VENDORS)
    file.write_text(yaml.safe_dump(machine({"gpus": [gpu("a")]})))
    code, out, _ = ran("migrate", str(file), "--vendors", str(vendors))
    said = " ".join(out.split())
    assert code == 1 and "KubeVirt takes it from 1.9 only, with GPUsWithDRA on" in said


def test_kubevirt_refuses_a_mixture_of_gpus(tmp_path: Path) -> None:
    raw = machine({"gpus": [gpu("a"), gpu("b", "example.org/unknown")], "hostDevices": [gpu("c")]})
    code, (after, _), said = migrated(tmp_path, raw)
    devices = after["spec"]["template"]["spec"]["domain"]["devices"]
    assert code == 1 and devices["gpus"] == raw["spec"]["template"]["spec"]["domain"]["devices"]["gpus"]
    assert "claimName" in devices["hostDevices"][0]
    assert "stays, because another GPU of the machine does" in said


def test_what_a_container_gets_is_not_for_a_machine(tmp_path: Path) -> None:
    raw = machine({"gpus": [gpu("a", "example.org/whole")]})
    code, after, said = migrated(tmp_path, raw)
    assert code == 1 and after == [raw] and "MIG112" in said


def test_claims_that_it_has_stay(tmp_path: Path) -> None:
    there = [{"name": "vfio", "resourceClaimName": "mine"}]
    nic = {"name": "n", "claimName": "vfio", "requestName": "r"}
    raw = machine({"gpus": [gpu("a")], "hostDevices": [nic]}, resourceClaims=there)
    _, (after, _), _ = migrated(tmp_path, raw)
    entries = after["spec"]["template"]["spec"]["resourceClaims"]
    assert entries[0] == there[0] and entries[1]["name"] == "vfio-2"


def test_without_a_name_nothing_can_be_named(tmp_path: Path) -> None:
    raw = {**machine({"gpus": [gpu("a")]}), "metadata": {}}
    code, after, said = migrated(tmp_path, raw)
    assert code == 1 and after == [raw] and "MIG117" in said
