"""What kubectl gets when it completes ``kubectl dra``."""

from __future__ import annotations

import pytest

from kubectl_dra.cli.complete import FILES, NO_FILES, complete, main


def test_commands_flags_and_values() -> None:
    assert complete(["ex"]) == (["explain"], NO_FILES)
    assert complete(["explain", "--sn"]) == (["--snapshot"], NO_FILES)
    assert complete(["explain", "-o", ""]) == (["text", "json", "yaml"], NO_FILES)
    assert complete(["explain", "-o", "j"]) == (["json"], NO_FILES)
    assert complete(["explain", "--snapshot", ""]) == ([], FILES)
    assert complete(["explain", "po"]) == (["pod/"], NO_FILES)


def test_the_program_ends_with_a_directive(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-dra", "explain", "--dev"])
    main()
    assert capsys.readouterr().out == "--devices\n:4\n"
