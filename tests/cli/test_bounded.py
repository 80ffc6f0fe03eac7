"""What strangers can make large ends in time, and says what was left out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Dra, write_list

DRIVER = "gpu.example.com"


def hard(folder: Path, requests: int = 32, nodes: int = 4, claims: int = 1, selector: str = "") -> str:
    """Claims that many combinations of devices have to be tried for, and none serves."""
    items: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}} for number in range(nodes)
    ]
    for number in range(nodes):
        devices = [
            {
                "name": f"d{index}",
                "attributes": {"a": {"string": f"{index % 16}"}, "u": {"string": f"{number}-{index}"}},
            }
            for index in range(128)
        ]
        spec: dict[str, Any] = {"driver": DRIVER, "nodeName": f"n{number}", "devices": devices}
        spec["pool"] = {"name": f"n{number}", "generation": 1, "resourceSliceCount": 1}
        items.append(item("ResourceSlice", f"n{number}", spec))
    items.append(item("DeviceClass", "gpu", {}))
    names = [f"r{number}" for number in range(requests)]
    asked = [
        {
            "name": name,
            "exactly": {
                "deviceClassName": "gpu",
                "selectors": [{"cel": {"expression": selector or f"device.attributes['{DRIVER}'].u != '0-{name}'"}}],
            },
        }
        for name in names
    ]
    constraints = [
        {"matchAttribute": f"{DRIVER}/a", "requests": names[::2]},
        {"distinctAttribute": f"{DRIVER}/u", "requests": names},
        {"matchAttribute": f"{DRIVER}/a", "requests": names[1::2]},
        {"distinctAttribute": f"{DRIVER}/a", "requests": names[:3]},
    ]
    for number in range(claims):
        # Each of another shape, so that one answer does not stand for all.
        wanted = {
            "devices": {"requests": asked[: requests - number], "constraints": constraints[: 4 if not number else 1]}
        }
        items.append(item("ResourceClaim", f"c{number}", wanted, namespace="default"))
    return write_list(folder / "cluster.json", items)


def item(kind: str, name: str, spec: dict[str, Any], **meta: str) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}


def test_a_search_without_end_leaves_changes_untried(dra: Dra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_dra.allocation.budgets.ANSWER_STEPS", 60_000)
    began = time.process_time()
    ran = dra("explain", "claim/c0", "--full", "--snapshot", hard(tmp_path))
    assert time.process_time() - began < 6
    assert ran.code in (1, 3) and "too many combinations" in ran.out


def test_what_is_pending_is_explained_as_far_as_the_time_goes(
    dra: Dra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANSWER_STEPS", "SHAPE_STEPS"):
        monkeypatch.setattr(f"kubectl_dra.explain.overview.{name}", 0)
    ran = dra("explain", "-A", "--snapshot", hard(tmp_path, claims=4))
    assert ran.code == 3 and "not explained, because it took too long: 3 pods and claims" in ran.out
    assert "c0" in ran.out


@pytest.mark.parametrize("words", [["explain", "claim/c0", "--verify", "--full", "--snapshot"], ["lint", "--verify"]])
def test_a_second_opinion_has_limits(
    dra: Dra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr("kubectl_dra.cel.cel_python.SECONDS", 1.0)
    growing = "['a']" + ".map(x, x + x)" * 60 + ".size() == 1"
    ran = dra(*words, hard(tmp_path, requests=1, nodes=1, selector=growing))
    assert "MemoryError" in ran.out + ran.err or "cel-python needs more than" in ran.out + ran.err
