"""Record what the API serves in states that real nodes are brought into, with what is really the case.

    make record-nodes KUBERNETES=1.37          # all states of a release, into the corpus
    python -m tools.recorder.nodes --kubernetes 1.37 --state prepare-error --state running

Each line of the file is a state: `id`, `release`, `truth` (`Truth` in `stage.py`, by the program that caused it), and
`served`, the objects as a List that `kubectl dra --snapshot` reads. States that were recorded before and are not named
stay as they are.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.controlplane.node import nodes
from tools.controlplane.plane import own_plane
from tools.controlplane.program import (
    VERSION_VARIABLE,
    Unavailable,
    default_minor,
    find_node,
    find_program,
    kubernetes_version,
)
from tools.recorder.nodes import admission, binding, healthy, later, preparation
from tools.recorder.nodes.stage import Stage
from tools.recorder.recorded import DATA, lines

STATES = {**healthy.STATES, **binding.STATES, **admission.STATES, **preparation.STATES, **later.STATES}


def main() -> None:
    """Record, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubernetes", default=default_minor(), metavar="MINOR")
    parser.add_argument("--state", action="append", choices=sorted(STATES), metavar="ID", help="only these")
    parser.add_argument("file", type=Path, nargs="?", help="where to write; the release's corpus where not given")
    chosen = parser.parse_args()
    os.environ[VERSION_VARIABLE] = chosen.kubernetes
    path = chosen.file or DATA / f"nodes-{chosen.kubernetes}.jsonl.gz"
    kept = {line["id"]: line for line in lines(path)} if path.exists() else {}
    try:
        failed = _record(chosen.state or list(STATES), kept, path)
    except (Unavailable, ValueError) as error:
        sys.exit(str(error))
    sys.exit(f"not recorded: {', '.join(failed)}" if failed else 0)


def _record(states: list[str], kept: dict[str, Any], path: Path) -> list[str]:
    program, binary = find_program(print), find_node(print)
    failed = []
    with (
        tempfile.TemporaryDirectory() as scratch,
        own_plane(program, ["--profile=full", *_gates()], Path(scratch)) as plane,
        nodes(plane, binary) as machines,
    ):
        stage = Stage(machines, program, _of_kubelets())
        for name in states:
            started = time.monotonic()
            try:
                truth = STATES[name](stage)
                served = stage.served(Path(scratch))
                kept[name] = {"id": name, "release": kubernetes_version(), "truth": asdict(truth), "served": served}
                _write(path, kept)
            except (AssertionError, RuntimeError) as error:
                failed.append(name)
                print(f"{name}: {error}", flush=True)
            print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)
            stage.clear()
    return failed


def _gates() -> list[str]:
    """What is off by default up to 1.35: the API server drops the health of devices, and the states of `binding.py`
    and of extended resources are not there.
    """
    return [
        "--feature-gates=ResourceHealthStatus=true,DRADeviceBindingConditions=true,DRAExtendedResource=true"
    ] * _old()


def _of_kubelets() -> str:
    return "DRAExtendedResource=true" if _old() else ""


def _old() -> bool:
    return int(kubernetes_version().split(".")[1]) <= 35


def _write(path: Path, kept: dict[str, Any]) -> None:
    with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
        for name in STATES:
            if name in kept:
                file.write(json.dumps(kept[name], separators=(",", ":")).encode() + b"\n")


if __name__ == "__main__":
    main()
