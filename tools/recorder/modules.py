"""Programs on the published Go modules of a Kubernetes version, which must be reachable."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tools.controlplane.program import cache_directory

MEMORY = 4_000_000_000
"""Bytes that such a program may take."""


def bounded() -> None:
    """Limits the memory of a program about to start: one that takes more ends, and nothing else suffers."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def built(version: str, source: Path, modules: Sequence[str]) -> Path:
    """A program on ``k8s.io/...`` modules of a version, from the cache or built now. Raises CalledProcessError."""
    module = f"v0.{version.partition('.')[2]}"
    name = source.parent.name
    key = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    directory = cache_directory() / name / f"{version}-{key}"
    program = directory / name
    if not program.exists():
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, directory)
        needed = "\n".join(f"\tk8s.io/{one} {module}" for one in modules)
        (directory / "go.mod").write_text(f"module kubectl-dra.test/{name}\n\ngo 1.26.0\n\nrequire (\n{needed}\n)\n")
        for command in (("go", "mod", "tidy"), ("go", "build", "-trimpath", "-o", name, ".")):
            subprocess.run(command, cwd=directory, check=True, env={**os.environ, "GOFLAGS": "-mod=mod"})
    return program
