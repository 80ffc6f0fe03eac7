"""``.kubectl-dra.yaml``: the settings of a project, found beside the files or above them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.lint.finding import SEVERITIES
from kubectl_dra.lint.rules import RULES
from kubectl_dra.manifests.inputs import matches
from kubectl_dra.text import nearest

NAME: Final = ".kubectl-dra.yaml"
_TOP: Final = ("kubernetesVersion", "featureGates", "lint")
_LINT: Final = ("select", "ignore", "perFileIgnores", "exclude", "failOn")


class Config(Struct, frozen=True):
    """The file's content. ``source`` is its path, empty if there is no file."""

    source: str = ""
    release: str = ""
    gates: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    fail_on: str = ""


def find(start: Path) -> Path | None:
    """The file of a directory or the nearest one above it, within the git repository."""
    for folder in (start, *start.parents):
        path = folder / NAME
        if path.is_file():
            return path
        if (folder / ".git").exists():
            return None
    return None


def load(path: Path) -> Config:
    """Read a config file.

    Raises:
        InputError: it cannot be read, or is not YAML.
        UsageError: a key or value that lint does not know.
    """
    from kubectl_dra.manifests.documents import NotAnObject, read_documents

    name = str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from None
    try:
        raw = read_documents(data, name, strict=True)[0].object
    except NotAnObject:
        raw = {}
    _known(raw, _TOP, name)
    lint = raw.get("lint") or {}
    if not isinstance(lint, dict):
        raise UsageError(f"{name}: lint must be a mapping")
    _known(lint, _LINT, f"{name}: lint")
    fail_on = lint.get("failOn", "")
    if fail_on and fail_on not in SEVERITIES:
        raise UsageError(f"{name}: lint.failOn must be one of {', '.join(SEVERITIES)}")
    per_file = _mapping(lint, "perFileIgnores", f"{name}: lint")
    return Config(
        name,
        str(raw.get("kubernetesVersion") or ""),
        tuple(_gate(gate, value, name) for gate, value in _mapping(raw, "featureGates", name).items()),
        _words(lint.get("select"), f"{name}: lint.select"),
        _words(lint.get("ignore"), f"{name}: lint.ignore"),
        tuple((pattern, _words(codes, f"{name}: lint.perFileIgnores")) for pattern, codes in per_file.items()),
        _words(lint.get("exclude"), f"{name}: lint.exclude"),
        str(fail_on),
    )


def _known(raw: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in raw:
        if key not in keys:
            near = nearest(key, keys)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(keys)}"
            raise UsageError(f'{where}: unknown key "{key}"{hint}')


def _mapping(raw: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    content = raw.get(key) or {}
    if not isinstance(content, dict):
        raise UsageError(f"{where}: {key} must be a mapping")
    return content


def _words(value: Any, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UsageError(f"{where} must be a list of texts")
    return tuple(words)


def _gate(gate: str, value: Any, name: str) -> str:
    if not isinstance(value, bool):
        raise UsageError(f"{name}: featureGates.{gate} must be true or false")
    return f"{gate}={'true' if value else 'false'}"


# Which rules to run: codes, prefixes of codes, and names.


class Selection(Struct, frozen=True):
    """Selected and ignored codes, of which the more specific wins, and codes ignored in some files."""

    select: tuple[str, ...] = ("DRA",)
    ignore: tuple[str, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def has(self, code: str) -> bool:
        """Whether the rule is selected in any file."""
        return _longest(self.select, code) > _longest(self.ignore, code)

    def in_file(self, code: str, file: str) -> bool:
        """Whether the rule is selected in this file, given that ``has`` is true."""
        return not any(_longest(codes, code) >= 0 and matches(file, pattern) for pattern, codes in self.per_file)


@lru_cache(maxsize=1024)
def _longest(prefixes: tuple[str, ...], code: str) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=-1)


def codes(words: Sequence[str], source: str) -> tuple[str, ...]:
    """Codes or prefixes of codes for words such as ``DRA3``, ``DRA301,DRA302`` or a rule's name.

    Raises:
        UsageError: a word that matches no rule.
    """
    out: list[str] = []
    names = {rule.name: rule.code for rule in RULES}
    for word in (part.strip() for text in words for part in text.split(",")):
        if not word:
            continue
        code = names.get(word, word.upper())
        if code != "ALL" and not any(rule.code.startswith(code) for rule in RULES):
            near = nearest(word, [*names, *names.values()])
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f'{source}: there is no rule "{word}"{hint} (kubectl dra lint --rules lists them)')
        out.append("DRA" if code == "ALL" else code)
    return tuple(out)
