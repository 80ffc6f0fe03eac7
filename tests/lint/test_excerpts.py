"""The line that is shown has the culprit in it, however far right it is."""

from __future__ import annotations

import json

import pytest

from kubectl_dra.report.lint_text import write_text
from tests.lint.support import report


@pytest.mark.parametrize("length", [0, 300, 390, 500, 5_000])
def test_the_caret_is_under_the_culprit(length: int, capsys: pytest.CaptureFixture[str]) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": "two"}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "annotations": {"a": "x" * length}},
        "spec": {"devices": {"requests": [request]}},
        "status": {},
    }
    found = report(json.dumps(claim))
    (finding,) = found.findings
    start = finding.column - 1 - finding.excerpt_start
    assert finding.excerpt[start:].startswith('"two"') and len(finding.excerpt) <= 400
    write_text(found, "never")
    lines = capsys.readouterr().out.splitlines()
    below = next(index for index, line in enumerate(lines) if set(line) <= set(" |^") and "^" in line)
    assert lines[below - 1][lines[below].index("^") :].startswith('"two"')
