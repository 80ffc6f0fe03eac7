"""What is printed to be pasted runs kubectl and nothing else, whatever objects are called."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

import kubectl_dra
from kubectl_dra.command import ClusterFlags, CommandEffect, CommandLine, deleting, kubectl
from kubectl_dra.explain.diagnosis import Look, NextStep
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.report.blocks import Para, ShellCommand, shell
from kubectl_dra.report.explain_words import Invocation, command, supposing
from tests.cli.conftest import Ran
from tools.examples import EXAMPLES, FIT, ROOT

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
PRINTED: Final = re.compile(r"^\s*(?:[A-Z][\w ,-]*(?: \([\w ,]+\))?: )?(?:\$ )?(?P<line>kubectl .*|cd .*)$")
"""A line that starts like a command, perhaps with what it is before it."""
FIELDS: Final = ("name", "namespace", "nodeName", "driver", "pool", "deviceClassName", "resourceClaimName", "request")
SHELLS: Final = [shell for shell in ("bash", "zsh") if shutil.which(shell)]
PLAYED: Final = (
    "all-held",
    "prepare-fails",
    "driver-gone-from-node",
    "taint-rule-evicts-all",
    "mixed-fleet",
)
QUESTIONS: Final = (
    ("explain",),
    ("explain", "-A", "--full"),
    ("claims",),
    ("devices",),
    ("top", "owners"),
    ("drivers",),
    ("taint", "--list"),
)
RECORDER: Final = '#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done >>"$RECORD"\n'
EACH: Final = """
command_not_found_handle() { printf '%s\\n' "$1" >>"$OTHER"; }
command_not_found_handler() { printf '%s\\n' "$1" >>"$OTHER"; }
while IFS= read -r line; do eval "$line" || printf 'failed: %s\\n' "$line" >>"$OTHER"; done <"$LISTED"
"""
PARSES: Final = """
while IFS= read -r line; do eval "parsed() { $line
}" 2>/dev/null || printf '%s\\n' "$line"; done <"$LISTED"
"""


def _printed(text: str) -> list[str]:
    return [match["line"] for line in text.splitlines() if (match := PRINTED.match(line))]


def _renamed(items: list[dict[str, Any]]) -> dict[str, str]:
    """A hostile name for each name in these objects."""
    names: dict[str, str] = {}

    def look(value: Any) -> None:
        if isinstance(value, list):
            for entry in value:
                look(entry)
        elif isinstance(value, dict):
            for field, entry in value.items():
                if field in FIELDS and isinstance(entry, str) and entry:
                    names.setdefault(entry, HOSTILE[len(names) % len(HOSTILE)].format(len(names)))
                look(entry)

    look(items)
    return names


def _with_names(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_with_names(entry, names) for entry in value]
    if isinstance(value, dict):
        return {
            field: names.get(entry, entry) if field in FIELDS and isinstance(entry, str) else _with_names(entry, names)
            for field, entry in value.items()
        }
    return value


@pytest.mark.parametrize("name", PLAYED)
def test_names_of_strangers_run_nothing(name: str, dra: Callable[..., Ran], tmp_path: Path) -> None:
    (source,) = (EXAMPLES / name).glob("cluster.*")
    saved = yaml.load(source.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    saved["items"] = _with_names(saved["items"], _renamed(saved["items"]))
    snapshot = tmp_path / "its cluster;.json"
    snapshot.write_text(json.dumps(saved))
    lines = [line for words in QUESTIONS for line in _printed(dra(*words, "--snapshot", str(snapshot)).out)]
    assert lines
    assert not [line for line in lines if "evil.example" in line]
    for program in SHELLS:
        _only_kubectl(program, lines, tmp_path / program)


def _only_kubectl(program: str, lines: list[str], folder: Path) -> None:
    here, path = folder / "here", folder / "bin"
    here.mkdir(parents=True)
    path.mkdir()
    (path / "kubectl").write_text(RECORDER)
    (path / "kubectl").chmod(0o755)
    listed = folder / "lines"
    listed.write_text("".join(f"{line}\n" for line in lines))
    environment = {"PATH": str(path), "RECORD": str(folder / "words"), "OTHER": str(folder / "other")}
    found = shutil.which(program)
    assert found is not None
    subprocess.run([found, "-c", EACH], cwd=here, env={**environment, "LISTED": str(listed)}, check=True, timeout=60)
    other = folder / "other"
    assert not other.exists() or not other.read_text()
    assert not [*here.iterdir()]
    words = (folder / "words").read_text().splitlines() if lines else []
    assert not [word for word in words if word.startswith("--server")]


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
                yield from ((page, line) for line in _printed(block))


def _answers() -> Iterator[tuple[Path, str]]:
    for folder in sorted((*EXAMPLES.iterdir(), *FIT.iterdir())):
        for name in ("expected.txt", "full.txt"):
            if (folder / name).exists():
                yield from ((folder, line) for line in _printed((folder / name).read_text(encoding="utf-8")))


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


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "{" in node.value:
            yield node.lineno, node.value


@pytest.mark.parametrize("folder", ["report", "cli", "usage", "taint", "ui", "fit", "explain", "drivers"])
def test_no_command_is_text_with_names_in_it(folder: str) -> None:
    package = Path(kubectl_dra.__file__).parent
    for path in (package / folder).rglob("*.py"):
        if "migrate" in path.name or "migrate" in path.parent.name:
            continue
        for line, text in _strings(path):
            named = re.search(r'kubectl (?:dra [a-z]|[a-z])[a-z-]* [^.;)"]*\{', text)
            assert not named or "<testsuites" in text, f"{path}:{line}: {text}"


def test_words_are_quoted_once() -> None:
    assert str(CommandLine(("kubectl", "dra", "explain", "-f", "a b.yaml"))) == "kubectl dra explain -f 'a b.yaml'"
