"""pip, pipx and uv install the built wheel, and what they install runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from kubectl_dra import __version__
from tests.packaging.toolbox import ROOT

pytestmark = pytest.mark.xdist_group("packaging")
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  resourceClaims: [{name: g, resourceClaimName: x}]
  containers: [{name: a, imagge: b, resources: {claims: [{name: g}]}}]
"""


def output(*command: str | Path, environment: dict[str, str] | None = None, folder: Path | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, env=environment, cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def try_everything(programs: Path, folder: Path) -> None:
    """Runs each job of an installation, outside the checkout."""
    program = programs / "kubectl-dra"
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "KUBECONFIG": str(folder / "none")}
    assert output(program, "--version", environment=environment) == f"kubectl-dra {__version__}\n"
    described = json.loads(output(program, "version", "--client", "-o", "json", environment=environment))
    assert described["client"]["version"] == __version__
    assert output(programs / "kubectl_complete-dra", "expl", environment=environment).startswith("explain\t")
    example = ROOT / "examples/explain/no-device-matches"
    words = (example / "command").read_text().split()[2:]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False, cwd=example, env=environment)
    assert done.returncode == 1 and "selector-matches-nothing" in done.stdout, done.stdout + done.stderr
    # Kinds outside resource.k8s.io are checked by schemas, which are data in the wheel.
    manifest = folder / "pod.yaml"
    manifest.write_text(POD)
    lint = subprocess.run(
        [program, "lint", manifest], capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    assert lint.returncode == 1 and "imagge" in lint.stdout, lint.stdout + lint.stderr
    # Pages are packed, and read when asked for.
    assert output(program, "lint", "--explain", "DRA101", environment=environment).startswith("DRA101: ")
    assert output(program, "explain", "--explain", "devices-held", environment=environment).startswith("devices-held: ")
    if shutil.which("kubectl", path="/usr/bin:/bin:/usr/local/bin"):
        through = {**environment, "PATH": f"{environment['PATH']}:/usr/local/bin"}
        assert output("kubectl", "dra", "--version", environment=through) == f"kubectl-dra {__version__}\n"


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {"kubectl_dra", f"kubectl_dra-{__version__}.dist-info"}
    assert any(name.startswith("kubectl_dra/_schemas/") for name in names)
    pages = {
        f"kubectl_dra/_{folder}/{path.name}"
        for folder in ("causes", "rules", "changes")
        for path in (ROOT / "docs" / folder).glob("*.md")
    }
    assert pages and pages <= set(names)
    data = {
        path.relative_to(ROOT).as_posix()
        for kind in ("yaml", "txt")
        for path in (ROOT / "kubectl_dra").rglob(f"*.{kind}")
    }
    assert data <= set(names)
    assert f"kubectl_dra-{__version__}.dist-info/licenses/LICENSE" in names


def test_pip(wheel: Path, offline: dict[str, str], tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    output(*pip, "install", "--quiet", "--no-compile", wheel, environment=offline)
    try_everything(python.parent, tmp_path)


def test_pipx(wheel: Path, offline: dict[str, str], tools: Path, tmp_path: Path) -> None:
    places = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    environment = {
        **offline,
        **places,
        "PIPX_DEFAULT_PYTHON": sys.executable,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    output(
        tools / "pipx",
        "install",
        "--quiet",
        "--backend",
        "pip",
        "--pip-args=--no-compile",
        wheel,
        environment=environment,
    )
    try_everything(tmp_path / "bin", tmp_path)


def test_uv_tool(wheel: Path, offline: dict[str, str], tools: Path, tmp_path: Path) -> None:
    places = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    environment = {**offline, **places, "UV_CACHE_DIR": str(tmp_path / "cache")}
    output(tools / "uv", "tool", "install", "--quiet", "--python", sys.executable, wheel, environment=environment)
    try_everything(tmp_path / "bin", tmp_path)


def test_the_version_is_in_one_place() -> None:
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()
    pattern = re.compile(rf"(?<![\d.]){re.escape(__version__)}(?![\d.])")
    sources = [
        *ROOT.glob("*.toml"),
        *ROOT.glob("*file"),
        *(ROOT / "kubectl_dra").rglob("*.py"),
        *(ROOT / "packaging").glob("*.*"),
        *(ROOT / "packaging" / "krew").glob("*.*"),
        ROOT / "action.yml",
    ]
    holding = [
        path.relative_to(ROOT)
        for path in sources
        if path.is_file() and pattern.search(path.read_text("utf-8", "replace"))
    ]
    assert holding == [Path("kubectl_dra/__init__.py")]
