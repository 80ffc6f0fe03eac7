"""``python -m tools.fuzz --seconds N``: runs commands on mutated inputs; prints and keeps what goes wrong."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.fuzz.runs import fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="where to begin; each run has the next number")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    runs, found = fuzz(asked.seconds, asked.seed, folder)
    for failure in found:
        sys.stdout.write(f"{failure}\n")
    sys.stdout.write(f"{runs} runs, {len(found)} failures; inputs of failures are in {folder}\n")
    return 1 if found else 0


sys.exit(main())
