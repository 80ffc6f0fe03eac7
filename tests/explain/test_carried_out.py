"""Every fix that an answer calls proved is true when it is carried out, and ``--what-if`` agrees with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tools.asked import Asked, of_allocation, of_example, of_recording
from tools.carry_out import EXTENDED, MORE, carried_out, fixes
from tools.cases import CASES, asked
from tools.examples import arguments, examples
from tools.recorder.recorded import lines

DATA = Path(__file__).parents[1] / "conformance" / "data"
JSON = dict[str, Any]


def problems(question: Asked) -> Iterator[str]:
    """What is not so after a fix that the answer offers as proved."""
    answer = question.answer()
    offered = [(one, text, fix) for one in answer.get("items", (answer,)) for text, fix in fixes(one)]
    short = " ".join(question.ask().out.split()) if offered else ""
    # Where one change is the fix of several requests, the last proof has it for all of them.
    last = {text: fix for _, text, fix in offered}
    for one, text, fix in offered:
        for problem in (
            *_carried_out(question, one, text, fix),
            *_supposed(question, one, fix),
            *_told(short, text, last[text]),
        ):
            yield f"{question.name}: {text}: {problem}"


def _carried_out(question: Asked, one: JSON, text: str, fix: JSON) -> Iterator[str]:
    """The pod can be scheduled, on the node that the proof names."""
    after = carried_out(question, one, text, fix)
    found = _same(after.answer(), one)
    proof = fix["proof"]
    node = proof["newNodeLike"] + MORE if "newNodeLike" in proof else proof["node"]
    fitting = [name for group in found["nodeGroups"] if group["outcome"] == "allocated" for name in group["nodes"]]
    if "otherCauses" in proof and {cause["code"] for cause in found["causes"]} <= {*proof["otherCauses"]}:
        return  # The text says that they have to be mended as well.
    if not _fits(found, one) and not _contested(found, proof):
        yield f"carried out: {found['answer']} {found['notes']}"
    elif found["claims"] and node not in fitting:
        yield f"carried out: fits on {fitting}, not on {node}: {found['answer']}"


def _supposed(question: Asked, one: JSON, fix: JSON) -> Iterator[str]:
    """``--what-if`` says that it fits, on the same node with the same devices."""
    if "whatIf" not in fix:
        return
    found = _same(question.answer(*(word for change in fix["whatIf"] for word in ("--what-if", change))), one)
    proof = fix["proof"]
    if _contested(found, proof):
        return
    if not _fits(found, one):
        yield f"--what-if {fix['whatIf']}: {found['answer']}"
        return
    there = [entry["devices"] for entry in found["placements"] if entry["node"] == proof["node"]]
    if there != [proof["devices"]]:
        words = f"on {proof['node']} {json.dumps(there)}, proved {json.dumps(proof['devices'])}"
        yield f"--what-if {fix['whatIf']}: {words}"


def _fits(found: JSON, one: JSON) -> bool:
    """Whether the pod can be scheduled, or only waits for its claim to be made, as the answer had said before."""
    if found["verdict"] == "can-be-scheduled":
        return True
    codes = [[cause["code"] for cause in answer["causes"]] for answer in (found, one)]
    return found["verdict"] == "undetermined" and codes[0] == ["claim-not-created"] and codes[0][0] in codes[1]


def _contested(found: JSON, proof: JSON) -> bool:
    """Whether the answer is open because of just those pods that the proof names as who may take it first."""
    names = [f"{rival['namespace']}/{rival['name']}" for rival in proof.get("rivals", ())]
    return bool(names) and found["verdict"] == "undetermined" and all(name in found["answer"] for name in names)


def _told(short: str, text: str, fix: JSON) -> Iterator[str]:
    """Where the short text offers the fix, it is whole, and says what else the pod needs."""
    start = text.rstrip(".").lower()
    if len(fix.get("changes", ())) > 1 or start[: len(start) * 3 // 4] not in short.lower():
        return
    if start not in short.lower():
        yield f"cut short: {short}"
    proof = fix["proof"]
    for other in (*proof.get("changedAsWell", ()), *proof.get("setAside", ())):
        if f'"{other["request"]}"' not in short and other["claim"]["name"] != EXTENDED:
            yield f"does not name request {other['request']}: {short}"
    if "setAside" in proof and "fails too)" not in short and "fail too)" not in short:
        yield f"does not say that others fail: {short}"
    for code in proof.get("otherCauses", ()):
        if not any(f"once {code}" in part or f"and {code}" in part for part in short.split("(")):
            yield f"does not say that {code} has to be mended: {short}"


def _same(answer: JSON, one: JSON) -> JSON:
    """The answer about the same pod or claim."""
    found: JSON
    (found,) = [entry for entry in answer.get("items", (answer,)) if entry["subject"] == one["subject"]]
    return found


@pytest.mark.parametrize("file", sorted({case.file for case in CASES}))
def test_cases(file: str) -> None:
    found = [problem for case in CASES if case.file == file for problem in problems(asked(case))]
    assert found == []


@pytest.mark.parametrize("example", examples(), ids=lambda path: path.name)
def test_examples(example: Path) -> None:
    assert list(problems(of_example(example, arguments(example)))) == []


@pytest.mark.parametrize("name", ["alloc", "alloc-1.37"])
def test_some_recorded_allocations(name: str) -> None:
    some = islice(lines(DATA / f"{name}.jsonl.gz"), 0, None, 50)
    assert [problem for case in some for problem in problems(of_allocation(case))] == []


@pytest.mark.parametrize("name", ["pods", "pod-releases"])
def test_some_recorded_pods(name: str) -> None:
    some = islice(lines(DATA / f"{name}.jsonl.gz"), 0, None, 20)
    assert [problem for case in some for problem in problems(of_recording(case))] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["alloc", "alloc-1.34", "alloc-1.35", "alloc-1.36", "alloc-1.37"])
def test_recorded_allocations(name: str) -> None:
    assert [problem for case in lines(DATA / f"{name}.jsonl.gz") for problem in problems(of_allocation(case))] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["pods", "scheduled", "pod-releases", "pod-profiles", "pod-node-resources"])
def test_recorded_pods(name: str) -> None:
    assert [problem for case in lines(DATA / f"{name}.jsonl.gz") for problem in problems(of_recording(case))] == []
