"""All recorded answers of Kubernetes, on every run."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from tests.conformance import alloc, conversions, pods, scheduled
from tools.recorder.recorded import lines
from tools.scheduling import gangs

DATA = Path(__file__).parent / "data"


def test_allocations(capsys: pytest.CaptureFixture[str]) -> None:
    assert alloc.run([DATA / "alloc.jsonl.gz"]) == 0, capsys.readouterr().out[-4000:]
    assert capsys.readouterr().out == "agree 2500 of 2500\n"


@pytest.mark.parametrize(("release", "count"), [("1.34", 320), ("1.35", 380), ("1.36", 440), ("1.37", 670)])
def test_allocations_of_each_release(release: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert alloc.run([DATA / f"alloc-{release}.jsonl.gz"]) == 0, capsys.readouterr().out[-4000:]
    assert capsys.readouterr().out == f"agree {count} of {count}\n"


def test_what_a_real_scheduler_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert scheduled.run([DATA / "scheduled.jsonl.gz"]) == 0, capsys.readouterr().out[-4000:]
    assert capsys.readouterr().out == "agree 80 of 80\n"


def test_a_disagreement_is_seen() -> None:
    case = next(lines(DATA / "alloc.jsonl.gz"))
    attempts = alloc.attempts(case)
    expected = {"node": "node-0", "results": [{"devices": {"results": [], "config": []}}]}
    assert alloc.disagreement(attempts[0], expected)


def test_conversions(capsys: pytest.CaptureFixture[str]) -> None:
    assert conversions.run([DATA / "conversions.jsonl.gz"], None) == 0, capsys.readouterr().out[-4000:]


@pytest.mark.parametrize("release", ["1.34", "1.35", "1.36", "1.37"])
def test_conversions_of_each_release(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert conversions.run([DATA / f"conversions-{release}.jsonl.gz"], None) == 0, capsys.readouterr().out[-4000:]


def test_whole_pods_as_the_scheduler_sees_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert pods.run([DATA / "pods.jsonl.gz"], Namespace(library=True)) == 0, capsys.readouterr().out[-4000:]
    assert capsys.readouterr().out.endswith("agree 268 of 268\n")


def test_whole_pods_as_explain_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert pods.run([DATA / "pods.jsonl.gz"], Namespace(library=False)) == 0, capsys.readouterr().out[-4000:]
    assert capsys.readouterr().out.endswith("agree 277 of 277\n")


@pytest.mark.parametrize(
    ("name", "count"),
    [("pod-releases", 178), ("pod-profiles", 45), ("pod-node-resources", 32), ("pod-alpha-gates", 60)],
)
def test_pods_of_other_releases_profiles_and_gates(name: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert pods.run([DATA / f"{name}.jsonl.gz"], Namespace(library=False)) == 0, capsys.readouterr().out[-4000:]
    assert capsys.readouterr().out.endswith(f"agree {count} of {count}\n")


def test_gangs(capsys: pytest.CaptureFixture[str]) -> None:
    assert gangs.run([DATA / "gangs.jsonl.gz"]) == 0, capsys.readouterr().out[-4000:]
    assert "agrees " in capsys.readouterr().out
