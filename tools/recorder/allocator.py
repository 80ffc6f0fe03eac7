"""Record what the structured allocator of a Kubernetes release answers.

    make record KUBERNETES=1.37.3       # the corpus of that release, and what differs from the one before
    python -m tools.recorder.allocator --kubernetes 1.37.1 --seed 1 --count 500 alloc-1.37.jsonl.gz
    python -m tools.recorder.allocator --kubernetes 1.38.0-alpha.0 --cases alloc-1.37.jsonl.gz alloc-1.38.jsonl.gz

Cases are made up from the seed (`tools.recorder.clusters`), or taken from a corpus and asked again, which also shows
what another release answers otherwise. Each line has the form of ``alloc.jsonl.gz`` with ``release``;
`python -m tests.conformance alloc FILE` judges it. The program in ``allocator/`` is built with the published Go module
of the release, which must be reachable.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kubectl_dra.allocation.attempt import INVALID_POOLS
from kubectl_dra.allocation.features import Features
from kubectl_dra.api.releases import Release, parse_release
from tools.recorder.clusters import ALPHA, clusters
from tools.recorder.modules import bounded, built
from tools.recorder.recorded import DATA, gates, lines

Json = dict[str, Any]
SOURCE = Path(__file__).parent / "allocator" / "main.go"
MODULES = ("api", "apimachinery", "dynamic-resource-allocation")
REPEATS = 8
"""How often a case is asked where the release tries pools in random order."""

FIELDS = {
    "AdminAccess": {"DRAAdminAccess"},
    "CompatibilityGroups": {"DRADeviceCompatibilityGroups"},
    "ConsumableCapacity": {"DRAConsumableCapacity"},
    "DerivedAttributes": {"DRADerivedAttributes"},
    "DeviceBinding": {"DRADeviceBindingConditions"},
    "DeviceStatus": {"DRAResourceClaimDeviceStatus"},
    "DeviceBindingAndStatus": {"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"},
    "DeviceTaints": {"DRADeviceTaints"},
    "FractionalCapacityRange": {"DRAFractionalCapacityRange"},
    "ListTypeAttributes": {"DRAListTypeAttributes"},
    "OptionalNodeOperations": {"DRAOptionalNodeOperations"},
    "PartitionableDevices": {"DRAPartitionableDevices"},
    "PrioritizedList": {"DRAPrioritizedList"},
}
"""The allocator's features, and the gates that the scheduler derives each from."""
LISTS_SINCE = 37
"""The first release whose scheduler passes the gate for list attributes on to the allocator."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubernetes", required=True, metavar="VERSION", help="such as 1.37.1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument(
        "--features",
        default="",
        metavar="CHANGES",
        help="gates to change in made-up cases: -DeviceTaints,+ListTypeAttributes",
    )
    parser.add_argument("--cases", type=Path, help="a corpus to ask again")
    parser.add_argument("file", type=Path, nargs="?", help="where to write; the release's corpus where not given")
    options = parser.parse_args()
    before: dict[str, Json] = {}
    program = built(options.kubernetes, SOURCE, MODULES)
    release = parse_release(options.kubernetes)
    if options.file is None:
        renew(program, options.kubernetes)
        return
    if options.cases:
        cases: Iterable[Json] = list(lines(options.cases))
        before = {case["id"]: case["expect"] for case in cases}
    else:
        changes = [change for change in options.features.split(",") if change]
        cases = clusters(options.seed, options.count, release, changes)
    answers: Counter[str] = Counter()
    otherwise: list[str] = []
    with gzip.open(options.file, "wt") as out:
        for case in recorded(program, options.kubernetes, cases):
            if before.get(case["id"], case["expect"]) != case["expect"]:
                otherwise.append(case["id"])
            answers.update(_kind(answer) for answer in case["expect"]["nodes"])
            out.write(json.dumps(case, separators=(",", ":")) + "\n")
    print(*(f"{kind}: {count:,}" for kind, count in answers.most_common()), sep="\n")
    if options.cases:
        print(f"{len(otherwise)} answered otherwise than in {options.cases}:", *otherwise)


def renew(program: Path, version: str) -> None:
    """Records the corpus of a release again, and prints which of its cases are answered otherwise than before."""
    release = parse_release(version)
    file = DATA / f"alloc-{release}.jsonl.gz"
    before = {case["id"]: case["expect"] for case in lines(file)} if file.exists() else {}
    made = (case for seed, count, changes in plan(release) for case in clusters(seed, count, release, changes))
    cases = list(recorded(program, version, made))
    with gzip.open(file, "wt") as out:
        out.writelines(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)
    fixed = [case for case in cases if not random_order(release, case["features"])]
    differing = [case["id"] for case in fixed if before.get(case["id"], case["expect"]) != case["expect"]]
    print(f"{file}: {len(cases)} cases, {len(differing)} answered otherwise than before:", *differing)


def plan(release: Release) -> list[tuple[int, int, list[str]]]:
    """Seed, number of cases and changed gates of each part of a release's corpus."""
    partitions = ["+PartitionableDevices", "+DeviceTaints"]
    parts: list[tuple[int, int, list[str]]] = [(101, 220, []), (102, 40, ["-PrioritizedList"])]
    if release.minor <= 34:
        return [*parts, (103, 60, [*partitions, "+DeviceBindingConditions"])]
    if release.minor == 35:
        shares = ["+ConsumableCapacity", *partitions, "+DeviceBindingConditions"]
        return [*parts, (103, 60, partitions), (104, 60, shares)]
    stable = ["-DeviceBindingConditions", "-ConsumableCapacity"]
    parts += [(103, 60, ["+ListTypeAttributes"]), (104, 60, stable)]
    parts += [(105, 30, ["-PartitionableDevices"]), (106, 30, ["-DeviceTaints"])]
    if release.minor == 36:
        return parts
    parts += [(107 + number, 40, [f"+{gate}"]) for number, gate in enumerate(ALPHA)]
    together, unknown = ["+ListTypeAttributes"], [f"-{gate}" for gate in ALPHA if gate != "DerivedAttributes"]
    together += [f"+{gate}" for gate in ALPHA]
    # Objects that were stored before the gates were switched off.
    return [
        *parts,
        (121, 30, together),
        (122, 15, unknown),
        (123, 15, unknown + stable),
        (124, 10, ["-DerivedAttributes"]),
    ]


def recorded(program: Path, version: str, cases: Iterable[Json]) -> Iterator[Json]:
    """The cases with what the allocator answers; those that crash it, or that take it too long, are left out."""
    release = parse_release(version)
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=bounded)
    assert process.stdin is not None and process.stdout is not None
    try:
        for case in cases:
            known = features(release, case["features"])
            lists = "DRAListTypeAttributes" in gates(release, case["features"])
            question = {**case, "allocatorFeatures": known, "listsInSelectors": lists}
            seen: list[list[Json]] = []
            for _ in range(REPEATS if random_order(release, case["features"]) else 1):
                process.stdin.write(json.dumps(question) + "\n")
                process.stdin.flush()
                nodes = [_readable(node) for node in json.loads(process.stdout.readline())["nodes"]]
                if nodes not in seen:
                    seen.append(nodes)
            if any(node.get("panic") or node.get("timedOut") for nodes in seen for node in nodes):
                continue
            expect: Json = {"nodes": seen[0]}
            if len(seen) > 1:
                expect["anyOf"] = [{"nodes": nodes} for nodes in seen[1:]]
            yield {**case, "release": version, "expect": expect}
    finally:
        process.stdin.close()
        process.wait()


def features(release: Release, changes: list[str]) -> list[str]:
    """The allocator's features as a release's scheduler sets them, with changed gates."""
    on = gates(release, changes)
    lists = {"ListTypeAttributes"} if release.minor < LISTS_SINCE else set()
    return sorted(name for name, needed in FIELDS.items() if needed <= on and name not in lists)


def random_order(release: Release, changes: list[str]) -> bool:
    """Whether the allocator walks through pools in random order."""
    if release.minor <= 35:
        return True
    return Features.from_gates(gates(release, changes), release).any_pool_order


def _readable(node: Json) -> Json:
    if node.get("error") == INVALID_POOLS:
        node["nodeLocalError"] = True
    return node


def _kind(node: Json) -> str:
    if node.get("error"):
        return "node-local errors" if node.get("nodeLocalError") else "errors"
    return "allocated" if node.get("results") is not None else "do not fit"


if __name__ == "__main__":
    main()
