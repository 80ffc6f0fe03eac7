"""Every case of every rule: it fails where it should, passes where it should, and is fixed as it should be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kubectl_dra.lint.rule import Rule
from kubectl_dra.lint.rules import BY_CODE, RULES
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


# Files that no text in a case can stand for: see tests/manifests/test_inputs.py.
ELSEWHERE = ("DRA905", "DRA906")
# What is wrong with the example is its length, which a page cannot show.
ABRIDGED = ("DRA114",)
DOCS = Path(__file__).resolve().parents[2] / "docs" / "rules"


def lacking(rule: type[Rule]) -> list[str]:
    """What a rule must have and has not: a page, a failing case, a passing one, and a fixed one if it can fix."""
    mine = [case for case in cases() if case.code == rule.code]
    parts = {
        "page": (DOCS / f"{rule.code}.md").is_file(),
        "fail": any("fail" in case.content for case in mine) or rule.code in ELSEWHERE,
        "pass": any("pass" in case.content for case in mine) or rule.code in ELSEWHERE,
        "fix": any("fix" in case.content for case in mine) or rule.fixable == "none",
    }
    return [part for part, there in parts.items() if not there]


@each_rule
def test_the_rules_own_example_is_a_case(rule: type[Rule]) -> None:
    failing = [case.text for case in cases() if case.code == rule.code and "fail" in case.content]
    assert rule.bad() in failing or rule.code in (*ELSEWHERE, *ABRIDGED)


@each_rule
def test_rule_has_a_page_and_cases(rule: type[Rule]) -> None:
    assert lacking(rule) == []


def test_a_rule_without_anything_is_noticed() -> None:
    class Forgotten(Rule, code="DRA199", fixable="safe"):
        """A rule without a page."""

    assert lacking(Forgotten) == ["page", "fail", "pass", "fix"]


def test_cases_are_of_rules() -> None:
    assert {case.code for case in cases()} <= set(BY_CODE)


def test_a_name_is_proposed_only_where_it_is_near() -> None:
    """Of two unknown names the second is like a known one: nothing is written in place of the first."""
    expression = "zzzzzz == 1 && quanttity('1') == quantity('1')"
    manifest = (
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\n"
        f'spec: {{selectors: [{{cel: {{expression: "{expression}"}}}}]}}\n'
    )
    assert fixed(Case("DRA112", "second-name-is-near", {"fail": manifest})) == manifest


@each_rule
def test_the_page_names_every_severity_that_occurs(rule: type[Rule]) -> None:
    found = {finding.severity for case in cases() if case.code == rule.code for finding in run(case, case.text)}
    assert found <= set(rule.severities())
    facts = rule.page().head[0]
    assert all(re.search(rf"\b{severity}\b", facts) for severity in rule.severities()), facts
    assert rule.severity not in rule.otherwise


@each_rule
def test_what_the_page_says_is_repaired_always_is(rule: type[Rule]) -> None:
    """A rule that fixes only some of what it finds says where."""
    found = [finding for case in cases() if case.code == rule.code for finding in run(case, case.text)]
    if rule.fixable != "none" and not rule.fixed_where:
        assert all(finding.safety != "none" and finding.changes for finding in found), [
            finding.message for finding in found
        ]


@each_rule
def test_the_page_says_how_its_fixes_are_made(rule: type[Rule]) -> None:
    """Those that the cases have: safe ones, guesses, or both."""
    found = [finding for case in cases() if case.code == rule.code for finding in run(case, case.text)]
    assert {finding.safety for finding in found if finding.safety != "none"} == set(rule.safeties())


def test_privileged_access_is_never_switched_on_as_a_safe_fix() -> None:
    head = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: a}\nspec: {devices: {requests: "
    for code, written in (("DRA101", "adminaccess: true"), ("DRA102", 'adminAccess: "true"')):
        text = f"{head}[{{name: gpu, exactly: {{deviceClassName: a, {written}}}}}]}}}}\n"
        (found,) = run(Case(code, "", {"fail": text}), text)
        assert found.changes and found.safety == "unsafe"
