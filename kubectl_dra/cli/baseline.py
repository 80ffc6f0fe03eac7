"""``--baseline`` and ``--write-baseline``: what is known already does not count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubectl_dra.errors import UsageError
from kubectl_dra.lint.accepted import Found, PlacedFinding, read, without_known, write
from kubectl_dra.report.color import tell
from kubectl_dra.text import amount


def check_usage(path: str, writes: bool) -> None:
    """Raises UsageError where it is to be written nowhere."""
    if writes and not path:
        raise UsageError("--write-baseline needs --baseline FILE: the file that is written")


def write_baseline(path: str, findings: Iterable[PlacedFinding], family: str) -> int:
    """Writes what was found and says so; returns exit code 0.

    Raises:
        InputError: the file cannot be written.
    """
    number = write(path, findings, family)
    tell(f"{path}: {amount(number, 'finding')} written; with --baseline {path} they do not count")
    return 0


def new_findings(path: str, findings: Sequence[Found], family: str) -> list[Found]:
    """The findings that are not in the baseline; how many are, and how many of its entries are found no more, is said.

    Raises:
        InputError: the file cannot be read.
    """
    new, known, gone = without_known(findings, read(path), family)
    if known:
        tell(f"note: {amount(known, 'finding')} of {path} left out")
    if gone:
        tell(f"note: {gone:,} of {path} no longer found; --write-baseline updates it")
    return new
