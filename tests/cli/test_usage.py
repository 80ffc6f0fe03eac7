"""A command line that cannot be understood: one form of error for all, and where the help is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from kubectl_dra.cli import main
from kubectl_dra.cli.command_line import _LISTED_ONCE
from kubectl_dra.cli.main import COMMANDS, everything, run
from tests.ran import ran


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope"], "error: there is no command \"nope\"\nSee 'kubectl dra --help' for all commands.\n"),
        (
            ["explain", "--nope"],
            "error: No such option: --nope (Possible options: --complete, --node, --token)\n"
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("get devices --node n", "write: kubectl dra devices --node n"),
        ("get resourceslices", "write: kubectl dra devices"),
        ("get pods -A", "write: kubectl dra explain -A"),
        ("describe pod x -n ml", "write: kubectl dra explain pod x -n ml"),
        ("describe claim/x", "write: kubectl dra explain claim/x"),
        ("get resourceclaims -A", "write: kubectl dra claims -A"),
        ("get nodes", "write: kubectl dra top nodes"),
        ("list taints", "write: kubectl dra taint --list"),
        ("show lint a.yaml", "write: kubectl dra lint a.yaml"),
        ("why pod/x", "write: kubectl dra explain pod/x"),
        ("validate 'a b.yaml'", "write: kubectl dra lint 'a b.yaml'"),
        ("pod/x -n ml", "write: kubectl dra explain pod/x -n ml"),
        ("expain x", "did you mean: kubectl dra explain x"),
    ],
)
def test_what_kubectl_and_others_call_it(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, *rest = shlex.split(words)
    assert run([first, *rest]) == 2
    assert capsys.readouterr() == ("", f'error: there is no command "{first}"; {said}\n')


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (
            "share deploy/web -n ml --context prod",
            "kubectl get deploy/web -n ml --context prod -o yaml | kubectl dra share -f - -n ml --context prod",
        ),
        (
            "share statefulset web --snapshot c.yaml",
            "kubectl get statefulset/web -o yaml | kubectl dra share -f - --snapshot c.yaml",
        ),
        ("fit --kubeconfig k web", "kubectl dra fit deployment/web --kubeconfig k"),
        ("fit web.yaml --snapshot c.yaml --complete", "kubectl dra fit -f web.yaml --snapshot c.yaml --complete"),
        ("claims gpu -n ml --snapshot c.yaml", "kubectl dra explain claim/gpu -n ml --snapshot c.yaml"),
    ],
)
def test_what_to_write_instead_asks_the_same_cluster(
    words: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shlex.split(words)) == 2
    assert f" write: {instead}\n" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["$(touch pwned)", "a/b/c", "-n x", "UPPER"])
def test_nothing_to_paste_for_what_no_object_is_called(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", "--", name]) == 2
    assert "leave it out" in capsys.readouterr().err


def test_nothing_asks_for_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    """As with kubectl: it is printed, and nothing went wrong."""
    assert run([]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: kubectl dra [OPTIONS] COMMAND [ARGS]...\n")
    assert err == ""


def test_a_call_makes_only_the_command_that_it_names() -> None:
    everything = {entry.name for entry in main.everything().registered_commands}
    for name in everything:
        assert name
        assert [*main._called([name, "--help"]).commands] == [name]
    assert len(everything) == 19
    assert {*main._called(["--version"]).commands} == everything
    for arguments in ([], ["--help"], ["-h"]):
        assert {*main._called(arguments).commands} == everything


def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "lint"]) == 0
    told = capsys.readouterr().out
    assert run(["lint", "--help"]) == 0
    assert told == capsys.readouterr().out
    assert run(["help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: kubectl dra [OPTIONS] COMMAND")
    assert run(["help", "nope"]) == 2
    assert 'there is no command "nope"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lint", "-n", "ml", "a.yaml"], "--namespace goes with --live or --snapshot"),
        (["lint", "--rules", "-o", "json"], "--rules and --explain print text, not json"),
        (["lint", "--explain", "DRA101", "-o", "sarif"], "--rules and --explain print text, not sarif"),
        (["lint", "-", "--snapshot", "-"], "standard input can be read once"),
        (["migrate", "-", "--snapshot", "-"], "standard input can be read once"),
        (["snapshot", "-o", "json"], "-o is the file here: -o cluster.json"),
        (["snapshot", "-o", "yaml"], "-o is the file here: -o cluster.yaml"),
    ],
)
def test_flags_that_cannot_have_an_effect(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert (out, said in err, err.count("\n")) == ("", True, 1)


def test_the_connection_flags_are_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """As with kubectl: the help of a command has those that people use, and says where the others are."""
    assert run(["options"]) == 0
    told = capsys.readouterr().out
    for command in main.COMMANDS:
        assert run([command, "--help"]) == 0
        page = capsys.readouterr().out
        if command in ("completion", "demo"):
            # They ask no cluster.
            assert "--context" not in page and "options" not in page.lower().split("options:")[1]
            continue
        assert "--context" in page and "--insecure-skip-tls-verify" not in page
        assert 'Use "kubectl dra options" for the other flags' in page
    for flag in ("--kubeconfig", "--context", "--server", "--as-group", "--insecure-skip-tls-verify", "-v=LEVEL"):
        assert flag in told
    # They work whether they are listed or not.
    assert run(["devices", "--as-group", "x", "--request-timeout", "soon"]) == 2
    assert "--request-timeout" in capsys.readouterr().err


def test_help_is_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    """What is special about a command comes first, and each flag once."""
    for command in ("explain", "lint", "taint", "devices", "migrate"):
        assert run([command, "--help"]) == 0
        page = capsys.readouterr().out
        own, output, cluster = (page.index(f"\n{title}:\n") for title in ("Options", "Output", "The cluster"))
        assert own < output < cluster
        assert own < page.index(" --help ") < output < page.index(" --output ") < cluster < page.index(" --kubeconfig ")
        flags = re.findall(r"^  (?:-\w, )?(--[\w-]+)", page[own:], re.MULTILINE)
        assert len(flags) == len({*flags}) > 15


@pytest.mark.parametrize("columns", [80, 120])
def test_summaries_of_commands_are_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run(["--help"]) == 0
    lines = capsys.readouterr().out.split("Commands:\n")[1].splitlines()
    assert [line.split()[0] for line in lines] == list(main.COMMANDS)
    assert not [line for line in lines if line.endswith("...") or len(line) > 80]


def test_help_begins_with_documentation_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in main.COMMANDS.items():
        if name == "completion":
            continue
        assert run([name, "--help"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert any(line.startswith("Documentation: https://") and line.endswith(command.page) for line in lines[:4])
        assert lines.index("  Examples:") < 8
        assert (Path(__file__).parents[2] / "docs" / command.page).exists()


def test_values_of_repeated_flags_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["claims", "--state", "idle"]) == 2
    assert "'idle' is not one of 'pending', 'no-pod'" in capsys.readouterr().err


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_help_breaks_no_word_and_is_no_wider_than_the_terminal(
    name: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of a flag's text nor of an address, and nothing of what is in the file is lost."""
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = ran(name, "--help")
    root: Any = typer.main.get_command(everything())
    command = root.commands[name]
    listed = [parameter for parameter in command.params if parameter.name not in _LISTED_ONCE]
    shown = [parameter.help for parameter in listed if parameter.help and not getattr(parameter, "hidden", False)]
    assert command.epilog in out
    assert {*" ".join(shown).split()} <= {*out.split(), *re.sub(r"-\n +", "-", out).split()}
    assert not [line for line in out.splitlines() if len(line) > columns and "https://" not in line]
    written = Path(main.__file__).with_name("help").joinpath(f"{name}.txt").read_text(encoding="utf-8")
    prose = re.sub(r" \\\n +", " ", out).replace("\n    #   ", " ")
    assert "".join(written.replace("\b", "").split()) in "".join(prose.split())


SAVED = str(Path(__file__).parents[2] / "examples" / "explain" / "all-held" / "cluster.yaml")


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("top", "nodez"), "did you mean nodes?"),
        (("completion", "zhs"), "did you mean zsh?"),
        (("completion", "fishh"), "did you mean fish?"),
        (("devices", "-o", "jsn"), "did you mean json?"),
        (("claims", "--state", "startin"), "did you mean starting?"),
        (("demo", "all-hold"), "did you mean all-held?"),
        (("demo", "held-devices"), "did you mean all-held,"),
    ],
)
def test_a_value_that_is_nearly_one_is_guessed(words: tuple[str, ...], near: str) -> None:
    code, _, err = ran(*words)
    assert code == 2 and near in err


def test_a_value_like_none_is_not_guessed() -> None:
    assert "did you mean" not in ran("completion", "tcsh")[2] + ran("demo", "nosuch")[2]


@pytest.mark.parametrize(
    ("typed", "by"),
    [
        ("node", "nodes"),
        ("no", "nodes"),
        ("class", "classes"),
        ("deviceclass", "classes"),
        ("ns", "namespaces"),
        ("namespace", "namespaces"),
        ("owner", "owners"),
        ("claim", "claims"),
        ("pod", "claims"),
        ("pods", "claims"),
    ],
)
def test_top_takes_the_words_that_kubectl_takes(typed: str, by: str) -> None:
    assert ran("top", typed, "--snapshot", SAVED) == ran("top", by, "--snapshot", SAVED)
    # A value of a flag is no such word.
    assert f"there is no namespace {typed};" in ran("top", "owners", "-n", typed, "--snapshot", SAVED)[2]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("completion", "demo", "lsp", "ui")])
def test_without_a_cluster_only_a_flag_that_the_command_has_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    _, out, err = ran(name)
    if "there is no kubeconfig" in out + err:
        assert ("--snapshot" in out + err) == ("--snapshot" in ran(name, "--help")[1])
