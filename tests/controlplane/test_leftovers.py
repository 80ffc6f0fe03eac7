"""Nothing stays behind, however a control plane, a test run or a build ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.controlplane import program as finder
from tools.controlplane.cluster import wait
from tools.controlplane.guard import guard
from tools.controlplane.plane import ControlPlane, own_plane
from tools.controlplane.processes import alive, children
from tools.controlplane.program import Program
from tools.controlplane.scratch import PREFIX, SUFFIX, scratch_directory

ROOT = Path(__file__).parents[2]


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The directory in which everything that this test starts keeps temporary files."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that must not outlive the test, even if it fails."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def left(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob(f"{PREFIX}*"))


def wait_gone(pids: list[int], seconds: float = 15) -> None:
    wait(lambda: None if any(map(alive, pids)) else True, f"the end of {pids}", seconds)


def test_control_plane_that_loses_a_component_ends(
    control_plane_program: Program, tmp_path: Path, temporary: Path
) -> None:
    with own_plane(control_plane_program, ["--profile=defaults"], tmp_path) as plane:
        components = children(plane.pid)
        assert len(components) >= 2
        assert plane.kubeconfig.parent.parent == temporary
        os.kill(components[0], signal.SIGKILL)
        wait_gone([plane.pid, *components])
    assert left(temporary) == []


def test_killed_supervisor_takes_its_components_along_and_the_next_start_its_files(
    control_plane_program: Program, control_plane: ControlPlane, tmp_path: Path, temporary: Path
) -> None:
    if not control_plane_program.built:
        pytest.skip("ready-made programs are tested by themselves")
    with own_plane(control_plane_program, ["--profile=defaults"], tmp_path) as plane:
        components = children(plane.pid)
        assert len(components) == 4
        os.kill(plane.pid, signal.SIGKILL)
    wait_gone(components)
    assert len(left(temporary)) == 2

    def next_start() -> bool | None:
        # With nothing to read the program ends while it starts.
        subprocess.run(control_plane_program.command, stdin=subprocess.DEVNULL, check=True)
        return None if left(temporary) else True

    # The last thread of a killed process gives up its files a moment after the process counts as ended.
    wait(next_start, "the files to go", 5)


def test_start_spares_the_files_of_others(control_plane_program: Program, temporary: Path) -> None:
    with scratch_directory() as (held, _):
        subprocess.run(control_plane_program.command, stdin=subprocess.DEVNULL, check=True)
        assert left(temporary) == [held.name, held.name + SUFFIX]
    assert left(temporary) == []


@pytest.mark.parametrize("how", ["standard input closes", "SIGTERM", "SIGINT"])
def test_control_plane_ends_while_it_starts(control_plane_program: Program, temporary: Path, how: str) -> None:
    starting = subprocess.Popen(control_plane_program.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    components = wait(lambda: children(starting.pid) or None, "the first component")
    if how != "standard input closes":
        starting.send_signal(signal.Signals[how])
        starting.wait(10)
    told, _ = starting.communicate(timeout=10)
    assert (starting.returncode, told) == (0, b"")
    assert not [pid for pid in components if alive(pid)]
    assert left(temporary) == []


@pytest.mark.parametrize(("number", "workers"), [(signal.SIGKILL, "1"), (signal.SIGINT, "0")])
def test_stopped_test_run_ends_its_control_plane(
    control_plane_program: Program,
    tmp_path: Path,
    temporary: Path,
    started: list[subprocess.Popen[bytes]],
    number: signal.Signals,
    workers: str,
) -> None:
    body = """
        import os, pathlib, time, pytest

        @pytest.mark.parametrize("number", range(2))
        def test_long(defaults_plane, number):
            told = pathlib.Path(__file__).with_name(f"{os.getpid()}.partial")
            told.write_text(str(defaults_plane.pid))
            told.rename(told.with_suffix(".user"))
            for _ in range(6000):
                time.sleep(0.1)
    """
    (tmp_path / "test_long.py").write_text(textwrap.dedent(body))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "-p", "no:cacheprovider"]
    command += ["-p", "tests.controlplane.fixtures", "-n", workers, str(tmp_path / "test_long.py")]
    with (tmp_path / "output").open("wb") as output:
        run = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    started.append(run)

    def using() -> list[Path] | None:
        assert run.poll() is None, (tmp_path / "output").read_text()
        users = list(tmp_path.glob("*.user"))
        return users if len(users) == max(1, int(workers)) else None

    users = wait(using, "the users of the control plane", 60)
    (plane,) = {int(user.read_text()) for user in users}
    everything = [plane, *children(plane), *(int(user.stem) for user in users)]
    assert len(everything) >= 4

    os.kill(run.pid, number)

    run.wait(30)
    wait_gone(everything)
    assert left(temporary) == []


def test_killed_supervisor_of_ready_made_programs_leaves_nothing(
    control_plane_program: Program, tmp_path: Path, temporary: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    if not control_plane_program.built:
        pytest.skip("needs the built program")
    starts = f'exec {control_plane_program.command[0]} etcd "$@"'
    waits = '[ "$1" = --version ] || exec sleep 600'
    for name, line in {"etcd": starts, "kube-apiserver": waits}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "tools.controlplane.assets", str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE
    )
    started.append(supervisor)
    # The third is the guard.
    components = wait(lambda: found if len(found := children(supervisor.pid)) == 3 else None, "both components")

    supervisor.kill()

    wait_gone(components)
    wait(lambda: None if any(path.is_dir() for path in temporary.iterdir()) else True, "the directory to go")

    def next_start() -> bool | None:
        with scratch_directory():
            pass
        return None if left(temporary) else True

    wait(next_start, "the lock file to go", 5)


def test_stopped_build_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    go = tmp_path / "go"
    go.write_text(f'#!/bin/sh\n[ "$1" = version ] && exit 0\nsleep 600 & echo $$ $! > {tmp_path}/part\n')
    with go.open("a") as file:
        file.write(f"mv {tmp_path}/part {tmp_path}/pids\nwait\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    command = [sys.executable, "-m", "tools.controlplane.program"]
    build = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    started.append(build)
    wait(lambda: True if (tmp_path / "pids").exists() else None, "the build")
    compilers = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert all(map(alive, compilers))

    build.kill()

    wait_gone(compilers)
    cache = tmp_path / "cache/kubectl-dra/controlplane"
    wait(lambda: True if [path.name for path in cache.iterdir()] == ["build.lock"] else None, "the files to go")
    _, said = build.communicate()
    assert said.decode().splitlines() == [
        f"building a Kubernetes {finder.kubernetes_version()} control plane for tests (takes minutes, once)"
    ]


@pytest.mark.parametrize("group", [False, True])
def test_guard_acts_for_a_killed_process_only(
    tmp_path: Path, started: list[subprocess.Popen[bytes]], group: bool
) -> None:
    directory = tmp_path / "guarded"
    directory.mkdir()
    (directory / "file").touch()
    watched = subprocess.Popen(["sleep", "600"], start_new_session=True)
    started.append(watched)
    target = -watched.pid if group else watched.pid
    with guard(directory) as watch:
        watch(target)
    assert (watched.poll(), directory.exists()) == (None, True)

    body = f"""
        import pathlib, time
        from tools.controlplane.guard import guard
        with guard(pathlib.Path({str(directory)!r})) as watch:
            watch({target})
            print(flush=True)
            time.sleep(600)
    """
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(body)], cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    started.append(holder)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"\n"
    holder.kill()

    assert watched.wait(10) == -signal.SIGKILL
    wait(lambda: None if directory.exists() else True, "the directory to go")


def test_scratch_directory_is_kept_until_the_last_heir_of_its_lock_has_ended(
    temporary: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    body = """
        import os, subprocess
        from tools.controlplane.scratch import scratch_directory
        with scratch_directory() as (directory, lock):
            heir = subprocess.Popen(["sleep", "600"], pass_fds=[lock], stdout=subprocess.DEVNULL)
            print(directory.name, heir.pid, flush=True)
            os.kill(os.getpid(), 9)
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(body)], cwd=ROOT, stdout=subprocess.PIPE)
    name, heir = killed.stdout.decode().split()
    with scratch_directory():
        assert name in left(temporary)
    os.kill(int(heir), signal.SIGKILL)
    wait_gone([int(heir)])
    with scratch_directory():
        assert name not in left(temporary)
    assert left(temporary) == []
