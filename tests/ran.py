"""A command of ours, run in this process."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

from kubectl_dra.cli.main import run


def ran(*words: str) -> tuple[int, str, str]:
    """Its exit code, and what it writes on standard output and on standard error."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        code = run(words)
    return code, out.getvalue(), errors.getvalue()


def unwrapped(text: str) -> str:
    """A text on one line, whatever the width it was written for."""
    return " ".join(text.split())
