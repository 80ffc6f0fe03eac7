"""Compare with recorded answers of Kubernetes: ``python -m tests.conformance KIND FILE...``.

KIND is the name of a module beside this one (cel, conversions, alloc, manifests, scheduled). Each disagreement is
printed; the last line is ``agree N of M``, and the exit code is 0 only if all lines agree.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path


def main(arguments: list[str]) -> int:
    here = Path(__file__).parent
    kinds = sorted(path.stem for path in here.glob("[a-z]*.py"))
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("files", nargs="+", type=Path, help=".jsonl or .jsonl.gz")
    parser.add_argument("--devices", type=Path, help="cel: the recorded devices")
    parser.add_argument("--costs", action="store_true", help="cel: compare actual costs, too")
    parser.add_argument("--library", action="store_true", help="pods: ask the library alone, not explain")
    options = parser.parse_args(arguments)
    code: int = import_module(f"tests.conformance.{options.kind}").run(options.files, options)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
