"""Objects that replace stored ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.admission.server.verdict import check_update, check_written_status
from kubectl_dra.api.releases import parse_release
from kubectl_dra.cli.main import run

NEWEST = parse_release("1.37")


def claim(device_class: str, **metadata: Any) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "a", **metadata},
        "spec": {"devices": {"requests": [request]}},
    }


def test_the_spec_of_a_claim_stays() -> None:
    verdict = check_update(claim("nic"), claim("gpu"), release=NEWEST)
    assert verdict is not None
    assert [(one.field, one.reason) for one in verdict.violations] == [("spec", "Invalid")]


def test_what_the_server_fills_in_is_no_change() -> None:
    old = claim("gpu", uid="1")
    old["spec"]["devices"]["requests"][0]["exactly"] |= {"allocationMode": "ExactCount", "count": 1}
    verdict = check_update(claim("gpu", labels={"a": "b"}), old, release=NEWEST)
    assert verdict is not None
    assert verdict.accepted


def test_lint_judges_changes_of_what_is_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: NAME}}]}}
"""
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(text.replace("NAME", "gpu.example.com"))
    new.write_text(text.replace("NAME", "nic.example.com"))
    assert run(["lint", "--no-config", str(new)]) == 0
    assert run(["lint", "--no-config", "--old", str(old), str(old)]) == 0
    assert run(["lint", "--no-config", "--old", str(old), str(new)]) == 1
    assert "cannot be changed" in capsys.readouterr().out


def allocated(device: str) -> dict[str, Any]:
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": device}
    return {**claim("gpu", uid="1"), "status": {"allocation": {"devices": {"results": [result]}}}}


def test_a_status_is_judged_as_it_is_written() -> None:
    assert check_written_status(allocated("gpu-0"), release=NEWEST) == ()
    wrong = check_written_status(allocated("GPU 0"), release=NEWEST)
    assert [found.field for found in wrong] == ["status.allocation.devices.results[0].device"]


def test_a_written_status_changes_the_stored_one() -> None:
    same = check_written_status(allocated("gpu-0"), allocated("gpu-0"), release=NEWEST)
    other = check_written_status(allocated("gpu-1"), allocated("gpu-0"), release=NEWEST)
    assert [found.rule for found in (*same, *other)] == ["allocation-immutable"]


def test_the_status_of_a_taint_rule_needs_no_version_of_the_object() -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "a"},
        "spec": {"taint": {"key": "a", "effect": "NoSchedule"}},
        "status": {"conditions": [{"type": "EvictionInProgress", "status": "Maybe", "reason": "r", "message": ""}]},
    }
    found = check_written_status(rule, release=NEWEST)
    assert {one.field for one in found} == {
        "status.conditions[0].status",
        "status.conditions[0].lastTransitionTime",
    }
