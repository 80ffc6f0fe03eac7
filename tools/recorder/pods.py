"""Record what a real API server answers to pods whose placement, volumes and ports were made up.

    python -m tools.recorder.pods --seed 1 --pods 400 tests/conformance/data/pod-manifests.jsonl.gz

Each line has the form of ``manifests.jsonl.gz``; ``python -m tests.conformance manifests FILE`` judges it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools.controlplane.client import ApiError
from tools.controlplane.plane import own_plane
from tools.controlplane.program import find_program, kubernetes_version

Json = dict[str, Any]
Make = Callable[[random.Random], Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMES = ("a", "b", "gpu", "zone", "topology.kubernetes.io/zone", "example.com/x", "", "A_b", "-x", "a/b/c", "x" * 64)
VALUES = ("", "1", "07", "-3", "yes", "x y", "v" * 64, "9223372036854775808")


def maybe(rng: random.Random, chance: float, out: Json, name: str, make: Make) -> None:
    if rng.random() < chance:
        out[name] = make(rng)


def name(rng: random.Random) -> str:
    return rng.choice(NAMES[:6]) if rng.random() < 0.85 else rng.choice(NAMES)


def value(rng: random.Random) -> str:
    return rng.choice(VALUES[:5]) if rng.random() < 0.85 else rng.choice(VALUES)


def toleration(rng: random.Random) -> Json:
    out: Json = {}
    maybe(rng, 0.8, out, "key", name)
    maybe(rng, 0.8, out, "operator", lambda r: r.choice(("Exists", "Equal", "Exists", "Equal", "", "Lt", "Gt", "In")))
    maybe(rng, 0.5, out, "value", value)
    maybe(rng, 0.6, out, "effect", lambda r: r.choice(("NoSchedule", "NoExecute", "PreferNoSchedule", "", "None")))
    maybe(rng, 0.2, out, "tolerationSeconds", lambda r: r.choice((0, 60, -1)))
    return out


def expression(rng: random.Random) -> Json:
    operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "In", "Is"))
    out: Json = {"key": name(rng), "operator": operator}
    maybe(rng, 0.6, out, "values", lambda r: [value(r) for _ in range(r.randrange(3))])
    return out


def selector(rng: random.Random) -> Json:
    out: Json = {}
    maybe(rng, 0.7, out, "matchLabels", lambda r: {name(r): value(r)})
    maybe(rng, 0.4, out, "matchExpressions", lambda r: [expression(r)])
    return out


def node_term(rng: random.Random) -> Json:
    out: Json = {}
    maybe(rng, 0.8, out, "matchExpressions", lambda r: [expression(r) for _ in range(r.randrange(1, 3))])
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    maybe(rng, 0.3, out, "matchFields", lambda r: [field if r.random() < 0.7 else expression(r)])
    return out


def pod_term(rng: random.Random) -> Json:
    out: Json = {}
    maybe(rng, 0.9, out, "topologyKey", name)
    maybe(rng, 0.8, out, "labelSelector", selector)
    maybe(rng, 0.2, out, "namespaceSelector", selector)
    maybe(rng, 0.2, out, "namespaces", lambda r: [r.choice(("default", "ml", "Bad", ""))])
    maybe(rng, 0.2, out, "matchLabelKeys", lambda r: [name(r)])
    maybe(rng, 0.2, out, "mismatchLabelKeys", lambda r: [name(r)])
    return out


def weighted(make: Make, field: str) -> Make:
    return lambda rng: {"weight": rng.choice((1, 50, 100, 0, 101)), field: make(rng)}


def several(make: Make) -> Make:
    return lambda rng: [make(rng) for _ in range(rng.randrange(1, 3))]


def affinity(rng: random.Random) -> Json:
    out: Json = {}
    if rng.random() < 0.5:
        nodes: Json = {}
        maybe(rng, 0.7, nodes, REQUIRED, lambda r: {"nodeSelectorTerms": several(node_term)(r)})
        maybe(rng, 0.4, nodes, PREFERRED, several(weighted(node_term, "preference")))
        out["nodeAffinity"] = nodes
    for kind in ("podAffinity", "podAntiAffinity"):
        if rng.random() < 0.4:
            pods: Json = {}
            maybe(rng, 0.7, pods, REQUIRED, several(pod_term))
            maybe(rng, 0.4, pods, PREFERRED, several(weighted(pod_term, "podAffinityTerm")))
            out[kind] = pods
    return out


def spread(rng: random.Random) -> Json:
    out: Json = {"maxSkew": rng.choice((1, 2, 1, 0, -1))}
    maybe(rng, 0.9, out, "topologyKey", name)
    maybe(rng, 0.95, out, "whenUnsatisfiable", lambda r: r.choice(("DoNotSchedule", "ScheduleAnyway", "Never")))
    maybe(rng, 0.8, out, "labelSelector", selector)
    maybe(rng, 0.3, out, "minDomains", lambda r: r.choice((1, 3, 0, -1)))
    maybe(rng, 0.2, out, "nodeAffinityPolicy", lambda r: r.choice(("Honor", "Ignore", "None")))
    maybe(rng, 0.2, out, "nodeTaintsPolicy", lambda r: r.choice(("Honor", "Ignore", "")))
    maybe(rng, 0.2, out, "matchLabelKeys", lambda r: [name(r)])
    return out


def volume(rng: random.Random) -> Json:
    out: Json = {"name": rng.choice(("data", "cache", "tmp", "Bad", ""))}
    kinds: tuple[Json, ...] = (
        {"emptyDir": {}},
        {"persistentVolumeClaim": {"claimName": "data"}},
        {"persistentVolumeClaim": {}},
        {"configMap": {"name": "c"}},
        {"configMap": {}},
        {"secret": {"secretName": "s"}},
        {"hostPath": {"path": "/dev"}},
        {"emptyDir": {}, "secret": {"secretName": "s"}},
        {},
    )
    return out | rng.choice(kinds)


def mount(rng: random.Random) -> Json:
    out: Json = {"name": rng.choice(("data", "cache", "tmp", "none"))}
    maybe(rng, 0.95, out, "mountPath", lambda r: r.choice(("/data", "/cache", "/tmp")))
    maybe(rng, 0.2, out, "subPath", lambda r: r.choice(("a", "/a", "a/../b", "..")))
    maybe(rng, 0.1, out, "subPathExpr", lambda r: r.choice(("$(X)", "/x")))
    return out


def port(rng: random.Random) -> Json:
    out: Json = {}
    maybe(rng, 0.95, out, "containerPort", lambda r: r.choice((80, 8080, 443, 70000, 0)))
    maybe(rng, 0.4, out, "hostPort", lambda r: r.choice((80, 8080, 443, -1)))
    maybe(rng, 0.3, out, "protocol", lambda r: r.choice(("TCP", "UDP", "SCTP", "QUIC")))
    maybe(rng, 0.3, out, "name", lambda r: r.choice(("http", "web", "a--b", "8080", "-x", "much-too-long-a-name")))
    maybe(rng, 0.2, out, "hostIP", lambda r: r.choice(("127.0.0.1", "10.0.0.1")))
    return out


def security(rng: random.Random) -> Json:
    out: Json = {}
    maybe(rng, 0.7, out, "allowPrivilegeEscalation", lambda r: r.random() < 0.4)
    maybe(rng, 0.4, out, "capabilities", lambda r: {"add": [r.choice(("CAP_SYS_ADMIN", "NET_ADMIN"))]})
    return out


def pod(rng: random.Random) -> Json:
    """A pod with one to three made-up parts."""
    container: Json = {"name": "main", "image": "example.com/none"}
    spec: Json = {"containers": [container]}
    parts: tuple[tuple[Json, str, Make], ...] = (
        (spec, "tolerations", several(toleration)),
        (spec, "affinity", affinity),
        (spec, "topologySpreadConstraints", several(spread)),
        (spec, "volumes", several(volume)),
        (container, "volumeMounts", several(mount)),
        (container, "ports", several(port)),
        (container, "securityContext", security),
        (spec, "dnsPolicy", lambda r: r.choice(("ClusterFirst", "Default", "Host", "ClusterFirstWithHostNet"))),
        (spec, "schedulingGates", several(lambda r: {"name": name(r)})),
        (spec, "activeDeadlineSeconds", lambda r: r.choice((1, 0, -1, 2**31))),
        (spec, "hostNetwork", lambda r: r.random() < 0.7),
    )
    chosen = rng.sample(parts, rng.choice((1, 1, 2, 2, 3)))
    if any(field == "volumeMounts" for _, field, _ in chosen):
        spec["volumes"] = [{"name": "data", "emptyDir": {}}, {"name": "cache", "emptyDir": {}}]
    for owner, field, make in chosen:
        owner[field] = make(rng)
    metadata: Json = {"name": "pod", "namespace": "default"}
    maybe(rng, 0.5, metadata, "labels", lambda r: dict.fromkeys(r.sample(NAMES[:6], 3), "v"))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def workload(rng: random.Random) -> Json:
    """A Deployment or Job around such a pod."""
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod(rng)["spec"]}
    metadata = {"name": "work", "namespace": "default"}
    if rng.random() < 0.5:
        template["spec"]["restartPolicy"] = "Never"
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def recorded(seed: int, count: int) -> Iterator[Json]:
    """The lines: each manifest with the server's answer to a dry-run create."""
    with tempfile.TemporaryDirectory() as directory, own_plane(find_program(print), [], Path(directory)) as plane:
        api = plane.api()
        for index in range(count):
            rng = random.Random(f"{seed}-{index}")
            manifest = (pod if rng.random() < 0.8 else workload)(rng)
            path = api.path(manifest["apiVersion"], manifest["kind"], "default")
            expect: Json = {"accepted": True, "code": 201}
            try:
                api.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", manifest)
            except ApiError as error:
                expect = {
                    "accepted": False,
                    "code": error.status,
                    "reason": error.reason,
                    "message": error.message,
                    "causes": error.causes,
                }
            yield {"id": f"pod-{seed}-{index}", "change": "placement", "manifest": manifest, "expect": expect}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.recorder.pods", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pods", type=int, default=400)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    release = kubernetes_version()
    with gzip.GzipFile(options.file, "wb", mtime=0) as out:
        for line in recorded(options.seed, options.pods):
            out.write(json.dumps(line | {"release": release}).encode() + b"\n")


if __name__ == "__main__":
    main()
