"""Work in a child process: its result, or that it needs too much; the child is gone afterwards."""

from __future__ import annotations

import os
import time

import pytest

from kubectl_dra.process import TooMuch, limited_fork


def test_a_result_comes_back() -> None:
    assert limited_fork(lambda: ["x" * 1_000_000, os.getpid()], 10, 100) != ["x" * 1_000_000, os.getpid()]


def forever() -> None:
    while True:
        pass


def greedy() -> int:
    return len(bytearray(1 << 30))


def broken() -> None:
    raise ValueError("unexpected")


def abrupt() -> None:
    os._exit(1)


@pytest.mark.parametrize("work", [forever, greedy, broken, abrupt, lambda: time.sleep(60)])
def test_what_takes_too_much_is_said(work: object, monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[int] = []
    fork = os.fork

    def forked() -> int:
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(os, "fork", forked)
    began = time.monotonic()
    with pytest.raises(TooMuch):
        limited_fork(work, 0.5, 100)  # type: ignore[arg-type]
    assert time.monotonic() - began < 10
    with pytest.raises(ChildProcessError):
        os.waitpid(children[0], os.WNOHANG)
