"""Record what a real API server's PodSecurity plugin says about made-up pods.

    python -m tools.recorder.pod_security --seed 1 --pods 300 tests/admission/pod-security.jsonl.gz

A line is ``level`` (the namespace's label), ``manifest``, and ``words``: what is forbidden, empty where nothing is.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.controlplane.client import ApiError
from tools.controlplane.plane import own_plane
from tools.controlplane.program import find_program, kubernetes_version

Json = dict[str, Any]
LEVELS = ("baseline", "restricted")


def security(rng: random.Random, *, of_pod: bool) -> Json:
    """Some security settings of a pod or of a container."""
    profile = ("RuntimeDefault", "Unconfined", "RuntimeDefault")
    made: Json = {}
    choices: dict[str, Any] = {
        "runAsNonRoot": rng.random() < 0.7,
        "runAsUser": rng.choice((0, 1000)),
        "seccompProfile": {"type": rng.choice(profile)},
        "seLinuxOptions": {rng.choice(("type", "user", "role", "level")): rng.choice(("container_t", "spc_t"))},
        "appArmorProfile": {"type": rng.choice(profile)},
    }
    if of_pod:
        choices["sysctls"] = [{"name": rng.choice(("kernel.msgmax", "net.ipv4.tcp_rmem")), "value": "1"}]
    else:
        added = rng.choice(("NET_BIND_SERVICE", "SYS_ADMIN", "CHOWN", "NET_RAW"))
        choices["capabilities"] = {"drop": rng.choice((["ALL"], ["ALL"], ["CHOWN"])), "add": [added]}
        choices["allowPrivilegeEscalation"] = False
        choices["procMount"] = rng.choice(("Default", "Unmasked"))
        if rng.random() < 0.2:
            choices["privileged"] = True
            choices["allowPrivilegeEscalation"] = True
    for name, value in choices.items():
        if rng.random() < 0.55:
            made[name] = value
    return made


def pod(rng: random.Random) -> Json:
    """A pod with security settings."""
    spec: Json = {"securityContext": security(rng, of_pod=True)}
    for field in ("containers", "initContainers"):
        spec[field] = []
        for index in range(rng.randrange(1 if field == "containers" else 0, 3)):
            container: Json = {"name": f"{field[0]}{index}", "image": "example.com/none"}
            container["securityContext"] = security(rng, of_pod=False)
            if rng.random() < 0.15:
                container["ports"] = [{"containerPort": 80, "hostPort": 80 + index + len(field)}]
            if rng.random() < 0.15 and field == "containers":
                container["livenessProbe"] = {"httpGet": {"port": 80, "host": rng.choice(("127.0.0.1", "x"))}}
            spec[field].append(container)
    for name in ("hostPID", "hostIPC"):
        if rng.random() < 0.1:
            spec[name] = True
    if rng.random() < 0.15:
        spec["hostUsers"] = False
    if rng.random() < 0.3:
        kinds: tuple[Json, ...] = (
            {"hostPath": {"path": "/x"}},
            {"nfs": {"server": "s", "path": "/"}},
            {"emptyDir": {}},
        )
        spec["volumes"] = [{"name": f"v{index}"} | rng.choice(kinds) for index in range(rng.randrange(1, 3))]
    metadata: Json = {"name": "pod"}
    if rng.random() < 0.1:
        value = rng.choice(("unconfined", "runtime/default"))
        metadata["annotations"] = {"container.apparmor.security.beta.kubernetes.io/c0": value}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def recorded(seed: int, count: int) -> Iterator[Json]:
    """The lines. Pods that the server finds invalid are left out: the policy is not asked about them."""
    with tempfile.TemporaryDirectory() as directory, own_plane(find_program(print), [], Path(directory)) as plane:
        api = plane.api()
        for level in LEVELS:
            metadata = {"name": level, "labels": {"pod-security.kubernetes.io/enforce": level}}
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        for index in range(count):
            rng = random.Random(f"{seed}-{index}")
            level, manifest = rng.choice(LEVELS), pod(rng)
            words = ""
            try:
                api.request("POST", f"{api.path('v1', 'Pod', level)}?dryRun=All", manifest)
            except ApiError as error:
                if error.status != 403:
                    continue
                words = error.message.partition("is forbidden: ")[2]
            yield {"level": level, "manifest": manifest, "words": words}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.recorder.pod_security", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pods", type=int, default=300)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    release = kubernetes_version()
    with gzip.GzipFile(options.file, "wb", mtime=0) as out:
        for line in recorded(options.seed, options.pods):
            out.write(json.dumps(line | {"release": release}).encode() + b"\n")


if __name__ == "__main__":
    main()
