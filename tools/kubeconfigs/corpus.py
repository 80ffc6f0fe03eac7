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
_UNKNOWN: Final = "a misspelt key changes who asks whom"
_NAMELESS: Final = "nothing can refer to an entry without a name"
_PLAIN_LOGIN: Final = "a password would go over plain HTTP"
DIFFERENT: Final[Mapping[str, str]] = {
    **{f"{kind} with a key that nobody knows": _UNKNOWN for kind in ("user", "cluster", "exec", "context")},
    **{
        f"{section} with {what}": _NAMELESS
        for section in ("clusters", "users", "contexts")
        for what in ("no name", "null")
    },
    "user client-key: text": "a key without its certificate identifies nobody",
    "a login in a plain address": _PLAIN_LOGIN,
    "in a pod, as": "kubectl takes the flag for a configuration, and asks localhost:8080",
    "a token with a blank": "no server gives such a token",
    **dict.fromkeys(
        ("user token: null", "context user: null", "a context without user", "a login in the address"),
        "without credentials kubectl asks for a login at the terminal; this program never asks",
    ),
}
"""Cases in which this program is meant to answer differently from kubectl, and why."""


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
