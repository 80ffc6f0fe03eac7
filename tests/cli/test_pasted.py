"""What is printed to be pasted runs kubectl and nothing else, whatever objects are called."""

from __future__ import annotations

import ast
import html
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

import kubectl_dra
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cli.main import COMMANDS
from kubectl_dra.command import ClusterFlags, CommandEffect, CommandLine, deleting, kubectl
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.report.blocks import Para, ShellCommand, shell
from kubectl_dra.report.explain_commands import Invocation, command, supposing
from kubectl_dra.taint.result import untainting
from tests.golden import cases, pages
from tests.ran import ran
from tools.api_server import kubeconfig
from tools.command_runs import codes
from tools.docs import console
from tools.examples import ROOT, arguments, examples, fit_examples
from tools.fuzz.examples import examples as served_examples
from tools.fuzz.served import Served
from tools.hostile_server import HostileServer
from tools.kubectl_server import KubectlServer
from tools.pasted import SHELLS, amid, executed, inline, marked, printed, typed

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
    again = shell((CommandLine(("kubectl", "dra", "fit", "-f", "-")),), ClusterFlags(), "Next")
    assert isinstance(again, ShellCommand) and again.heading == "Next, with the same standard input"
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
    told = shell((untainting([DeviceID("d", "p", "gpu-0")]),), live, "Back into service")
    assert isinstance(told, ShellCommand) and told.heading == "Back into service, writes"


def test_several_commands_do_what_the_worst_does() -> None:
    label = kubectl("label", kind="pod", name="a", more=("x=y",), effect=CommandEffect.WRITES)
    told = ShellCommand((label, deleting("pod", "a", "ns")))
    assert told.effect is CommandEffect.DESTROYS and told.text.count(" && ") == 1


class Printed(NamedTuple):
    """A command that an output offers: where, the question's folder and words, and the words before the command."""

    where: str
    folder: Path
    asked: Sequence[str]
    line: str
    before: str

    @property
    def files(self) -> list[Path]:
        """What the question names."""
        return [self.folder / word for word in self.asked if "." in word and (self.folder / word).is_file()]

    @property
    def snapshot(self) -> Path | None:
        """That of the question."""
        return self.folder / self.asked[self.asked.index("--snapshot") + 1] if "--snapshot" in self.asked else None


def _outputs() -> Iterator[tuple[str, Path, list[str], str]]:
    """Each output that is kept, after the folder and the words of its question."""
    for folder in (*examples(), *fit_examples()):
        for name in ("expected.txt", "full.txt"):
            if (folder / name).exists():
                text = (folder / name).read_text(encoding="utf-8")
                yield f"{folder.name}/{name}", folder, arguments(folder), text
    for case in cases.CASES:
        for columns in cases.WIDTHS:
            text = cases.path(case, columns).read_text(encoding="utf-8")
            yield f"{case.name} {columns}", ROOT / case.folder, case.words.split(), text
    for page in sorted((ROOT / "docs").glob("*.md")):
        for block in console.blocks(page.read_text(encoding="utf-8")):
            for step in block.steps if block.where != console.CLUSTER else ():
                yield page.name, ROOT / block.where, shlex.split(step.line), step.printed


@cache
def answers() -> Sequence[Printed]:
    """Every command in the outputs that are kept: of examples, on terminals, on pages, in the documentation."""
    found = [
        Printed(where, folder, asked, line, before)
        for where, folder, asked, text in _outputs()
        for before, line in marked(text)
    ]
    for page in pages.PAGES:
        text = pages.path(page).read_text(encoding="utf-8")
        at = (f"{page.name} html", ROOT / "examples" / page.folder, page.words.split())
        for effect, line in re.findall(r'data-effect="(.*?)" \| <code>(.*)</code>$', text, re.MULTILINE):
            found.append(Printed(*at, html.unescape(line), effect))
    return found


def _grouped(pattern: str, key: str) -> list[Any]:
    """The commands of this kind, each once, by where they are run or by the snapshot that was asked."""
    lines: dict[Path, dict[str, None]] = {}
    for answer in answers():
        at = getattr(answer, key)
        if at is not None and re.match(pattern, answer.line):
            lines.setdefault(at.resolve(), {})[answer.line] = None
    return [pytest.param(at, [*lines[at]], id=at.relative_to(ROOT).as_posix()) for at in sorted(lines)]


def _pages() -> list[Path]:
    folders = ("docs", "editors", "examples", "packaging")
    return [*ROOT.glob("*.md"), *sorted(page for folder in folders for page in (ROOT / folder).rglob("*.md"))]


def _typed() -> Iterator[tuple[Path, str]]:
    for page in _pages():
        yield from ((page, line) for line in typed(page.read_text(encoding="utf-8")))


def _inline() -> Iterator[tuple[Path, str]]:
    for page in _pages():
        if page.name != "CHANGELOG.md":
            yield from ((page, line) for line in inline(page.read_text("utf-8")))


def _helps() -> Iterator[tuple[str, str]]:
    for name in ("", *COMMANDS):
        code, out, _ = ran(*filter(None, (name,)), "--help")
        assert code == 0
        yield from ((name, line) for before, line in marked(out) if before != "Usage")


@pytest.mark.parametrize("shell_name", SHELLS)
def test_each_printed_line_is_a_command_of_kubectl(shell_name: str) -> None:
    """No word of it is a glob, a comment or a second command, in bash and in zsh."""
    lines = [answer.line for answer in answers()]
    assert len(lines) > 250
    calls, other = executed(shell_name, [line for line in lines if not line.startswith("cd ")])
    assert other == "" and len(calls) == sum(1 + shlex.split(line).count("&&") for line in lines)


@pytest.mark.parametrize("shell_name", SHELLS)
def test_what_pages_and_help_have_typed_parses(shell_name: str) -> None:
    lines = [line for _, line in (*_typed(), *_inline(), *_helps())]
    lines = [line for line in lines if not line.startswith(("#", "cd "))]
    assert len(lines) > 600
    calls, other = executed(shell_name, lines)
    assert len(calls) > 500 and [line for line in other.splitlines() if line.startswith("failed: ")] == []


def test_comments_do_no_harm_in_zsh() -> None:
    """Which takes them for words where they are typed: they have lines of their own, and no quotes that stay open."""
    for page, line in _typed():
        if line.startswith("#"):
            assert line.count("'") % 2 == line.count('"') % 2 == line.count("`") % 2 == 0, (page.name, line)
        else:
            assert not re.search(r"\s#(\s|$)", line), (page.name, line)


def test_nothing_is_left_to_be_filled_in() -> None:
    for where, _, _, line, _ in answers():
        words = re.sub(r"'[^']*'", "", line)
        assert not re.search(
            r"\.\.\.|…|<|>|\b[A-Z]{3,}\b", words.replace("custom-columns=", " ").partition(" -o ")[0]
        ), (
            where,
            line,
        )


@pytest.mark.parametrize(("folder", "lines"), _grouped("kubectl dra ", "folder"))
def test_our_own_run(folder: Path, lines: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them ends with an error of usage or input."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KUBECONFIG", os.devnull)
    for line in lines:
        words = shlex.split(line)[2:]
        code, _, errors = ran(*words)
        # What asks a cluster comes as far as to look for one.
        asks = "--live" in words and errors.startswith("error: the kubeconfig has no current context")
        assert asks or code in codes(words[0]) - {2}, (line, errors)


def _owners(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What made the objects of a snapshot: it is in the cluster, and no snapshot keeps it."""
    named = {
        (owner["apiVersion"], owner["kind"], item["metadata"].get("namespace", ""), owner["name"])
        for item in items
        for owner in item["metadata"].get("ownerReferences", ())
    }
    there = {(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in items}
    return [
        {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": space}}
        for version, kind, space, name in sorted(named)
        if (kind, space, name) not in there
    ]


_NAMED: Final = re.compile(r"(?:kubectl dra |`(?=\w+ -))(-{0,2}[\w-]+)((?: +[^\s`;,|()\"]+)*)")
_NO_COMMANDS: Final = ("COMMAND", "--help", "--version", "options", "did", "in", "made", "ran", "to")
"""What may follow the program's name besides a command: flags of its own, and verbs where the program is meant."""


def _prose() -> Iterator[tuple[str, str]]:
    """Every text of ours: pages, help, data, and the strings in the program."""
    own = [path for kind in ("md", "yaml", "txt") for path in Path(kubectl_dra.__file__).parent.rglob(f"*.{kind}")]
    for path in (*_pages(), *own):
        if path.name != "CHANGELOG.md":
            yield path.name, path.read_text("utf-8")
    for path in Path(kubectl_dra.__file__).parent.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text("utf-8"))) if "kubectl dra" in path.read_text("utf-8") else ()
        yield from (
            (path.name, node.value) for node in nodes if isinstance(node, ast.Constant) and type(node.value) is str
        )


def test_prose_names_commands_and_flags_that_there_are() -> None:
    """Amid a sentence as well, where nobody pastes them; what only begins like one of ours is left out."""
    everywhere = set(re.findall(r"--[a-z][\w-]*", ran("options")[1]))
    known = {name: everywhere | set(re.findall(r"--[a-z][\w-]*", ran(name, "--help")[1])) for name in COMMANDS}
    seen = 0
    for where, text in _prose():
        for found in _NAMED.finditer(text.replace("\\\n", " ")):
            name, flags = found[1], re.findall(r"(?<= )--[a-z][\w-]*", found[2])
            if name in known:
                seen += 1
                assert not set(flags) - known[name], (where, found[0])
            else:
                assert found[0][0] == "`" or name in _NO_COMMANDS, (where, found[0])
    assert seen > 800


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize(("snapshot", "lines"), _grouped("kubectl (get|describe|logs) ", "snapshot"))
def test_kubectl_finds_what_they_show(snapshot: Path, lines: Sequence[str], tmp_path: Path) -> None:
    """kubectl itself understands those that only read, and they name objects of the snapshot."""
    documents = yaml.load_all(snapshot.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    items = [item for document in documents for item in document.get("items", [document])]
    items += _owners(items)
    with closing(KubectlServer(json.loads(json.dumps(items, default=str)))) as server:
        for line in lines:
            done = server.kubectl(shlex.split(line)[1:], tmp_path)
            assert done.returncode == 0, (line, done.stderr)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_understands_what_pages_have_typed(tmp_path: Path) -> None:
    """Fields that are printed included: kinds exist, flags too, and paths are paths."""
    reads = re.compile(r"(kubectl (?:get|describe|logs) .*?)(?: \||$)")
    lines = sorted({found[1] for _, line in _typed() if (found := reads.match(line))})
    assert len(lines) > 80
    with closing(KubectlServer(everything=True)) as server:
        for line in lines:
            done = server.kubectl(shlex.split(line)[1:], tmp_path)
            assert done.returncode == 0, (line, done.stderr)


CHANGES: Final = re.compile(
    "annotate|apply|create|delete|drain|edit|exec|label|patch|replace|rollout|run|scale|taint|.*cordon"
)
"""kubectl's words for what changes a cluster."""


def test_what_changes_something_is_marked() -> None:
    """By a word before it; and what only reads is not."""
    seen = 0
    for where, _, _, line, before in answers():
        words = shlex.split(line)
        own = words[1:2] == ["dra"]
        writes = bool(re.fullmatch("(un)?taint", words[2]) if own else CHANGES.fullmatch(words[1]))
        writes = writes and not {"--list", "--dry-run=client", "--dry-run=server"} & {*words}
        assert writes == bool(re.search("writes|destr", before, re.IGNORECASE)), (where, before, line)
        seen += writes
    assert seen > 30


def test_what_changes_something_comes_last() -> None:
    """Of the commands in one list of choices. ``Why`` has a cause after the other, each with its own."""
    for where, _, _, text in _outputs():
        for part in re.split(r"\n\s*\n|^ {2}\d+\. ", text, flags=re.MULTILINE):
            changing = [bool(re.search("writes|destr", before, re.IGNORECASE)) for before, _ in marked(part)]
            assert changing == sorted(changing), (where, part)


SERVED: Final = [folder for folder in examples() if (folder / "cluster.yaml").exists()]


_ASKED_LIVE: Final = [
    words.split()
    for words in (
        "explain",
        "explain -l a=b",
        "explain deployment/nobody",
        "explain nobody",
        "explain pod.yaml",
        "claims -A",
        "claims c",
        "devices",
        "drivers",
        "fit deployment/a",
        "migrate --live -A",
        "top",
    )
]
"""Questions of which several end with an error whose hint is a command."""
_AS_JSON: Final = [
    words.split()
    for words in ("claims -A", "claims --alignment -A", "devices", "drivers", "explain -A", "explain node/gpu-1", "top")
]


def test_commands_ask_the_same_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a live cluster is asked, each command of the answer has its context and kubeconfig."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    config = tmp_path / "of prod"
    told = 0
    for example, folder in zip(served_examples(), SERVED, strict=True):
        monkeypatch.chdir(folder)
        with closing(HostileServer(Served(example.items, -1).misbehave, discovery=False)) as server:
            config.write_text(json.dumps(kubeconfig(server.url, {"token": "t"})))
            flags = ("--kubeconfig", str(config), "--context", "test")
            words = arguments(folder)
            at = words.index("--snapshot")
            del words[at : at + 2]
            for run in (words, [*words, "--full"], *_ASKED_LIVE):
                _, out, errors = ran(*run, *flags)
                for line in (*printed(out + errors), *amid(out + errors)):
                    told += 1
                    assert f"--kubeconfig '{config}'" in line and "--context test" in line, (folder.name, run, line)
            for line in _in_json(words, *_AS_JSON, flags=flags):
                told += 1
                assert f"--kubeconfig '{config}'" in line and "--context test" in line, (folder.name, line)
    assert told > 250


def _in_json(*runs: Sequence[str], flags: Sequence[str]) -> Iterator[str]:
    """The commands in answers as JSON; an error has none."""
    for run in runs:
        _, out, _ = ran(*run, "-o", "json", *flags)
        yield from _of_json(json.loads(out)) if out else ()


def _of_json(value: Any) -> Iterator[str]:
    """The commands in an answer as JSON."""
    if isinstance(value, dict) and "argv" in value:
        yield value["text"]
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _of_json(part)


def test_commands_name_what_is_there() -> None:
    texts = {path: path.read_text("utf-8") for path in {path for answer in answers() for path in answer.files}}
    for answer in answers():
        text = "\n".join((*answer.asked, *(texts[path] for path in answer.files)))
        about = re.findall(r"(?<= )(?:[a-z]+)/([a-z0-9.-]+)(?= |$)", answer.line)
        for name in (*about, *re.findall(r" -n (\S+)", answer.line)):
            if answer.snapshot is not None and name != "kube-controller-manager" and "kube-system" not in answer.line:
                assert re.search(rf"""(?<![\w.-]){re.escape(name)}(?![\w.])""", text), (answer, name)


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
    "    kubectl dra migrate DIR{}           # the plan, with what is refused and why",
    "    kubectl dra migrate DIR --live{}    # where each pod would land, and on how many nodes",
    "    kubectl dra migrate DIR{} --diff    # to review",
    "    kubectl dra migrate DIR{} --write   # exit code 1: something is left to decide, see above",
    "kubectl dra migrate --explain {}",
)
"""Commands whose words are ours, or quoted where they stand: a URL that was typed, a release, a code."""


def _strings(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if not re.search(r"(kubectl|helm|curl|envsubst) .*\{", text):
        return
    if path.suffix == ".md":
        yield from (re.sub(r"\{\w+\}", "{}", line) for line in text.splitlines() if "{" in line)
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
    files = (*package.rglob("*.py"), *package.rglob("*.md"))
    texts = {text for path in files for text in _strings(path) if command.search(text)}
    assert texts >= {*CONSTANTS}
    assert not {text for text in texts - {*CONSTANTS} if not any(free in text for free in FREE_TEXTS)}


def test_words_are_quoted_once() -> None:
    assert str(CommandLine(("kubectl", "dra", "explain", "-f", "a b.yaml"))) == "kubectl dra explain -f 'a b.yaml'"
