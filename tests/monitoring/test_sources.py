"""Names that are copied from sources, compared with the sources where they are on this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.monitoring.exposed import KUBELET

MODULES = Path(os.environ.get("GOMODCACHE") or Path.home() / "go" / "pkg" / "mod")
SOURCE = MODULES / "k8s.io" / "kubernetes@v1.36.4" / "pkg" / "kubelet" / "metrics" / "metrics.go"


@pytest.mark.skipif(not SOURCE.exists(), reason="k8s.io/kubernetes v1.36.4 is not in the Go module cache")
def test_the_kubelet_has_them() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    keys = dict(re.findall(r'^\s*(DRA\w+)\s*=\s*"([^"]+)"', text, re.MULTILINE))
    found: dict[str, tuple[str, ...]] = {}
    form = re.compile(
        r"(?:Subsystem:\s*DRASubsystem,\s*Name:\s*(?P<key>\w+)|BuildFQName\(\"\", DRASubsystem, \"(?P<name>\w+)\"\))"
        r".*?\[\]string\{(?P<labels>[^}]*)\}",
        re.DOTALL,
    )
    for match in form.finditer(text):
        name = match["name"] or keys[match["key"]]
        found[f"{keys['DRASubsystem']}_{name}"] = tuple(re.findall(r'"(\w+)"', match["labels"]))
    assert found == dict(KUBELET)
