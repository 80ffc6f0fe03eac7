"""The action in a checkout whose files have the names of what Python imports: none of them runs."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.ci.runner import Action
from tests.packaging.toolbox import ROOT

HOSTILE = (
    "venv.py", "pip/__init__.py", "pip/__main__.py", "ensurepip/__init__.py", "ensurepip/__main__.py",
    "sitecustomize.py", "usercustomize.py", "kubectl_dra/__init__.py", "kubectl_dra/__main__.py", "yaml.py",
    "json/__init__.py", "setup.py", "build_backend.py", "tiny.py",
)  # fmt: skip
TINY = """import sys
from pathlib import Path

def main():
    with Path("arguments").open("a") as stream:
        print(sys.argv[1:], file=stream)
"""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """What is installed: a program of that name, which writes down its arguments. Nothing is downloaded."""
    path = tmp_path / "tiny-1.0-py3-none-any.whl"
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny.py", TINY)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/entry_points.txt", "[console_scripts]\nkubectl-dra = tiny:main\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_nothing_of_the_checkout_runs(tmp_path: Path, wheel: Path) -> None:
    checkout, scratch, marker = tmp_path / "checkout", tmp_path / "runner", tmp_path / "ran"
    scratch.mkdir()
    for name in HOSTILE:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(f"open({str(marker)!r}, 'a').write({name!r} + ' ')\n")
    (checkout / "evil.pth").write_text(f"import os; open({str(marker)!r}, 'a').write('pth ')\n")
    (checkout / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'build_backend'\nbackend-path = ['.']\n"
    )
    (checkout / "--baseline=x.yaml").write_text("")
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or "python3"
    environment = {"PATH": f"{Path(python).parent}:/usr/bin:/bin", "HOME": str(tmp_path), "PIP_NO_INDEX": "1"}
    ran = Action(ROOT / "action.yml", checkout, scratch, environment).run(install=str(wheel), paths="--baseline=x.yaml")
    assert ran.code == 0, ran.log
    assert not marker.exists(), marker.read_text()
    # The last word of each run is a file, whatever it is called.
    runs = (checkout / "arguments").read_text().splitlines()
    assert len(runs) == 3 and all(line.endswith("'--', '--baseline=x.yaml']") for line in runs)


def test_hooks_end_their_flags() -> None:
    """pre-commit puts the names of files behind them."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["args"] for hook in hooks] == [["--"], ["--"]]


@pytest.mark.parametrize("name", ["action.yml", "examples/ci/gitlab-ci.yml", "examples/ci/generic.sh"])
def test_python_is_isolated_where_a_checkout_is(name: str) -> None:
    words = (ROOT / name).read_text().replace('"', " ").split()
    starts = [at for at, word in enumerate(words) if Path(word).name in ("python", "python3") and at + 1 < len(words)]
    modules = [at for at in starts if "-m" in words[at + 1 : at + 3]]
    assert modules and all(words[at + 1] == "-I" for at in modules)
