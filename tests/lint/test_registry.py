"""The rules as a set: codes, names, texts, and pages that are not stale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from kubectl_dra.api.releases import NEWEST_MODELLED
from kubectl_dra.lint.finding import SEVERITIES
from kubectl_dra.lint.rule import Rule
from kubectl_dra.lint.rules import FAMILIES, RULES
from tests.lint.support import report
from tools.docs.folder import write
from tools.docs.rules import pages

DOCS = Path(__file__).resolve().parents[2] / "docs" / "rules"

each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


@each_rule
def test_metadata(rule: type[Rule]) -> None:
    assert re.fullmatch(r"DRA\d{3}", rule.code) and rule.code[:4] in FAMILIES
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", rule.name)
    assert rule.severity in SEVERITIES and rule.fixable in ("safe", "unsafe", "none")
    assert rule.why().endswith(".") and len(rule.why()) > 60
    assert rule.title() and len(rule.title()) < 90
    assert rule.scope in ("object", "set")
    assert NEWEST_MODELLED in rule.releases


@each_rule
def test_good_example_is_yaml(rule: type[Rule]) -> None:
    assert all(isinstance(document, dict) for document in yaml.safe_load_all(rule.good()))
    assert rule.bad() != rule.good()


# What must be in two releases cannot be of the newest version.
OF_TWO_RELEASES = ("DRA511",)


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule.code not in OF_TWO_RELEASES], ids=lambda rule: rule.code
)
def test_the_good_example_is_good(rule: type[Rule]) -> None:
    """What a page proposes instead has no finding of any rule."""
    found = report(rule.good(), "DRA", minor=NEWEST_MODELLED.minor)
    assert not found.defects
    assert [(finding.code, finding.line, finding.message) for finding in found.findings] == []


def test_codes_and_names_are_unique() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_pages_in_docs_are_those_of_the_rules() -> None:
    """``make docs`` writes them; a change of a rule belongs into the same commit as its page."""
    assert {path.name: path.read_text() for path in DOCS.glob("*.md")} == dict(pages())


def test_writing_pages_removes_those_of_rules_that_are_gone(tmp_path: Path) -> None:
    (tmp_path / "DRA000.md").write_text("# gone\n")
    write(tmp_path, pages())
    assert {path.name for path in tmp_path.iterdir()} == {name for name, _ in pages()}
