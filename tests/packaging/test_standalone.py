"""The program that needs no Python: it does every job, on a machine that has nothing but libc and zlib."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from kubectl_dra import __version__
from tests.packaging.test_install import try_everything
from tests.packaging.toolbox import LOCKS, ROOT, project
from tests.terminal import Terminal

pytestmark = pytest.mark.xdist_group("packaging")
MEGABYTE = 1_000_000
EXAMPLE = ROOT / "examples" / "explain" / "no-device-matches"
LIBRARIES = ("libc.so.6", "libdl.so.2", "libpthread.so.0", "libm.so.6", "libz.so.1")
REQUEST = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}'


@pytest.fixture(scope="module")
def unpacked(standalone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyz

    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(standalone / f"kubectl-dra-{pyz.host()}.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    return folder


def test_it_does_every_job(unpacked: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    # As krew installs it.
    (tmp_path / "bin" / "kubectl-dra").symlink_to(unpacked / "kubectl-dra")
    shutil.copy2(unpacked / "kubectl_complete-dra", tmp_path / "bin")
    try_everything(tmp_path / "bin", tmp_path)


def test_it_is_small(unpacked: Path) -> None:
    assert sum(path.stat().st_size for path in unpacked.rglob("*") if path.is_file()) <= 60 * MEGABYTE


def test_the_modules_of_a_folder_that_it_is_run_in_are_not_imported(unpacked: Path, tmp_path: Path) -> None:
    for name in ("yaml.py", "typer.py", "kubectl_dra.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')\n")
    variables = {"PATH": "/nonexistent", "PYTHONPATH": str(tmp_path), "PYTHONHOME": str(tmp_path)}
    command: list[str | Path] = [unpacked / "kubectl-dra", "version", "--client"]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and __version__ in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can change its root")
def test_on_a_machine_without_python(unpacked: Path, tmp_path: Path) -> None:
    """No Python, no shell, no certificates, no time zones: libc, zlib and the program, run as a user without a name."""
    folder = tmp_path / "root"
    shutil.copytree(unpacked, folder / "opt")
    shutil.copytree(EXAMPLE, folder / "example")
    folder.chmod(0o755)
    (folder / "opt").chmod(0o755)
    (folder / "tmp").mkdir()
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    places = dict(line.split("=> ")[::-1] for line in known.splitlines() if "x86-64" in line or "AArch64" in line)
    loaders = [path for path in places if Path(path).name.startswith("ld-linux")]
    for path in (*loaders, *(path for path in places if Path(path).name in LIBRARIES)):
        for place in (path, f"/lib64/{Path(path).name}") if path in loaders else (path,):
            (folder / place.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, folder / place.lstrip("/"))

    def inside(*words: str, text: str = "") -> tuple[int, str]:
        command: list[str | Path] = ["chroot", "--userspec=65532:65532", folder, "/opt/kubectl-dra", *words]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=environment)
        return done.returncode, done.stdout + done.stderr

    explain = ("explain", "pod/train-0", "-n", "ml", "--snapshot", "/example/cluster.yaml")
    code, said = inside(*explain)
    assert code == 1 and "selector-matches-nothing" in said, said
    # What is imported by these only: cel-python, a table of rich, the examples, kubernetes, pygls.
    code, said = inside(*explain, "--verify", "--full", "--color=always")
    assert code == 1 and "cel-python" in said, said
    code, said = inside("demo")
    assert code == 0 and "no-device-matches" in said, said
    (folder / "config").write_text(json.dumps(with_provider()))
    code, said = inside("devices", "--kubeconfig=/config")
    assert code == 2 and "ModuleNotFoundError" not in said, said
    code, said = inside("lsp", text=f"Content-Length: {len(REQUEST)}\r\n\r\n{REQUEST}")
    assert "hoverProvider" in said, said


def test_the_screen_opens(unpacked: Path) -> None:
    command = [str(unpacked / "kubectl-dra"), "ui", "--snapshot", str(EXAMPLE / "cluster.yaml")]
    with Terminal(command) as terminal:
        terminal.until("2 Pending 1.*Enter open")
        terminal.type("q")
        assert terminal.end() == 0


def with_provider() -> dict[str, object]:
    """A kubeconfig whose credentials only the package ``kubernetes`` can get."""
    provider = {"name": "oidc", "config": {"id-token": "a.e30.c", "client-id": "x", "idp-issuer-url": "https://x"}}
    return {
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "x", "user": {"auth-provider": provider}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }


def test_the_bill_of_materials_names_what_is_inside(standalone: Path) -> None:
    import pyz

    bill = json.loads((standalone / f"kubectl-dra-{pyz.host()}.cdx.json").read_text())
    names = {component["name"] for component in bill["components"]}
    assert {"kubernetes", "ruamel.yaml", "google-re2", "cel-python", "pygls", "python", "openssl"} <= names
    assert not names & {"pyinstaller", "setuptools", "altgraph", "pip"}
    listed = {entry["ref"] for entry in bill["dependencies"]}
    assert listed >= {wanted for entry in bill["dependencies"] for wanted in entry.get("dependsOn", ())}


def test_each_extra_that_people_install_is_inside() -> None:
    """A command must not fail in the program for want of an extra."""
    extras: dict[str, list[str]] = project()["optional-dependencies"]
    (own,) = [word for word in extras["program"] if word.startswith("kubectl-dra[")]
    inside = set(own.partition("[")[2].rstrip("]").split(","))
    assert extras.keys() - inside == {"dev", "program", "release"}


def pins(path: Path) -> dict[str, str]:
    lines = (line.partition(" ")[0] for line in path.read_text().splitlines() if line[:1].isalnum())
    return dict(line.split("==") for line in lines)


def test_the_locks_have_the_versions_of_the_constraints() -> None:
    constraints = pins(ROOT / "constraints.txt")
    for name in ("run", "program", "build", "release"):
        locked = pins(LOCKS / f"{name}.txt")
        assert locked and locked.items() <= constraints.items(), name
        text = (LOCKS / f"{name}.txt").read_text()
        assert text.count(" \\\n    --hash=sha256:") >= len(locked)
