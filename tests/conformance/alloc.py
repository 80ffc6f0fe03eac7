"""Compares allocations with what Kubernetes' own structured allocator recorded, node by node."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kubectl_dra.allocation.attempt import INVALID_POOLS, Attempt, AttemptVerdict, Cycle
from kubectl_dra.allocation.budgets import Budget
from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.pools import SliceIndex, pools_of_node
from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.allocation.slices_seen import slices_as_read
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.api.claims import DeviceClass, ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.releases import parse_release
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.cel import Environment
from tools.builders import written
from tools.recorder.recorded import RELEASE, gates, lines

MOST_ORDERS = 120


def cycle_of(case: dict[str, Any]) -> Cycle:
    """The scheduling cycle of a case."""
    release = parse_release(case.get("release", RELEASE))
    on = gates(release, case["features"])
    features = Features.from_gates(on, release)
    return Cycle(
        index=SliceIndex(slices_as_read([ResourceSlice.from_json(entry) for entry in case["slices"] or ()], features)),
        classes={entry["metadata"]["name"]: DeviceClass.from_json(entry) for entry in case["classes"] or ()},
        state=allocated_state((ResourceClaim.from_json(entry) for entry in case["allocatedClaims"] or ()), features),
        selectors=Selectors(Environment.for_release(release, features=on, stored=True)),
        features=features,
        defects=KnownDefects.of_release(release, release.patch),
    )


def attempts(case: dict[str, Any]) -> list[Attempt]:
    """Runs one case: every node in the recorded order, within one cycle."""
    cycle, claims = cycle_of(case), [ResourceClaim.from_json(entry) for entry in case["claims"] or ()]
    return [cycle.attempt(Node.from_json(entry), claims) for entry in case["nodes"]]


def in_any_order(case: dict[str, Any]) -> list[list[Attempt]]:
    """Per node the attempts in each order of its pools, for releases that walk through them in random order."""
    cycle, claims = cycle_of(case), [ResourceClaim.from_json(entry) for entry in case["claims"] or ()]
    out = []
    for entry in case["nodes"]:
        node = Node.from_json(entry)
        try:
            seen = pools_of_node(cycle.index, node, cycle.features, cycle.defects)
        except AllocationError:
            out.append([cycle.in_order(node, claims, Budget())])
            continue
        orders = itertools.islice(itertools.permutations(seen.pools), MOST_ORDERS)
        both = [[replace(pool, slices=pool.slices[::step]) for pool in pools] for pools in orders for step in (1, -1)]
        out.append(
            [
                cycle.changed().in_order(node, claims, Budget(), pools=replace(seen, pools=tuple(pools)))
                for pools in both
            ]
        )
    return out


def problems(case: dict[str, Any]) -> list[str]:
    """What differs, node by node. Every answer that a random order led to has to be one of ours."""
    recorded = [case["expect"], *case["expect"].get("anyOf", ())]
    if not cycle_of(case).features.any_pool_order:
        pairs = zip(attempts(case), recorded[0]["nodes"], strict=True)
        return [f"{one.node}: {problem}" for one, expected in pairs if (problem := disagreement(one, expected))]
    out = []
    for number, ours in enumerate(in_any_order(case)):
        for answer in recorded:
            found = [disagreement(attempt, answer["nodes"][number]) for attempt in ours]
            if all(found):
                out.append(f"{ours[0].node}: in none of {len(found)} orders: {found[0]}")
                break
    return out


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
    ours = [_normal(written(allocation)) for allocation in attempt.allocations]
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
            differing = problems(case)
            agree += not differing
            for problem in differing:
                print(f"{case['id']} {problem}")
    print(f"agree {agree} of {total}")
    return 0 if agree == total else 1


def _json(attempt: Attempt) -> str:
    return json.dumps([*map(written, attempt.allocations)])


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
