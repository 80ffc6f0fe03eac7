"""One set of findings in every format."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from msgspec.structs import replace

from kubectl_dra.lint.finding import LocatedFinding, Report
from kubectl_dra.lint.rule import Rule
from kubectl_dra.lint.rules import RULES
from kubectl_dra.report.json_output import with_exit_code
from kubectl_dra.report.lint_formats import MOST_RESULTS, location_of, to_json, to_sarif, write_github, write_junit
from kubectl_dra.report.lint_text import write_text
from kubectl_dra.text import unmarked
from tests.lint.support import CLAIM, report

ROOT = Path(__file__).parent.parent.parent
SCHEMA = json.loads((ROOT / "schemas" / "lint.json").read_text())
FLAT = CLAIM.replace("      exactly:\n        device", "      device").replace(
    "name: gpu\nspec", "name: größe-😀-a%b,c\nspec"
)


@pytest.fixture
def flat() -> Report:
    return unknown_fields(FLAT)


def unknown_fields(text: str) -> Report:
    """What is found in the text without the names that no object has: these show how other characters come out."""
    found = report(text)
    assert {finding.code for finding in found.findings} == {"DRA101", "DRA104"}
    return replace(found, findings=tuple(finding for finding in found.findings if finding.code == "DRA101"))


@pytest.fixture
def clean() -> Report:
    found = report(CLAIM)
    assert found.findings == ()
    return found


def text_of(found: Report) -> str:
    stream = StringIO()
    write_text(found, "never", stream)
    return stream.getvalue()


def test_text_shows_the_line_with_a_caret(flat: Report) -> None:
    lines = text_of(flat).splitlines()
    assert lines[0] == "f.yaml"
    line = next(index for index, text in enumerate(lines) if "9 |" in text)
    assert lines[line] == "    9 |       deviceClassName: gpu.example.com"
    assert lines[line + 1] == "      |       ^^^^^^^^^^^^^^^"
    assert lines[-2].startswith("1 error in 1 file, for Kubernetes 1.36.")
    assert "fix: " in text_of(flat) and "(--fix)" in text_of(flat)


def test_text_carets_are_under_wide_characters_and_tabs() -> None:
    shown = text_of(
        report('{"apiVersion": "resource.k8s.io/v1",\t"kind": "DeviceClass", "metadata": {"name": "x"}, "é😀": 1}\n')
    )
    lines = shown.splitlines()
    at = next(index for index, text in enumerate(lines) if "1 |" in text)
    before = lines[at][: lines[at].index('"é')]
    assert lines[at + 1].index("^") == len(before)
    assert lines[at + 1].count("^") == len('"é😀"') + 1
    assert "\t" in lines[at + 1]


def test_text_cuts_long_lines_around_the_place() -> None:
    long = json.dumps(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "a" * 60}, "spce": {}}
    )
    found = report(long)
    lines = text_of(found).splitlines()
    at = next(index for index, text in enumerate(lines) if "1 |" in text)
    assert len(lines[at]) <= 112
    start = lines[at + 1].index("^")
    assert lines[at][start:].startswith('"spce"')


def test_long_fields_go_on_in_the_next_line(flat: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (finding,) = flat.findings
    path = (
        "spec.replicatedJobs[0].template.spec.template.spec.initContainers[0].resources.limits[nvidia.com/mig-1g.5gb]"
    )
    long = replace(flat, findings=(replace(finding, field=path),))
    lines = text_of(long).splitlines()
    at = next(number for number, line in enumerate(lines) if "spec.replicated" in line)
    assert (
        lines[at - 1].endswith(f"{finding.object},")
        and lines[at + 1] == "      resources.limits[nvidia.com/mig-1g.5gb]"
    )
    assert lines[at].strip() + lines[at + 1].strip() == path
    assert to_json(long)["findings"][0]["field"] == path


def test_text_when_clean(clean: Report) -> None:
    assert text_of(clean) == "no findings in 1 object of 1 file, for Kubernetes 1.36.\n"


def test_json_is_of_its_schema(flat: Report, clean: Report) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for found in (flat, clean, report("a: [\n"), report("# kubectl-dra: ignore\n" + CLAIM)):
        jsonschema.validate(with_exit_code(to_json(found), 1), SCHEMA)
    (finding,) = to_json(flat)["findings"]
    assert (finding["start"]["line"], finding["start"]["column"], finding["end"]["column"]) == (9, 7, 22)
    assert FLAT[finding["start"]["offset"] : finding["end"]["offset"]] == "deviceClassName"
    assert finding["fix"]["safety"] == "safe"


def test_sarif_has_what_github_wants(flat: Report, clean: Report) -> None:
    log = to_sarif(flat)
    (run,) = log["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "DRA101"
    for rule in run["tool"]["driver"]["rules"]:
        assert rule["fullDescription"]["text"] in " ".join(rule["help"]["markdown"].split())
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "f.yaml", "uriBaseId": "%SRCROOT%"}
    assert place["region"]["startLine"] == 9 and place["region"]["endColumn"] == 22
    assert run["columnKind"] == "unicodeCodePoints"
    assert to_sarif(clean)["runs"][0]["results"] == []


def test_sarif_has_no_more_than_github_takes(flat: Report) -> None:
    [found] = flat.findings
    many = [replace(found, severity="info", line=line) for line in range(1, 20)]
    many += [replace(found, line=line) for line in range(20, 20 + MOST_RESULTS)]
    [run] = to_sarif(replace(flat, findings=tuple(many)))["runs"]
    assert len(run["results"]) == MOST_RESULTS
    assert {result["level"] for result in run["results"]} == {"error"}
    [told] = run["invocations"][0]["toolExecutionNotifications"]
    assert told["message"]["text"].startswith("19 more findings are left out")


def test_sarif_fingerprints_stay_when_lines_move() -> None:
    def prints(text: str) -> list[str]:
        results = to_sarif(unknown_fields(text))["runs"][0]["results"]
        return [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]

    assert prints(FLAT) == prints("# moved\n\n" + FLAT)
    twice = prints(FLAT + "---\n" + FLAT)
    assert len(set(twice)) == 2
    assert {one.partition(":")[0] for one in twice} == {prints(FLAT)[0].partition(":")[0]}


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("a b/ü.yaml", {"uri": "a%20b/%C3%BC.yaml", "uriBaseId": "%SRCROOT%"}),
        ("./a.yaml", {"uri": "a.yaml", "uriBaseId": "%SRCROOT%"}),
        ("/elsewhere/a.yaml", {"uri": "file:///elsewhere/a.yaml"}),
    ],
)
def test_sarif_uris(file: str, uri: dict[str, str]) -> None:
    assert location_of(file) == uri


def test_sarif_uri_below_the_working_directory_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert location_of(str(tmp_path / "x" / "a.yaml"))["uri"] == "x/a.yaml"


def odd(**changes: Any) -> Report:
    found = LocatedFinding("DRA101", "error", "a,b:%.yaml", 1, 2, 1, 3, 1, 2, "Pod a", "spec", "50%\nof: <it> \x00")
    base = report(CLAIM)
    return replace(
        base, findings=(replace(found, **changes),), objects=(("a,b:%.yaml", "Pod a"), ("a,b:%.yaml", "Pod b"))
    )


def test_github_escapes() -> None:
    stream = StringIO()
    write_github(odd(), stream)
    first = stream.getvalue().splitlines()[0]
    assert first == (
        "::error file=a%2Cb%3A%25.yaml,line=1,endLine=1,col=2,endColumn=3,title=DRA101 unknown-field"
        "::Pod a: 50%25%0Aof: <it> \\u0000"
    )


def test_github_has_worst_first_and_no_columns_over_lines() -> None:
    mild = odd(severity="info").findings[0]
    both = replace(odd(end_line=2), findings=(mild, odd(end_line=2).findings[0]))
    stream = StringIO()
    write_github(both, stream)
    commands = re.findall(r"^::(\w+) (.*?)::", stream.getvalue(), re.MULTILINE)
    assert [name for name, _ in commands] == ["error", "notice"]
    assert "col=" not in commands[0][1]


def test_junit_has_a_case_per_object() -> None:
    stream = StringIO()
    write_junit(odd(), stream)
    root = ElementTree.fromstring(stream.getvalue())
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    failed, passed = root.findall("./testsuite/testcase")
    assert failed.get("file") == failed.get("classname") == "a,b:%.yaml"
    assert failed.get("name") == "Pod a" and passed.get("name") == "Pod b"
    failure = failed.find("failure")
    assert failure is not None and failure.text is not None and "<it>" in failure.text
    assert list(passed) == []


def test_junit_notes_do_not_fail() -> None:
    stream = StringIO()
    write_junit(odd(severity="info"), stream)
    root = ElementTree.fromstring(stream.getvalue())
    assert root.get("failures") == "0"
    assert root.find("./testsuite/testcase/system-out") is not None


def test_sarif_fixes_change_the_text_as_fix_does() -> None:
    from kubectl_dra.lint.fixes import fix_text, replacements
    from kubectl_dra.manifests.inputs import Input
    from kubectl_dra.manifests.source import decode

    text = FLAT.replace("\n", "\r\n")
    found = unknown_fields(text)
    log = to_sarif(found, replacements(found.findings, [Input("f.yaml", True, text.encode())]))
    (result,) = log["runs"][0]["results"]
    (fix,) = result["fixes"]
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"] == result["locations"][0]["physicalLocation"]["artifactLocation"]
    after = text
    for one in reversed(change["replacements"]):
        region = one["deletedRegion"]
        starts = [0, *(match.end() for match in re.finditer("\r\n", text))]
        start = starts[region["startLine"] - 1] + region["startColumn"] - 1
        end = starts[region["endLine"] - 1] + region["endColumn"] - 1
        after = after[:start] + one["insertedContent"]["text"] + after[end:]
    expected = fix_text(decode(text, "f.yaml"), found.findings, ("safe",), lambda name, data: ()).text.after
    assert after == expected != text


def test_sarif_has_no_fix_where_the_file_is_gone(flat: Report) -> None:
    from kubectl_dra.lint.fixes import replacements
    from kubectl_dra.manifests.inputs import Input

    assert replacements(flat.findings, [Input("f.yaml", True, b"\xff\xfe\x00")]) == {}
    assert "fixes" not in to_sarif(flat)["runs"][0]["results"][0]


def test_a_proposed_expression_is_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there to be pasted."""
    monkeypatch.setenv("COLUMNS", "60")
    text = (
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a}\nspec:\n  selectors:\n"
        '  - cel: {expression: \'"A100 80GB" in device.attributes["gpu.nvidia.com"].productName\'}\n'
    )
    lines = [line.strip() for line in text_of(report(text, "DRA2")).splitlines()]
    assert 'device.attributes["gpu.nvidia.com"].productName.contains("A100 80GB")' in lines


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_reason_of_each_rule_is_prose(rule: type[Rule], clean: Report) -> None:
    """Control characters are escaped where they are printed: none may be in what we print ourselves."""
    found = LocatedFinding(rule.code, "error", "a.yaml", 1, 1, 1, 2, 0, 1, "Pod a", "spec", "message")
    text = text_of(replace(clean, findings=(found,)))
    assert "\\n" not in text
    words = text.split("why: ")[1].split()
    assert " ".join(words).startswith(" ".join(unmarked(rule.why()).split()))
