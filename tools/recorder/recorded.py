"""What recorded files are made of, for the programs that write them and the tests that compare."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubectl_dra.api.releases import Release, default_features

DATA = Path(__file__).parents[2] / "tests" / "conformance" / "data"
RELEASE = "1.36.2"
"""Of lines that do not say theirs."""
FIRST_DEVICES = "cel-devices.json"


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a .jsonl or .jsonl.gz file."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as stream:
        for line in stream:
            if line.strip():
                yield json.loads(line)


def gates(release: Release, changes: list[str]) -> frozenset[str]:
    """The gates of a scheduler with ``-DeviceTaints`` switched off or ``+ListTypeAttributes`` on."""
    known = set(default_features(release))
    for change in changes:
        gate = f"DRA{change[1:].removeprefix('DRA')}"
        known.discard(gate) if change[0] == "-" else known.add(gate)
    return frozenset(known)
