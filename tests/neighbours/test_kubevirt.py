"""Virtual machines: explained through their pod, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra

SCHEMAS = Path(__file__).parents[2] / "schemas"

Json = dict[str, Any]
TWICE = 'Pod "virt-launcher-desktop-abcde" is invalid: spec.resourceClaims[1].name: Duplicate value: "vf"'
QUOTA = 'pods "virt-launcher-desktop-abcde" is forbidden: exceeded quota: team'


def instance(message: str = "") -> Json:
    condition = {"type": "Synchronized", "status": "False", "reason": "FailedCreate", "message": message}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "desktop", "namespace": "vms", "uid": "vmi"},
        "spec": {"domain": {"devices": {}}},
        "status": {"phase": "Pending", "conditions": [condition] if message else []},
    }


def event(message: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "desktop.1", "namespace": "vms"},
        "involvedObject": {"kind": "VirtualMachineInstance", "name": "desktop", "namespace": "vms", "uid": "vmi"},
        "reason": "FailedCreate",
        "message": f"Error creating pod: {message}",
        "count": 12,
        "firstTimestamp": "2026-09-20T09:01:00Z",
        "lastTimestamp": "2026-09-20T09:58:00Z",
    }


def launcher() -> Json:
    """The pod of the virtual machine, which waits for a claim that does not exist."""
    owner = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "name": "desktop",
        "uid": "vmi",
        "controller": True,
    }
    entries = [{"name": "gpu", "resourceClaimName": "missing"}]
    meta = {"name": "virt-launcher-desktop-x7k2p", "namespace": "vms", "uid": "p", "ownerReferences": [owner]}
    spec = {"containers": [{"name": "compute"}], "resourceClaims": entries}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


@pytest.fixture
def explain(dra: Callable[..., Ran], tmp_path: Path) -> Callable[..., Ran]:
    def run(words: str, *objects: Json) -> Ran:
        kinds = ["ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "DeviceTaintRule", "Pod"]
        kinds += ["Node", "Namespace", "ResourceQuota", "Event", "VirtualMachineInstance.kubevirt.io"]
        told = {"schemaVersion": "1", "serverVersion": "v1.36.2", "read": kinds}
        whole = {"apiVersion": "v1", "kind": "List", "kubectl-dra": told, "items": list(objects)}
        (path := tmp_path / "cluster.yaml").write_text(yaml.safe_dump(whole))
        return dra("explain", *words.split(), "--snapshot", str(path))

    return run


def said(ran: Ran) -> str:
    return " ".join(ran.out.split())


@pytest.mark.parametrize("target", ["vm/desktop", "vmi/desktop", "virtualmachine/desktop"])
def test_it_is_explained_through_its_pod(explain: Callable[..., Ran], target: str) -> None:
    ran = explain(f"{target} -n vms", instance(), launcher())
    assert ran.code == 1 and "claim-missing" in ran.out and "virt-launcher-desktop-x7k2p" in ran.out


@pytest.mark.parametrize(
    ("objects", "answer"),
    [
        ([instance(), event(TWICE)], "(12 times since 2026-09-20T09:01:00Z): Error creating pod: " + TWICE),
        ([instance(TWICE)], "the API server refuses it: " + TWICE),
    ],
)
def test_a_claim_that_kubevirt_lists_twice(explain: Callable[..., Ran], objects: list[Json], answer: str) -> None:
    for words in ("vm/desktop -n vms", "vmi/desktop"):
        ran = explain(words, *objects)
        assert ran.code == 1 and answer in said(ran) and "(kubevirt#16769)" in ran.out and "DRA414" in ran.out
    listed = explain("-n vms", *objects)
    assert listed.code == 1 and said(listed).startswith("VirtualMachineInstance vms/desktop has no pod")
    assert "Next: kubectl dra explain vmi/desktop -n vms" in listed.out


def test_a_virtual_machine_without_a_pod_as_data_and_in_lists(explain: Callable[..., Ran]) -> None:
    schema = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "explain.json").read_text()))
    refused = [instance(), event(TWICE)]
    ran = explain("vm/desktop -n vms -o json", *refused)
    found = json.loads(ran.out)
    schema.validate(found)
    assert (ran.code, found["kind"], found["subject"]["name"]) == (1, "VirtualMachineAnswer", "desktop")
    assert TWICE in found["answer"] and "kubevirt#16769" in found["fix"]["text"]
    listed = json.loads(explain("-n vms -o json", *refused).out)
    schema.validate(listed)
    assert listed["withoutPod"] == [{key: found[key] for key in ("subject", "answer", "fix", "next")}]
    assert explain("-n vms -o name", *refused).out == "vmi/desktop\n"
    (row,) = explain("-n vms --no-headers", *refused).out.splitlines()
    assert row.split()[:4] == ["vms", "vmi/desktop", "no-pod", "-"]
    assert explain("vm/desktop -n vms -o html", *refused).code == 2


def test_another_refusal_is_said_in_the_server_s_words(explain: Callable[..., Ran]) -> None:
    ran = explain("vmi/desktop -n vms", instance(), event(QUOTA))
    assert QUOTA in said(ran) and "16769" not in ran.out


def test_what_was_refused_before_there_was_a_pod_is_over(explain: Callable[..., Ran]) -> None:
    assert "has no pod" not in explain("-n vms", instance(TWICE), launcher()).out
    assert explain("-n vms", instance()).out == "No claim is pending in namespace vms.\n"


def test_nothing_says_why(explain: Callable[..., Ran]) -> None:
    ran = explain("vm/desktop -n vms", instance())
    assert ran.code == 2 and "no pod of VirtualMachine desktop" in ran.err
