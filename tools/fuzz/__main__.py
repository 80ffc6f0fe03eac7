"""``python -m tools.fuzz``: runs commands on mutated inputs; prints and keeps what goes wrong.

The same seed makes the same inputs. Kinds are run in turn, for some seconds or so many runs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tools.fuzz.runs import KINDS, Count, fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, help="how long; a minute where --runs is not given either")
    parser.add_argument("--runs", type=int, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="where to begin; each run has the next number")
    parser.add_argument("--kind", action="append", choices=[*KINDS], help="may be repeated; default: all")
    given = parser.parse_args()
    seconds = 60.0 if given.seconds is None and given.runs is None else given.seconds
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    counts = fuzz(given.kind or [*KINDS], given.seed, folder, seconds=seconds, runs=given.runs, tell=_tell)
    _tell(counts)
    sys.stdout.write(f"inputs of failures are in {folder}\n")
    return 1 if any(count.failures for count in counts.values()) else 0


def _tell(counts: Mapping[str, Count]) -> None:
    lines = []
    for kind, count in counts.items():
        part = 100 * count.accepted / max(count.runs, 1)
        lines.append(f"{kind:<12} {count.runs:>7,} runs, {part:.0f} % accepted, {len(count.failures)} failures")
    failures = [failure for count in counts.values() for failure in count.failures]
    lines += [*failures, f"{sum(count.runs for count in counts.values()):,} runs, {len(failures)} failures", ""]
    sys.stdout.write("\n".join(lines))
    sys.stdout.flush()


sys.exit(main())
