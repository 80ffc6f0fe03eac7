"""A baseline: findings that are known and accepted for now, so that only new ones count.

It is a JSON file that lint and migrate can share. An entry says file, code, object, and field, so that it holds when
lines move.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from kubectl_dra.errors import InputError

_KIND: Final = "Baseline"
_VERSION: Final = "1"


class KnownFindings(Struct, frozen=True, order=True, omit_defaults=True):
    """Findings that are alike, and how many there are."""

    file: str
    code: str
    object: str = ""
    field: str = ""
    count: int = 1


class _File(Struct, rename="camel"):
    schema_version: str
    kind: str
    findings: list[KnownFindings]


class PlacedFinding(Protocol):
    """What a finding has that an entry says."""

    @property
    def file(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def object(self) -> str: ...
    @property
    def field(self) -> str: ...


Found = TypeVar("Found", bound=PlacedFinding)
_Key = tuple[str, str, str, str]


def is_baseline(raw: Mapping[str, Any]) -> bool:
    """Whether a document of a file is a baseline."""
    return raw.get("kind") == _KIND and "apiVersion" not in raw and "schemaVersion" in raw


def read(path: str) -> list[KnownFindings]:
    """The entries of a baseline.

    Raises:
        InputError: it cannot be read, or is no baseline.
    """
    try:
        found = msgspec.json.decode(Path(path).read_bytes(), type=_File)
    except OSError as error:
        hint = "; --write-baseline makes it" if isinstance(error, FileNotFoundError) else ""
        raise InputError(f"{path}: cannot be read: {error.strerror or error}{hint}") from None
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not a baseline: {error}") from None
    if found.kind != _KIND or found.schema_version != _VERSION:
        raise InputError(f"{path}: not a baseline that this version can read")
    return found.findings


def write(path: str, findings: Iterable[PlacedFinding], family: str) -> int:
    """Write the findings as a baseline, and return their number.

    Entries that are there already and whose codes do not begin with ``family`` stay: they are another command's.

    Raises:
        InputError: it cannot be written, or another file is there.
    """
    others = [entry for entry in read(path) if not entry.code.startswith(family)] if Path(path).exists() else []
    counts = Counter(_key(finding) for finding in findings)
    mine = [KnownFindings(*key, count) for key, count in counts.items()]
    data = msgspec.json.format(msgspec.json.encode(_File(_VERSION, _KIND, sorted((*others, *mine)))), indent=1)
    try:
        Path(path).write_bytes(data + b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    return counts.total()


def without_known(
    findings: Sequence[Found], entries: Iterable[KnownFindings], family: str
) -> tuple[list[Found], int, int]:
    """The findings that no entry is about, how many are known, and how many of the entries' are found no more."""
    left: Counter[_Key] = Counter()
    for entry in entries:
        if entry.code.startswith(family):
            left[entry.file, entry.code, entry.object, entry.field] += entry.count
    new: list[Found] = []
    for finding in findings:
        key = _key(finding)
        if left[key] > 0:
            left[key] -= 1
        else:
            new.append(finding)
    return new, len(findings) - len(new), left.total()


def _key(finding: PlacedFinding) -> _Key:
    return os.path.normpath(finding.file).replace(os.sep, "/"), finding.code, finding.object, finding.field
