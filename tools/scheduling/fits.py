"""Create made-up workloads for real, and compare how many of their pods run with what ``fit`` said before.

    python -m tools.scheduling.fits --release 1.36 --seed 1 --workloads 30 [--class spread] [--save FILE]
    python -m tools.scheduling.fits --judge FILE

The clusters are those of ``tools.scheduling.clusters``; the pod of each becomes the template of a Deployment,
StatefulSet or Job, one of several pods, or a member of a PodGroup, which the controllers and the scheduler of a control
plane then act on. A workload agrees where as many pods get a node as ``fit`` says, or a number in the range that it
says; and the same nodes as many of them, where nothing is left to chance. The live cluster and a snapshot of it have to
give one answer. Exit code 0 only where all agree.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext, redirect_stderr, redirect_stdout
from copy import deepcopy
from itertools import islice, permutations
from pathlib import Path
from typing import Any, Final

from kubectl_dra.cli.main import run as command
from tools.controlplane.client import ApiError
from tools.controlplane.plane import own_plane
from tools.controlplane.program import find_program, kubernetes_version
from tools.recorder.recorded import lines
from tools.scheduling.clusters import CLASSES, MIXED, make, shared_objects
from tools.scheduling.gangs import GATES, VERSIONS
from tools.scheduling.more_devices import add_some
from tools.scheduling.recording import Recording, held_still, scheduler_pid
from tools.scheduling.world import World

Json = dict[str, Any]

KINDS: Final = ("Deployment", "Deployment", "StatefulSet", "Job", "Pods", "PodGroup")
SETTLED: Final = 0.4
STEADY: Final = 2.5
LONGEST: Final = 40.0
"""Seconds."""
MOST_ORDERS: Final = 70
"""All orders of eight pods of two sorts."""
_GROUPS: Final = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}


def workload(world: World, kind: str, groups: str) -> list[Json]:
    """The world's pod as a workload of some kind, and what it needs beside the world's objects.

    ``groups`` is the version of PodGroup.
    """
    rng = world.rng
    count = rng.randrange(2, 9)
    pod = deepcopy(world.pod)
    if rng.random() < 0.5:
        _by_template(world, pod)
    if rng.random() < 0.6:
        add_some(world, pod)
    spec, labels = pod["spec"], pod["metadata"]["labels"]
    metadata = {"name": "w", "namespace": world.prefix}
    template = {"metadata": {"labels": labels}, "spec": spec}
    if kind in ("Pods", "PodGroup"):
        return list(_pods(world, pod, count, groups if kind == "PodGroup" else ""))
    made: Json = {"apiVersion": _GROUPS[kind], "kind": kind, "metadata": metadata, "spec": {"template": template}}
    if kind == "Job":
        spec["restartPolicy"] = "Never"
        made["spec"] |= {
            "parallelism": count,
            "completions": count + rng.choice((-1, 0, 3)),
            "completionMode": "Indexed",
        }
    else:
        made["spec"] |= {"replicas": count, "selector": {"matchLabels": dict(labels)}}
    if kind == "StatefulSet":
        # Nothing makes pods ready here, so that in order there would only be one.
        made["spec"] |= {"serviceName": "w", "podManagementPolicy": "Parallel"}
    return [made]


def _by_template(world: World, pod: Json) -> None:
    """Claims of their own instead of one that the pods share."""
    for entry in world.objects:
        if entry["kind"] == "ResourceClaim" and entry["metadata"]["name"] == "gpu":
            entry["kind"], entry["spec"] = "ResourceClaimTemplate", {"spec": entry["spec"]}
            pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]


def _pods(world: World, pod: Json, count: int, groups: str) -> Iterator[Json]:
    """Pods of two sorts, and their group where ``groups`` names its version."""
    if groups:
        gang = {"schedulingPolicy": {"gang": {"minCount": world.rng.randrange(2, count + 1)}}}
        yield {
            "apiVersion": groups,
            "kind": "PodGroup",
            "metadata": {"name": "w", "namespace": world.prefix},
            "spec": gang,
        }
    for number in range(count):
        each = deepcopy(pod)
        each["metadata"]["name"] = f"w-{number}"
        if groups:
            each["spec"]["schedulingGroup"] = {"podGroupName": "w"}
        elif number % 2:
            each["spec"]["containers"][0]["resources"].setdefault("requests", {})["cpu"] = "1500m"
        yield each


def recorded(release: str, classes: tuple[str, ...], seed: int, count: int, kind: str = "") -> Iterator[Json]:
    """One line for each of ``count`` workloads, the classes in turn: the cluster before, what became of the pods."""
    version = VERSIONS.get(release, "")
    arguments = ["--profile=full"]
    if version:
        arguments += [f"--feature-gates={GATES[release]}", f"--runtime-config={version}=true"]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        plane = stack.enter_context(own_plane(find_program(print), arguments, folder))
        api, pid = plane.api(), scheduler_pid(plane)
        for raw in shared_objects():
            api.create(raw)
        for number in range(seed, seed + count):
            name = classes[number % len(classes)]
            world = make(name, number)
            chosen = kind or random.Random(number).choice(KINDS if version else KINDS[:-1])
            manifest = workload(world, chosen, version)
            recording = Recording(api, world)
            line: Json = {"id": f"{name}-{number}-{chosen}", "class": name, "seed": number, "kind": chosen}
            line |= {"release": kubernetes_version(), "manifest": manifest}
            try:
                recording.make()
                for raw in world.late:
                    recording.create(raw)
                time.sleep(SETTLED)
                line["snapshot"] = recording.snapshot()
                line["live"] = _fitted(manifest, "--kubeconfig", str(plane.kubeconfig), "-n", world.prefix)[0]
                with held_still(pid) if chosen == "PodGroup" else nullcontext():
                    for raw in manifest:
                        api.create(raw)
                    time.sleep(SETTLED)
                line["expect"] = _outcome(recording)
            except ApiError as error:
                line["expect"] = {"refused": str(error)}
            finally:
                for raw in reversed(manifest):
                    api.delete(raw)
                time.sleep(SETTLED)
                recording.remove()
            yield line


def _outcome(recording: Recording) -> Json:
    """Node and message of each pod of the workload, once they stay the same."""
    api, space = recording.api, recording.world.prefix
    own = {pod["metadata"]["name"] for pod in recording.world.bound}
    last: Json = {}
    start = since = time.monotonic()
    while time.monotonic() - start < LONGEST:
        time.sleep(0.2)
        recording.provision()
        now: Json = {}
        for pod in [*api.list("v1", "Pod", space), *api.list("v1", "Pod", f"{space}-b")]:
            metadata = pod["metadata"]
            if metadata.get("deletionTimestamp"):
                # There is no kubelet that would end what is evicted.
                api.delete({"apiVersion": "v1", "kind": "Pod", **pod}, grace_seconds=0)
            elif metadata["name"] not in own:
                recording.make_ephemeral(pod)
                conditions = (pod.get("status") or {}).get("conditions") or ()
                said = [condition.get("message", "") for condition in conditions if condition["type"] == "PodScheduled"]
                now[metadata["name"]] = {"node": pod["spec"].get("nodeName", ""), "message": "".join(said[:1])}
        nodes = {name: each["node"] for name, each in now.items()}
        if nodes != {name: each["node"] for name, each in last.items()}:
            since = time.monotonic()
        last = now
        decided = now and all(each["node"] or each["message"] for each in now.values())
        if time.monotonic() - since > (STEADY if decided else 3 * STEADY):
            break
    return {"pods": last}


def judged(line: Json) -> tuple[str, str]:
    """What came of the comparison of one workload, and what differs (empty where nothing does)."""
    if "refused" in line["expect"]:
        return "refused", ""
    report, errors = _of_snapshot(line)
    if not report:
        return "differs", errors
    if "live" in line and not _agree(read := _numbers(line["live"]), _numbers(report)):
        return "differs", f"live {read}, of the snapshot {_numbers(report)}"
    if report["exitCode"] == 3:
        return "undetermined", ""
    pods = line["expect"]["pods"]
    theirs = sum(bool(pod["node"]) for pod in pods.values())
    ours = [found["podCounts"] for found in report["items"]]
    fewest, most = (sum(own[name] for own in ours) for name in ("fewest", "most"))
    nodes = Counter(pod["node"] for pod in pods.values() if pod["node"])
    if fewest <= theirs <= most:
        placed = [one for found in report["items"] for one in found["placements"]]
        if fewest != most:
            return "agrees by chance", ""
        # Pods of a group share a cycle, in which they do not all see where the others before them went.
        if line["kind"] == "PodGroup" or any(one["choice"] not in ("only", "best") for one in placed):
            return "agrees", ""
        ours_on = Counter(one["node"] for one in placed)
        if ours_on == nodes:
            return "agrees, nodes too", ""
        if any(nodes == _nodes(order) for order in _other_orders(line)):
            return "agrees, in another order", ""
        return "differs", f"{dict(ours_on)}, scheduler {dict(nodes)}"
    said = [f"{found['answer']} {found.get('stop', {}).get('answer', '')}" for found in report["items"]]
    messages = sorted({pod["message"] for pod in pods.values() if pod["message"]})
    return "differs", f"{said}; scheduler: {theirs} of {len(pods)} pods, {dict(nodes)} {messages}"


def _other_orders(line: Json) -> Iterator[Json]:
    """The same pods in another order: the controller makes the claims they wait for, by template, in any order."""
    pods = [manifest for manifest in line["manifest"] if manifest["kind"] == "Pod"]
    others = [manifest for manifest in line["manifest"] if manifest["kind"] != "Pod"]
    if not any("resourceClaimTemplateName" in claim for pod in pods for claim in pod["spec"].get("resourceClaims", ())):
        return
    orders = {"".join(map(str, order)): order for order in permutations([number % 2 for number in range(len(pods))])}
    for order in islice(orders.values(), 1, MOST_ORDERS):
        sorts = iter(pods[::2]), iter(pods[1::2])
        yield {**line, "manifest": [*others, *(next(sorts[sort]) for sort in order)]}


def _nodes(line: Json) -> Counter[str]:
    """How many pods ``fit`` places on each node."""
    report, _ = _of_snapshot(line)
    return Counter(one["node"] for found in report.get("items", ()) for one in found["placements"])


def _numbers(report: Json) -> list[Json]:
    """What is compared of two reports."""
    return [{"verdict": found["verdict"], **found["podCounts"]} for found in report.get("items", ())]


def _agree(live: Sequence[Json], complete: Sequence[Json]) -> bool:
    """Whether both say the same, but that chance has more to choose where kinds that score nodes were not read."""
    chosen = [(each.pop("fewest"), each.pop("most")) for each in (*live, *complete)]
    ranges = zip(chosen[: len(live)], chosen[len(live) :], strict=False)
    return live == complete and all(few <= fewest and most <= many for (few, many), (fewest, most) in ranges)


def _of_snapshot(line: Json) -> tuple[Json, str]:
    """The report of ``fit`` on the cluster before, or what it says instead."""
    with tempfile.TemporaryDirectory() as folder:
        snapshot = Path(folder, "cluster.json")
        snapshot.write_text(json.dumps(line["snapshot"]))
        release = line["release"].removeprefix("v")
        return _fitted(line["manifest"], "--snapshot", str(snapshot), "--complete", "--kubernetes-version", release)


def _fitted(manifest: Sequence[Json], *flags: str) -> tuple[Json, str]:
    """The report of ``fit``, or what it says instead."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "manifest.json")
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifest}))
        out, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(errors):
            command(["fit", "-f", str(file), *flags, "-o", "json"])
    return (json.loads(out.getvalue()) if out.getvalue() else {}), errors.getvalue()


def run(found: Iterable[Json]) -> int:
    """Prints every disagreement and the counts; 0 where all agree."""
    counts: Counter[str] = Counter()
    for line in found:
        result, problem = judged(line)
        counts[result] += 1
        if problem:
            print(f"{line['id']}: {problem}", flush=True)
    print(", ".join(f"{name} {number}" for name, number in sorted(counts.items())))
    return 1 if counts["differs"] else 0


def _saving(found: Iterable[Json], path: Path) -> Iterator[Json]:
    with gzip.GzipFile(path, "wb", mtime=0) as out:
        for line in found:
            out.write(json.dumps(line).encode() + b"\n")
            yield line


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.scheduling.fits", description=__doc__)
    parser.add_argument("--release", default="1.36", help="the Kubernetes to ask, such as 1.36")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workloads", type=int, default=30)
    parser.add_argument("--class", dest="name", choices=CLASSES, help="only this class of clusters")
    parser.add_argument("--kind", default="", choices=sorted(set(KINDS)), help="only this kind of workloads")
    parser.add_argument("--save", type=Path, help="keep the recorded lines in this file (.jsonl.gz)")
    parser.add_argument("--judge", type=Path, help="only judge recorded lines")
    options = parser.parse_args(words)
    if options.judge is not None:
        return run(lines(options.judge))
    os.environ["KUBECTL_DRA_KUBERNETES"] = options.release
    classes = (options.name,) if options.name else (*CLASSES, MIXED)
    found = recorded(options.release, classes, options.seed, options.workloads, options.kind)
    return run(_saving(found, options.save or Path(tempfile.mkstemp(suffix=".jsonl.gz")[1])))


if __name__ == "__main__":
    sys.exit(main())
