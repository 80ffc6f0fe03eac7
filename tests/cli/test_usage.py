"""A command line that cannot be understood: one form of error for all, and where the help is."""

from __future__ import annotations

import pytest

from kubectl_dra.cli.main import run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope"], "error: No such command 'nope'\nSee 'kubectl dra --help' for usage.\n"),
        (
            ["explain", "--nope"],
            "error: No such option: --nope (Possible options: --node, --token)\n"
            "See 'kubectl dra explain --help' for usage.\n",
        ),
        (
            ["devices", "-o", "xml"],
            "error: Invalid value for '--output' / '-o': 'xml' is not one of 'text', 'wide', 'json', 'yaml', 'name', "
            "'html'\nSee 'kubectl dra devices --help' for usage.\n",
        ),
    ],
    ids=["command", "option", "value"],
)
def test_an_error_says_what_and_where_the_help_is(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert capsys.readouterr() == ("", said)


def test_nothing_asks_for_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """As with kubectl: it is printed, and nothing went wrong."""
    assert run([]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: kubectl dra [OPTIONS] COMMAND [ARGS]...\n")
    assert err == ""
