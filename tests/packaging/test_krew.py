"""krew: archives and manifest, measured by krew's own rules, and an installation as krew does it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from kubectl_dra import __version__
from tests.packaging import toolbox
from tests.packaging.test_install import try_everything
from tests.packaging.toolbox import ROOT

pytestmark = pytest.mark.xdist_group("packaging")
PAGE = "https://github.com/example/kubectl-dra"


@pytest.fixture(scope="module")
def hello(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program in the layout of the real one; what is in it does not matter here."""
    path = tmp_path_factory.mktemp("program") / "kubectl-dra.pyz"
    with path.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("__main__.py", "import sys; print('hello', *sys.argv[1:])")
    return path


@pytest.fixture(scope="module")
def archives(hello: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    import krew
    import pyz

    folder = tmp_path_factory.mktemp("archives")
    made = [krew.archive(hello, target, folder) for target in pyz.TARGETS]
    return {path.name: path for path in made}


@pytest.fixture(scope="module")
def text(archives: dict[str, Path]) -> str:
    import krew

    return krew.manifest("1.2.3", PAGE, archives)


def test_the_manifest_of_a_release_is_right(text: str, archives: dict[str, Path]) -> None:
    import krew

    assert krew.problems(text, "dra", archives) == []
    manifest = yaml.safe_load(text)
    assert manifest["spec"]["version"] == "v1.2.3"
    for platform in manifest["spec"]["platforms"]:
        name = platform["uri"].rpartition("/")[2]
        assert platform["uri"] == f"{PAGE}/releases/download/v1.2.3/{name}"
        assert platform["sha256"] == hashlib.sha256(archives[name].read_bytes()).hexdigest()
    assert {name.partition("-")[2] for name in ("kubectl-dra",)} == {manifest["metadata"]["name"]}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name: dra", "name: kubectl_dra", "not lower-case words"),
        ('version: "v1.2.3"', 'version: "1.2.3"', "version 1.2.3 is not v"),
        ("shortDescription: ", "shortDescription: A very long sentence about devices ", "shortDescription"),
        ("sha256: ", "sha256: x", "64 hexadecimal digits"),
        ("bin: kubectl-dra.exe", "bin: kubectl-dra.cmd", "bin kubectl-dra.cmd is not among"),
        ("from: LICENSE", "from: COPYING", "nothing in the archive is COPYING"),
        ("to: .", "to: ../..", "outside the plugin"),
        ("os: darwin", "os: linux", "selects linux/amd64, as platforms[0] does"),
        ("os: windows", "os: plan9", "no platform that krew knows"),
        ("arch: amd64", "libc: glibc", "no platform that krew knows"),
        ("kubectl-dra-linux-arm64", "kubectl-dra-windows-amd64", "there is no archive for"),
        ("https://", "http://", "no https address"),
        ("krew.googlecontainertools.github.com/v1alpha2", "krew/v2", "apiVersion krew/v2"),
    ],
)
def test_mistakes_are_found(text: str, archives: dict[str, Path], old: str, new: str, problem: str) -> None:
    import krew

    assert old in text
    found = krew.problems(text.replace(old, new), "dra", archives)
    assert any(problem in one for one in found), found


def test_an_archive_of_another_checksum_is_found(text: str, archives: dict[str, Path], tmp_path: Path) -> None:
    import krew

    changed = tmp_path / "changed"
    changed.write_bytes(archives["kubectl-dra-linux-arm64.tar.gz"].read_bytes() + b"\0")
    found = krew.problems(text, "dra", {**archives, "kubectl-dra-linux-arm64.tar.gz": changed})
    assert found == ["platforms[1]: sha256 is not that of changed"]


def test_layouts(archives: dict[str, Path]) -> None:
    for name, path in archives.items():
        if name.endswith(".zip"):
            with zipfile.ZipFile(path) as packed:
                assert packed.namelist() == ["kubectl-dra.exe", "LICENSE"]
        else:
            with tarfile.open(path) as tar:
                modes = {entry.name: entry.mode for entry in tar.getmembers()}
            assert modes == {"kubectl-dra": 0o755, "kubectl_complete-dra": 0o755, "LICENSE": 0o644}


def test_the_program_for_windows_is_a_launcher_and_the_program(archives: dict[str, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(archives["kubectl-dra-windows-amd64.zip"]) as packed:
        packed.extract("kubectl-dra.exe", tmp_path)
    data = (tmp_path / "kubectl-dra.exe").read_bytes()
    header = int.from_bytes(data[0x3C:0x40], "little")
    assert data[:2] == b"MZ" and data[header : header + 4] == b"PE\0\0"
    assert data[header + 4 : header + 6] == b"\x64\x86"
    assert data.count(b"#!/usr/bin/env python\r\nPK\x03\x04") == 1
    # What the launcher does: the Python of the shebang line gets the file itself.
    command = [sys.executable, str(tmp_path / "kubectl-dra.exe"), "a", "b"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "hello a b\n"


def test_the_same_program_gives_the_same_archives(hello: Path, archives: dict[str, Path], tmp_path: Path) -> None:
    import krew
    import pyz

    for target in pyz.TARGETS:
        again = krew.archive(hello, target, tmp_path)
        assert again.read_bytes() == archives[again.name].read_bytes()


def test_installed_as_krew_does(program: Path, tmp_path: Path) -> None:
    """Unpack, copy ``files``, link ``bin`` under the name kubectl looks for: then it runs."""
    import krew
    import pyz

    target = pyz.host()
    archive = krew.archive(program, target, tmp_path)
    manifest = yaml.safe_load(krew.TEMPLATE.read_text())
    platform = next(one for one in manifest["spec"]["platforms"] if one["uri"].endswith(f"/{archive.name}"))
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    store, programs = tmp_path / "store" / "dra", tmp_path / "bin"
    store.mkdir(parents=True)
    programs.mkdir()
    for operation in platform["files"]:
        shutil.copy2(tmp_path / "unpacked" / operation["from"], store / operation["to"])
    (programs / "kubectl-dra").symlink_to(store / platform["bin"])
    (programs / "python3").symlink_to(sys.executable)
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path)}
    # The caveats of the manifest, as a person follows them.
    shim = subprocess.run(
        [programs / "kubectl-dra", "completion", "kubectl"], capture_output=True, check=True, env=environment
    ).stdout
    (programs / "kubectl_complete-dra").write_bytes(shim)
    (programs / "kubectl_complete-dra").chmod(0o755)
    try_everything(programs, tmp_path)
    assert (store / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_krew_itself(program: Path, text: str, archives: dict[str, Path], tmp_path: Path) -> None:
    """krew installs the archives, what it installs runs through kubectl, and nothing is left after uninstall."""
    import krew
    import pyz

    try:
        command = toolbox.krew()
    except toolbox.Unavailable as reason:
        pytest.skip(str(reason))
    root = tmp_path / "krew"
    real = krew.archive(program, pyz.host(), tmp_path)
    manifest = tmp_path / "dra.yaml"
    manifest.write_text(krew.manifest("1.2.3", PAGE, {**archives, real.name: real}))
    plain = {"PATH": f"{root}/bin:/usr/bin:/bin:/usr/local/bin", "HOME": str(tmp_path), "KREW_ROOT": str(root)}

    def run(*words: str | Path, **variables: str) -> str:
        environment = {**plain, **variables}
        done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def install(archive: Path, **variables: str) -> str:
        return run(command, "install", f"--manifest={manifest}", f"--archive={archive}", **variables)

    said = install(real)
    (root / "bin" / "python3").symlink_to(sys.executable)
    assert f"kubectl-dra {__version__}\n" == run("kubectl-dra", "--version")
    if shutil.which("kubectl", path=plain["PATH"]):
        assert f"kubectl-dra {__version__}\n" == run("kubectl", "dra", "--version")
    # What it tells people to do for completion, done.
    lines = [line.removeprefix(" |  | ") for line in said.splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith("  shim="))
    steps = "\n".join(lines[first : first + 2]).replace("kubectl dra", "kubectl-dra")
    run("bash", "-c", steps)
    assert run("kubectl_complete-dra", "expl").startswith("explain\t")
    (root / "bin" / "kubectl_complete-dra").unlink()
    run("git", "init", "--quiet", root / "index" / "default")
    run("git", "-C", root / "index" / "default", "remote", "add", "origin", "https://krew.example/index")
    run(command, "uninstall", "dra")
    assert [path.name for path in (root / "bin").iterdir()] == ["python3"]
    assert not [path for path in (root / "store").rglob("*") if path.is_file()]

    for target in pyz.TARGETS:
        system, _, machine = target.partition("-")
        elsewhere = {"KREW_OS": system, "KREW_ARCH": machine, "KREW_ROOT": str(tmp_path / target)}
        name = next(name for name in archives if target in name)
        manifest.write_text(text)
        install(archives[name], **elsewhere)
        (store,) = (tmp_path / target / "store" / "dra").iterdir()
        suffix = ".exe" if system == "windows" else ""
        assert {path.name for path in store.iterdir()} == {f"kubectl-dra{suffix}", "LICENSE"}
