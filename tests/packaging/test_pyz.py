"""The one-file program: it unpacks itself once, runs from there, and says what it misses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from tests.packaging.test_install import try_everything

pytestmark = pytest.mark.xdist_group("packaging")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A program that holds hardly anything, to look at how it unpacks itself."""
    import pyz

    package = tmp_path / "installed" / "kubectl_dra"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("text = 'as built'\n")
    (package / "__main__.py").write_text("def main():\n    from kubectl_dra import text\n    print(text)\n")
    return pyz.assemble({HERE: tmp_path / "installed"}, tmp_path / "small.pyz", pyz.host())


def run(program: Path, *words: str, cache: Path, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cache.parent), "XDG_CACHE_HOME": str(cache)}
    command = [python, str(program), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def unpacked(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "kubectl-dra" / "pyz").iterdir())


def test_it_does_every_job(program: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    # The shebang asks for a python3, which has to be one with modules inside.
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    shutil.copy2(program, tmp_path / "bin" / "kubectl-dra")
    shim = Path(__file__).parents[2] / "completions" / "kubectl_complete-dra"
    shutil.copy2(shim, tmp_path / "bin" / "kubectl_complete-dra")
    try_everything(tmp_path / "bin", tmp_path)
    assert len(unpacked(tmp_path / ".cache")) == 1


def test_it_unpacks_once_and_atomically(small: Path, tmp_path: Path) -> None:
    answers: list[str] = []

    def start() -> None:
        answers.append(run(small, cache=tmp_path / "cache").stdout)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["as built\n"] * 4
    (folder,) = unpacked(tmp_path / "cache")
    place = tmp_path / "cache" / "kubectl-dra" / "pyz" / folder / "lib" / "kubectl_dra" / "__init__.py"
    place.write_text("text = 'from the cache'\n")
    assert run(small, cache=tmp_path / "cache").stdout == "from the cache\n"


def test_what_was_deleted_is_unpacked_again(small: Path, tmp_path: Path) -> None:
    run(small, cache=tmp_path / "cache")
    (folder,) = unpacked(tmp_path / "cache")
    top = tmp_path / "cache" / "kubectl-dra" / "pyz" / folder
    for lost in (top / "lib" / "kubectl_dra" / "__init__.py", top / "count", top / "lib"):
        if lost.is_dir():
            shutil.rmtree(lost)
        else:
            lost.unlink()
        ran = run(small, cache=tmp_path / "cache")
        assert (ran.returncode, ran.stderr) == (0, "")
        assert lost.exists() and unpacked(tmp_path / "cache") == [folder]


def test_another_content_has_another_place_and_old_ones_are_removed(small: Path, tmp_path: Path) -> None:
    run(small, cache=tmp_path / "cache")
    (first,) = unpacked(tmp_path / "cache")
    old = tmp_path / "cache" / "kubectl-dra" / "pyz" / first
    os.utime(old, (0, 0))
    other = tmp_path / "other"
    other.write_bytes(small.read_bytes())
    digest = first.partition("-")[0]
    with zipfile.ZipFile(small) as archive:
        start, payload = archive.read("__main__.py").decode(), archive.read("payload.zip")
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("__main__.py", start.replace(digest, "0123456789abcdef"))
        archive.writestr("payload.zip", payload)
    assert run(other, cache=tmp_path / "cache").returncode == 0
    assert unpacked(tmp_path / "cache") == [f"0123456789abcdef-{HERE}"]


def test_it_runs_without_a_cache(small: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    done = run(small, cache=tmp_path / "file")
    assert (done.returncode, done.stdout) == (0, "as built\n")


def test_a_home_that_is_not_known_is_no_folder_here(small: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    environment = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": "~/.cache"}
    command = [sys.executable, str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=here)
    assert (done.returncode, done.stdout, list(here.iterdir())) == (0, "as built\n", [])


def test_a_cache_that_others_can_write_is_not_used(small: Path, tmp_path: Path) -> None:
    run(small, cache=tmp_path / "cache")
    (name,) = unpacked(tmp_path / "cache")
    folder = tmp_path / "cache" / "kubectl-dra" / "pyz" / name
    folder.chmod(0o777)
    (folder / "lib" / "kubectl_dra" / "__init__.py").write_text("raise SystemExit('taken over')\n")
    done = run(small, cache=tmp_path / "cache")
    assert (done.returncode, done.stdout) == (0, "as built\n")


def test_a_python_without_modules_inside_says_so(small: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(small) as archive:
        start = archive.read("__main__.py").decode()
    other = tmp_path / "other.pyz"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("__main__.py", start.replace(f'PYTHONS = "{HERE}"', 'PYTHONS = "9.7 9.8"'))
    done = run(other, cache=tmp_path / "cache")
    assert done.returncode == 2
    assert done.stderr.startswith("error: this kubectl-dra needs Python 9.7 or 9.8 (")
    assert f"; this is Python {HERE} (" in done.stderr
    assert not (tmp_path / "cache").exists()


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    import pyz

    for name in ("one", "two"):
        (tmp_path / name / "3.11" / "package").mkdir(parents=True)
        (tmp_path / name / "3.11" / "package" / "module.py").write_text("x = 1\n")
        (tmp_path / name / "3.12" / "package").mkdir(parents=True)
        (tmp_path / name / "3.12" / "package" / "module.py").write_text("x = 1\n")
        (tmp_path / name / "3.12" / "native.so").write_text("")
    zips = [
        pyz._zip(pyz._payload({version: tmp_path / name / version for version in ("3.11", "3.12")}))
        for name in ("one", "two")
    ]
    assert zips[0] == zips[1]
    (tmp_path / "payload.zip").write_bytes(zips[0])
    assert zipfile.ZipFile(tmp_path / "payload.zip").namelist() == ["lib-3.12/native.so", "lib/package/module.py"]
