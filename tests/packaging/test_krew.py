"""krew: archives and manifest, measured by krew's own rules, and an installation by krew itself."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from kubectl_dra import __version__
from tests.packaging import toolbox

pytestmark = pytest.mark.xdist_group("packaging")
PAGE = "https://github.com/example/kubectl-dra"


@pytest.fixture(scope="module")
def hello(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Programs in the layout of the real ones; what is in them does not matter here."""
    import pyz

    folders = {}
    for target in pyz.TARGETS:
        folder = folders[target] = tmp_path_factory.mktemp(target)
        (folder / "lib" / "package").mkdir(parents=True)
        (folder / "lib" / "package" / "data").write_text("text")
        (folder / f"kubectl-dra{'.exe' if target.startswith('windows') else ''}").write_text("#!/bin/sh\necho hello\n")
    return folders


@pytest.fixture(scope="module")
def archives(hello: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    import krew

    output = tmp_path_factory.mktemp("archives")
    made = [krew.archive(folder, target, output) for target, folder in hello.items()]
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
        (
            "bin: kubectl-dra\n",
            "bin: kubectl-dra\n      files: [{from: COPYING, to: .}]\n",
            "nothing in the archive is COPYING",
        ),
        ("bin: kubectl-dra\n", "bin: kubectl-dra\n      files: [{from: lib, to: ../..}]\n", "outside the plugin"),
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
                assert packed.namelist() == ["LICENSE", "kubectl-dra.exe", "lib/package/data"]
        else:
            with tarfile.open(path) as tar:
                modes = {entry.name: entry.mode for entry in tar.getmembers()}
            data = {"LICENSE": 0o644, "lib/package/data": 0o644}
            assert modes == {"kubectl-dra": 0o755, "kubectl_complete-dra": 0o755, **data}


def test_the_same_program_gives_the_same_archives(
    hello: dict[str, Path], archives: dict[str, Path], tmp_path: Path
) -> None:
    import krew

    for target, folder in hello.items():
        again = krew.archive(folder, target, tmp_path)
        assert again.read_bytes() == archives[again.name].read_bytes()


# krew is built for it, which takes minutes.
@pytest.mark.exhaustive
def test_krew_itself(standalone: Path, text: str, archives: dict[str, Path], tmp_path: Path) -> None:
    """krew installs the archives, what it installs runs through kubectl, and nothing is left after uninstall."""
    import krew
    import pyz

    try:
        command = toolbox.krew()
    except toolbox.Unavailable as reason:
        pytest.skip(str(reason))
    root = tmp_path / "krew"
    real = standalone / f"kubectl-dra-{pyz.host()}.tar.gz"
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
    assert not list((root / "bin").iterdir())
    assert not [path for path in (root / "store").rglob("*") if path.is_file()]

    for target in pyz.TARGETS:
        system, _, machine = target.partition("-")
        elsewhere = {"KREW_OS": system, "KREW_ARCH": machine, "KREW_ROOT": str(tmp_path / target)}
        name = next(name for name in archives if target in name)
        manifest.write_text(text)
        install(archives[name], **elsewhere)
        (store,) = (tmp_path / target / "store" / "dra").iterdir()
        suffix = ".exe" if system == "windows" else ""
        assert {path.name for path in store.iterdir()} >= {f"kubectl-dra{suffix}", "LICENSE", "lib"}
