"""Files of which a part cannot be read: the rest is still checked, where it is, and what is left out is named."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from kubectl_dra.lint.engine import Workers, lint
from kubectl_dra.manifests.inputs import Input
from tests.lint.support import CLAIM, findings, job, report

WRONG = CLAIM + "        cuont: 1\n"
BROKEN = "apiVersion: v1\nkind: [\n"
TEMPLATE = "apiVersion: v1\nkind: {{ .Values.kind }}\n"


def seen(text: str) -> list[tuple[str, int]]:
    return [(found.code, found.line) for found in findings(text)]


def lines(*texts: str) -> Iterator[int]:
    """The line where each of the documents begins, when they are joined with ---."""
    line = 1
    for text in texts:
        yield line
        line += text.count("\n") + 1


@pytest.mark.parametrize("broken", [BROKEN, "a: 'x\n", "\ta: 1\n", "a: *nothing\n", "- a\n- b\n", "just words\n"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_documents_around_a_broken_one_are_checked(broken: str, place: int) -> None:
    texts = [WRONG, WRONG]
    texts.insert(place, broken)
    found = findings("---\n".join(texts))
    assert sorted(one.code for one in found) == ["DRA101", "DRA101", "DRA901"]
    starts = list(lines(*texts))
    assert [one.line for one in found if one.code == "DRA101"] == [
        start + 10 for index, start in enumerate(starts) if index != place
    ]
    (error,) = (one for one in found if one.code == "DRA901")
    begin = starts[place] - 1 if place else 1
    assert f"the document that begins in line {begin}" in error.message or f"line {begin + 1} " in error.message
    assert "the others are checked" in error.message
    assert starts[place] <= error.line <= starts[place] + broken.count("\n")


def test_several_broken_documents_are_several_findings() -> None:
    found = seen("---\n".join([BROKEN, WRONG, BROKEN, WRONG, BROKEN]))
    assert [code for code, _ in found].count("DRA901") == 3
    assert [code for code, _ in found].count("DRA101") == 2


def test_a_template_among_documents_is_left_out_with_a_note() -> None:
    found = report("---\n".join([WRONG, TEMPLATE, WRONG]))
    assert [one.code for one in found.findings] == ["DRA101", "DRA101"]
    (note,) = found.notes
    assert "template" in note and "the document that begins in line 13" in note


def test_fixes_wait_until_the_file_can_be_read() -> None:
    from kubectl_dra.lint.fixes import fix_text
    from kubectl_dra.manifests.source import decode

    text = "---\n".join([WRONG, BROKEN])
    waiting = [one for one in findings(text) if one.changes]
    fixed = fix_text(decode(text, "f.yaml"), waiting, ("safe",), lambda name, data: ())
    assert waiting and fixed.text.after == text
    assert [why for _, why in fixed.refused] == ["another document of the file cannot be read"]


def test_json_documents_before_a_broken_one() -> None:
    good = '{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "a"}, "x": 1}\n'
    assert seen(good + good + '{"kind": }\n') == [("DRA101", 1), ("DRA101", 2), ("DRA901", 3)]


def test_many_broken_documents_take_time_that_grows_with_their_number_only() -> None:
    def seconds(number: int) -> float:
        text = "---\n".join([BROKEN, WRONG] * number)
        started = time.process_time()
        assert len(findings(text)) == 2 * number
        return time.process_time() - started

    seconds(10)
    few = seconds(100)
    assert seconds(800) < 8 * few * 3 + 0.5


@pytest.mark.parametrize("value", ["${NAME}", "$NAME", "pod-__INDEX__", "x-${A}-y"])
def test_what_a_script_fills_in_later_is_not_judged(value: str) -> None:
    text = CLAIM.replace("name: gpu\nspec", f"name: {value}\nspec")
    found = report(text)
    assert found.findings == () and "filled in later" in found.notes[0]


@pytest.mark.parametrize("value", ["Gpu", "__init__"])
def test_other_wrong_values_are_judged(value: str) -> None:
    assert [code for code, _ in seen(CLAIM.replace("name: gpu\nspec", f"name: {value}\nspec"))] == ["DRA104"]


def test_a_file_that_changes_between_two_looks_is_said_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  resourceClaims:\n"
        "  - {name: gpu, resourceClaimTemplateName: one-gpx}\n"
        "  containers: [{name: a, image: a, resources: {claims: [{name: gpu}]}}]\n"
    )
    template = CLAIM.replace("ResourceClaim", "ResourceClaimTemplate").replace("name: gpu\nspec", "name: one-gpu\nspec")
    file = tmp_path / "a.yaml"
    file.write_text(pod)
    given = [Input(str(file), True), Input("b.yaml", True, template.encode())]
    assert [one.code for one in lint(given, job("DRA406,DRA906"), 1).findings] == ["DRA406"]

    def locate(self: Workers, asked: Any) -> Any:
        file.write_text(pod + "# changed\n")
        return original(self, asked)

    original = Workers.locate
    monkeypatch.setattr("kubectl_dra.lint.locate.MOST_KEPT", 0)
    monkeypatch.setattr(Workers, "locate", locate)
    (found,) = lint(given, job("DRA406,DRA906"), 1).findings
    assert (found.code, found.file) == ("DRA906", str(file)) and "it changed while it was read" in found.message


def seconds(text: str, code: str, expected: int) -> float:
    """What it takes to find so many findings of a rule: the least of three runs, for a busy machine slows some."""

    def once() -> float:
        begun = process_time()
        assert len(report(text, code).findings) == expected
        return process_time() - begun

    return min(once() for _ in range(3))


def test_many_comments_take_time_that_grows_with_their_number_only() -> None:
    """Ten times as many take ten times as long; a square would take a hundred times."""

    def manifest(count: int) -> str:
        return "# kubectl-dra: ignore[DRA101]\n" * count + CLAIM

    few, many = (seconds(manifest(count), "DRA903", count) for count in (3_000, 30_000))
    assert many < 35 * few


def test_many_unknown_fields_take_time_that_grows_with_their_number_only() -> None:
    def manifest(count: int) -> str:
        requests = (f"    - {{name: r{number}, exactly: {{deviceClass: a}}}}\n" for number in range(count))
        return CLAIM[: CLAIM.index("    - name")] + "".join(requests)

    few, many = (seconds(manifest(count), "DRA101", count) for count in (400, 4_000))
    assert many < 35 * few


REQUESTS = [
    "{name: gpu, exactly: {deviceClassName: a, allocationMode: Alll}}",
    "{name: gpu, exactly: {deviceClassName: a, selectors: [{cel: {expression: device.}}]}}",
    "{name: h, exactly: {deviceClassName: a, tolerations: [{key: b, operator: Existss}]}}",
]


@pytest.mark.parametrize("wrong", ['count: "2"', "adminAccess: 1", "deviceClassName: 7", "tolerations: no"])
def test_a_value_that_cannot_be_decoded_hides_nothing_else(wrong: str) -> None:
    """Whatever is wrong elsewhere in the object is found with it as without it, and one wrong type hides no other."""
    head = CLAIM[: CLAIM.index("    - name")]
    right = "    - {name: r0, exactly: {deviceClassName: a}}\n"
    rest = "".join(f"    - {request}\n" for request in REQUESTS)
    alone = [(one.code, one.line) for one in findings(f"{head}{right}{rest}")]
    bad = f"    - {{name: r0, exactly: {{deviceClassName: a, {wrong}}}}}\n".replace(
        "deviceClassName: a, deviceClassName", "deviceClassName"
    )
    beside = [(one.code, one.line) for one in findings(f"{head}{bad}{rest}")]
    assert len(alone) >= 4 and [each for each in beside if each[0] != "DRA102"] == alone
    assert [code for code, _ in beside].count("DRA102") == 1
    twice = findings(f"{head}{bad}{bad.replace('r0', 'r1')}{rest}")
    assert [one.code for one in twice].count("DRA102") == 2


def test_a_number_of_many_digits_is_a_finding() -> None:
    found = report(CLAIM + f"        count: {'9' * 5000}\n", "DRA1")
    assert [one.code for one in found.findings] == ["DRA102"] and not found.defects


def test_files_of_which_nothing_was_checked_are_counted() -> None:
    from kubectl_dra.report.lint_formats import to_json
    from kubectl_dra.report.lint_text import summary

    texts = {
        "broken.yaml": "a: [\n",
        "broken-manifest.yaml": "apiVersion: v1\nkind: [\n",
        "template.yaml": "{{ if .Values.gpu }}\nkind: Pod\n{{ end }}\n",
        "not-text.yaml": "\x80",
        "partly.yaml": "---\n".join([WRONG, TEMPLATE]),
    }
    inputs = [Input(name, False, text.encode("latin-1")) for name, text in texts.items()]
    found = lint(inputs, job(), 1)
    assert found.left_out == 3
    assert {one.file for one in found.findings} == {"broken-manifest.yaml", "partly.yaml"}
    assert "2 errors in 2 of 5 files" in summary(found) and summary(found).count("3 files left out.") == 1
    assert to_json(found)["summary"]["leftOut"] == 3


@pytest.mark.parametrize("quote", ['"', "'"])
def test_an_open_quote_is_shown_where_it_begins(quote: str) -> None:
    broken = f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {quote}a\nspec:\n  a: b\n"
    for text in (f"{CLAIM}---\n{broken}---\n{CLAIM}", f"{CLAIM}---\n{broken}"):
        (found,) = (finding for finding in findings(text) if finding.code == "DRA901")
        assert (found.line, found.column) == (CLAIM.count("\n") + 5, 9)
        assert "the text in quotes that begins here does not end" in found.message
        assert text[found.offset] == quote and found.excerpt == f"  name: {quote}a"


def test_what_a_file_lacks_has_an_offset() -> None:
    text = f"{CLAIM}---\nkind: [\n---\napiVersion: v1\nkind: List\nitems: [1]\n"
    broken = [finding for finding in findings(text) if finding.code == "DRA901"]
    assert len(broken) == 2
    for finding in broken:
        lines = text[: finding.offset].split("\n")
        assert (len(lines), len(lines[-1]) + 1) == (
            finding.line,
            finding.column,
        ) and finding.offset == finding.end_offset > 0
