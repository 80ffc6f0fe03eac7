"""A claim that the allocator can serve, once all devices are free, is never said to exceed the cluster's devices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.api.releases import parse_release
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.config import Selection
from kubectl_dra.lint.context import AssumedCluster
from kubectl_dra.lint.engine import lint
from kubectl_dra.manifests.inputs import Input
from tests.conformance.alloc import attempts
from tools.recorder.recorded import RELEASE, gates, lines

DATA = Path(__file__).parents[2] / "conformance" / "data"


def cases(name: str) -> Iterator[dict[str, Any]]:
    return (case for case in lines(DATA / name) if case["claims"] and case["slices"])


def exceeding(case: dict[str, Any]) -> list[str]:
    """The claims of a case of which lint says that no node has devices for them."""
    release = parse_release(case.get("release", RELEASE))
    objects = [
        {"apiVersion": "resource.k8s.io/v1", "kind": kind, **entry}
        for kind, key in (("ResourceSlice", "slices"), ("DeviceClass", "classes"))
        for entry in case[key] or ()
    ]
    snapshot = read_snapshot(["-"], stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode())
    claims = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **entry, "status": {}} for entry in case["claims"]
    ]
    given = Input("claims.json", True, json.dumps({"apiVersion": "v1", "kind": "List", "items": claims}).encode())
    cluster = AssumedCluster(release, frozenset(gates(release, case["features"])), snapshot)
    report = lint([given], Job(cluster, Selection()), 1)
    assert not report.defects
    return [finding.message for finding in report.findings if finding.code == "DRA424"]


def some_node_has(case: dict[str, Any]) -> bool:
    """Whether the claims are allocated on a node if no device is held: as was recorded, or as our allocator says."""
    free = attempts({**case, "allocatedClaims": []})
    recorded = any(node.get("results") for node in case["expect"]["nodes"])
    return recorded or any(attempt.verdict is AttemptVerdict.ALLOCATED for attempt in free)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alloc.jsonl.gz", "alloc-1.34.jsonl.gz", "alloc-1.37.jsonl.gz"])
def test_no_claim_that_can_be_allocated_exceeds_the_devices(name: str) -> None:
    possible = found = 0
    for case in cases(name):
        said, has = exceeding(case), some_node_has(case)
        assert not (has and said), (case.get("name"), said)
        possible += has
        found += bool(said)
    assert possible > 20 and found > 20, (possible, found)
