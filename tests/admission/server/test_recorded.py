"""What a real API server answered to 12,700 manifests, all of them, on every run."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.conformance import manifests

RECORDED = Path(manifests.__file__).parent / "data" / "manifests.jsonl.gz"


def test_recorded_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert manifests.run([RECORDED]) == 0, capsys.readouterr().out[-4000:]
    assert capsys.readouterr().out == "pairs 1897 of 1897\nagree 2600 of 2600\n"


def test_recorded_answers_about_pods(capsys: pytest.CaptureFixture[str]) -> None:
    assert manifests.run([RECORDED.with_name("pod-manifests.jsonl.gz")]) == 0, capsys.readouterr().out[-4000:]
    assert capsys.readouterr().out == "pairs 507 of 507\nagree 700 of 700\n"


def test_recorded_answers_about_projected_volumes_and_admission(capsys: pytest.CaptureFixture[str]) -> None:
    assert manifests.run([RECORDED.with_name("pod-admission.jsonl.gz")]) == 0, capsys.readouterr().out[-4000:]
    assert capsys.readouterr().out.endswith("agree 236 of 236\n")


@pytest.mark.parametrize("release", ["1.34", "1.35", "1.36", "1.37"])
def test_recorded_answers_of_each_release(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    """New objects of every served version, changes of stored ones, statuses, pods; default gates and all gates."""
    assert manifests.run([RECORDED.with_name(f"manifests-{release}.jsonl.gz")]) == 0, capsys.readouterr().out[-4000:]


def test_recorded_answers_to_wild_changes(capsys: pytest.CaptureFixture[str]) -> None:
    assert manifests.run([RECORDED.with_name("manifests-wild.jsonl.gz")]) == 0, capsys.readouterr().out[-4000:]
    assert capsys.readouterr().out == "pairs 18 of 18\nagree 18 of 18\n"


def test_a_disagreement_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gzip.open(RECORDED, "rt") as stream:
        rejected, accepted = None, None
        for line in stream:
            case = json.loads(line)
            if case["expect"]["code"] == 422:
                rejected = rejected or case
            elif case["expect"]["accepted"]:
                accepted = accepted or case
    assert rejected is not None and accepted is not None
    wrong = {
        **rejected,
        "expect": {**rejected["expect"], "causes": [{"field": "spec.x", "reason": "FieldValueInvalid"}]},
    }
    swapped = {**accepted, "expect": rejected["expect"]}
    file = tmp_path / "wrong.jsonl"
    file.write_text("".join(json.dumps(case) + "\n" for case in (wrong, swapped)))
    assert manifests.run([file]) == 1
    out = capsys.readouterr().out
    assert "only expected: spec.x Invalid" in out
    assert out.endswith("pairs 0 of 2\nagree 1 of 2\n")
