"""Carry out, on a real control plane, what explain offers as proved, and see whether the scheduler then places the pod.

    python -m tests.explain.live.carried_out --pods 200 --seed 1 result.jsonl

Each number makes a small random cluster, asks explain about a pod that fits nowhere, and does what the first fix says
(``--all``: each fix, in a cluster that is made anew): objects are edited as a user or driver would, devices are given
back by the controllers. Each line of the file is one fix with what came of it; the last line printed counts them.
``KUBECTL_DRA_KUBERNETES=1.37`` takes another release.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

from tests.explain.live.test_random import any_request, constraints, hold, publish
from tests.ran import ran
from tools.asked import Asked
from tools.carry_out import carried_out, fixes
from tools.controlplane.client import ApiError, Json
from tools.controlplane.cluster import OWNER_LABEL, Cluster, wait
from tools.controlplane.objects import RESOURCE_API, request
from tools.controlplane.plane import gates_asked, gates_of, own_plane
from tools.controlplane.program import find_program

KINDS = {
    "Node": "v1",
    "Pod": "v1",
    "ResourceSlice": RESOURCE_API,
    "DeviceClass": RESOURCE_API,
    "ResourceClaim": RESOURCE_API,
    "ResourceClaimTemplate": RESOURCE_API,
}
SECONDS = 20.0
"""How long the scheduler may take to place a pod after a fix: it tries again after 1, 2, 4 and 8 seconds."""
GIVEN_BACK_SECONDS = 30.0
_SERVERS = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")
_DONE = ("Node", "ResourceSlice", "DeviceClass")
_IMMUTABLE = ("ResourceClaim", "ResourceClaimTemplate")


def made(random: Random, cluster: Cluster) -> Json:
    """A random cluster, and the pod that is asked about, which does not exist yet."""
    extended = {"extendedResourceName": f"{cluster.driver}/gpu"} if random.random() < 0.2 else {}
    if extended and not gates_of(cluster.plane).get("DRAExtendedResource"):
        extended = {}
    gpu = cluster.device_class(**extended)
    nodes = []
    for part in "abc"[: random.choice((1, 2, 2, 3))]:
        labels = {"zone": random.choice("xy"), "instance-type": f"{cluster.name(part)}-standard-8"}
        plugin = {f"{cluster.driver}/gpu": "2"} if extended and random.random() < 0.3 else {}
        nodes.append(cluster.node(part, labels=labels, allocatable=plugin))
        for number in range(random.choice((1, 1, 2))):
            publish(random, cluster, cluster.name(f"{part}{number}"), nodes[-1])
    hold(random, cluster, gpu)
    for node in nodes:
        _crowd(random, cluster, node)
    for node in nodes:
        _bar(random, cluster, node)
    return _pod(random, cluster, gpu, extended)


def _crowd(random: Random, cluster: Cluster, node: str) -> None:
    """Perhaps a pod that takes most of a node's cpu, with or without devices."""
    if random.random() < 0.25:
        spec = cluster.pod_spec()
        spec["containers"][0]["resources"]["requests"] = {"cpu": random.choice(("3", "6"))}
        spec["nodeSelector"]["kubernetes.io/hostname"] = node
        cluster.pod(f"busy-{node.rpartition('-')[2]}", **spec)
        wait(lambda: _judged(cluster, f"busy-{node.rpartition('-')[2]}"), "a verdict on a busy pod")


def _judged(cluster: Cluster, name: str) -> bool | None:
    return True if cluster.get("Pod", name, "v1").get("status", {}).get("conditions") else None


def _bar(random: Random, cluster: Cluster, node: str) -> None:
    """Perhaps a node is cordoned or tainted."""
    change: Json = {}
    if random.random() < 0.15:
        change["unschedulable"] = True
    if random.random() < 0.15:
        value = {"value": "gpu"} if random.random() < 0.5 else {}
        change["taints"] = [{"key": "sku", "effect": random.choice(("NoSchedule", "NoExecute")), **value}]
    if change:
        cluster.api.patch({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}, {"spec": change})


def _pod(random: Random, cluster: Cluster, gpu: str, extended: Json) -> Json:
    claims, templates = {}, {}
    for name in ("one", "two")[: random.choice((1, 1, 2))]:
        names = [f"r{number}" for number in range(random.choice((1, 1, 2)))]
        requests = [any_request(random, cluster, gpu, each) for each in names]
        more = {"constraints": constraints(random, cluster, requests)}
        if random.random() < 0.3:
            templates[name] = cluster.template(requests, name, **more)
        else:
            claims[name] = cluster.claim(requests, name, **more)
    if random.random() < 0.25:
        # A claim that somebody may use already.
        held = [
            claim["metadata"]["name"] for claim in cluster.api.list(RESOURCE_API, "ResourceClaim", cluster.namespace)
        ]
        held = [name for name in held if name.startswith("holder")]
        claims["shared"] = held[0] if held else cluster.claim([request(gpu)], "shared")
    spec = cluster.pod_spec(claims=claims, templates=templates)
    resources = spec["containers"][0]["resources"]
    if extended and random.random() < 0.8:
        resources["limits"] = {f"{cluster.driver}/gpu": random.choice(("1", "2", "3"))}
    if random.random() < 0.4:
        resources["requests"] = {"cpu": random.choice(("1", "3", "6"))}
    if random.random() < 0.15:
        spec["nodeSelector"]["zone"] = random.choice("xyz")
    meta = {"name": "pod", "namespace": cluster.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def explained(cluster: Cluster, pod: Json, folder: Path) -> Json:
    """What explain says of the pod."""
    path = folder / "pod.json"
    path.write_text(json.dumps(pod))
    connection = ["--kubeconfig", str(cluster.plane.kubeconfig), "--context", "admin", "-n", cluster.namespace]
    code, out, errors = ran("explain", "-f", str(path), *connection, *gates_asked(), "-o", "json")
    assert code in (0, 1, 3), f"exit {code}: {errors}"
    answer: Json = json.loads(out)
    return answer


def objects_of(cluster: Cluster) -> list[Json]:
    """The objects of the cluster that the pod may have to do with."""
    return [
        {"apiVersion": version, "kind": kind, **entry}
        for kind, version in KINDS.items()
        for entry in cluster.api.list(version, kind, cluster.namespace if kind not in _DONE else "")
        if kind != "Node" or entry["metadata"].get("labels", {}).get(OWNER_LABEL) == cluster.namespace
        if kind not in ("ResourceSlice", "DeviceClass") or entry["metadata"]["name"].startswith(cluster.namespace)
    ]


def make_so(cluster: Cluster, before: list[Json], after: list[Json]) -> None:
    """Does what makes the second of the first; what controllers do is waited for."""
    old = {_key(entry): entry for entry in before}
    new = {_key(entry): entry for entry in after}
    for key, entry in old.items():
        if key not in new and entry["kind"] == "Pod":
            cluster.api.delete(entry, grace_seconds=0)
        elif key not in new and not _made_for_pod(entry):
            cluster.api.delete(entry)
    for key, entry in new.items():
        known = old.get(key)
        if known is None:
            cluster.create(_fresh(entry))
        elif entry["kind"] in _IMMUTABLE and entry["spec"] != known["spec"]:
            cluster.api.delete(known)
            wait(partial(_gone, cluster, entry), "the old claim to go")
            cluster.create(_fresh(entry))
        elif entry["kind"] in _DONE and entry["spec"] != known["spec"]:
            cluster.api.request("PUT", cluster.api.path(entry["apiVersion"], key[0], "", key[2]), entry)
    for key, entry in old.items():
        if key[0] == "ResourceClaim" and (entry.get("status") or {}).get("allocation"):
            wait(partial(_settled, cluster, entry, new.get(key)), f"{key} to be free", GIVEN_BACK_SECONDS)


def _key(entry: Json) -> tuple[str, str, str]:
    return entry["kind"], entry["metadata"].get("namespace", ""), entry["metadata"]["name"]


def _made_for_pod(entry: Json) -> bool:
    return any(owner.get("controller") for owner in entry["metadata"].get("ownerReferences", ()))


def _fresh(entry: Json) -> Json:
    metadata = {name: value for name, value in entry["metadata"].items() if name not in _SERVERS}
    out = {**entry, "metadata": metadata}
    if entry["kind"] != "Node":
        out.pop("status", None)
    return out


def _gone(cluster: Cluster, entry: Json) -> bool | None:
    try:
        cluster.get(entry["kind"], entry["metadata"]["name"], entry["apiVersion"])
    except ApiError as error:
        assert error.status == 404, error
        return True
    return None


def _settled(cluster: Cluster, entry: Json, wanted: Json | None) -> bool | None:
    """Whether a claim is gone, or has given its devices back, if it should."""
    if wanted is None:
        return _gone(cluster, entry)
    if (wanted.get("status") or {}).get("allocation"):
        return True
    now = cluster.get("ResourceClaim", entry["metadata"]["name"])
    return None if (now.get("status") or {}).get("allocation") else True


def placed(cluster: Cluster, pod: Json) -> tuple[str, str]:
    """The node that the scheduler gives a pod, else its last message."""
    cluster.create(_fresh(pod))
    end = time.monotonic() + SECONDS
    message = ""
    while time.monotonic() < end:
        found = cluster.get("Pod", pod["metadata"]["name"], "v1")
        if found["spec"].get("nodeName"):
            return found["spec"]["nodeName"], ""
        conditions = found.get("status", {}).get("conditions", ())
        message = next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")
        time.sleep(0.1)
    return "", message


def tried(cluster: Cluster, random: Random, number: int, folder: Path) -> Json | None:
    """Carries out one fix by its number; None if there is none of that number."""
    pod = made(random, cluster)
    answer = explained(cluster, pod, folder)
    offered = list(fixes(answer)) if answer["verdict"] == "cannot-be-scheduled" else []
    # What helps only once another cause is gone promises nothing alone.
    offered = [(text, fix) for text, fix in offered if "otherCauses" not in fix["proof"]]
    if number >= len(offered):
        return None
    text, fix = offered[number]
    kinds = [change["kind"] for change in fix.get("changes", ())] or [fix["cause"]["code"]]
    line = {"answer": answer["answer"], "fix": text, "of": len(offered), "kinds": kinds, "proof": fix["proof"]}
    waiting = _waiting(cluster)
    try:
        node, message = _really(cluster, pod, answer, text, fix)
    except AssertionError as error:
        node, message = "", f"not carried out: {error}"
    # What a fix frees goes to whoever is first in the scheduler's queue.
    rivals = sorted(waiting - _waiting(cluster))
    return {**line, "ran": bool(node), "node": node, "message": message, "rivals": rivals}


def _waiting(cluster: Cluster) -> set[str]:
    pods = cluster.api.list("v1", "Pod", cluster.namespace)
    return {pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")}


def _really(cluster: Cluster, pod: Json, answer: Json, text: str, fix: Json) -> tuple[str, str]:
    before = objects_of(cluster)
    files = {"cluster.json": [{"apiVersion": "v1", "kind": "List", "items": before}], "pod.json": [pod]}
    after = carried_out(Asked(cluster.namespace, files, (), "cluster.json"), answer, text, fix)
    make_so(cluster, before, list(after.files["cluster.json"][0]["items"]))
    return placed(cluster, after.files["pod.json"][0])


def results(seeds: range, every: bool) -> Iterator[Json]:
    """What came of the fixes of each number."""
    with (
        tempfile.TemporaryDirectory() as directory,
        own_plane(find_program(print), ["--profile=full", *gates_asked()], Path(directory)) as plane,
    ):
        for seed in seeds:
            number = 0
            while True:
                cluster = Cluster(plane, f"fix{seed}-{number}")
                try:
                    found = tried(cluster, Random(seed), number, Path(directory))
                finally:
                    cluster.remove()
                if found is not None:
                    yield {"seed": seed, "number": number, **found}
                number += 1
                if found is None or not every or number == found["of"]:
                    break


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.explain.live.carried_out", description=__doc__)
    parser.add_argument("--pods", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    count: Counter[str] = Counter()
    with options.file.open("w") as out:
        for line in results(range(options.seed, options.seed + options.pods), options.all):
            out.write(json.dumps(line) + "\n")
            out.flush()
            count["ran" if line["ran"] else "rivals" if line["rivals"] else "did not run"] += 1
            if not line["ran"]:
                print(json.dumps(line), flush=True)
    print(f"{count['ran']} of {count.total()} fixes ran; {count['rivals']} times a pod that waited already was first")


if __name__ == "__main__":
    main()
