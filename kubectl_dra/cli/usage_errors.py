"""What is wrong with a command line, and what to write instead: words, flags and codes that nothing takes, packages."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from kubectl_dra.command import ClusterFlags, CommandLine, kubectl, misnamed
from kubectl_dra.data.code_pages import packed
from kubectl_dra.errors import UsageError
from kubectl_dra.text import did_you_mean, nearest

_VERBS: Final = ("get", "list", "ls", "show", "describe", "desc", "view")
"""Verbs of kubectl and others that our commands leave out."""
_LISTINGS: Final = {
    "devices": ("device", "resourceslice", "slice", "gpu", "inventory"),
    "explain": ("pod", "po", "pending"),
    "claims": ("claim", "resourceclaim"),
    "top nodes": ("node", "no"),
    "top classes": ("deviceclas", "clas"),
    "top namespaces": ("namespace", "n"),
    "taint --list": ("taint", "devicetaintrule", "rule"),
}
_OTHER_NAMES: Final = {
    "explain": ("why", "diagnose", "debug", "status", "check-pod"),
    "lint": ("validate", "check", "vet"),
    "migrate": ("convert", "upgrade"),
    "devices": ("device", "inventory", "slices", "resourceslices", "gpus"),
    "top": ("usage", "use", "stats", "summary"),
    "snapshot": ("dump", "save", "cluster-info"),
}


def unknown_command(words: Sequence[str], commands: Collection[str]) -> UsageError:
    """The error for a command line whose first word is not a command."""
    first, *rest = words
    said = f'there is no command "{first}"'
    meant = _meant(first.lower(), rest, commands)
    if meant:
        return UsageError(f"{said}; {meant}")
    return UsageError(said, ("See 'kubectl dra --help' for all commands.",))


def _meant(first: str, rest: Sequence[str], commands: Collection[str]) -> str:
    if first in _VERBS and rest:
        noun, _, name = rest[0].lower().partition("/")
        for command, nouns in _LISTINGS.items():
            if noun.removesuffix("s") in nouns:
                named = name or (len(rest) > 1 and not rest[1].startswith("-"))
                if named and command in ("explain", "claims"):
                    return f"write: {_ours('explain', *rest)}"
                return f"write: {_ours(*command.split(), *rest[1:])}"
        if noun in commands:
            return f"write: {_ours(*rest)}"
    for command, names in _OTHER_NAMES.items():
        if first in names:
            return f"write: {_ours(command, *rest)}"
    if first.partition("/")[0] in ("pod", "po", "claim", "resourceclaim"):
        return f"write: {_ours('explain', first, *rest)}"
    near = nearest(first, commands, 1)
    return f"did you mean: {_ours(*near, *rest)}" if near else ""


def unexpected_words(
    command: str, words: Sequence[str], *, files: bool, namespace: str = "", where: ClusterFlags
) -> UsageError:
    """The error for words after a command that takes none; ``files``: it reads manifests with ``-f``.

    ``namespace`` and ``where`` are what was typed besides, for the command to write instead.
    """
    first = words[0]
    kind, _, name = "/".join(words[:2]).partition("/") if "/" in first or len(words) > 1 else ("", "", first)
    scope = (*(("-n", namespace) if namespace else ()), *where.flags)
    if files and like_file(first):
        meant = f"for a file write: {_ours(command, '-f', first, *scope)}"
    elif command == "fit" and not misnamed((name,)) and not kind:
        meant = f"write: {_ours(command, f'deployment/{name}', *scope)}"
    elif files and not misnamed((name,)) and not misnamed((kind or "deployment",)):
        read = where.asks(kubectl("get", kind=kind or "deployment", name=name, namespace=namespace))
        meant = f"for an object of the cluster write: {read} -o yaml | {_ours(command, '-f', '-', *scope)}"
    elif command == "claims":
        meant = f"for one claim write: {_ours('explain', first if '/' in first else f'claim/{first}', *scope)}"
    else:
        meant = "leave it out" if len(words) == 1 else "leave them out"
    more = (f"See '{_ours(command, '--help')}' for usage.",)
    return UsageError(f"{command} takes no {shlex.join(words)}; {meant}", more)


def like_file(word: str) -> bool:
    """Whether a word looks like a path: it ends like a manifest, or such a file exists."""
    # pathlib's is_file fails at a name that is too long, or below a folder that may not be read.
    return word.lower().endswith((".yaml", ".yml", ".json")) or os.path.isfile(word)  # noqa: PTH113


def _ours(*words: str) -> CommandLine:
    return CommandLine(("kubectl", "dra", *words))


_FOLDERS: Final = {"causes": "explain", "rules": "lint", "changes": "migrate"}
"""Where pages are, and the command that prints them."""
_NUMBERED: Final = re.compile(r"[a-z]{3}[0-9]+", re.IGNORECASE)


def unknown_code(what: str, code: str, known: Iterable[str], listed: str) -> UsageError:
    """The error about a cause, rule or code that a command lacks; ``listed`` says where all of them are.

    A number (``DRA999``) is no misspelling of another number, so nothing is proposed for it.
    """
    if command := _command_of(code):
        line = CommandLine(("kubectl", "dra", command, "--explain", code))
        return UsageError(f'"{code}" is explained by {command}: {line}')
    near = () if _NUMBERED.fullmatch(code) else nearest(code, known)
    hint = f"; {did_you_mean(near)}" if near else f" ({listed})"
    return UsageError(f'there is no {what} "{code}"{hint}')


def _command_of(code: str) -> str:
    """The command that prints this page; empty if none does."""
    names = {code.lower(), code.upper()}
    for folder, command in _FOLDERS.items():
        if names & {page.stem for page in packed(folder).glob("*.md") if page.stem != "README"}:
            return command
    return ""


# Flags of ``kubectl get`` that a command does not have, and why.


_LONG: Final = {"--all-namespaces": "-A", "--namespace": "-n", "--selector": "-l", "--output": "-o", "--watch": "-w"}
_ONE_CLUSTER: Final = "it counts the whole cluster"
_PLACES: Final = "it places the pods of a manifest and lists nothing"
_TAINTS: Final = "devices and their taints are in no namespace and have no labels"
_WHY: Final[Mapping[str, Mapping[str, str]]] = {
    "devices": {"-l": "devices have no labels; --selector CEL, --class and --node choose among them"},
    "top": {
        "-l": "it counts whatever has labels or not; kubectl dra claims -l lists claims by theirs",
        "-o name": "its rows are counts; devices -o name and claims -o name list objects",
        "-o wide": "its table has every column; in a pipe none is left out",
    },
    "drivers": {
        "-n": "a driver serves nodes, whatever the namespace of its pods; name drivers, or nodes with --node",
        "-l": "drivers have no labels; name them, or nodes with --node",
        "--sort-by": "the worst comes first; -o json has all that can be sorted",
    },
    "explain": {
        "--sort-by": "what is stuck comes first",
        "-o wide": "its list has every column; --full lists all rows",
    },
    "fit": {
        "-A": "the manifest says the namespaces",
        "-l": _PLACES,
        "-w": "it answers once; explain -w watches a pod",
        "--no-headers": _PLACES,
        "--sort-by": _PLACES,
        "-o name": f"{_PLACES}; -o json has each pod and its node",
        "-o wide": f"{_PLACES}; -o json has each pod and its node",
    },
    "metrics": {
        **dict.fromkeys(("-A", "-l"), _ONE_CLUSTER),
        "-n": f"{_ONE_CLUSTER}; what is about a namespace has it as a label",
        "-o": "it prints the text format of Prometheus",
        "-w": "--listen serves them while it watches the cluster",
        **dict.fromkeys(("--no-headers", "--sort-by"), "it prints the text format of Prometheus"),
    },
    "taint": {
        "-l": _TAINTS,
        "-w": "--list prints once; kubectl dra devices --tainted -w watches",
        "--sort-by": "--list is in the order of devices; -o json has all that can be sorted",
        "-o wide": "--list has every column",
    },
}


_PATHS: Final = {"metadata.name": "name", "metadata.creationTimestamp": "age"}
"""What kubectl sorts by most, and our word for it."""


def sorted_by(words: Sequence[str]) -> list[str]:
    """The words with our values of ``--sort-by`` in place of a JSONPath such as ``.metadata.name``."""
    out: list[str] = []
    for word in words:
        flag, equals, value = word.partition("=") if word.startswith("--sort-by=") else ("", "", word)
        if equals or out[-1:] == ["--sort-by"]:
            value = _PATHS.get(value.strip("{}").removeprefix("."), value)
        out.append(f"{flag}{equals}{value}")
    return out


def why_not(command: str, words: Sequence[str], flag: str, takes: Sequence[str]) -> UsageError | None:
    """The error for a flag of kubectl that the command does not have; None where nothing is known of it.

    ``takes`` are the values that its ``-o`` has, where it is about that flag.
    """
    flag = _LONG.get(flag, flag)
    known = _WHY.get(command, {})
    if flag == "-o" and takes:
        value = _output(words)
        if f"-o {value}" not in known:
            return None
        return UsageError(f"{command} has no -o {value}: {known[f'-o {value}']}; it has {', '.join(takes)}")
    if flag not in known:
        return None
    return UsageError(f"{command} takes no {flag}: {known[flag]}")


def _output(words: Sequence[str]) -> str:
    """The last value of ``-o``."""
    values = [
        value if word in ("-o", "--output") else word.removeprefix("--output=").removeprefix("-o").removeprefix("=")
        for word, value in pairwise((*words, ""))
        if word.startswith(("-o", "--output"))
    ]
    return values[-1] if values else ""


# A package that only some commands need and that is not installed: what to run, for the way this was installed.


_PROGRAM: Final = "the program that needs no Python has it inside: https://github.com/kubectl-dra/kubectl-dra#install"


def missing_package(command: str, package: str) -> UsageError:
    """The error of a command that needs a package."""
    how = _how_to_add(package, command, Path(sys.prefix))
    return UsageError(f"{command} needs {package}, which is not installed; {how}")


def _how_to_add(package: str, command: str, prefix: Path) -> str:
    """What to run; ``prefix`` is where this Python has its packages."""
    python = shlex.quote(sys.executable)
    if (prefix / "pipx_metadata.json").exists():
        return f"run: pipx inject kubectl-dra {package}"
    pip = importlib.util.find_spec("pip") is not None
    if (prefix / "uv-receipt.toml").exists() or (not pip and _is_of_uv(prefix)):
        return f"run: uv pip install --python {python} {package}"
    if not pip:
        return _PROGRAM
    archive = os.environ.get("KUBECTL_DRA_ARCHIVE", "")
    if archive and sys.prefix == sys.base_prefix:
        # Into the system's own Python pip installs nothing on many distributions.
        own = shlex.quote(str(Path.home() / ".kubectl-dra"))
        start = f"{own}/bin/python {shlex.quote(archive)} {command}"
        return f"run: {python} -m venv {own} && {own}/bin/pip install {package} && {start}"
    return f"run: {python} -m pip install {package}"


def _is_of_uv(prefix: Path) -> bool:
    """Whether uv made this virtual environment."""
    try:
        return "\nuv = " in f"\n{(prefix / 'pyvenv.cfg').read_text(encoding='utf-8')}"
    except OSError:
        return False
