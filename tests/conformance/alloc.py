"""Compares allocations with what Kubernetes' own structured allocator recorded, node by node."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubectl_dra.allocation.attempt import INVALID_POOLS, Attempt, AttemptVerdict, Cycle
from kubectl_dra.allocation.features import Features
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.classes import DeviceClass
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.versions import default_features, parse_release
from kubectl_dra.cel import Environment

RELEASE = "1.36"


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a .jsonl or .jsonl.gz file."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as stream:
        for line in stream:
            if line.strip():
                yield json.loads(line)


def gates(changes: list[str]) -> frozenset[str]:
    """The gates of a 1.36 scheduler with ``-DeviceTaints`` switched off or ``+ListTypeAttributes`` on."""
    known = set(default_features(parse_release(RELEASE)))
    for change in changes:
        gate = f"DRA{change[1:].removeprefix('DRA')}"
        known.discard(gate) if change[0] == "-" else known.add(gate)
    return frozenset(known)


def attempts(case: dict[str, Any]) -> list[Attempt]:
    """Runs one case: every node in the recorded order, within one cycle."""
    on = gates(case["features"])
    features = Features.from_gates(on)
    cycle = Cycle(
        index=SliceIndex(ResourceSlice.from_json(entry) for entry in case["slices"] or ()),
        classes={entry["metadata"]["name"]: DeviceClass.from_json(entry) for entry in case["classes"] or ()},
        state=allocated_state((ResourceClaim.from_json(entry) for entry in case["allocatedClaims"] or ()), features),
        selectors=Selectors(Environment.for_release(RELEASE, features=on, stored=True)),
        features=features,
    )
    claims = [ResourceClaim.from_json(entry) for entry in case["claims"] or ()]
    return [cycle.attempt(Node.from_json(entry), claims) for entry in case["nodes"]]


def disagreement(attempt: Attempt, expected: dict[str, Any]) -> str:
    """What differs on one node, empty where nothing does."""
    error = expected.get("error")
    local = attempt.message == INVALID_POOLS
    if error:
        fatal = attempt.verdict is AttemptVerdict.ERROR
        if (local if expected.get("nodeLocalError") else fatal) and attempt.message == error:
            return ""
        return f"expected error {error!r}, got {attempt.verdict.value} {attempt.message!r}"
    results = expected.get("results")
    if results is None:
        if attempt.verdict is AttemptVerdict.REJECTED and not local:
            return ""
        return f"expected no allocation, got {attempt.verdict.value} {attempt.message!r} {_json(attempt)}"
    if attempt.verdict is not AttemptVerdict.ALLOCATED:
        return f"expected {results}, got {attempt.verdict.value} {attempt.message!r}"
    ours = [_normal(result.to_json()) for result in attempt.results]
    theirs = [_normal(result) for result in results]
    return "" if ours == theirs else f"expected {json.dumps(theirs)}, got {json.dumps(ours)}"


def compared(case: dict[str, Any]) -> Iterator[str]:
    """How closely each answer about a node is compared."""
    for expected in case["expect"]["nodes"]:
        if expected.get("error"):
            yield "an error, of the node or of the whole pod, word for word"
        elif expected.get("results") is None:
            yield "does not fit on the node"
        else:
            yield "devices in their order, consumed capacity, config and node selector"


def run(files: list[Path], options: Any = None) -> int:
    """Prints every disagreement, last ``agree N of M``; 0 where all agree."""
    total = agree = 0
    for path in files:
        for case in lines(path):
            total += 1
            problems = [
                f"{case['id']} {expected['node']}: {problem}"
                for attempt, expected in zip(attempts(case), case["expect"]["nodes"], strict=True)
                if (problem := disagreement(attempt, expected))
            ]
            agree += not problems
            for problem in problems:
                print(problem)
    print(f"agree {agree} of {total}")
    return 0 if agree == total else 1


def _json(attempt: Attempt) -> str:
    return json.dumps([result.to_json() for result in attempt.results])


def _normal(result: dict[str, Any]) -> dict[str, Any]:
    """An allocation with quantities by value, so that spelling does not count."""
    devices = dict(result.get("devices") or {})
    devices["results"] = [
        {
            **device,
            **(
                {
                    "consumedCapacity": {
                        name: str(Quantity.parse(amount).nanos) for name, amount in device["consumedCapacity"].items()
                    }
                }
                if "consumedCapacity" in device
                else {}
            ),
        }
        for device in devices.get("results") or ()
    ]
    devices["config"] = devices.get("config") or []
    return {"devices": devices, "nodeSelector": result.get("nodeSelector")}
