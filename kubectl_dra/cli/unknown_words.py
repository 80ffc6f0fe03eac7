"""Words that no command takes, and codes that ``--explain`` does not know: guesses at what was meant."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Sequence
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
