"""``python -m tests.examples.update [NAME…]``: rewrites expected.txt, and shows what changed.

Only for a change that a person has read and wants: the golden files say what users see. The exit code of an
example is never rewritten: with a different one nothing is written, until somebody changes ``exit-code`` by hand.
"""

from __future__ import annotations

import difflib
import sys

from tests.examples.run import examples, run


def main(names: list[str]) -> int:
    """Rewrites the golden files of the named examples, or of all; 1 if one could not be."""
    known = {example.name: example for example in examples()}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.stderr.write(f"no such example: {', '.join(unknown)}\n")
        return 1
    failed = 0
    for name in names or list(known):
        example = known[name]
        outcome = run(example)
        code = int((example / "exit-code").read_text())
        if outcome.code != code or outcome.stderr:
            wanted = f"write {outcome.code} into {name}/exit-code first if that is meant"
            sys.stderr.write(f"{name}: exit code {outcome.code} instead of {code}; {wanted}\n{outcome.stderr}")
            failed = 1
            continue
        golden = example / "expected.txt"
        before = golden.read_text(encoding="utf-8") if golden.exists() else ""
        if before == outcome.stdout:
            continue
        golden.write_text(outcome.stdout, encoding="utf-8")
        lines = difflib.unified_diff(
            before.splitlines(keepends=True), outcome.stdout.splitlines(keepends=True), f"{name} before", f"{name} now"
        )
        sys.stdout.writelines(lines)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
