"""Arguments that nobody means: digits that are none, far too many of them, half characters, very long words."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_dra.cli.live import seconds
from kubectl_dra.errors import UsageError
from tests.cli.conftest import Dra
from tests.cli.test_bad_input import CLASS, NODE, SLICE, claim, snapshot
from tools.fuzz.arguments import HOSTILE, places

LONG = "9" * 5000
ODD_DIGITS = ("²", "1²", LONG, "٣")


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    return snapshot(tmp_path, CLASS, SLICE, NODE, claim())


@pytest.mark.parametrize("digits", ODD_DIGITS)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("explain", "claim/gpus", "-n", "default", "--what-if", "count=DIGITS"), "is not a positive number"),
        (("explain", "claim/gpus", "-n", "default", "--trace", "gpu-0..DIGITS"), "gpu-0..DIGITS"),
        (("explain", "device/gpu-0..DIGITS"), "gpu-0..DIGITS"),
        (("devices", "gpu-0..DIGITS"), "gpu-0..DIGITS"),
        (("devices", "gpu-DIGITS,DIGITS"), "gpu-DIGITS"),
        (("taint", "gpu-0..DIGITS", "k=v:NoSchedule", "--dry-run=client"), ""),
        (("taint", "--list", "--timeout", "DIGITS"), ""),
        (("devices", "-v=DIGITS"), ""),
    ],
)
def test_digits_that_are_no_number(dra: Dra, cluster: str, words: tuple[str, ...], says: str, digits: str) -> None:
    ran = dra(*(word.replace("DIGITS", digits) for word in words), "--snapshot", cluster)
    assert ran.code == 2
    assert says.replace("DIGITS", digits)[:40] in ran.err


@pytest.mark.parametrize("digits", ODD_DIGITS)
def test_a_timeout_that_is_no_number(digits: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        seconds(digits)


@pytest.mark.parametrize("digits", ODD_DIGITS)
def test_numbers_of_the_environment(dra: Dra, cluster: str, monkeypatch: pytest.MonkeyPatch, digits: str) -> None:
    for name in ("COLUMNS", "VTE_VERSION", "SOURCE_DATE_EPOCH"):
        monkeypatch.setenv(name, digits)
    assert dra("devices", "--snapshot", cluster, "--complete").code == 0
    assert dra("explain", "claim/gpus", "-n", "default", "--snapshot", cluster, "-o", "html").code in (0, 1, 3)


def own_flags() -> list[tuple[str, tuple[str, ...]]]:
    """Each command, and its flags that no command before it has. (lsp takes no arguments of its own.)"""
    seen: set[str] = set()
    out = []
    for command, flags, _ in places():
        out.append((command, ("", *(flag for flag in flags if flag not in seen))))
        seen.update(flags)
    assert {"--what-if", "--kubeconfig", "--snapshot", "--filename"} <= seen
    return [each for each in out if each[0] != "lsp"]


@pytest.mark.parametrize(("command", "flags"), own_flags())
def test_every_command(dra: Dra, cluster: str, command: str, flags: tuple[str, ...]) -> None:
    """A sentence and the documented code, whatever stands where."""
    for flag in flags:
        for word in HOSTILE:
            for more in ((), ("--snapshot", cluster)):
                ran = dra(command, *([flag] if flag else []), word, *more)
                assert ran.code in (0, 1, 2, 3), (flag, word[:20])


def test_a_message_with_bytes_that_are_no_text(dra: Dra) -> None:
    known = "could not bind PCI device: device 0000:3b:00.0 is in use"
    assert dra("explain", "--message", f"\udcff {known}").code == dra("explain", "--message", known).code
    assert dra("explain", "--message", "\udcff").code == 3


def test_a_name_too_long_for_a_file_is_no_defect(dra: Dra, cluster: str) -> None:
    ran = dra("devices", "--snapshot", "x" * 5000)
    assert ran.code == 2 and ran.err.endswith("x: File name too long\n")
    assert dra("explain", "x" * 5000, "--snapshot", cluster).err.startswith("error: ")
