"""Ask a real kube-scheduler about made-up pods, and compare with what we say.

    python -m tools.scheduling.differential --release 1.36 --seed 1 --pods 200 [--class volumes] [--profiles]

With --profiles each pod asks for one of the profiles of a second scheduler (``profiles.py``). The scheduler is held
still while a cluster and its pod are made and the snapshot is taken; then it decides. The lines
have the form of ``pods.jsonl.gz`` and are judged as ``python -m tests.conformance pods`` does. Exit code 0 only where
all agree.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from tools.controlplane.client import ApiError
from tools.controlplane.plane import own_plane
from tools.controlplane.program import find_program, kubernetes_version
from tools.scheduling import alpha_gates, devices_of_nodes
from tools.scheduling.clusters import CLASSES, MIXED, make, shared_objects
from tools.scheduling.devices_of_nodes import CLASS as OF_NODES
from tools.scheduling.profiles import CONFIG, profile_name, second_scheduler
from tools.scheduling.recording import Recording, held_still, scheduler_pid
from tools.scheduling.world import World

Json = dict[str, Any]

SETTLED = 0.4
"""Seconds."""


def recorded(
    classes: tuple[str, ...], seed: int, count: int, profiles: bool = False, gates: tuple[str, ...] = ()
) -> Iterator[Json]:
    """One line for each of ``count`` pods, the classes in turn; ``seed`` is the first cluster's.

    ``gates`` are on besides the default ones.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        program = find_program(print)
        plane = stack.enter_context(own_plane(program, _arguments(gates), folder))
        api = plane.api()
        pid = scheduler_pid(plane)
        if profiles:
            pid = stack.enter_context(second_scheduler(plane, program, folder))
        release = kubernetes_version()
        for raw in shared_objects():
            api.create(raw)
        for index in range(count):
            name = classes[index % len(classes)]
            world = _world(name, seed + index)
            recording = Recording(api, world)
            ours = profiles and "schedulerName" not in world.spec
            if ours:
                world.spec["schedulerName"] = profile_name(seed + index)
            line: Json = {"id": world.prefix, "class": name, "seed": seed + index, "features": [], "release": release}
            if gates:
                line["gates"] = list(gates)
            if ours:
                line["schedulerConfig"] = CONFIG
            try:
                try:
                    recording.make()
                except ApiError as error:
                    if name != alpha_gates.CLASS:
                        raise
                    # What is made up for the allocator alone is not always valid.
                    print(f"{world.prefix}: {error}", flush=True)
                    continue
                # What the scheduler watches reaches it within this; then the pod is the only news.
                time.sleep(SETTLED)
                with held_still(pid):
                    try:
                        recording.add_pod()
                        line |= {"snapshot": recording.snapshot(), "pod": f"{world.prefix}/pod"}
                    except ApiError as error:
                        line |= {"snapshot": recording.snapshot(), "pod": world.pod, "expect": {"refused": str(error)}}
                if "expect" not in line:
                    line["expect"] = recording.outcome()
            finally:
                recording.remove()
            yield line


def _world(name: str, seed: int) -> World:
    special = {OF_NODES: devices_of_nodes.make, alpha_gates.CLASS: alpha_gates.make}
    return special[name](seed) if name in special else make(name, seed)


def _arguments(gates: tuple[str, ...]) -> list[str]:
    return ["--profile=full", f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}"] if gates else []


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.scheduling.differential", description=__doc__)
    parser.add_argument("--release", default="1.36", help="the Kubernetes to ask, such as 1.36")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument(
        "--class", dest="name", choices=(*CLASSES, OF_NODES, alpha_gates.CLASS), help="only this class of pods"
    )
    parser.add_argument("--gates", default="", help="gates to switch on, separated by commas")
    parser.add_argument("--profiles", action="store_true", help="pods of several profiles")
    parser.add_argument("--save", type=Path, help="keep the recorded lines in this file (.jsonl.gz)")
    options = parser.parse_args()
    os.environ["KUBECTL_DRA_KUBERNETES"] = options.release
    gates = tuple(filter(None, options.gates.split(",")))
    if options.name == OF_NODES:
        gates = (devices_of_nodes.GATE, *gates)
    if options.name == alpha_gates.CLASS:
        gates = (*alpha_gates.GATES, *gates)
    classes = (options.name,) if options.name else (*CLASSES, MIXED)
    path = options.save or Path(tempfile.mkstemp(suffix=".jsonl.gz")[1])
    with gzip.GzipFile(path, "wb", mtime=0) as out:
        for line in recorded(classes, options.seed, options.pods, options.profiles, gates):
            out.write(json.dumps(line).encode() + b"\n")
    code: int = import_module("tests.conformance.pods").run([path], None)
    return code


if __name__ == "__main__":
    sys.exit(main())
