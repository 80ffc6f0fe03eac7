"""Nothing is offered that was not proved: where no proof succeeds, the sentences that rest on one are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_dra.cli.main import run
from kubectl_dra.explain.remedies.prove import WhatIf
from tests.explain.test_nothing_unproved import RESTS_ON_A_PROOF
from tools.examples import arguments, examples

EXAMPLES = [example for example in examples() if (example / "exit-code").read_text().strip() == "1"]


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_without_proofs(example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(example)
    for name in ("proof", "quick_proof"):
        monkeypatch.setattr(WhatIf, name, lambda *_: None)
    for flags in ((), ("--full",)):
        run([*arguments(example), *flags])
        assert not RESTS_ON_A_PROOF.search(capsys.readouterr().out)


def test_the_sentences_are_there_with_proofs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the test above would find nothing whatever the answers say."""
    offering = 0
    for example in EXAMPLES:
        monkeypatch.chdir(example)
        run(arguments(example))
        offering += bool(RESTS_ON_A_PROOF.search(capsys.readouterr().out))
    assert offering > len(EXAMPLES) // 2
