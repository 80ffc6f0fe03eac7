"""Options that commands share: every command on a cluster has the connection flags, and each is heeded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main
from typer.testing import CliRunner

from kubectl_dra.cli.command_line import ClusterCommand
from kubectl_dra.cli.main import everything
from kubectl_dra.cli.options import ConnectionFlags
from tests.cli.conftest import Dra
from tools.docs.commands import commands

FLAGS = {
    "--kubeconfig=k": ConnectionFlags(kubeconfig="k"),
    "--context=c": ConnectionFlags(context="c"),
    "--cluster=c": ConnectionFlags(cluster="c"),
    "--user=u": ConnectionFlags(user="u"),
    "--server=s": ConnectionFlags(server="s"),
    "-s s": ConnectionFlags(server="s"),
    "-ss": ConnectionFlags(server="s"),
    "-s=s": ConnectionFlags(server="s"),
    "-s=s=t": ConnectionFlags(server="s=t"),
    "--server=s=t": ConnectionFlags(server="s=t"),
    "--token=t": ConnectionFlags(token="t"),
    "--as=a": ConnectionFlags(as_user="a"),
    "--as-group=g": ConnectionFlags(as_groups=("g",)),
    "--as-group=g --as-group=h": ConnectionFlags(as_groups=("g", "h")),
    "--as-uid=u": ConnectionFlags(as_uid="u"),
    "--insecure-skip-tls-verify": ConnectionFlags(insecure_skip_tls_verify=True),
    "--insecure-skip-tls-verify=true": ConnectionFlags(insecure_skip_tls_verify=True),
    "--insecure-skip-tls-verify=false": ConnectionFlags(),
    "--tls-server-name=n": ConnectionFlags(tls_server_name="n"),
    "--request-timeout=5s": ConnectionFlags(request_timeout="5s"),
    "": ConnectionFlags(),
}


def received(words: list[str], kind: type[ClusterCommand] = ClusterCommand) -> ConnectionFlags:
    """What a command of this kind finds; it has a flag of its own and an argument as well."""
    found: list[ConnectionFlags] = []
    own = typer.Typer(add_completion=False)

    @own.command(cls=kind)
    def command(context: typer.Context, path: str, own: bool = False) -> None:
        assert (path, own) == ("here", True)
        found.append(context.obj)

    result = CliRunner().invoke(own, ["--own", *words, "here"])
    assert result.exit_code == 0, result.output
    return found[0]


@pytest.mark.parametrize("flags", FLAGS)
def test_each_flag_reaches_the_connection(flags: str) -> None:
    assert received(flags.split()) == FLAGS[flags]


def test_a_command_may_have_its_own_time_limit() -> None:
    class Quick(ClusterCommand):
        request_timeout = "3s"

    assert received([], Quick) == ConnectionFlags(request_timeout="3s")
    assert received(["--request-timeout=9s"], Quick) == ConnectionFlags(request_timeout="9s")
    assert received([]) == ConnectionFlags(request_timeout="1m")


def test_every_command_that_asks_a_cluster_has_all_of_them() -> None:
    root: Any = typer.main.get_command(everything())
    for name, command in root.commands.items():
        names = [parameter.name for parameter in command.params]
        if name in ("completion", "demo"):
            assert "kubeconfig" not in names
        else:
            expected = list(ConnectionFlags.__struct_fields__)
            assert names[-len(expected) :] == expected, name


@pytest.mark.parametrize(
    "words",
    [
        ("devices", "--snapshot", ""),
        ("lint", ""),
        ("lint", "a.yaml", ""),
        ("lint", "-k", ""),
        ("lint", "a.yaml", "--snapshot="),
        ("migrate", ""),
        ("migrate", "-k="),
        ("explain", "-f", "", "--snapshot", "a.yaml"),
    ],
)
def test_an_empty_path_is_not_the_current_directory(dra: Dra, words: tuple[str, ...]) -> None:
    Path("a.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n")
    ran = dra(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: a path is empty: is a variable of the shell not set? The current directory is .\n"


@pytest.mark.parametrize("words", [("-o=json",), ("-o", "json"), ("-ojson",), ("--output=json",)])
def test_every_form_that_kubectl_takes(dra: Dra, words: tuple[str, ...]) -> None:
    Path("a.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n")
    assert '"kind": "LintReport"' in dra("lint", "a.yaml", *words).out


def test_a_value_that_a_flag_cannot_have_and_what_follows_two_hyphens(dra: Dra) -> None:
    Path("-o=json").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n")
    ran = dra("lint", "--allow-empty=maybe", "a.yaml")
    assert ran.code == 2 and "--allow-empty" in ran.err
    assert "1 file" in dra("lint", "--", "-o=json").out


def test_flags_of_several_commands_have_one_order() -> None:
    """In each help and page: first those that everybody knows from kubectl, and those of the cluster last."""
    orders = {
        one.name: [
            parameter.opts[0]
            for parameter in one.command.get_params(one.context)
            if parameter.param_type_name == "option"
        ]
        for one in commands()
        if not hasattr(one.command, "list_commands")
    }
    for name, flags in orders.items():
        for other, known in orders.items():
            shared = {*flags} & {*known}
            assert [flag for flag in flags if flag in shared] == [flag for flag in known if flag in shared], (
                name,
                other,
            )
    for first in ("--filename", "--namespace"):
        firsts = {flags[0] for flags in orders.values() if first in flags}
        assert firsts <= {"--filename", "--namespace"}
