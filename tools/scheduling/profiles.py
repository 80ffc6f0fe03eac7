"""A second scheduler with several profiles, for pods that ask for one of them."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tools.controlplane.plane import ControlPlane
from tools.controlplane.program import Program
from tools.scheduling.world import PREFERRED, REQUIRED, ZONE

Json = dict[str, Any]

STARTED: Final = 8
"""Seconds until it has read the cluster."""


def _off(*names: str) -> Json:
    return {"disabled": [{"name": name} for name in names]}


def _on(*names: str, weight: int = 0) -> Json:
    return {"enabled": [{"name": name, **({"weight": weight} if weight else {})} for name in names]}


def profile(name: str, plugins: Json | None = None, **args: Json) -> Json:
    told = [{"name": plugin, "args": value} for plugin, value in args.items()]
    return {"schedulerName": name, "plugins": plugins or {}, "pluginConfig": told}


_ZONED: Final = {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}
_ADDED: Final = {
    REQUIRED: {"nodeSelectorTerms": [_ZONED]},
    PREFERRED: [{"weight": 7, "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}}],
}
_RATIO: Final = {
    "type": "RequestedToCapacityRatio",
    "resources": [{"name": "cpu", "weight": 3}, {"name": "memory"}],
    "requestedToCapacityRatio": {
        "shape": [{"utilization": 0, "score": 0}, {"utilization": 40, "score": 10}, {"utilization": 100, "score": 3}]
    },
}
_SPREAD: Final = {
    "defaultingType": "List",
    "defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}],
}
_SOFT: Final = {
    "defaultingType": "List",
    "defaultConstraints": [{"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}],
}
PROFILES: Final = (
    profile("plain"),
    profile("no-taints", {"multiPoint": _off("TaintToleration")}),
    profile("no-ports", {"filter": _off("NodePorts"), "preFilter": _off("NodePorts")}),
    profile("affinity-first", {"filter": _on("InterPodAffinity", "PodTopologySpread", "NodeAffinity")}),
    profile("only-prefilter-of-affinity", {"filter": _off("NodeAffinity", "VolumeZone", "InterPodAffinity")}),
    profile("no-preemption", {"postFilter": _off("DefaultPreemption")}),
    profile("nothing-after", {"postFilter": _off("*")}),
    profile("added", NodeAffinity={"addedAffinity": _ADDED}),
    profile("ignoring", NodeResourcesFit={"ignoredResourceGroups": ["example.com", "vendor.example.com"]}),
    profile("packing", NodeResourcesFit={"scoringStrategy": {"type": "MostAllocated"}}),
    profile("ratio", {"score": _off("PodTopologySpread")}, NodeResourcesFit={"scoringStrategy": _RATIO}),
    profile("spreading", PodTopologySpread=_SPREAD),
    profile("spreading-softly", {"score": _on("PodTopologySpread", weight=20)}, PodTopologySpread=_SOFT),
    profile("near", InterPodAffinity={"hardPodAffinityWeight": 80}),
    profile("not-near", InterPodAffinity={"ignorePreferredTermsOfExistingPods": True}),
    profile("weights", {"multiPoint": _on("NodeAffinity"), "score": _on("ImageLocality", weight=9)}),
)
CONFIG: Final[Json] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": list(PROFILES),
}


def profile_name(seed: int) -> str:
    """One of the profiles."""
    return str(random.Random(seed).choice(PROFILES)["schedulerName"])


@contextmanager
def second_scheduler(
    plane: ControlPlane, program: Program, folder: Path, configuration: Json = CONFIG
) -> Iterator[int]:
    """Runs it for the length of the block; its process."""
    access = json.loads(plane.kubeconfig.read_text()) | {"current-context": "admin"}
    kubeconfig, config = folder / "second.kubeconfig", folder / "second.json"
    kubeconfig.write_text(json.dumps(access))
    own = {"leaderElection": {"leaderElect": False}, "clientConnection": {"kubeconfig": str(kubeconfig)}}
    config.write_text(json.dumps(configuration | own))
    command = [*program.command, "kube-scheduler", "--config", str(config), "--secure-port=0"]
    with (folder / "second.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            time.sleep(STARTED)
            if process.poll() is not None:
                raise RuntimeError(f"the second scheduler ended:\n{(folder / 'second.log').read_text()[-2000:]}")
            yield process.pid
        finally:
            process.terminate()
