"""``python -m tools.docs.examples [NAME…]``: rewrites expected.txt and full.txt, and shows what changed.

Without names the samples on the pages of causes are rewritten too.

Only for a change that a person has read and wants: the golden files say what users see. The exit code of an
example is never rewritten: with a different one nothing is written, until somebody changes ``exit-code`` by hand.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.docs.causes import write_all
from tools.examples import GOLDENS, ROOT, examples, fit_examples, run


def main(names: list[str]) -> int:
    """Rewrites the golden files of the named examples, or of all; 1 if one could not be."""
    of_fit = {example.name: example for example in fit_examples()}
    known = {example.name: example for example in examples()} | of_fit
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.stderr.write(f"no such example: {', '.join(unknown)}\n")
        return 1
    written = [
        _update(known[name], golden, flags)
        for name in names or known
        for golden, flags in GOLDENS.items()
        if name not in of_fit or not flags
    ]
    if not names:
        # What changes there changes the samples of causes as well.
        write_all(ROOT / "docs" / "causes")
    return int(not all(written))


def _update(example: Path, golden: str, flags: Sequence[str]) -> bool:
    """Rewrites one golden file; False where the exit code is another one."""
    outcome = run(example, *flags)
    code = int((example / "exit-code").read_text())
    if outcome.code != code or outcome.stderr:
        wanted = f"write {outcome.code} into {example.name}/exit-code first if that is meant"
        sys.stderr.write(f"{example.name}: exit code {outcome.code} instead of {code}; {wanted}\n{outcome.stderr}")
        return False
    file = example / golden
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    if before != outcome.stdout:
        file.write_text(outcome.stdout, encoding="utf-8")
        old, new = before.splitlines(keepends=True), outcome.stdout.splitlines(keepends=True)
        name = f"{example.name}/{golden}"
        sys.stdout.writelines(difflib.unified_diff(old, new, f"{name} before", f"{name} now"))
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
