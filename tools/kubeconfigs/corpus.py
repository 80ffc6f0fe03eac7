"""The recorded answers of kubectl, and where this program is meant to answer differently."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, json

from tools.kubeconfigs.cases import Case
from tools.kubeconfigs.clients import Outcome

FILE: Final = Path(__file__).parents[2] / "tests" / "conformance" / "data" / "kubeconfigs.jsonl.gz"
STRICTER: Final[Mapping[str, str]] = {}
"""Cases that kubectl sends and this program refuses, and why."""


class Row(Struct, frozen=True):
    """A case, and what kubectl of a version did."""

    case: Case
    kubectl: Outcome
    version: str

    def verdict(self, other: Outcome) -> str:
        """How another client's answer compares."""
        if self.kubectl.refuses or other.refuses:
            both = self.kubectl.refuses and other.refuses
            return "both refuse" if both else "stricter" if other.refuses else "laxer"
        return "same request" if self.kubectl.seen == other.seen else "another request"


def write(rows: Iterable[Row]) -> None:
    """Replace the corpus."""
    data = b"".join(json.encode(row) + b"\n" for row in rows)
    FILE.write_bytes(gzip.compress(data, mtime=0))


def read() -> Iterator[Row]:
    """The rows of the corpus."""
    for line in gzip.decompress(FILE.read_bytes()).splitlines():
        yield json.decode(line, type=Row)
