"""Every case of every rule: it fails where it should, passes where it should, and is fixed as it should be."""

from __future__ import annotations

import pytest

from kubectl_dra.lint.registry import BY_CODE, RULES
from kubectl_dra.lint.rule import Rule
from tests.lint.cases import FILE, Case, cases, fixed, run

each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


@pytest.mark.parametrize("case", [case for case in cases() if "fail" in case.content], ids=str)
def test_fails(case: Case) -> None:
    found = run(case, case.text)
    assert found, "the rule found nothing"
    expected = case.content.get("findings")
    if expected is not None:
        places = [(f"{one.line}:{one.column}", one.field) for one in found]
        assert len(places) == len(expected), places
        assert all(str(wanted) in place for wanted, place in zip(expected, places, strict=True)), places


@pytest.mark.parametrize("case", [case for case in cases() if "pass" in case.content], ids=str)
def test_passes(case: Case) -> None:
    assert [(found.line, found.message) for found in run(case, case.text)] == []


@pytest.mark.parametrize("case", [case for case in cases() if "fix" in case.content], ids=str)
def test_is_fixed(case: Case) -> None:
    after = fixed(case)
    assert after == case.content["fix"]
    assert [found for found in run(case, after) if found.file == FILE] == []


# Files that no text in a case can stand for: see test_inputs.py.
ELSEWHERE = ("DRA905", "DRA906")


@each_rule
def test_rule_has_cases(rule: type[Rule]) -> None:
    if rule.code in ELSEWHERE:
        return
    mine = [case for case in cases() if case.code == rule.code]
    assert any("fail" in case.content for case in mine), "no failing case"
    assert any("pass" in case.content for case in mine), "no passing case"
    if rule.fixable != "none":
        assert any("fix" in case.content for case in mine), "no fixed case"


def test_cases_are_of_rules() -> None:
    assert {case.code for case in cases()} <= set(BY_CODE)
