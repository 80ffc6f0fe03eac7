"""No answer depends on how fast the machine is, or on what else runs there: limits are counted in steps."""

from __future__ import annotations

import ast
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubectl_dra.allocation.budgets import NODE_STEPS, Budget
from kubectl_dra.api.nodes import Node
from tests.ran import ran
from tools.benchmarks.search import cases
from tools.builders import cycle
from tools.cases import CASES, Case, run_case
from tools.examples import arguments, examples, fit_examples

PACKAGE = Path(__file__).parents[1] / "kubectl_dra"
CLOCKS = frozenset(
    name + unit
    for name in ("monotonic", "perf_counter", "process_time", "thread_time", "time", "clock_gettime")
    for unit in ("", "_ns")
)
WAITING = {
    "process.py": "a child process that is ended when it takes too long",
    "cel/cel_python.py": "how long another implementation of CEL may take to say what it thinks",
    "cli/": "waiting for the cluster, and how long a command took",
    "cluster/": "waiting for a server, a program or a pipe, and how old a token is",
    "metrics/exposition.py": "when the cluster is counted again, and how long a count took",
    "taint/steady_watches.py": "waiting for the cluster",
    "ui/worker.py": "when the cluster is read again",
}
"""Where time may be measured, and what for."""
FASTER = 1_000


def _clocks(path: Path) -> Iterator[str]:
    """The clocks that a module reads."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "import time" in text or "from time" in text else ():
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "time":
            yield from {node.attr} & CLOCKS
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from {alias.name for alias in node.names} & CLOCKS


def test_no_clock_decides() -> None:
    read = {
        path.relative_to(PACKAGE).as_posix(): sorted(found)
        for path in PACKAGE.rglob("*.py")
        if (found := set(_clocks(path)))
    }
    allowed = tuple(WAITING)
    assert {name: found for name, found in read.items() if not name.startswith(allowed)} == {}
    assert [name for name in WAITING if not any(each.startswith(name) for each in read)] == []


@pytest.fixture
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which everything takes a thousand times as long by its clocks."""
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        monkeypatch.setattr(time, name, _hurried(getattr(time, name)))


def _hurried(clock: Callable[[], float]) -> Callable[[], float]:
    start = clock()
    return lambda: start + FASTER * (clock() - start)


def _said(example: Path) -> tuple[int, str]:
    with contextlib.chdir(example):
        return ran(*arguments(example), "-o", "json")[:2]


@pytest.mark.parametrize("example", [*examples(), *fit_examples()], ids=lambda example: example.name)
def test_examples_on_a_slow_machine(example: Path, request: pytest.FixtureRequest) -> None:
    usual = _said(example)
    request.getfixturevalue("slow_machine")
    assert _said(example) == usual


def _answer(case: Case, folder: Path) -> object:
    code, output = run_case(case, folder, "json")
    return code, json.loads(output)


@pytest.mark.parametrize("number", range(16))
def test_cases_on_a_slow_machine(number: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    some = CASES[number::64]
    usual = [_answer(case, tmp_path) for case in some]
    request.getfixturevalue("slow_machine")
    assert [_answer(case, tmp_path) for case in some] == usual


@pytest.mark.usefixtures("slow_machine")
@pytest.mark.parametrize("name", cases())
def test_searches_on_a_slow_machine(name: str) -> None:
    slices, claims = cases()[name]
    attempt = cycle(slices).attempt(Node.named("n1"), claims, budget=Budget(NODE_STEPS))
    assert attempt.verdict.value in ("allocated", "rejected", "error")
