"""The inputs of a command: named files, directories, standard input, and output of kustomize and helm."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from kubectl_dra.command import Argv
from kubectl_dra.errors import FileError
from kubectl_dra.process import special

SUFFIXES: Final = (".yaml", ".yml", ".json")
STDIN: Final = "-"
STDIN_NAME: Final = "<stdin>"
CLUSTER_NAME: Final = "<cluster>"
KUSTOMIZED: Final = "(kustomize)"
HELMED: Final = "(helm)"
LARGEST: Final = 64_000_000
_MOST_FILES: Final = 64_000
"""More bytes than most files have."""
SECONDS: Final = 120.0
"""How long a program may take that builds manifests."""


class Input(NamedTuple):
    """One text to check. ``data`` is set if it does not come from the file ``name``.

    ``named`` is False for files found in a directory, which may belong to somebody else. ``problem`` says why
    it cannot be read.
    """

    name: str
    named: bool
    data: bytes | None = None
    problem: str = ""


def find_inputs(paths: Sequence[str], kustomize: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[Input]:
    """Every input in the given order, directories sorted, each file once.

    Files in directories are skipped if a pattern of ``exclude`` matches their path or one of its directories.

    Raises:
        FileError: a path that does not exist, or kustomize failed.
    """
    out: list[Input] = []
    seen: set[str] = set()
    for path in paths:
        if path == STDIN:
            out.append(Input(STDIN_NAME, True, sys.stdin.buffer.read(LARGEST + 1)))
            continue
        for file in _below(path, exclude) if _is_directory(path) else (Input(path, True),):
            key = os.path.normpath(file.name)
            if key not in seen:
                seen.add(key)
                out.append(file)
    out += [Input(_join(directory, KUSTOMIZED), True, build(directory)) for directory in kustomize]
    return out


def read(input_: Input) -> bytes:
    """The bytes of an input, at most one more than ``LARGEST``.

    Raises:
        FileError: it cannot be read.
    """
    if input_.problem:
        raise FileError(input_.problem, input_.name)
    if input_.data is not None:
        return input_.data
    try:
        with open(input_.name, "rb") as file:  # noqa: PTH123
            # To ask for so much at once takes three times as long: room is made for it.
            start = file.read(_MOST_FILES)
            return start if len(start) < _MOST_FILES else start + file.read(LARGEST + 1 - _MOST_FILES)
    except OSError as error:
        raise FileError(_problem(input_.name, error), input_.name) from None


def _problem(name: str, error: OSError) -> str:
    """Why a file cannot be opened or read."""
    with suppress(OSError):
        if special(name) == "a socket":
            return "is a socket, not a file"
    return f"cannot be read: {error.strerror or error}"


def is_file(name: str) -> bool:
    """Whether the named input is a file. Standard input, a cluster and kustomize output cannot be written."""
    return name not in (STDIN_NAME, CLUSTER_NAME) and not name.endswith((KUSTOMIZED, HELMED))


def arguments(name: str) -> Argv:
    """Arguments that give the named input on a command line: a file, ``-``, or ``-k DIR``."""
    if is_file(name):
        return (_path(name),)
    if name == STDIN_NAME:
        return (STDIN,)
    if name.endswith(HELMED):
        values = name.removesuffix(HELMED).rstrip(" ")
        chart = chart_above(Path(values))
        if values.endswith("/") or chart is None:
            return (_path(values.rstrip("/")),)
        return (_path(str(chart)), "--values", values)
    directory = name.removesuffix(KUSTOMIZED)
    return ("-k", directory if directory == "/" else directory.rstrip("/") or ".")


def chart_above(path: Path) -> Path | None:
    """The directory of the chart around a path; None if it is in none."""
    return next((above for above in path.parents if (above / "Chart.yaml").is_file()), None)


def _path(name: str) -> str:
    """A path that nobody takes for a flag."""
    return f"./{name}" if name.startswith("-") else name


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(Path(path).stat().st_mode)
    except FileNotFoundError:
        raise FileError("there is no such file or directory", path) from None
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror or error}", path) from None
    except ValueError:
        raise FileError("not a file name", repr(path)) from None


def _below(directory: str, exclude: Sequence[str]) -> Iterator[Input]:
    try:
        with os.scandir(directory) as scan:
            entries = sorted(scan, key=lambda file: file.name)
    except OSError as error:
        yield Input(directory, False, None, f"cannot be read: {error.strerror or error}")
        return
    for file in entries:
        name = _join(directory, file.name)
        if file.name.startswith(".") or any(matches(name, pattern) for pattern in exclude):
            continue
        # A link to a directory could lead back to where it came from; pipes and devices never end.
        if file.is_dir(follow_symlinks=False):
            yield from _below(name, exclude)
        elif file.name.lower().endswith(SUFFIXES) and _is_file(file):
            yield Input(name, False)


def _is_file(file: os.DirEntry[str]) -> bool:
    try:
        return file.is_file()
    except OSError:
        return False


def _join(directory: str, name: str) -> str:
    return name if directory in (".", "") else f"{directory.rstrip('/')}/{name}"


def matches(name: str, pattern: str) -> bool:
    """Whether a path matches a pattern such as ``vendor/**`` or ``*.gen.yaml``, as a whole or from some
    directory on.
    """
    path = os.path.normpath(name).replace(os.sep, "/")
    pattern = pattern.removeprefix("./").rstrip("/")
    below = pattern.removesuffix("/**")
    parts = path.split("/")
    for index in range(len(parts)):
        rest = "/".join(parts[index:])
        if fnmatchcase(rest, pattern) or fnmatchcase(rest, f"{below}/*") or rest == below:
            return True
    return False


def run_to_end(command: Sequence[str], name: str) -> subprocess.CompletedProcess[bytes]:
    """A program, run to its end, which builds what errors call by a name.

    Raises:
        FileError: it cannot be run, or takes too long.
    """
    try:
        return subprocess.run(command, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise FileError(f"{' '.join(command[:2])} took more than {SECONDS:.0f} s", name) from None
    except OSError as error:
        raise FileError(f"{command[0]} cannot be run: {error.strerror or error}", name) from None


def build(directory: str) -> bytes:
    """The output of ``kubectl kustomize`` or ``kustomize build`` for a directory.

    Raises:
        FileError: neither is installed, or it failed.
    """
    for program, command in (("kubectl", "kustomize"), ("kustomize", "build")):
        if shutil.which(program) is None:
            continue
        done = run_to_end((program, command, directory), directory)
        if done.returncode:
            cause = cause_of(done.stderr.decode("utf-8", "replace"))
            raise FileError(f"{program} {command} failed: {cause}", directory)
        return done.stdout
    raise FileError("-k needs kubectl or kustomize, and neither is on the PATH", directory)


# What kustomize says when it fails, without the chain of directories that led there.


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
    if match := _ELSEWHERE.search(text):
        return f"{match[1]} is outside the directory {match[2]}, from which kustomize reads no files"
    if match := _MISSING.search(text):
        return f"{match[1]} does not exist"
    if match := _REMOTE.search(text):
        return f"{match[1] or match[2]} cannot be fetched"
    return _CHAIN.sub("", text)
