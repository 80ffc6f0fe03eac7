"""Known defects beside the allocator: named by number, with the release that mends them, where their state is seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.api import behaviour
from kubectl_dra.api.behaviour import OF_ALLOCATOR, Defect
from kubectl_dra.data.messages import known_messages
from kubectl_dra.explain.causes.pod_does_not_start import NOT_STARTED
from kubectl_dra.explain.diagnosis import Finding
from kubectl_dra.explain.node_driver import with_meaning
from kubectl_dra.report.phrases import written
from tests.ran import ran

OF_OTHERS = [known for known in vars(behaviour).values() if isinstance(known, Defect) and known not in OF_ALLOCATOR]
DEFECTS = {known.number: known for known in OF_OTHERS if known.number}


@pytest.mark.parametrize(
    ("version", "counts", "told"),
    [
        ("v1.33.0", [17], True),
        ("v1.33.0", [16], False),
        ("v1.33.0", [15, 10], True),
        ("v1.33.0", [1] * 32, False),
        ("v1.33.1", [17], False),
        ("v1.34.0", [17], False),
    ],
)
def test_half_of_a_claim(version: str, counts: list[int], told: bool, tmp_path: Path) -> None:
    head = {"schemaVersion": "1", "serverVersion": version, "read": ["ResourceSlice", "DeviceClass", "ResourceClaim"]}
    notes = _notes(counts, {"kubectl-dra": head}, tmp_path)
    assert ("kubernetes/kubernetes#131662, fixed in 1.33.1, 1.34.0" in notes) == told


def _notes(counts: list[int], more: dict[str, Any], folder: Path, *others: dict[str, Any]) -> str:
    """The notes about a claim with requests for these numbers of devices, in a snapshot with ``more`` in its head."""
    requests = [
        {"name": f"r{number}", "exactly": {"deviceClassName": "gpu.example.com", "count": count}}
        for number, count in enumerate(counts)
    ]
    metadata, spec = {"name": "many", "namespace": "default", "uid": "u"}, {"devices": {"requests": requests}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", **more, "items": [claim, *others]}))
    _, out, _ = ran("explain", "resourceclaim/many", "--snapshot", str(path), "-o", "json")
    return " ".join(json.loads(out)["notes"])


def test_a_kubelet_does_not_say_which_patch_release_the_scheduler_has(tmp_path: Path) -> None:
    info = {"nodeInfo": {"kubeletVersion": "v1.33.1"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": info}
    notes = _notes([17], {}, tmp_path, node)
    assert "an early scheduler of 1.33, as this may be, serves none for more than 16" in notes


def test_messages_agree() -> None:
    """Of a defect that a message tells too, both say the same release."""
    both = [entry for entry in known_messages() if entry.known.isdigit() and int(entry.known) in DEFECTS]
    assert both
    for entry in both:
        assert entry.fixed in DEFECTS[int(entry.known)].fixes, entry.pattern


def test_all_are_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "drivers.md").read_text(encoding="utf-8")
    for number, defect in DEFECTS.items():
        (row,) = [line for line in text.splitlines() if line.startswith("|") and f"/{number})" in line]
        assert row.rstrip(" |").endswith(", ".join(defect.fixes) or "open")


def test_a_message_of_a_container_that_waits_names_the_release_without_its_defect() -> None:
    message = 'fetch ResourceClaim ml/gpu: resourceclaims.resource.k8s.io "gpu" is forbidden: no relationship found'
    found = with_meaning(Finding(NOT_STARTED, "container main waits"), message, ())
    assert found.remedy is not None
    defect = "This is a known defect (https://github.com/kubernetes/kubernetes/issues/138792), fixed in 1.37.0."
    assert written(found.remedy.change).endswith(defect)
