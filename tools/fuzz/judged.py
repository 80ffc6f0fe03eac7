"""Runs a command in this process, and says what is seen of it that must not be."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Collection, Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Final

from kubectl_dra.cli.main import run

SECONDS: Final = 12.0
"""Of the process's own time, for one run."""
RAW: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def judged(words: Sequence[str], codes: Collection[int], secret: str = "") -> str:
    """What is wrong with a run of this command, empty if nothing is: it may end with ``codes``, and tells no secret."""
    out, err = io.StringIO(), io.StringIO()
    os.environ["KUBECONFIG"] = os.devnull
    began = time.process_time()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(list(words))
    took = time.process_time() - began
    text = out.getvalue() + err.getvalue()
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
