"""The catalogue of causes: codes that are good names, texts that say something, pages that are not stale."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from kubectl_dra.allocation.features import DEFECTS, KnownDefects
from kubectl_dra.explain.cause_kinds import CauseKind
from kubectl_dra.explain.causes.registry import all_kinds, families
from kubectl_dra.report.explain_json import cause_json
from kubectl_dra.report.json_output import with_exit_code
from tools.docs.causes import pages
from tools.docs.folder import write

DOCS = Path(__file__).resolve().parents[2] / "docs" / "causes"

SCHEMA = json.loads((DOCS.parents[1] / "schemas" / "cause.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

each = pytest.mark.parametrize("kind", all_kinds(), ids=[kind.code for kind in all_kinds()])


@each
def test_code_is_a_name_in_lower_case(kind: CauseKind) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.code)
    assert len(kind.code) <= 40


@each
def test_texts_are_sentences(kind: CauseKind) -> None:
    assert not kind.title.endswith(".")
    for text in (kind.why, kind.fix):
        assert text.endswith("."), text
        assert text[0].isupper(), text
    assert kind.seen_as


def test_codes_and_titles_are_unique() -> None:
    assert len({kind.code for kind in all_kinds()}) == len(all_kinds())
    assert len({kind.title for kind in all_kinds()}) == len(all_kinds())


def test_every_family_has_causes() -> None:
    assert all(kinds for _, kinds in families())


def test_pages_in_docs_are_those_of_the_catalogue(tmp_path: Path) -> None:
    """A change of a cause belongs into the same commit as its page; pages of causes that are gone are removed."""
    written, made = {path.name: path.read_text() for path in DOCS.glob("*.md")}, dict(pages())
    assert written == made, "run: python -m tools.docs.causes docs/causes"
    (tmp_path / "old-cause.md").write_text("# gone\n")
    write(tmp_path, made.items())
    assert {path.name for path in tmp_path.iterdir()} == made.keys()


@each
def test_every_page_has_every_section(kind: CauseKind) -> None:
    text = kind.page.text
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert list(sections) == ["What it looks like", "Why", "See it with kubectl", "What helps", "When it is normal"]
    assert all(body.strip() for body in sections.values())
    assert kind.code in sections["What it looks like"]
    assert "$ kubectl dra explain" in sections["What it looks like"]
    assert "<" not in re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL), "it would be HTML"


@each
def test_a_cause_is_data_as_well(kind: CauseKind) -> None:
    VALIDATOR.validate(with_exit_code(cause_json(kind), 0))


def test_every_defect_of_an_allocator_has_words() -> None:
    assert DEFECTS.keys() == set(KnownDefects.__struct_fields__)
    assert all(defect.what for defect in DEFECTS.values())
