"""Output where the locale has no such letters, where there is no room, and where nobody listens."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import EXAMPLES, ROOT, Dra

SNAPSHOT = EXAMPLES / "no-device-matches" / "cluster.yaml"
EXPLAIN = ("explain", "pod/train-0", "-n", "ml", "--snapshot", str(SNAPSHOT))


def program(*words: str, shell: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Runs the program through a shell that may redirect its output."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, "-m", "kubectl_dra", *words],
        cwd=ROOT,
        env={**os.environ, "SOURCE_DATE_EPOCH": "0", **environment},
        capture_output=True,
        timeout=60,
    )


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_output_is_utf8_in_any_locale(form: str) -> None:
    plain = program(*EXPLAIN, "-o", form, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (plain.returncode, plain.stderr) == (1, b"")
    assert plain.stdout == program(*EXPLAIN, "-o", form, PYTHONUTF8="1").stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [(*EXPLAIN, "-o", "text"), (*EXPLAIN, "-o", "json"), ("--version",)])
def test_no_room_for_the_output(words: tuple[str, ...]) -> None:
    ran = program(*words, shell=">/dev/full")
    assert (ran.returncode, ran.stderr) == (2, b"error: cannot write: No space left on device\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [EXPLAIN, ("devices", *EXPLAIN[4:]), ("lint", "missing.yaml"), ("foo",)])
def test_no_room_for_messages_changes_no_exit_code(words: tuple[str, ...]) -> None:
    plain = program(*words, "-v", "6")
    for shell in ("2>/dev/full", "2>&-"):
        ran = program(*words, "-v", "6", shell=shell)
        assert (ran.returncode, ran.stdout) == (plain.returncode, plain.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="special files")
def test_what_is_no_file_is_named(dra: Dra, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("sock.yaml")
        for words in (["devices", "--snapshot"], ["migrate"], ["devices", "--kubeconfig"], ["lint"]):
            ran = dra(*words, "sock.yaml")
            assert ran.code in (1, 2) and "is a socket, not a" in ran.out + ran.err, ran
        for path, said in (("/dev/zero", "more than 16 MB"), (".", "Is a directory")):
            ran = dra("devices", "--kubeconfig", path)
            assert ran.code == 2 and said in ran.err, ran
        assert "is a device" in dra("devices", "--snapshot", "/dev/zero").err


@pytest.mark.parametrize("words", [("--version",), ("lint", "--rules"), EXPLAIN, ("help",)])
def test_a_reader_that_has_gone(words: tuple[str, ...]) -> None:
    """As for every program of the shell, 141: 1 is an answer of lint, migrate and explain."""
    with subprocess.Popen(
        [sys.executable, "-m", "kubectl_dra", *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as ran:
        assert ran.stdout is not None and ran.stderr is not None
        ran.stdout.close()
        assert (ran.wait(60), ran.stderr.read()) == (141, b"")


@pytest.mark.parametrize("shell", [">/dev/full", ">&-", "| true"])
def test_completion_never_says_why_it_cannot(shell: str) -> None:
    ran = program("__complete", "exp", shell=shell)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_closed_output() -> None:
    ran = program(*EXPLAIN, shell=">&-")
    assert (ran.returncode, ran.stderr) == (1, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="names that are not text")
def test_name_that_is_not_text(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.yaml")).write_text("kind: Pod\nkind: Pod\napiVersion: v1\nmetadata: {name: a}\n")
    ran = dra("lint", "-o", "sarif", ".")
    assert ran.code != 2, ran.err
    ran = dra("lint", ".")
    assert "\\udcff.yaml" in ran.out, ran


def test_what_migrate_leaves_is_said_in_the_same_words(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: c\n    image: i\n"
        "    resources: {limits: {nvidia.com/gpu.shared: 1}}\n"
    )
    left = [line for line in dra("migrate", "--check", "p.yaml").out.splitlines() if line.startswith("p.yaml:")]
    assert left and " refused: " in left[0]
    assert [line for line in dra("migrate", "--diff", "p.yaml").err.splitlines() if line.startswith("p.yaml:")] == left
