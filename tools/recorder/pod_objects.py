"""Made-up pods and workloads that use devices, most of them valid."""

from __future__ import annotations

import random
from typing import Any

from tools.recorder import pods
from tools.recorder.dra_objects import metadata, several, some

Json = dict[str, Any]

WORKLOADS = {
    "Pod": "v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}
"""The kinds that are made here, with their version."""


def pod_spec(rng: random.Random) -> Json:
    """A pod's spec with claims, and some of what such pods have besides."""
    claims = []
    for index in range(rng.randint(1, 3)):
        kind = rng.choice(("resourceClaimName", "resourceClaimTemplateName"))
        claims.append({"name": f"claim-{index}", kind: rng.choice(("gpu", "big.gpu"))})
    names = [claim["name"] for claim in claims]
    spec: Json = {"containers": several(rng, lambda index: container(rng, f"c{index}", names), most=2)}
    some(rng, 0.2, spec, "initContainers", lambda: [container(rng, "init", names)])
    some(rng, 0.9, spec, "resourceClaims", lambda: claims)
    some(rng, 0.3, spec, "tolerations", lambda: [{"key": "nvidia.com/gpu", "operator": "Exists"}])
    some(rng, 0.2, spec, "nodeSelector", lambda: {"example.com/gpu": "yes"})
    some(rng, 0.15, spec, "terminationGracePeriodSeconds", lambda: 30)
    some(rng, 0.1, spec, "priorityClassName", lambda: "system-node-critical")
    some(rng, 0.1, spec, "hostIPC", lambda: True)
    some(rng, 0.1, spec, "securityContext", lambda: {"runAsUser": 1000, "fsGroup": 2000})
    if "volumeMounts" in str(spec):
        spec["volumes"] = [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ]
    return spec


def container(rng: random.Random, name: str, claims: list[str]) -> Json:
    out: Json = {"name": name, "image": "example.com/none"}
    resources: Json = {}
    some(rng, 0.8, resources, "claims", lambda: [use(rng, each) for each in rng.sample(claims, 1)])
    some(rng, 0.3, resources, "requests", lambda: {"cpu": "1", "memory": "1Gi"})
    some(rng, 0.3, resources, "limits", lambda: {"memory": "2Gi", "nvidia.com/gpu": 1})
    out["resources"] = resources
    some(rng, 0.2, out, "env", lambda: [{"name": "A", "value": "b"}])
    some(rng, 0.1, out, "command", lambda: ["sleep", "1d"])
    some(rng, 0.1, out, "ports", lambda: [{"containerPort": 8080, "name": "http"}])
    some(rng, 0.15, out, "volumeMounts", lambda: [{"name": "shm", "mountPath": "/dev/shm"}])
    some(rng, 0.1, out, "securityContext", lambda: {"runAsNonRoot": rng.random() < 0.5})
    return out


def use(rng: random.Random, claim: str) -> Json:
    out = {"name": claim}
    some(rng, 0.3, out, "request", lambda: "gpu")
    return out


def workload(rng: random.Random, kind: str, name: str) -> Json:
    """A pod or workload of a kind."""
    placed = rng.random() < 0.25
    spec: Json = pods.pod(rng)["spec"] if placed else pod_spec(rng)
    meta = metadata(rng, name, namespaced=True)
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": spec}
    owner: Json = {"template": template}
    if kind in ("Job", "CronJob"):
        spec["restartPolicy"] = rng.choice(("Never", "OnFailure"))
        some(rng, 0.3, owner, "parallelism", lambda: 2)
        some(rng, 0.2, owner, "backoffLimit", lambda: 0)
        if kind == "CronJob":
            owner = {"schedule": "0 3 * * *", "jobTemplate": {"spec": owner}}
    else:
        owner["selector"] = {"matchLabels": {"app": "x"}}
        if kind == "StatefulSet":
            owner["serviceName"] = "x"
        if kind != "DaemonSet":
            some(rng, 0.5, owner, "replicas", lambda: 2)
    return {"apiVersion": WORKLOADS[kind], "kind": kind, "metadata": meta, "spec": owner}
