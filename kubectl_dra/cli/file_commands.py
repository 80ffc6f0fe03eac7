"""What ``lint`` and ``migrate`` have in common, which read files: a baseline, and notes on standard error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kubectl_dra.errors import UsageError
from kubectl_dra.lint.accepted import Found, PlacedFinding, read, without_known, write
from kubectl_dra.manifests.files import Through
from kubectl_dra.report.color import tell
from kubectl_dra.text import amount


def check_baseline(path: str, writes: bool) -> None:
    """Raises UsageError where it is to be written nowhere."""
    if writes and not path:
        raise UsageError("--write-baseline needs --baseline FILE: the file that is written")


def write_baseline(path: str, findings: Iterable[PlacedFinding], family: str) -> int:
    """Writes what was found and says so; returns exit code 0. Raises InputError: the file cannot be written."""
    number = write(path, findings, family)
    tell(f"{path}: {amount(number, 'finding')} written; with --baseline {path} they do not count")
    return 0


def new_findings(path: str, findings: Sequence[Found], family: str) -> list[Found]:
    """The findings that are not in the baseline; how many are, and how many of its entries are found no more, is said.

    Raises InputError: the file cannot be read.
    """
    new, known, gone = without_known(findings, read(path), family)
    if known:
        tell(f"note: {amount(known, 'finding')} of {path} left out")
    if gone:
        tell(f"note: {gone:,} of {path} no longer found; --write-baseline updates it")
    return new


# Messages on standard error of commands that read files; standard output has only results.


_MOST: Final = 10


def tell_notes(notes: Sequence[str]) -> None:
    """Print one line for each file left out, if there are few."""
    for note in notes[:_MOST]:
        tell(f"note: {note}")
    if len(notes) > _MOST:
        tell(f"note: {len(notes) - _MOST} more files were left out")


def tell_defects(defects: Iterable[str]) -> None:
    """Print one line for each failure of our own."""
    for defect in defects:
        tell(f"error: a defect of kubectl-dra, please report it: {defect}")


def tell_links(through: Sequence[Through]) -> None:
    """Name the files that were written through links."""
    for link, file in through:
        tell(f"{link} is a link: {file} is written")
