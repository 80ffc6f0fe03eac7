"""A change is offered only where the scheduler's whole attempt takes the pod with it: without that proof it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cli.main import run
from kubectl_dra.explain.remedies import prove
from kubectl_dra.explain.remedies.prove import WhatIf
from tools.cases import FOLDER, cases_of
from tools.live.proved import proof_of, way_of


class Explained:
    """Explains a case of a file, as data."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._path = path
        self._capsys = capsys

    def __call__(self, file: str, name: str) -> dict[str, Any]:
        case = next(case for case in cases_of(FOLDER / f"{file}.yaml") if case.name == name)
        self._path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": case.objects}))
        run([*["explain", "-o", "json"], case.raw["explain"], "--complete", "--snapshot", str(self._path)])
        found: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return found


@pytest.fixture
def explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Explained:
    return Explained(tmp_path / "cluster.json", capsys)


def proofs(answer: dict[str, Any]) -> list[str]:
    found = [proof_of(cause) for cause in answer["causes"] if "proof" in cause["fix"]]
    return found + [way_of(way) for way in answer.get("fixes", ())]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("devices-held", "by running pods"),
        ("no-devices-on-eligible-nodes", "a node taint"),
        ("no-devices-on-eligible-nodes", "other pods have the cpu"),
        ("no-eligible-node", "a node selector that no node has"),
    ],
)
def test_what_filters_refuse_is_not_offered(
    file: str, name: str, explained: Explained, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert proofs(explained(file, name))
    monkeypatch.setattr(WhatIf, "_rejection", lambda *_: "refused")
    assert not proofs(explained(file, name))


@pytest.mark.parametrize(
    ("file", "name", "offered"),
    [
        (
            "no-devices-on-eligible-nodes",
            "without its selector the pod would make its spread too uneven",
            "leave pool=a out of spec.nodeSelector",
        ),
        (
            "devices-held",
            "the pod wants to be beside the one that holds the devices",
            "End pod default/eval (holds 2 devices, priority 0)",
        ),
    ],
)
def test_only_the_filters_keep_it_back(
    file: str, name: str, offered: str, explained: Explained, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The devices alone would do: without the filters the answer makes the offer."""
    assert offered not in json.dumps(explained(file, name))
    monkeypatch.setattr(WhatIf, "_rejection", lambda *_: None)
    assert offered in json.dumps(explained(file, name))


def test_it_says_where_it_stopped(explained: Explained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "REREAD_PER_STEP", 0.00001)
    answer = explained("devices-held", "the pod wants to be beside the one that holds the devices")
    assert any(note.startswith("not every change was tried") for note in answer["notes"])
