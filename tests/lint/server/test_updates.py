"""Objects that replace stored ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.api.versions import parse_release
from kubectl_dra.cli.main import run
from kubectl_dra.lint.server import check_update

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
