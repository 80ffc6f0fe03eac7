"""The codes as a set: pages that are not stale, and texts that say something."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kubectl_dra.migrate.codes import CHANGES, FAMILIES, PAGES, ChangePage
from kubectl_dra.migrate.engine import MIGRATIONS
from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra
from tools.docs.changes import pages
from tools.docs.folder import write

DOCS = Path(__file__).resolve().parents[2] / "docs" / "changes"


@pytest.mark.parametrize("one", PAGES.values(), ids=lambda one: str(one.code))
def test_texts(one: ChangePage) -> None:
    assert re.fullmatch(r"MIG\d{3}", one.code) and one.code[:4] in FAMILIES
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", one.name)
    assert one.safety in ("safe", "unsafe", "either", "note", "refusal")
    assert one.why.endswith(".") and not one.title.endswith(".") and len(one.why) > 60 and len(one.title) < 90
    assert len(one.page.head) == 3, "a page has its name, its safety and one paragraph before the examples"
    if one.safety == "refusal":
        assert {"What to do", "Instead"} & one.page.sections.keys(), "a refusal says what people can do"
    before, after = one.page.code("Before"), one.page.code("After", "Instead")
    if one.safety in ("safe", "unsafe"):
        for text in (before, after):
            assert all(isinstance(document, dict) for document in yaml.safe_load_all(text) if document is not None)
    assert not before or before != after


def test_codes_and_names_are_unique() -> None:
    assert [page.code for page in CHANGES] == sorted(PAGES)
    assert len({page.name for page in CHANGES}) == len(CHANGES)
    assert MIGRATIONS[0].name == "versions"


def test_pages_in_docs_are_those_of_the_codes() -> None:
    """``make docs`` writes them; a change of a code belongs into the same commit as its page."""
    assert {path.name: path.read_text() for path in DOCS.glob("*.md")} == dict(pages())


def test_writing_pages_removes_those_of_codes_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "MIG000.md").write_text("# gone\n")
    write(tmp_path, pages())
    assert {path.name for path in tmp_path.iterdir()} == {name for name, _ in pages()}


def test_only_changes_of_workloads_speak_of_what_their_pods_get() -> None:
    """A new apiVersion needs no driver, and the way back needs a device plugin."""
    assert all(
        (one.safety == "safe" and one.code.startswith("MIG1")) is ("their DRA driver offers" in one.page.text)
        for one in CHANGES
    )
    assert [one.code for one in CHANGES if "their device plugin offers" in one.page.text] == ["MIG501"]
    assert all(": . " not in one.page.text for one in CHANGES)


@pytest.mark.parametrize("code", ["MIG112", "MIG130", "MIG207", "MIG309"])
def test_examples_do_what_the_page_says(code: str, dra: Callable[..., Ran], tmp_path: Path) -> None:
    """What is before gives the code, what is written instead does not, and what comes after is what is written."""
    page = PAGES[code].page

    def migrated(text: str) -> str:
        whole = yaml.safe_load(text)
        if "kind" not in whole:
            whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": whole}
        path = tmp_path / "file.yaml"
        path.write_text(yaml.safe_dump(whole))
        ran = dra("migrate", str(path), "--unsafe", "--diff")
        assert ran.code in (0, 1), ran.err
        return ran.out + ran.err

    assert code in migrated(page.code("Before"))
    if instead := page.code("Instead"):
        assert code not in migrated(instead)
    for line in page.code("After").splitlines():
        assert f"+    {line}\n" in migrated(page.code("Before"))
