"""What is printed to be pasted runs kubectl and nothing else, whatever objects are called."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import kubectl_dra
from kubectl_dra.command import ClusterFlags, CommandEffect, CommandLine, deleting, kubectl
from kubectl_dra.explain.diagnosis import Look, NextStep
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.report.blocks import Para, ShellCommand, shell
from kubectl_dra.report.explain_words import Invocation, command, supposing
from tools.examples import EXAMPLES, FIT, ROOT
from tools.pasted import printed

HOSTILE: Final = (
    "--server=https://evil.example/{}",
    "x;touch pwn{};#",
    "$(touch pwn{})",
    "`touch pwn{}`",
    "a b{}",
    "'; touch pwn{}; '",
    "-{}",
    "a|touch pwn{}",
    "a>pwn{}",
    "UPPER{}",
)
PARSES: Final = """
while IFS= read -r line; do eval "parsed() { $line
}" 2>/dev/null || printf '%s\\n' "$line"; done <"$LISTED"
"""


@pytest.mark.parametrize("name", [name.format(1) for name in HOSTILE])
def test_no_look_names_what_no_object_can_be_called(name: str) -> None:
    asked = Invocation(("kubectl", "dra", "explain", "pod/a"))
    for look in Look:
        for fields in ((name, "", ""), ("a", name, ""), ("a", "b", name)):
            if fields[2] and look not in (Look.LOG, Look.LOG_BEFORE):
                continue
            shown = command(NextStep(look, *fields), asked)
            assert shown is None or shown.misnamed or name not in " ".join(shown.argv), (look, fields)
    for kind in ("free", "end", "untaint", "class"):
        tried = supposing([WhatIfChange("", kind, f"ns/{name}")], asked)
        assert tried is not None and tried.misnamed


def test_a_name_that_is_none_gives_a_sentence() -> None:
    told = shell((deleting("pod", "--all", "ns"),), ClusterFlags(), "Next")
    assert isinstance(told, Para) and not isinstance(told, ShellCommand)


def test_what_writes_is_marked_and_goes_to_the_cluster_alone() -> None:
    saved = ClusterFlags(("--snapshot", "my cluster.yaml"), saved=True)
    live = ClusterFlags(("--context", "prod"))
    ends, reads = deleting("pod", "a", "ns"), kubectl("dra", "explain", kind="pod", name="a", namespace="ns")
    told = shell((ends,), saved)
    assert isinstance(told, ShellCommand) and told.effect is CommandEffect.DESTROYS
    assert told.warning == "Destructive (in the cluster, not the snapshot)"
    assert told.text == "kubectl delete pod/a -n ns"
    told = shell((ends,), live)
    assert isinstance(told, ShellCommand) and told.text == "kubectl delete pod/a -n ns --context prod"
    told = shell((reads,), saved)
    assert isinstance(told, ShellCommand) and not told.warning
    assert told.text == "kubectl dra explain pod/a -n ns --snapshot 'my cluster.yaml'"


def test_several_commands_do_what_the_worst_does() -> None:
    label = kubectl("label", kind="pod", name="a", more=("x=y",), effect=CommandEffect.WRITES)
    told = ShellCommand((label, deleting("pod", "a", "ns")))
    assert told.effect is CommandEffect.DESTROYS and told.text.count(" && ") == 1


def _pages() -> Iterator[tuple[Path, str]]:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            # A command may go on in the next line, or in a here-document.
            if "\\\n" not in block and "<<" not in block and "'\n" not in block:
                yield from ((page, line) for line in printed(block))


def _answers() -> Iterator[tuple[Path, str]]:
    for folder in sorted((*EXAMPLES.iterdir(), *FIT.iterdir())):
        for name in ("expected.txt", "full.txt"):
            if (folder / name).exists():
                yield from ((folder, line) for line in printed((folder / name).read_text(encoding="utf-8")))


def test_each_printed_line_parses(tmp_path: Path) -> None:
    lines = [line for _, line in (*_pages(), *_answers())]
    assert len(lines) > 300
    listed = tmp_path / "lines"
    listed.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", PARSES], env={"LISTED": str(listed)}, capture_output=True, text=True, check=True, timeout=60
    )
    assert not done.stdout


def test_commands_of_examples_name_what_is_there() -> None:
    texts: dict[Path, str] = {}
    for folder, line in _answers():
        if folder not in texts:
            asked = [folder / word for word in (folder / "command").read_text("utf-8").split() if "." in word]
            texts[folder] = "\n".join(path.read_text("utf-8") for path in asked if path.is_file())
        about = re.findall(r"(?<= )(?:[a-z]+)/([a-z0-9.-]+)(?= |$)", line)
        names = [*about, *re.findall(r" -n (\S+)", line)]
        for name in names:
            if name != "kube-controller-manager" and "kube-system" not in line:
                assert re.search(rf"""(?<![\w.-]){re.escape(name)}(?![\w.])""", texts[folder]), (
                    folder.name,
                    line,
                    name,
                )


FREE_TEXTS: Final = (
    "kubectl-dra is not what",
    "cannot be run",
    "took more than",
    "template failed",
    "Written by `kubectl dra migrate plan`",
    "<testsuites",
)
"""Sentences about a program, and not lines to paste."""
CONSTANTS: Final = (
    "curl -fsSL {} | kubectl dra ... {}",
    "    kubectl dra {}  # {}",
    "Back: `kubectl label namespace NAMESPACE {}={} --overwrite`, or `{}-` for no word at all.",
    " About {}: kubectl dra migrate --explain {}.",
)
"""Commands whose words are ours, or quoted where they stand: a URL that was typed, a label's key, a code."""


def _strings(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if not re.search(r"(kubectl|helm|curl|envsubst) .*\{", text):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "{" in node.value:
            yield node.value


def test_no_command_is_text_with_names_in_it() -> None:
    """Commands are words (``kubectl_dra/command.py``), quoted once, and none has a name that no object can have."""
    package = Path(kubectl_dra.__file__).parent
    command = re.compile(r"(kubectl (dra )?|helm |curl |envsubst )(\{|[-a-z][a-zA-Z-]* [^.;)\"]*\{)")
    texts = {text for path in package.rglob("*.py") for text in _strings(path) if command.search(text)}
    assert texts >= {*CONSTANTS}
    assert not {text for text in texts - {*CONSTANTS} if not any(free in text for free in FREE_TEXTS)}


def test_words_are_quoted_once() -> None:
    assert str(CommandLine(("kubectl", "dra", "explain", "-f", "a b.yaml"))) == "kubectl dra explain -f 'a b.yaml'"
