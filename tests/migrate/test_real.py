"""Public manifests: what becomes of each is written down in ``real/README.md`` and checked here, where they are."""

from __future__ import annotations

import difflib
import re
from functools import cache
from pathlib import Path

import pytest

from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.model import MigratedFile, MigrationReport
from tests.migrate.runs import assert_reversible, comments, settings

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "cases" / "real"
TABLE = Path(__file__).parent / "real" / "README.md"
ROW = re.compile(r"^\| (\S+\.ya?ml) \| (\w+) \| (.+) \|$", re.MULTILINE)

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the public manifests are not here")


@cache
def files() -> dict[str, Path]:
    return {path.name: path for path in sorted(FOLDER.rglob("*")) if path.suffix in (".yml", ".yaml")}


@cache
def expected() -> dict[str, str]:
    return {name: outcome for name, outcome, _ in ROW.findall(TABLE.read_text())}


def migrated(data: bytes, *, unsafe: bool = False) -> MigrationReport:
    report = migrate([Input("f.yaml", True, data)], MigrationJob(settings(), unsafe))
    assert not report.defects
    return report


def outcome(data: bytes) -> str:
    report = migrated(data)
    if report.changed:
        return "partly" if report.open else "changed"
    if migrated(data, unsafe=True).changed:
        return "unsafe"
    if report.open:
        return "refused"
    return "noted" if report.items() else "nothing"


def test_every_file_is_in_the_table() -> None:
    assert sorted(files()) == sorted(expected())


@pytest.mark.parametrize("name", list(files()) if FOLDER.is_dir() else [])
def test_outcome(name: str) -> None:
    assert outcome(files()[name].read_bytes()) == expected()[name]


@pytest.mark.parametrize("name", list(files()) if FOLDER.is_dir() else [])
def test_only_what_has_to_change_changes(name: str) -> None:
    data = files()[name].read_bytes()
    for unsafe in (False, True):
        report = migrated(data, unsafe=unsafe)
        for file in report.changed:
            check(file, data)
            assert file.text is not None
            assert not migrated(file.text.data, unsafe=unsafe).changed


def check(file: MigratedFile, data: bytes) -> None:
    assert_reversible(file)
    assert file.text is not None
    before, after = file.text.before, file.text.after
    assert file.text.source.encode(before) == data
    assert after.endswith("\n") == before.endswith("\n")
    assert after.count("\r\n") in (0, after.count("\n"))
    assert not comments(before) - comments(after)
    # What goes is about the devices: lines that are gone are few, and none of them is a comment alone.
    gone = [line[2:] for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line.startswith("- ")]
    assert len(gone) < len(before.splitlines()) / 2 + 3
    for document in read_documents(before, "f.yaml"):
        assert document.object["kind"] in after


@pytest.mark.parametrize("name", list(files()) if FOLDER.is_dir() else [])
def test_refusals_say_what_to_do_and_name_the_line(name: str) -> None:
    data = files()[name].read_bytes()
    lines = data.decode("utf-8-sig").splitlines()
    for item in migrated(data).items("refusal"):
        assert item.way_out, item
        assert 1 <= item.line <= len(lines) and lines[item.line - 1].strip()
