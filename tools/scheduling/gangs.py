"""Ask a real kube-scheduler about made-up gangs, and compare with what we say.

    python -m tools.scheduling.gangs --release 1.36 --seed 1 --groups 60 [--workload-claims] [--save FILE]
    python -m tools.scheduling.gangs --judge FILE

Nodes in two zones with cpu and devices, and one PodGroup; the scheduler is held still until all pods are there. With
--workload-claims pods of the group share claims of it, by name or template. A group agrees where each pod fares as we
say, or where we say that it is chance. Exit code 0 only where all agree.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kubectl_dra.api.releases import default_features, parse_release
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.scheduling.gang_scheduling import Gang, Obstacle, gang_of, message_of, placed_together
from kubectl_dra.scheduling.scheduler import Scheduler
from tools.controlplane.client import Api, ApiError
from tools.controlplane.plane import own_plane
from tools.controlplane.program import find_program, kubernetes_version
from tools.recorder.recorded import lines
from tools.scheduling.recording import held_still, scheduler_pid
from tools.scheduling.world import DRIVER, HOST, ZONE

Json = dict[str, Any]

VERSIONS: Final = {"1.36": "scheduling.k8s.io/v1alpha2", "1.37": "scheduling.k8s.io/v1beta1"}
GATES: Final = {
    "1.36": "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true",
    "1.37": "GenericWorkload=true,TopologyAwareWorkloadScheduling=true",
}
SETTLED: Final = 0.4
STEADY: Final = 1.2
LONGEST: Final = 30.0
"""Seconds."""
_TRIED_AGAIN: Final = "running PreBind plugin"
"""Of two pods that get a claim together the second may come too early; it, and what waits for it, are tried again."""
WORKLOAD_CLAIMS: Final = "DRAWorkloadResourceClaims"
"""The gate by which a claim is reserved for a PodGroup."""


def made(seed: int, version: str) -> tuple[list[Json], list[Json]]:
    """A cluster: what is there before the scheduler is held still, and the group's pods with their claims."""
    rng = random.Random(seed)
    space = f"g{seed}"
    before: list[Json] = [_named("v1", "Namespace", space)]
    for index in range(rng.randrange(2, 6)):
        before += _node(rng, f"{space}-n{index}")
    members = rng.randrange(2, 6)
    spec: Json = {"schedulingPolicy": {"gang": {"minCount": rng.randrange(2, members + 1)}}}
    if rng.random() < 0.4:
        spec["schedulingConstraints"] = {"topology": [{"key": ZONE}]}
    before.append({**_named(version, "PodGroup", "g", space), "spec": spec})
    alike = (rng.choice((1, 2, 3)), rng.random() < 0.5) if rng.random() < 0.4 else None
    pods: list[Json] = []
    for index in range(members):
        cpu, device = alike or (rng.choice((1, 1, 2, 3)), rng.random() < 0.4)
        pods += _member(rng, f"p{index}", space, cpu, device)
    return before, pods


def share_claims(seed: int, before: list[Json], pods: list[Json]) -> None:
    """Gives the group of a cluster claims, which some of its pods use."""
    rng = random.Random(f"claims-{seed}")
    space = f"g{seed}"
    group = before.pop()
    claims = []
    for index in range(rng.choice((1, 1, 2))):
        name = f"shared-{index}"
        count = rng.choice((1, 1, 2))
        spec: Json = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}]}}
        by_template = rng.random() < 0.5
        kind = "ResourceClaimTemplate" if by_template else "ResourceClaim"
        made = _named("resource.k8s.io/v1", kind, name, space)
        before.append({**made, "spec": {"spec": spec} if by_template else spec})
        claims.append({"name": name, f"r{kind[1:]}Name": name})
    group["spec"]["resourceClaims"] = claims
    before.append(group)
    for pod in (each for each in pods if each["kind"] == "Pod"):
        for claim in claims:
            if rng.random() < 0.7:
                pod["spec"].setdefault("resourceClaims", []).append(claim)
                resources = pod["spec"]["containers"][0]["resources"]
                resources.setdefault("claims", []).append({"name": claim["name"]})


def _named(version: str, kind: str, name: str, namespace: str = "") -> Json:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **where}}


def _node(rng: random.Random, name: str) -> list[Json]:
    node = _named("v1", "Node", name)
    node["metadata"]["labels"] = {HOST: name, **({ZONE: rng.choice("ab")} if rng.random() < 0.9 else {})}
    if rng.random() < 0.1:
        node["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    allocatable = {"cpu": str(rng.choice((2, 3, 4))), "memory": "8Gi", "pods": "110"}
    node["status"] = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
    devices = [{"name": f"gpu-{index}"} for index in range(rng.randrange(3))]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    return [node, {**_named("resource.k8s.io/v1", "ResourceSlice", name), "spec": spec}]


def _member(rng: random.Random, name: str, space: str, cpu: int, device: bool) -> list[Json]:
    resources: Json = {"requests": {"cpu": str(cpu)}}
    container = {"name": "c", "image": "i", "resources": resources}
    spec: Json = {"schedulingGroup": {"podGroupName": "g"}, "containers": [container]}
    if rng.random() < 0.2:
        spec["nodeSelector"] = {ZONE: rng.choice("ab")}
    pod = {**_named("v1", "Pod", name, space), "spec": spec}
    if not device:
        return [pod]
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
    resources["claims"] = [{"name": "gpu"}]
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    claim = {**_named("resource.k8s.io/v1", "ResourceClaim", name, space), "spec": {"devices": {"requests": requests}}}
    return [claim, pod]


def recorded(release: str, seed: int, count: int, workload_claims: bool = False) -> Iterator[Json]:
    """One line for each group: the cluster before, and what became of each pod."""
    version = VERSIONS[release]
    gates = (WORKLOAD_CLAIMS,) if workload_claims else ()
    on = ",".join((GATES[release], *(f"{gate}=true" for gate in gates)))
    arguments = ["--profile=full", f"--feature-gates={on}", f"--runtime-config={version}=true"]
    with tempfile.TemporaryDirectory() as folder, own_plane(find_program(print), arguments, Path(folder)) as plane:
        api, pid = plane.api(), scheduler_pid(plane)
        api.create(_named("resource.k8s.io/v1", "DeviceClass", "gpu"))
        for number in range(seed, seed + count):
            before, pods = made(number, version)
            if workload_claims:
                share_claims(number, before, pods)
            for pod in before:
                api.create(pod)
            time.sleep(SETTLED)
            with held_still(pid):
                for pod in pods:
                    api.create(pod)
                snapshot = _snapshot(api, f"g{number}", version)
            pods_after = _after(api, f"g{number}")
            line: Json = {"id": f"g{number}", "release": kubernetes_version(), "snapshot": snapshot, "pods": pods_after}
            yield {**line, "gates": list(gates)} if gates else line
            _remove(api, f"g{number}", [*before[1:], *pods])


def _remove(api: Api, space: str, made: Sequence[Json]) -> None:
    """Deletes a cluster, with the claims that were made from templates."""
    claims = api.list("resource.k8s.io/v1", "ResourceClaim", space)
    own = [{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **claim} for claim in claims]
    for raw in reversed([*own, *(raw for raw in made if raw["kind"] != "ResourceClaim")]):
        if raw["kind"] in ("ResourceClaim", "PodGroup"):
            # Not all controllers that would drop theirs run here, and one that does may be quicker.
            with suppress(ApiError):
                api.patch(raw, {"metadata": {"finalizers": None}})
        api.delete(raw, grace_seconds=0 if raw["kind"] == "Pod" else None)


def _snapshot(api: Api, space: str, version: str) -> Json:
    kinds = [("v1", kind) for kind in ("Node", "Namespace", "Pod")]
    kinds += [("resource.k8s.io/v1", kind) for kind in ("DeviceClass", "ResourceSlice", "ResourceClaim")]
    items = []
    for group, kind in (*kinds, (version, "PodGroup")):
        for item in api.list(group, kind):
            item["metadata"].pop("managedFields", None)
            if item["metadata"].get("namespace", space) == space and not (
                kind == "Namespace" and item["metadata"]["name"] != space
            ):
                items.append({"apiVersion": group, "kind": kind, **item})
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _after(api: Api, space: str) -> Json:
    """Node and message of each pod, once they stay the same."""
    last: Json = {}
    start = since = time.monotonic()
    while time.monotonic() - start < LONGEST:
        time.sleep(0.2)
        now: Json = {}
        for pod in api.list("v1", "Pod", space):
            conditions = (pod.get("status") or {}).get("conditions") or ()
            said = [condition.get("message", "") for condition in conditions if condition["type"] == "PodScheduled"]
            now[pod["metadata"]["name"]] = {"node": pod["spec"].get("nodeName", ""), "message": "".join(said[:1])}
        if now != last:
            last, since = now, time.monotonic()
        elif all(map(_is_settled, now.values())) and time.monotonic() - since > STEADY:
            break
    return last


def _is_settled(pod: Json) -> bool:
    return bool(pod["node"] or pod["message"]) and not pod["message"].startswith(_TRIED_AGAIN)


def judged(case: Json) -> Iterator[tuple[str, str]]:
    """For each pod what came of the comparison, and what differs (empty where nothing does)."""
    release = parse_release(case["release"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "snapshot.json")
        path.write_text(json.dumps(case["snapshot"]))
        gates = frozenset((*default_features(release), *case.get("gates", ())))
        state = Scheduler(release, gates, release.patch).sees(Cluster(read_snapshot([str(path)])))
    after = case["pods"]
    count = sum(bool(each["node"]) for each in after.values())
    for (_, name), pod in state.snapshot.pods.items():
        gang = gang_of(pod, state)
        assert isinstance(gang, Gang)
        found = placed_together(gang, pod, state)
        if isinstance(found, Obstacle):
            yield found.name.lower(), ""
            continue
        theirs, message = after[name], message_of(pod, found, state)
        placed = found.fits and pod.key in found.nodes
        if found.fits != (count >= gang.minimum) or placed != bool(theirs["node"]):
            yield "differs", f"{name}: ours {found.fits}, {dict(found.nodes)}; scheduler {after}"
        elif message and message != theirs["message"]:
            yield "differs", f"{name}: message\n  ours:      {message}\n  scheduler: {theirs['message']}"
        else:
            yield "agrees", ""


def run(files: Sequence[Path]) -> int:
    """Prints every disagreement and the counts; 0 where all agree."""
    counts: Counter[str] = Counter()
    for path in files:
        for case in lines(path):
            for result, problem in judged(case):
                counts[result] += 1
                if problem:
                    print(f"{case['id']}: {problem}")
    print(", ".join(f"{name} {number}" for name, number in sorted(counts.items())))
    return 1 if counts["differs"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.scheduling.gangs", description=__doc__)
    parser.add_argument("--release", default="1.36", choices=VERSIONS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--groups", type=int, default=60)
    parser.add_argument("--workload-claims", action="store_true", help="with claims of the groups")
    parser.add_argument("--save", type=Path, help="keep the recorded lines in this file (.jsonl.gz)")
    parser.add_argument("--judge", type=Path, help="only judge recorded lines")
    options = parser.parse_args()
    if options.judge is not None:
        return run([options.judge])
    os.environ["KUBECTL_DRA_KUBERNETES"] = options.release
    path = options.save or Path(tempfile.mkstemp(suffix=".jsonl.gz")[1])
    with gzip.GzipFile(path, "wb", mtime=0) as out:
        for line in recorded(options.release, options.seed, options.groups, options.workload_claims):
            out.write(json.dumps(line).encode() + b"\n")
    return run([path])


if __name__ == "__main__":
    sys.exit(main())
