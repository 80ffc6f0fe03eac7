"""Every page under docs/: links, commands, and what is generated."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from kubectl_dra.cli.jsonpath import taken_out
from kubectl_dra.cli.main import everything
from tools.docs import anonymized, commands, console, features, messages, schemas
from tools.docs.links import DOCS, ROOT, broken
from tools.pasted import inline

PAGES = sorted(DOCS.rglob("*.md"))
OTHERS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
WRITTEN = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def named(paths: list[Path]) -> list[Any]:
    return [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in paths]


@pytest.mark.parametrize("path", named([*PAGES, *OTHERS]))
def test_links_lead_somewhere(path: Path) -> None:
    assert not list(broken(path))


@pytest.mark.parametrize(
    ("path", "block"),
    [
        pytest.param(path, block, id=f"{path.name}-{block.steps[0].line}")
        for path in WRITTEN
        for block in console.blocks(path.read_text(encoding="utf-8"))
        if block.where != console.CLUSTER
    ],
)
def test_commands_print_what_the_page_says(path: Path, block: console.Block) -> None:
    assert not console.complaint(block), f"{path.name}; python -m tools.docs.console {path} writes it again"


@pytest.mark.parametrize("path", named(WRITTEN))
def test_every_console_block_is_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(console.ANY_BLOCK.findall(text)) == len(list(console.blocks(text)))


@pytest.mark.parametrize("path", named([*PAGES, *OTHERS, *sorted((ROOT / "examples").rglob("*.md"))]))
def test_commands_that_need_a_cluster_are_spelt_right(path: Path) -> None:
    """Each parses: the command, its flags and their values exist. A sentence may name a command or a flag alone."""
    root: Any = typer.main.get_command(everything())
    text = path.read_text(encoding="utf-8")
    amid = [line for line in inline(text) if not re.search(r"^\S+ \S+$|^kubectl[ -]dra \S+$| --?[\w-]+$", line)]
    for line in (*console.lines(text), *(amid if path.name != "CHANGELOG.md" else ())):
        for part in re.findall(r"kubectl[ -]dra ([^|>;]*)", re.sub(r"#.*| -- .*", "", _unquoted(line))):
            words, _ = taken_out(shlex.split(part.replace(_BAR, "|")))
            if "--help" in words:
                words.remove("--help")
                assert words[0] in root.commands, line
            elif words[0] in root.commands:
                root.commands[words[0]].make_context(words[0], words[1:], parent=typer.Context(root))
            else:
                assert words[0] == "--version", line


_BAR = "\x00"


def _unquoted(line: str) -> str:
    """The line with bars inside quotes out of the way."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", lambda match: match[0].replace("|", _BAR), line)


def test_a_misspelt_flag_is_noticed() -> None:
    root: Any = typer.main.get_command(everything())
    with pytest.raises(Exception, match="No such option"):
        root.commands["explain"].make_context("explain", ["--snapshto", "x"], parent=typer.Context(root))


def test_the_runner_of_commands_sees_differences() -> None:
    page = "<!-- run in examples/explain/fits{} -->\n```console\n$ echo one; echo two >&2\n{}```\n"
    for tail, printed, fine in (
        ("", "one\ntwo\n", True),
        ("", "…\ntwo\n", True),
        ("", "one\n…\ntwo\n…\n", True),
        ("", "…\nwo\n", False),
        ("", "one\n", False),
        ("", "One\ntwo\n", False),
        ("; exit 1", "one\ntwo\n", False),
    ):
        block = next(console.blocks(page.format(tail, printed)))
        assert (console.complaint(block) == "") is fine


def test_commands_are_what_the_command_line_says() -> None:
    expected = dict(commands.pages())
    found = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "commands").glob("*.md")}
    assert found == expected, "run: python -m tools.docs.commands docs/commands"


def test_every_flag_of_every_command_is_on_its_page() -> None:
    for one in commands.commands():
        text = (DOCS / "commands" / one.file).read_text(encoding="utf-8")
        listed = [parameter for parameter in one.command.params if not getattr(parameter, "hidden", False)]
        flags = {flag for parameter in listed for flag in parameter.opts if flag.startswith("--")}
        assert flags or one.words == ("completion",)
        for flag in flags:
            assert re.search(rf"^- `[^`]*{re.escape(flag)}\b", text, re.MULTILINE), f"{one.name} {flag}"


def test_schemas_are_listed() -> None:
    text = (DOCS / "schemas.md").read_text(encoding="utf-8")
    assert text == schemas.render(), "run: python -m tools.docs.schemas docs/schemas.md"


def test_what_stays_is_what_the_allow_list_says() -> None:
    text = (DOCS / "anonymized.md").read_text(encoding="utf-8")
    assert text == anonymized.render(), "run: python -m tools.docs.anonymized docs/anonymized.md"


def test_features_are_those_of_the_tables() -> None:
    text = (DOCS / "features.md").read_text(encoding="utf-8")
    assert text == features.render(), "run: python -m tools.docs.features docs/features.md"


def test_messages_are_those_of_the_causes() -> None:
    text = (DOCS / "messages.md").read_text(encoding="utf-8")
    assert text == messages.render(), "run: python -m tools.docs.messages docs/messages.md"


def test_every_cause_has_its_message() -> None:
    assert not messages.missing()


PASTED = [ROOT / "README.md", DOCS / "start.md"]
"""Pages whose blocks can be pasted one after the other, wherever their reader is."""


@pytest.mark.parametrize("path", named(PASTED))
def test_the_blocks_of_a_page_lead_from_one_to_the_next(path: Path, tmp_path: Path) -> None:
    """Where a command is run, the reader has been led, or has written the same files."""
    text = path.read_text(encoding="utf-8")
    here = tmp_path
    arrived = 0
    for match in re.finditer(f"{console.SCRIPT.pattern}|{console.BLOCK.pattern}", text, re.DOTALL | re.MULTILINE):
        script = match[1]
        if script is None:
            folder = ROOT / match["where"]
            same = [name for name in folder.iterdir() if name.is_file() and name.name in match["text"]]
            assert same
            for file in same:
                assert (here / file.name).read_text() == file.read_text(), match["text"].partition("\n")[0]
            arrived += 1
        elif script.startswith(("cd ", "cat ")):
            here = Path(console.shell(f"{script}pwd", here).splitlines()[-1])
    assert arrived >= 4
