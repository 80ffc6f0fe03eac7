"""The screen says of a pod that another layer keeps what ``explain`` says: who keeps it, first."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kubectl_dra.cli.flags import UiFlags
from kubectl_dra.cli.ui import SavedCluster
from kubectl_dra.ui.pages import answer
from kubectl_dra.ui.tables import Asked
from tools.cases import CASES, asked

CODES = [
    "kueue-waits",
    "kueue-deactivated",
    "no-scale-up",
    "node-coming",
    "gang-waits-for-queue",
    "new-node-without-devices",
]


@pytest.mark.parametrize("code", CODES)
def test_a_pod_that_another_layer_keeps_is_explained_by_it(code: str, tmp_path: Path) -> None:
    case = next(each for each in CASES if each.file == code)
    saved = tmp_path / "cluster.json"
    saved.write_text("\n---\n".join(map(json.dumps, asked(case).files["cluster.yaml"])))
    source = SavedCluster(UiFlags(snapshots=(str(saved),)))
    snapshot, settings, _ = source.read(cast(Any, SimpleNamespace()))
    seen = cast(Any, SimpleNamespace(snapshot=snapshot, settings=settings))
    kind, _, name = case.raw["explain"].partition("/")
    shown = answer(source, seen, Asked(kind, "default", name), ())
    assert [finding.kind.code for finding in shown.findings] == case.raw["expect"]["causes"]
