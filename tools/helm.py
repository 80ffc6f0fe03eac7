"""Find helm for tests, or build it from its Go module: once per version, into the cache of the control planes.

    python -m tools.helm

builds it ahead of a test run and prints its path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.controlplane.program import Unavailable, cache_directory, locked

VERSION = "v3.18.4"


def find_helm() -> Path:
    """The path of helm.

    Raises:
        Unavailable: it cannot be built here; says why.
    """
    binary = cache_directory().parent / "helm" / VERSION / "helm"
    if not binary.exists():
        with locked(binary.parent / "build.lock"):
            if not binary.exists():
                _build(binary)
    return binary


def _build(binary: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise Unavailable("there is no Go on PATH to build helm with")
    with tempfile.TemporaryDirectory(dir=binary.parent, prefix="build-") as scratch:
        command = [shutil.which("nice") or "nice", "-n", "10", go, "install", "-trimpath", "-ldflags=-s -w"]
        done = subprocess.run(
            [*command, f"helm.sh/helm/v3/cmd/helm@{VERSION}"],
            env={**os.environ, "GOBIN": scratch, "GOFLAGS": "-mod=mod", "GOWORK": "off"},
            cwd=scratch,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["no output"]
            raise Unavailable(f"helm {VERSION} did not build: {last[0]}")
        (Path(scratch) / "helm").replace(binary)


if __name__ == "__main__":
    try:
        print(find_helm())
    except Unavailable as reason:
        sys.exit(f"tests of charts will be skipped: {reason}")
