"""`kubectl dra explain` on a large cluster: `python -m tools.benchmarks.explain [--nodes 12500] [--profile NAME]`.

Writes a synthetic snapshot (one ResourceSlice of 8 GPUs per node, 12,500 nodes, about 70 MB) to a temporary
directory, runs the whole command on it for several questions, each in a fresh process, and prints wall time, CPU
time and the peak of memory, the least of several runs. `--beside-allocator` compares one question with Kubernetes'
own allocator on the same file, `--growth` runs it on clusters of 1,000 to 100,000 nodes, and `--profile` prints where
one question spends its time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

DRIVER = "gpu.example.com"
GPUS = 8
JSON = dict[str, Any]
MODELS = (
    ("NVIDIA A100-SXM4-40GB", "Ampere", "40Gi", "8.0.0"),
    ("NVIDIA A100-SXM4-80GB", "Ampere", "80Gi", "8.0.0"),
    ("NVIDIA H100-SXM5-80GB", "Hopper", "80Gi", "9.0.0"),
)
A, C = f'device.attributes["{DRIVER}"]', f'device.capacity["{DRIVER}"]'
FREE_MODEL = "NVIDIA H100-SXM5-80GB"
HELD_MODEL = "NVIDIA A100-SXM4-40GB"
QUESTIONS = {
    "fits": f'{A}.productName == "{FREE_MODEL}"',
    "matches-nothing": f'{A}.productName == "NVIDIA H200" && {C}.memory.compareTo(quantity("100Gi")) >= 0',
    "all-held": f'{A}.productName == "{HELD_MODEL}"',
    "one-uuid": f'{A}.uuid == "GPU-00000bad-0000-4000-8000-000000000bad"',
}

KINDS = ("", "partitioned", "rules", "various")

HEAD = "| question | wall s | CPU s | peak MB | exit | answer |\n|---|---|---|---|---|---|"
RELEASE = "1.36.4"
SOURCE = Path(__file__).parent / "allocator" / "main.go"
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)


def model(node: int) -> tuple[str, str, str, str]:
    return MODELS[node % len(MODELS)]


def slice_of(node: int) -> JSON:
    name, architecture, memory, compute = model(node)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": f"node-{node:05}-gpu-{node * 7919 % 99991:05}",
            "uid": f"{node:08x}-0000-4000-8000-000000000000",
            "resourceVersion": str(1_000_000 + node),
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "driver": DRIVER,
            "nodeName": f"node-{node:05}",
            "pool": {"name": f"node-{node:05}", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"gpu-{index}",
                    "attributes": {
                        "architecture": {"string": architecture},
                        "brand": {"string": "Nvidia"},
                        "cudaComputeCapability": {"version": compute},
                        "cudaDriverVersion": {"version": "13.0.0"},
                        "driverVersion": {"version": "580.82.7"},
                        "pcieBusID": {"string": f"0000:{17 + index * 16:02x}:00.0"},
                        "productName": {"string": name},
                        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{16 + index // 2 * 16:02x}"},
                        "type": {"string": "gpu"},
                        "uuid": {"string": f"GPU-{node:08x}-{index:04x}-4000-8000-{node * 8 + index:012x}"},
                    },
                    "capacity": {"memory": {"value": memory}},
                }
                for index in range(GPUS)
            ],
        },
    }


def partitioned(node: int) -> Iterator[JSON]:
    """The slice of a node whose GPUs are two halves each, and the slice of the counters that the halves share."""
    gpus, counters = slice_of(node), slice_of(node)
    for entry in (gpus, counters):
        entry["spec"]["pool"]["resourceSliceCount"] = 2
    for index, device in enumerate(gpus["spec"]["devices"]):
        consumed = {"memory": {"value": f"{40 + node % 2 * 20}Gi"}}
        device["consumesCounters"] = [{"counterSet": f"gpu-{index // 2}", "counters": consumed}]
    counters["metadata"]["name"] += "-counters"
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = [
        {"name": f"gpu-{index}", "counters": {"memory": {"value": "80Gi"}}} for index in range(GPUS // 2)
    ]
    yield gpus
    yield counters


def various(node: int) -> JSON:
    """A slice whose devices are called by their UUIDs, differ in their capacity, and are tainted at different times."""
    entry = slice_of(node)
    for index, device in enumerate(entry["spec"]["devices"]):
        number = node * GPUS + index
        device["name"] = device["attributes"]["uuid"]["string"].lower()
        device["capacity"]["memory"]["value"] = f"{40 * 2**20 + number * 7919 % 99991}Ki"
        if number % 3 == 0:
            time = f"2026-01-02T{number % 24:02}:{number % 59:02}:{number % 53:02}Z"
            device["taints"] = [{"key": "example.com/hot", "effect": "NoSchedule", "timeAdded": time}]
    return entry


def taint_rule(node: int) -> JSON:
    selector = {"driver": DRIVER, "pool": f"node-{node:05}", "device": f"gpu-{node % GPUS}"}
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": f"repair-{node}", "uid": f"rule-{node}"},
        "spec": {"deviceSelector": selector, "taint": {"key": "example.com/repair", "effect": "NoExecute"}},
    }


def node_of(node: int) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"node-{node:05}",
            "labels": {
                "kubernetes.io/hostname": f"node-{node:05}",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": f"zone-{node % 3}",
            },
        },
        "status": {
            "allocatable": {"cpu": "128", "memory": "1Ti", "pods": "110"},
            "nodeInfo": {"kubeletVersion": "v1.36.2"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def holder(node: int) -> JSON:
    """A claim that holds all GPUs of a node."""
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": f"node-{node:05}", "device": f"gpu-{index}"}
        for index in range(GPUS)
    ]
    pinned = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"node-{node:05}"]}]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"train-{node}", "namespace": "ml", "uid": f"claim-{node}"},
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": GPUS},
                    }
                ]
            }
        },
        "status": {
            "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [pinned]}},
            "reservedFor": [{"resource": "pods", "name": f"train-{node}", "uid": f"pod-{node}"}],
        },
    }


def pods_of(node: int) -> Iterator[JSON]:
    """The pods of a busy cluster: one on each eighth node, for the claim there or without one."""
    if node % 8:
        return
    claims = [{"name": "gpu", "resourceClaimName": f"train-{node}"}]
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"train-{node}",
            "namespace": "ml",
            "uid": f"pod-{node}",
            "labels": {"app": "train", "job-name": f"train-{node}"},
            "creationTimestamp": "2026-01-02T00:00:00Z",
        },
        "spec": {
            "nodeName": f"node-{node:05}",
            "resourceClaims": claims if node % 2 == 0 else [],
            "containers": [
                {
                    "name": f"container-{number}",
                    "image": "registry.example.com/train:1.2.3",
                    "resources": {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"memory": "16Gi"}},
                    "env": [{"name": f"VARIABLE_{index}", "value": "some value"} for index in range(8)],
                }
                for number in range(2)
            ],
        },
        "status": {"phase": "Running", "podIP": "10.0.0.1", "qosClass": "Burstable"},
    }


def question(name: str, selector: str) -> Iterator[JSON]:
    """A pending pod with a claim of two GPUs."""
    exactly = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 2,
        "selectors": [{"cel": {"expression": selector}}],
    }
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {**meta, "name": f"{name}-gpu"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {
            "containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}],
        },
        "status": {"phase": "Pending"},
    }


def objects(nodes: int, *, busy: bool = False, kind: str = "") -> Iterator[JSON]:
    """The cluster. A busy one has 125 pods for 1,000 nodes, and claims on every second node hold its devices.

    ``kind`` is one of KINDS.
    """
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}" && {A}.type == "gpu"'}}]},
    }
    for name, selector in QUESTIONS.items():
        yield from question(name, selector)
    for node in range(nodes):
        yield node_of(node)
        if kind == "partitioned":
            yield from partitioned(node)
        else:
            yield various(node) if kind == "various" else slice_of(node)
        if kind == "rules" and node % 10 == 0:
            yield taint_rule(node)
        if busy:
            yield from pods_of(node)
        if node % 2 == 0 if busy else model(node)[0] == HELD_MODEL:
            yield holder(node)


def write(path: Path, nodes: int, *, busy: bool = False, kind: str = "") -> None:
    """Writes one List, an object per line."""
    with path.open("w") as stream:
        stream.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for index, entry in enumerate(objects(nodes, busy=busy, kind=kind)):
            stream.write((",\n" if index else "") + json.dumps(entry))
        stream.write('\n    ],\n    "kind": "List"\n}\n')


class Measured(NamedTuple):
    """One run of a command, or the least of several."""

    wall: float
    cpu: float
    megabytes: int
    code: int
    output: str

    def least(self, other: Measured) -> Measured:
        low = (min(self.wall, other.wall), min(self.cpu, other.cpu), min(self.megabytes, other.megabytes))
        return Measured(*low, self.code, self.output)


def measured(*command: str) -> Measured:
    """A command in a process of its own, with compiled bytecode and buffered output, as users run it."""
    unusual = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    environment = {name: value for name, value in os.environ.items() if name not in unusual}
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    cpu = usage.ru_utime + usage.ru_stime
    seconds = time.perf_counter() - start
    return Measured(seconds, cpu, usage.ru_maxrss // 1024, os.waitstatus_to_exitcode(status), output)


def explain(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "kubectl_dra", "explain", *arguments)


def run(name: str, *flags: str, times: int = 1) -> None:
    """Prints the least wall time, CPU time and size of a question's command, and its first line."""
    runs = [measured(*explain(f"pod/{name}", *flags)) for _ in range(times)]
    best = reduce(Measured.least, runs)
    first = best.output.partition("\n")[0].strip()
    print(f"| {name} | {best.wall:.2f} | {best.cpu:.2f} | {best.megabytes} | {best.code} | {first} |", flush=True)


def beside_allocator(snapshot: Path, name: str, times: int) -> None:
    """Prints a claim's question beside the published allocator on all nodes of the same file, in turns."""
    from kubectl_dra.api.releases import parse_release
    from tools.recorder.allocator import MODULES, features
    from tools.recorder.modules import built

    release = parse_release(RELEASE)
    program = built(RELEASE, SOURCE, MODULES)
    theirs = (str(program), str(snapshot), f"default/{name}-gpu", *features(release, []))
    ours = explain(
        f"claim/{name}-gpu", "--snapshot", str(snapshot), "--complete", "--kubernetes-version", RELEASE, "-o", "json"
    )
    text = ours[:-2]
    best: dict[str, Measured] = {}
    for _ in range(times):
        for title, command in (("-o json", ours), ("text", text), ("the allocator", theirs)):
            one = measured(*command)
            best[title] = best[title].least(one) if title in best else one
    answer = json.loads(best["the allocator"].output)
    nodes = [
        group["nodes"] for group in json.loads(best["-o json"].output)["nodeGroups"] if group["outcome"] == "allocated"
    ]
    print(f"the allocator of {RELEASE}: {best['the allocator'].output}")
    if sum(map(len, nodes)) != answer["fits"]:
        raise SystemExit(f"explain says that {sum(map(len, nodes)):,} nodes fit")
    print("| | wall s | CPU s | peak MB | wall ratio | CPU ratio |\n|---|---|---|---|---|---|")
    other = best["the allocator"]
    for title, one in best.items():
        ratios = f"{one.wall / other.wall:.2f} | {one.cpu / other.cpu:.2f}"
        print(f"| {title} | {one.wall:.2f} | {one.cpu:.2f} | {one.megabytes} | {ratios} |")


def growth(directory: Path, name: str, times: int, *, busy: bool, kind: str) -> None:
    """Prints CPU time and memory per node for clusters of ``SIZES``, without what an empty cluster takes."""
    start: Measured | None = None
    print("| nodes | wall s | CPU s | peak MB | CPU µs per node | KB per node |\n|---|---|---|---|---|---|")
    for nodes in (8, *SIZES):
        snapshot = directory / f"{nodes}.json"
        write(snapshot, nodes, busy=busy, kind=kind)
        command = explain(f"claim/{name}-gpu", "--snapshot", str(snapshot), "--complete", "-o", "json")
        one = reduce(Measured.least, [measured(*command) for _ in range(times)])
        snapshot.unlink()
        if start is None:
            start = one
            continue
        each = f"{(one.cpu - start.cpu) / nodes * 1e6:.0f} | {(one.megabytes - start.megabytes) / nodes * 1024:.1f}"
        print(f"| {nodes:,} | {one.wall:.2f} | {one.cpu:.2f} | {one.megabytes} | {each} |", flush=True)


def profile(snapshot: Path, name: str, lines: int) -> None:
    import cProfile
    import pstats

    from kubectl_dra.__main__ import main

    # Otherwise the process ends at once.
    os.environ["KUBECTL_DRA_DEBUG"] = "1"
    sys.argv = ["kubectl-dra", "explain", f"pod/{name}", "--snapshot", str(snapshot), "--complete"]
    profiler = cProfile.Profile()
    with contextlib.suppress(SystemExit):
        profiler.runcall(main)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(lines)
    pstats.Stats(profiler).sort_stats("cumulative").print_stats(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=12_500)
    parser.add_argument("--profile", default="", choices=["", *QUESTIONS])
    parser.add_argument("--lines", type=int, default=45)
    parser.add_argument("--snapshot", default="", help="a snapshot that an earlier run kept")
    parser.add_argument("--busy", action="store_true", help="with pods, and every second device held")
    parser.add_argument(
        "--kind", default="", choices=KINDS, help="with shared counters, taint rules, or unlike devices"
    )
    parser.add_argument("--keep", default="", help="where to keep the snapshot")
    parser.add_argument("--beside-allocator", action="store_true", help="ratios to Kubernetes' allocator; needs Go")
    parser.add_argument("--growth", action="store_true", help="time and memory per node, 1,000 to 100,000 nodes")
    parser.add_argument("--times", type=int, default=3, help="runs, of which the least counts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kubectl-dra-") as directory:
        if options.growth:
            growth(Path(directory), "fits", options.times, busy=options.busy, kind=options.kind)
            return
        snapshot = Path(options.snapshot or options.keep or f"{directory}/cluster.json")
        if not options.snapshot:
            write(snapshot, options.nodes, busy=options.busy, kind=options.kind)
        if options.profile:
            profile(snapshot, options.profile, options.lines)
            return
        if options.beside_allocator:
            beside_allocator(snapshot, "fits", options.times)
            return
        print(f"{options.nodes:,} nodes, {options.nodes * GPUS:,} devices, {snapshot.stat().st_size / 1e6:.0f} MB\n")
        print(HEAD)
        for name in QUESTIONS:
            run(name, "--snapshot", str(snapshot), "--complete", times=options.times)


if __name__ == "__main__":
    main()
