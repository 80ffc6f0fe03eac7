"""What kustomize says when it fails, without the chain of directories that led there."""

from __future__ import annotations

import re
from typing import Final

# kubectl logs the error as a Go string, or between angle brackets where it has several lines.
_LOGGED: Final = re.compile(r'"command failed" err=(?:"(.*)"|<\n(.*)\n\s*>)\s*\Z', re.DOTALL)
_ELSEWHERE: Final = re.compile(r"security; file '([^']+)' is not in or below '([^']+)'")
_MISSING: Final = re.compile(r"lstat (\S+): no such file or directory")
_REMOTE: Final = re.compile(r"Get \"([^\"]+)\"|git fetch \S+ (\S+)")
_CHAIN: Final = re.compile(
    r"\A(?:accumulating resources: |accumulation err='|accumulating resources from '[^']*': "
    r"|recursed accumulation of path '[^']*': |'[^']*' must resolve to a file': )+"
)


def cause_of(stderr: str) -> str:
    """The cause of a failed build in one sentence, from what kubectl or kustomize wrote."""
    lines = stderr.strip().splitlines()
    logged = _LOGGED.search(stderr.strip())
    text = (logged[1] or logged[2]) if logged is not None else (lines[-1] if lines else "no message")
    text = " ".join(text.replace('\\"', '"').split()).removeprefix("Error: ")
    if found := _ELSEWHERE.search(text):
        return f"{found[1]} is outside the directory {found[2]}, from which kustomize reads no files"
    if found := _MISSING.search(text):
        return f"{found[1]} does not exist"
    if found := _REMOTE.search(text):
        return f"{found[1] or found[2]} cannot be fetched"
    return _CHAIN.sub("", text)
