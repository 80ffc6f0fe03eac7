"""Puts the cases to kubectl and writes down its answers; compares those of this program, and of ``kubernetes``.

python -m tools.kubeconfigs record [KUBECTL]   ask kubectl and write the corpus
python -m tools.kubeconfigs compare            ask this program, and count
python -m tools.kubeconfigs package            ask the package kubernetes, and count
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tools.kubeconfigs import clients
from tools.kubeconfigs.cases import cases
from tools.kubeconfigs.corpus import DIFFERENT, Row, read, write
from tools.kubeconfigs.lab import Lab


def main(words: list[str]) -> None:
    """Do what the first word says."""
    with tempfile.TemporaryDirectory() as directory:
        lab = Lab(Path(directory))
        if words[:1] == ["record"]:
            program = words[1] if len(words) > 1 else "/usr/bin/kubectl"
            rows = []
            for case in cases():
                clients.lay_out(lab, case)
                rows.append(Row(case, clients.kubectl(lab, case, program), clients.version(program)))
            write(rows)
        else:
            counts: Counter[str] = Counter()
            for row in read():
                clients.lay_out(lab, row.case)
                got = clients.ours(lab, row.case) if words[:1] == ["compare"] else clients.package(lab, row.case)
                verdict = "not asked" if got is None else row.verdict(got)
                counts[verdict] += 1
                if verdict not in ("same request", "both refuse") and got is not None:
                    reason = DIFFERENT.get(row.case.name, "")
                    print(f"{verdict}: {row.case.name} {reason}\n  {row.kubectl}\n  {got}")
            print(dict(counts))


main(sys.argv[1:])
