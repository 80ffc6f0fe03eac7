"""Candidates that depend on no cluster."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kubectl_dra.cli.completion.answer import DIRECTORIES, FILES, KEEP_ORDER, NO_FILES, NO_SPACE, complete
from kubectl_dra.cli.completion.words import wanted


def names(*words: str) -> list[str]:
    """The candidates without their meanings."""
    return [candidate.partition("\t")[0] for candidate in complete(words)[0]]


@pytest.mark.parametrize(
    ("words", "candidates", "directive"),
    [
        (("ex",), ["explain"], NO_FILES),
        (("explain", "--sn"), ["--snapshot"], NO_FILES),
        (("explain", "-o", ""), ["text", "json", "yaml", "name", "html"], NO_FILES),
        (("explain", "-o", "j"), ["json"], NO_FILES),
        (("explain", "--output=j"), ["json"], NO_FILES),
        (("--version", "li"), ["lint"], NO_FILES),
        (("lint", "--fail-on=e"), ["error"], NO_FILES),
        (("explain", "--snapshot", ""), [], FILES),
        (("lint", ""), [], FILES),
        (("lint", "a.yaml", ""), [], FILES),
        (("lint", "-k", ""), [], DIRECTORIES),
        (("explain", "--token", ""), [], NO_FILES),
        (("explain", "--feature-gates", "DRAPri"), ["DRAPrioritizedList="], NO_FILES | NO_SPACE),
        (("explain", "--feature-gates", "DRAPrioritizedList=f"), ["DRAPrioritizedList=false"], NO_FILES | NO_SPACE),
        (("explain", "--what-if", "to"), ["toleration="], NO_FILES | NO_SPACE | KEEP_ORDER),
        (("lint", "--kubernetes-version", "1.37"), ["1.37"], NO_FILES | KEEP_ORDER),
        (("completion", "f"), ["fish"], NO_FILES),
        (("can", "un"), ["untaint"], NO_FILES | KEEP_ORDER),
        (("demo", "gau"), ["gaudi-too-few"], NO_FILES | KEEP_ORDER),
        (("no-such-command", ""), [], NO_FILES),
        (("explain", "--no-such-flag=", ""), ["pod/", "claim/"], NO_FILES | NO_SPACE | KEEP_ORDER),
        (("lint", "--", "--sn"), [], FILES),
    ],
)
def test_candidates(
    words: tuple[str, ...], candidates: list[str], directive: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECTL_DRA_COMPLETION_TIMEOUT", "0")
    found, how = complete(words)
    assert [candidate.partition("\t")[0] for candidate in found] == candidates
    # A comma-separated gate goes on with "=" only before it has one.
    assert how == (directive & ~NO_SPACE if candidates == ["DRAPrioritizedList=false"] else directive)


def test_every_command_is_offered() -> None:
    import typer.main

    from kubectl_dra.cli.main import everything

    root = typer.main.get_command(everything())
    commands = {name for name, command in root.commands.items() if not command.hidden}  # type: ignore[attr-defined]
    assert set(names("")) == commands


def test_a_flag_that_is_given_is_not_offered_again_unless_it_repeats() -> None:
    assert "--output" not in names("explain", "-o", "json", "--")
    assert "--snapshot" in names("explain", "--snapshot", "a", "--")


def test_lists_go_on_after_a_comma() -> None:
    offered = names("lint", "--select", "DRA101,DRA10")
    assert "DRA101,DRA102" in offered
    assert "DRA101,DRA101" not in offered


def test_what_was_typed_before_is_understood() -> None:
    asked = wanted(["explain", "-n", "ml", "--context=prod", "-ojson", "--verify", "pod/a", "--request", ""])
    assert asked.kind == "request"
    assert asked.given == {"--namespace": ("ml",), "--context": ("prod",), "--output": ("json",), "--verify": ("",)}
    assert asked.arguments == ("pod/a",)


def test_static_words_import_neither_typer_nor_the_cluster() -> None:
    code = (
        "import sys, os; from kubectl_dra.cli.completion import answer; answer.complete(['explain', '--']);"
        "print([m for m in ('typer', 'click', 'yaml', 'kubernetes', 'rich', 'json', 'kubectl_dra.cli.main') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_program_ends_with_a_directive() -> None:
    asked = ["explain", "--dev"]
    for program in (["-m", "kubectl_dra.cli.completion.answer"], ["-m", "kubectl_dra", "__complete"]):
        done = subprocess.run([sys.executable, *program, *asked], capture_output=True, text=True, check=True)
        assert done.stdout == "--devices\tList every device and the first reason why it is refused\n:4\n"
        assert done.stderr == ""
