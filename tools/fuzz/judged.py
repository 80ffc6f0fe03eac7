"""Runs a command in this process, and says what is seen of it that must not be."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Collection, Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Final, NamedTuple

from kubectl_dra.cli.main import run

SECONDS: Final = 12.0
"""Of the process's own time, for one run."""
RAW: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
CODES: Final = frozenset((0, 1, 2, 3))
"""How commands may end that read a cluster."""
REFUSED: Final = 2
"""The exit code of what could not be read."""


class Outcome(NamedTuple):
    """What is wrong with a run, empty if nothing is; and whether the input was ``accepted`` by its reader."""

    failure: str
    accepted: bool


class Judged(NamedTuple):
    """A command that was run: its exit code, what it printed to standard output, and what is wrong with it."""

    code: int
    out: str
    failure: str

    @property
    def outcome(self) -> Outcome:
        """The input was accepted where the command did not end as one that cannot be read."""
        return Outcome(self.failure, self.code != REFUSED)


def judged(words: Sequence[str], codes: Collection[int], secret: str = "") -> Judged:
    """Runs this command, which may end with ``codes``, and must not tell the ``secret``."""
    out, err = io.StringIO(), io.StringIO()
    os.environ["KUBECONFIG"] = os.devnull
    began = time.process_time()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(list(words))
    took = time.process_time() - began
    return Judged(code, out.getvalue(), _wrong(words, code, codes, out.getvalue() + err.getvalue(), took, secret))


def _wrong(words: Sequence[str], code: int, codes: Collection[int], text: str, took: float, secret: str) -> str:
    # A plugin's own may be quoted.
    if bad := [line for line in text.splitlines() if "a defect of kubectl-dra" in line or line.startswith("Traceback")]:
        return bad[0]
    if code not in codes:
        return f"exit code {code}: {text[-300:]}"
    if took > SECONDS:
        return f"{took:.1f} s"
    if secret and secret in text:
        return f"the secret is told: {text[-300:]}"
    found = RAW.search(text) if "--diff" not in words else None
    return f"raw {found[0]!r}" if found else ""
