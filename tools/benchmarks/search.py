"""Searches that keep the scheduler busy: `python -m tools.benchmarks.search [name ...]`.

Each line is one attempt on one node: how it ended, the time here, the devices tried here, and whether the
scheduler's own search would probably run into its time-out of 10 s. Every attempt has the steps of `explain`.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from kubectl_dra.allocation.budgets import NODE_STEPS, Budget
from kubectl_dra.allocation.features import KnownDefects
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import ResourceSlice
from tools.builders import JSON, claim, cycle, device, first_available, request, slice_of, sub

Case = tuple[list[ResourceSlice], Sequence[ResourceClaim]]
MATCH_A, MATCH_B = {"matchAttribute": "d/a"}, {"matchAttribute": "d/b"}
DISTINCT_A = {"distinctAttribute": "d/a"}
LARGE = 'device.attributes["d"].a == "large"'


def gpus(count: int, **of: Callable[[int], object]) -> list[JSON]:
    """Devices with string attributes computed from their index."""
    return [
        device(f"gpu-{i}", attributes={name: {"string": str(value(i))} for name, value in of.items()})
        for i in range(count)
    ]


def one(devices: Sequence[JSON], *claims: ResourceClaim) -> Case:
    return [slice_of(*devices)], claims


def uuids_and(count: int, groups: int) -> list[JSON]:
    """Equal devices but for an attribute that no constraint looks at, in groups of one value of ``a``."""
    return gpus(count, a=lambda i: i % groups, uuid=lambda i: f"GPU-{i:06}")


def partitions(gpu_count: int, *, attributes: bool = False) -> list[ResourceSlice]:
    """GPUs of 7 slices and 8 memories, each with 7 small, 3 middle, 2 large and one whole partition."""
    devices: list[JSON] = []
    counters: dict[str, object] = {}
    for gpu in range(gpu_count):
        counters |= {f"gpu{gpu}.slices": 7, f"gpu{gpu}.memory": 8}
        shapes = [("1g", 1, 1)] * 7 + [("2g", 2, 2)] * 3 + [("3g", 3, 4)] * 2 + [("7g", 7, 8)]
        for index, (name, slices, memory) in enumerate(shapes):
            fields: dict[str, Any] = {"a": name}
            if attributes:
                fields["attributes"] = {"parent": {"string": f"gpu{gpu}"}}
            consumes = {f"gpu{gpu}.slices": slices, f"gpu{gpu}.memory": memory}
            devices.append(device(f"gpu{gpu}-{index}-{name}", consumes=consumes, **fields))
    return [slice_of(*devices, count=2, name="1"), slice_of(counters=counters, count=2, name="0")]


def of_kind(name: str, kind: str, count: int = 1) -> JSON:
    return request(name, selector=f'device.attributes["d"].a == "{kind}"', count=count)


def many(number: int, **fields: Any) -> list[JSON]:
    return [request(f"r{index}", **fields) for index in range(number)]


def lists(count: int, length: int) -> list[JSON]:
    """Prioritized lists that all want the same few large devices, or more small ones than there are."""
    subs = [sub(f"s{k}", selector=LARGE if k % 2 else "true", count=3 + k % 3) for k in range(length)]
    return [first_available(f"r{index}", *subs) for index in range(count)]


def cases() -> dict[str, Case]:
    conflicting = gpus(16, a=lambda i: i % 2, b=lambda i: i // 2 % 2)
    halves = gpus(32, a=lambda i: i % 2, b=lambda i: i // 4 % 2)
    shared = [device(f"nic-{i}", m=10, multi=True) for i in range(10)]
    mixed = [device(f"nic-{i}", m=(10, 7, 13)[i % 3], multi=True) for i in range(24)]
    sizes = [request(f"r{i}", m=(3, 4, 5)[i % 3]) for i in range(30)]
    no_answer = 'device.attributes["d"].a == "0"'
    return {
        "16 of 60, match, groups of 15": one(uuids_and(60, 4), claim(request(count=16), constraints=[MATCH_A])),
        "16 of 200, match, groups of 15 or fewer": one(
            uuids_and(200, 14), claim(request(count=16), constraints=[MATCH_A])
        ),
        "5 claims of 26 from 128 equal": one(
            uuids_and(128, 1), *[claim(request(count=26), name=f"c{i}") for i in range(5)]
        ),
        "64 devices, 16 and 1 that is nowhere": one(
            uuids_and(64, 2), claim(request("x", count=16), request("y", selector='device.attributes["d"].a == "z"'))
        ),
        "200 devices, 16 and 1 that is nowhere": one(
            uuids_and(200, 2), claim(request("x", count=16), request("y", selector='device.attributes["d"].a == "z"'))
        ),
        "64 devices, 16 distinct of 15 values": one(uuids_and(64, 15), claim(*many(16), constraints=[DISTINCT_A])),
        "64 devices, 16 distinct of 15 in one request": one(
            uuids_and(64, 15), claim(request(count=16), constraints=[DISTINCT_A])
        ),
        "distinct and match that exclude each other": one(
            gpus(64, a=lambda i: i % 8, b=lambda i: i % 8),
            claim(*many(6), constraints=[DISTINCT_A, MATCH_B]),
        ),
        "two of 8 from 16, both match": one(
            conflicting,
            claim(
                request("x", count=8),
                request("y", count=8),
                constraints=[{**MATCH_A, "requests": ["x"]}, {**MATCH_B, "requests": ["y"]}],
            ),
        ),
        "two of 12 from 32, match crosswise": one(
            halves,
            claim(
                request("x", count=12),
                request("y", count=12),
                constraints=[{**MATCH_A, "requests": ["x"]}, {**MATCH_B, "requests": ["y"]}],
            ),
        ),
        "two of 9 from 17 of 64": one(
            gpus(64, a=lambda i: 0 if i < 17 else 1),
            claim(request("x", count=9, selector=no_answer), request("y", count=9, selector=no_answer)),
        ),
        "two matches over 64 devices": one(
            gpus(64, a=lambda i: i % 4, b=lambda i: i // 4 % 4),
            claim(request(count=5), constraints=[MATCH_A, MATCH_B]),
        ),
        "8 GPUs x 13 partitions, 17 of 3g": (partitions(8), [claim(of_kind("x", "3g", 17))]),
        "8 GPUs x 13 partitions, 8 of 7g and 1g": (partitions(8), [claim(of_kind("x", "7g", 8), of_kind("y", "1g"))]),
        "8 GPUs x 13 partitions, 10 of 3g, 20 of 2g": (
            partitions(8),
            [claim(of_kind("x", "3g", 10), of_kind("y", "2g", 20))],
        ),
        "8 GPUs x 13 partitions, mixed up to the last": (
            partitions(8),
            [claim(of_kind("x", "1g", 15), of_kind("y", "2g", 10), of_kind("z", "3g", 7))],
        ),
        "8 GPUs, 4 of 3g on one parent": (
            partitions(8, attributes=True),
            [claim(of_kind("x", "3g", 3), of_kind("y", "2g", 1), constraints=[{"matchAttribute": "d/parent"}])],
        ),
        "8 GPUs, all 1g, then 7g with match": (
            partitions(8, attributes=True),
            [claim(request("x", count=8)), claim(of_kind("y", "7g", 8), constraints=[{"matchAttribute": "d/parent"}])],
        ),
        "31 shares of 3 on 10 x 10": one(shared, claim(*many(31, m=3))),
        "30 shares of 3, 4, 5 on 24 mixed": one(mixed, claim(*sizes), claim(*many(28, m=5))),
        "8 requests of 4 shares": one(shared, claim(*many(8, m=4, count=4))),
        "8 lists of 8 over 24 devices": one(gpus(24, a=lambda i: "large" if i < 6 else "small"), claim(*lists(8, 8))),
        "4 lists of 8, match, 64 devices": one(
            gpus(64, a=lambda i: "large" if i < 6 else "small", b=lambda i: i % 7),
            claim(*lists(4, 8), constraints=[MATCH_B]),
        ),
        "6 claims of 6 from 35 of 64": one(
            gpus(64, a=lambda i: 0 if i < 35 else 1),
            *[claim(request(count=6, selector=no_answer), name=f"c{i}") for i in range(6)],
        ),
        "13 claims, each matches, 12 groups of 5": one(
            gpus(60, a=lambda i: i % 12),
            *[claim(request(count=4 + i % 2), constraints=[MATCH_A], name=f"c{i}") for i in range(13)],
        ),
        "a solution that is far": one(
            gpus(64, a=lambda i: 0 if i < 40 else 1, b=lambda i: i % 2),
            claim(request("x", count=12), request("y", count=12, selector='device.attributes["d"].a == "1"')),
            claim(request("z", count=13, selector='device.attributes["d"].a == "1"')),
            claim(request("w", count=3, selector='device.attributes["d"].b == "1"'), constraints=[MATCH_A]),
        ),
        "All after a choice": one(
            gpus(40, a=lambda i: i % 2),
            claim(request("x", count=10), request("y", all=True, selector='device.attributes["d"].a == "1"')),
        ),
        "an error behind": one(
            [*gpus(40, a=lambda i: i % 4), device("last")],
            claim(
                request("x", count=8, selector='"a" in device.attributes["d"]'),
                request("y", selector='device.attributes["d"].a == "9"'),
            ),
        ),
    }


def run(name: str, case: Case, defects: KnownDefects) -> None:
    slices, claims = case
    one_cycle = cycle(slices, defects=defects)
    start, used = time.perf_counter(), time.process_time()
    attempt = one_cycle.attempt(Node.named("n1"), claims, budget=Budget(NODE_STEPS))
    seconds, used = time.perf_counter() - start, time.process_time() - used
    late = "times out" if attempt.would_time_out else "in time"
    print(f"| {name} | {attempt.verdict.value} | {seconds:.2f} | {used:.2f} | {attempt.steps:,} | {late} |", flush=True)


def main() -> None:
    wanted = sys.argv[1:]
    for title, defects in (("with the defects of 1.36", KnownDefects()), ("without defects", KnownDefects.none())):
        print(f"\n{title}\n\n| search | answer | s | CPU s | tried | scheduler |\n|---|---|---|---|---|---|")
        for name, case in cases().items():
            if not wanted or any(text in name for text in wanted):
                run(name, case, defects)
    print(f"\npeak of memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
