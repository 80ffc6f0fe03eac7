"""docs/versions.md names the releases that answers are compared with."""

from __future__ import annotations

import re

import pytest
import yaml

from kubectl_dra.api.releases import EXPLAINED, MODELLED
from tools.docs.links import DOCS, ROOT

PROVENANCE = yaml.safe_load((ROOT / "tests/conformance/data/provenance.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("command", "corpus", "modelled"),
    [
        ("`explain`, `fit`", "alloc", str(EXPLAINED)),
        ("`lint`", "manifests", str(MODELLED)),
    ],
)
def test_the_releases_that_are_exact(command: str, corpus: str, modelled: str) -> None:
    page = (DOCS / "versions.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith(f"| {command} |"))
    recorded = [PROVENANCE[f"{corpus}-1.{minor}.jsonl.gz"]["kubernetes"] for minor in range(34, 38)]
    assert f"| {modelled} |" in row
    assert re.findall(r"1\.\d+\.\d+", row) == recorded
