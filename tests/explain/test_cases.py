"""Case files: small clusters, a question, and what ``kubectl dra explain`` has to say. See cases/README.md.

Every case runs the command itself with -o json; one that expects a text runs it a second time, as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kubectl_dra.explain.causes.registry import all_kinds
from tests.explain.existing import unknown
from tools.cases import CASES, FOLDER, JSON, THREADS, Case, cases_of, load_yaml, objects_of, run_case
from tools.live.proved import proof_of, way_of

SCHEMA = jsonschema.Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "schemas" / "explain.json").read_text(encoding="utf-8"))
)
CODES = {kind.code for kind in all_kinds()}
EXIT_CODES = {
    "allocated": 0,
    "can-be-scheduled": 0,
    "does-not-start": 1,
    "cannot-be-scheduled": 1,
    "undetermined": 3,
}


WITHOUT_COMMAND = {
    "claim-being-deleted": "what uses it is no pod, and only who made that knows how it ends",
    "claims-need-different-nodes": "no change of one object is the fix",
    "constraint-unsatisfiable": "all devices of the node are asked for, by a claim that a manifest has",
    "derived-attribute-fails": "the scheduler's configuration has it",
    "kueue-not-queued": "the label stands where the job is written",
    "kueue-waits": "nothing has to be done by who waits; the quota is somebody else's",
    "no-consumer": "the pod that is missing has to be written",
    "search-too-slow": "what is too slow is several requests together",
    "unsupported-request": "the field is unknown here",
    "workload-suspended": "what suspended it was not read",
}
"""Causes whose fix may have no command. Where a manifest is asked about, its file has what has to be changed."""


@pytest.mark.parametrize("case", CASES, ids=[f"{case.file}: {case.name}" for case in CASES])
def test_case(case: Case, tmp_path: Path) -> None:
    code, output = run_case(case, tmp_path, "json")
    print(output)
    judged(case, code, output)
    if "text" in case.raw["expect"]:
        shown_code, text = run_case(case, tmp_path, "text")
        assert shown_code == code
        shown(case, text)


def judged(case: Case, code: int, output: str) -> None:
    """The answer as JSON is what the case expects."""
    expect = case.raw["expect"]
    found = json.loads(output)
    SCHEMA.validate(found)
    causes = found["causes"]
    for fix in (*(cause["fix"] for cause in causes), *found.get("fixes", ())):
        told = [cause["code"] for cause in causes if cause["fix"] is fix] or [
            change["kind"] for change in fix["changes"]
        ]
        assert "commands" in fix or "tryWith" in fix or "manifest" in case.raw or {*told} <= {*WITHOUT_COMMAND}, told
    manifest = [{"metadata": {}, **entry} for entry in objects_of(case.raw.get("manifest", ()))]
    assert list(unknown(found, [*case.objects, *manifest])) == []
    assert [cause["code"] for cause in causes] == expect.get("causes", [])
    assert found["verdict"] == expect["verdict"]
    assert code == found["exitCode"] == expect.get("exit", EXIT_CODES[expect["verdict"]])
    _holds(found["answer"], expect.get("answer"))
    for name, said in SAID_OF_CAUSES.items():
        _holds_of_causes(causes, said, expect.get(name))
    if expect.get("proof") == []:
        assert not any("proof" in cause["fix"] for cause in causes)
    _holds("\n".join(found["notes"]), expect.get("notes"))
    ways = [way_of(way) for way in found.get("fixes", ())]
    _holds("\n".join(ways), expect.get("ways"))
    if expect.get("ways") == []:
        assert ways == []
    for words in _texts(expect.get("never")):
        assert words not in output


def shown(case: Case, text: str) -> None:
    """The answer as text names the causes, and has what the case expects."""
    flat = " ".join(text.split())
    for code in case.raw["expect"].get("causes", ()):
        assert code in flat
    for words in _texts(case.raw["expect"].get("text")):
        assert words in flat


def _facts(cause: JSON) -> str:
    return "\n".join(f"{fact['what']} · {fact['field']}: {fact['value']}" for fact in cause["evidence"])


SAID_OF_CAUSES: dict[str, Callable[[JSON], str]] = {
    "evidence": _facts,
    "fix": lambda cause: " ".join(
        (cause["fix"]["text"], *(command["text"] for command in cause["fix"].get("commands", ())))
    ),
    "proof": proof_of,
}
"""What a case may expect of a cause, and where it is found."""


def _holds_of_causes(causes: Sequence[JSON], said: Callable[[JSON], str], expected: Any) -> None:
    """Of the only cause; of several, each expectation names its cause, so that none can meet another's.

    A cause is named by its code, or by its number where several have one code.
    """
    if not expected:
        return
    if not isinstance(expected, dict):
        assert len(causes) == 1, "say of which cause it is expected: {CODE: text}"
        expected = {1: expected}
    for name, words in expected.items():
        (cause,) = [cause for number, cause in enumerate(causes, 1) if name in (number, cause["code"])]
        _holds(said(cause), words)


def _texts(expected: Any) -> list[str]:
    return [expected] if isinstance(expected, str) else list(expected or ())


def _holds(text: str, expected: Any) -> None:
    for words in _texts(expected):
        assert words in text


def test_every_case_expects_more_than_a_verdict() -> None:
    """A verdict and the codes of causes would be right for many wrong answers."""
    bare = [(case.file, case.name) for case in CASES if not case.raw["expect"].keys() - {"verdict", "causes"}]
    assert bare == []


def test_names_are_unique() -> None:
    names = [(case.file, case.name) for case in CASES]
    assert len(names) == len(set(names))


def test_every_cause_has_a_case_file_that_reproduces_it() -> None:
    """A file is called after the code, and its first case has that cause."""
    files = {path.stem: path for path in FOLDER.glob("*.yaml")}
    assert files.keys() == CODES
    for code, path in files.items():
        first = next(cases_of(path))
        assert code in first.raw["expect"]["causes"], path.name


def test_cases_name_known_causes() -> None:
    for case in CASES:
        assert set(case.raw["expect"].get("causes", ())) <= CODES, case


def test_threads_are_named_after_what_people_asked() -> None:
    paths = sorted(THREADS.glob("*.yaml"))
    assert len(paths) >= 25
    for path in paths:
        assert re.fullmatch(r"[A-Za-z0-9.-]+-\d+", path.stem), path.name
        about = load_yaml(path)["about"]
        assert about.startswith("https://github.com/"), path.name
        assert re.search(r"/(issues|pull)/\d+", about.split()[0]), path.name
        assert about.split()[0].rstrip("/").rsplit("/", 1)[1] == path.stem.rsplit("-", 1)[1], path.name
