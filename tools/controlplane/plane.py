"""Start a control plane, or join the one that another test process started.

A running control plane ends when the last writer of a named pipe, its standard input, is gone. Every process
that uses it holds the pipe open, so the kernel counts the users, and nothing outlives a killed test run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kubectl_dra.api.releases import Release, known_gates, parse_release
from tools.controlplane.client import Api
from tools.controlplane.program import Program, locked

STOP_SECONDS = 30
GATES_VARIABLE = "KUBECTL_DRA_GATES"

_GATE = re.compile(r'^kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} ([01])$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running control plane."""

    kubeconfig: Path
    """Has the contexts `admin` (everything) and `restricted` (no role bound)."""
    schedules: bool
    """Whether a scheduler and controllers run too, not only the API server."""
    pid: int
    """The process that ends everything when it ends."""

    def api(self, context: str = "admin") -> Api:
        """Open a connection as one of the two users."""
        return Api(self.kubeconfig, context)


def gates_asked() -> list[str]:
    """The flag for gates beyond the full profile: `KUBECTL_DRA_GATES=A=true,B=true` asks for them."""
    asked = os.environ.get(GATES_VARIABLE)
    return [f"--feature-gates={asked}"] if asked else []


@contextmanager
def shared_plane(program: Program, profile: str, directory: Path, *more: str) -> Iterator[ControlPlane]:
    """Use the control plane of `profile` that processes with this `directory` share; start it if need be.

    `more` are further arguments of the program.
    """
    with locked(directory / f"{profile}.lock"):
        state = directory / f"{profile}.json"
        joined = _join(state)
        started: subprocess.Popen[str] | None = None
        if joined is None:
            pipe = Path(tempfile.mkdtemp(dir=directory, prefix=f"{profile}-")) / "users"
            started, joined = _start(program, [f"--profile={profile}", *more], pipe)
            plane = joined[1]
            state.write_text(json.dumps([str(pipe), str(plane.kubeconfig), plane.schedules, plane.pid]))
    writer, plane = joined
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    try:
        yield plane
    finally:
        os.close(writer)
        if started is not None:
            _finish(started, wait=alone)


@contextmanager
def own_plane(program: Program, arguments: list[str], directory: Path) -> Iterator[ControlPlane]:
    """Start a control plane that nobody shares; it has ended when the block has."""
    started, (writer, plane) = _start(program, arguments, directory / "users")
    try:
        yield plane
    finally:
        os.close(writer)
        _finish(started, wait=True)


def _start(
    program: Program, arguments: list[str], pipe: Path
) -> tuple[subprocess.Popen[str], tuple[int, ControlPlane]]:
    os.mkfifo(pipe)
    # A reader must exist before a writer can open, and the writer before the program first reads.
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)
    os.set_blocking(reader, True)
    errors = pipe.with_suffix(".log")
    with errors.open("w") as log:
        process = subprocess.Popen(
            [*program.command, *arguments],
            stdin=reader,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    os.close(reader)
    assert process.stdout is not None
    kubeconfig = ""
    try:
        kubeconfig = process.stdout.readline().strip()
    finally:
        # Without an answer (or interrupted while waiting) there are no users.
        if not kubeconfig:
            os.close(writer)
            process.wait(STOP_SECONDS)
    if not kubeconfig:
        raise RuntimeError(f"the control plane did not start:\n{errors.read_text()}")
    return process, (writer, ControlPlane(Path(kubeconfig), program.schedules, process.pid))


def _finish(process: subprocess.Popen[str], *, wait: bool) -> None:
    assert process.stdout is not None
    process.stdout.close()
    if wait:
        process.wait(STOP_SECONDS)
    else:
        # Other processes may still use it; it ends after the last of them, as a child of init.
        process.returncode = 0


def _join(state: Path) -> tuple[int, ControlPlane] | None:
    """Become a user of the control plane that `state` describes; None when it has ended or is ending."""
    try:
        pipe, kubeconfig, schedules, pid = json.loads(state.read_text())
        writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None
    plane = ControlPlane(Path(kubeconfig), schedules, pid)
    try:
        # The program may have read the end of the pipe just before: then it is going, and soon says so.
        time.sleep(0.1)
        plane.api().request("GET", "/readyz")
    except OSError:
        os.close(writer)
        return None
    return writer, plane


@cache
def release_of(plane: ControlPlane) -> Release:
    """The release of Kubernetes that a control plane says it is."""
    return parse_release(plane.api().request("GET", "/version")["gitVersion"])


@cache
def gates_of(plane: ControlPlane) -> dict[str, bool]:
    """The feature gates of a control plane that concern DRA by their name or for us, and whether they are on."""
    found = _GATE.findall(plane.api().text("/metrics"))
    return {name: value == "1" for name, value in found if name in known_gates() or name.startswith("DRA")}
