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


def reversed_(folder: Path, *flags: str) -> tuple[int, list[JSON], str]:
    file, vendors = folder / "vm.yaml", folder / "vendors.yaml"
    code, out, errors = ran("migrate", str(file), "--vendors", str(vendors), "--reverse", "--write", *flags)
    return code, list(yaml.safe_load_all(file.read_text())), " ".join((out + errors).split())


@pytest.mark.parametrize("kind", ["VirtualMachine", "VirtualMachineInstance"])
def test_claims_become_device_names_again(kind: str, tmp_path: Path) -> None:
    there = [{"name": "mine", "resourceClaimName": "mine"}]
    nic = {"name": "n", "claimName": "mine", "requestName": "r"}
    for raw in (
        machine({"gpus": [gpu("a"), gpu("b")], "hostDevices": [gpu("c")]}, kind),
        machine({"gpus": [gpu("a")], "hostDevices": [nic]}, kind, resourceClaims=there),
    ):
        assert migrated(tmp_path, raw)[1] != [raw]
        code, after, said = reversed_(tmp_path)
        assert after == [raw] and "MIG501" in said
        # The claim that somebody else wrote stays, and is told.
        assert code == (1 if "mine" in str(raw) else 0)


def test_a_template_that_a_machine_uses_stays(tmp_path: Path) -> None:
    _, (after, template), _ = migrated(tmp_path, machine({"gpus": [gpu("a")]}))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    entry = [{"name": "vfio", "resourceClaimTemplateName": template["metadata"]["name"]}]
    container = {"name": "c", "image": "c", "resources": {"claims": [{"name": "vfio"}]}}
    pod = {**pod, "spec": {"resourceClaims": entry, "containers": [container]}}
    after["spec"]["template"]["spec"]["domain"]["devices"]["gpus"][0]["requestName"] = "other"
    (tmp_path / "vm.yaml").write_text(yaml.safe_dump_all([after, template, pod]))
    code, documents, said = reversed_(tmp_path, "--unsafe")
    assert code == 1 and template in documents and after in documents, said


@pytest.mark.parametrize("change", ["selectors", "request", "name", "two"])
def test_what_migrate_has_not_made_is_refused(change: str, tmp_path: Path) -> None:
    _, (after, template), _ = migrated(tmp_path, machine({"gpus": [gpu("a"), gpu("b")]}))
    spec = after["spec"]["template"]["spec"]
    gpus = spec["domain"]["devices"]["gpus"]
    exactly = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    if change == "selectors":
        exactly["selectors"].append({"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}})
    elif change == "request":
        gpus[0]["requestName"] = "other"
    elif change == "name":
        template["metadata"]["name"] = "by-hand"
        spec["resourceClaims"] = [{**one, "resourceClaimTemplateName": "by-hand"} for one in spec["resourceClaims"]]
    else:
        gpus[1]["claimName"] = gpus[0]["claimName"]
    (tmp_path / "vm.yaml").write_text(yaml.safe_dump_all([after, template]))
    code, documents, said = reversed_(tmp_path, "--unsafe")
    assert code == 1 and "MIG5" in said
    assert documents == [after, template], said
