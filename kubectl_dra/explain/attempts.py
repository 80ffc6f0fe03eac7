"""Attempts on every eligible node, and how nodes are grouped by what came of them."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from kubectl_dra.allocation.attempt import Attempt
from kubectl_dra.allocation.attempt import Verdict as Outcome
from kubectl_dra.allocation.search import Budget
from kubectl_dra.explain.blocked import Located
from kubectl_dra.explain.diagnosis import NodeGroup, PlacedDevice, Placement
from kubectl_dra.explain.funnel.stages import Shortfall
from kubectl_dra.explain.scene.equivalent_nodes import Likeness
from kubectl_dra.explain.scene.node_eligibility import usable_on
from kubectl_dra.explain.scene.prepare import NOT_ASKED, Case

SECONDS_PER_NODE = 4.0
SECONDS_TOTAL = 7.0
SECONDS_PER_EASY_NODE = 0.001
STEPS_PER_NODE = 400_000
_ORDER = {"allocated": 0, "error": 1, "rejected": 2, "undetermined": 3, "not-eligible": 4}


def run_attempts(case: Case) -> dict[str, Attempt]:
    """One attempt per eligible node, in the order of the nodes, within a total time."""
    out: dict[str, Attempt] = {}
    end = time.process_time() + max(SECONDS_TOTAL, SECONDS_PER_EASY_NODE * len(case.view.nodes))
    same = case.unallocated
    likeness: dict[frozenset[str], Likeness] = {}
    rejected: dict[Hashable, Attempt] = {}
    for node in case.view.nodes:
        pools = case.view.pools.get(node.name)
        delegated = case.delegated(node)
        claims = same if case.extended is None else case.claims_on(node)
        if delegated not in likeness:
            likeness[delegated] = Likeness(case.view.cycle, claims)
        read = None if pools is None else likeness[delegated].of(node, pools)
        alike = None if read is None else (delegated, read)
        known = rejected.get(alike)
        if known is not None and alike is not None:
            out[node.name] = replace(known, node=node.name, pools=pools)
            continue
        now = time.process_time()
        budget = Budget(
            max_steps=STEPS_PER_NODE if now < end else 1,
            deadline=min(now + SECONDS_PER_NODE, end),
        )
        attempt = out[node.name] = case.view.cycle.attempt(node, claims, budget=budget, pools=pools)
        if attempt.verdict is Outcome.REJECTED:
            rejected[alike] = attempt
    return out


def unavailable_nodes(case: Case) -> dict[str, str]:
    """Nodes on which an allocated claim that is asked about cannot be used, with the claim."""
    out: dict[str, str] = {}
    for claim in case.allocated:
        assert claim.allocation is not None
        selector = claim.allocation.node_selector
        if selector is None:
            continue
        for node in case.view.nodes:
            if not usable_on(selector, node):
                out.setdefault(node.name, claim.key)
    return out


def node_groups(
    case: Case, attempts: Mapping[str, Attempt], unavailable: Mapping[str, str], funnels: Sequence[Located]
) -> list[NodeGroup]:
    """Nodes by outcome and reason: those that fit first, those where the pod may not run last."""
    groups: dict[tuple[str, str], list[str]] = {}
    nearness: dict[tuple[str, str], int] = {}
    for name, attempt in attempts.items():
        outcome, reason, near = _outcome(name, attempt, unavailable, funnels)
        groups.setdefault((outcome, reason), []).append(name)
        nearness[outcome, reason] = near
    if not attempts and case.allocated and not case.unallocated:
        for node in case.view.nodes:
            where = unavailable.get(node.name)
            usable = "all claims are" if case.question.kind == "pod" else "the claim is"
            key = ("allocated", f"{usable} usable here")
            if where:
                key = ("rejected", f"claim {where} is allocated for other nodes")
            groups.setdefault(key, []).append(node.name)
    for name, reason in case.view.ineligible.items():
        if reason != NOT_ASKED:
            groups.setdefault(("not-eligible", reason), []).append(name)
    return [
        NodeGroup(outcome, reason, tuple(names))
        for (outcome, reason), names in sorted(
            groups.items(),
            key=lambda entry: (_ORDER[entry[0][0]], -nearness.get(entry[0], 0), -len(entry[1]), entry[0][1]),
        )
    ]


def _outcome(
    name: str, attempt: Attempt, unavailable: Mapping[str, str], funnels: Sequence[Located]
) -> tuple[str, str, int]:
    """Outcome, reason, and how near to success the node is (larger is nearer)."""
    if attempt.verdict is Outcome.ERROR:
        return "error", attempt.message, 0
    if attempt.verdict is Outcome.UNDETERMINED:
        return "undetermined", "the search did not end in time", 0
    if attempt.verdict is Outcome.ALLOCATED:
        if name in unavailable:
            return "rejected", f"claim {unavailable[name]} is allocated for other nodes", 0
        return "allocated", "all claims fit", 0
    shortfalls: dict[tuple[int, int], list[Shortfall | None]] = {}
    for located in funnels:
        key = (located.claim_index, located.request_index)
        shortfalls.setdefault(key, []).append(located.funnel.shortfall(name))
    furthest = [
        max((entry for entry in entries if entry), key=lambda entry: (entry.position, entry.left))
        for entries in shortfalls.values()
        if all(entries)
    ]
    if not furthest:
        return "rejected", "each request fits alone, all together do not", 10_000
    near = min(entry.position * 100 + min(entry.left, 99) for entry in furthest)
    return "rejected", "; ".join(f"{entry.request}: {entry.text}" for entry in furthest), near


def placements(case: Case, attempts: Mapping[str, Attempt], unavailable: Mapping[str, str]) -> list[Placement]:
    """What the claims would get, for every node that works."""
    out: list[Placement] = []
    for name, attempt in attempts.items():
        if attempt.verdict is not Outcome.ALLOCATED or name in unavailable:
            continue
        claims = case.claims_on(case.view.node_by_name[name])
        devices = tuple(
            PlacedDevice(
                claim.key,
                device["request"],
                f"{device['driver']}/{device['pool']}/{device['device']}",
                device.get("consumedCapacity", {}),
            )
            for claim, result in zip(claims, attempt.results, strict=True)
            for device in result.devices
        )
        out.append(Placement(name, devices))
    return out
