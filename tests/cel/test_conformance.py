"""Agreement with recorded answers of Kubernetes: every line, on every run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kubectl_dra.api.limits import MAX_EXPRESSION_BYTES, MAX_EXPRESSION_COST
from kubectl_dra.cel import CompileError, Environment, EvaluationError, compile_expression
from tests.conformance.cel import DATA, compare, of_vendor, read_cases, read_devices

_VENDORS = json.loads((DATA / "vendor-cel-cases.json").read_text())


def test_corpus_of_kubernetes_1_36() -> None:
    devices = read_devices(DATA / "cel-devices.json")
    cases = list(read_cases(DATA / "cel.jsonl.gz"))
    assert len(cases) == 3347
    disagreements = [found for case in cases if (found := compare(case, devices)) is not None]
    assert not disagreements, "\n".join(map(str, disagreements[:20]))


@pytest.mark.parametrize(("release", "count"), [("1.34", 1307), ("1.35", 1309), ("1.36", 1459), ("1.37", 1459)])
def test_corpus_of_each_release(release: str, count: int) -> None:
    cases = list(read_cases(DATA / f"cel-{release}.jsonl.gz"))
    assert len(cases) == count
    assert {case["devices"] for case in cases} == {"selector-devices.json"}
    _agree([case for case in cases if not _runs_for_long(case)])


RELEASES = ("1.34", "1.35", "1.36", "1.37")


@pytest.mark.parametrize(
    ("release", "one_in"),
    [("1.37", 4), *(pytest.param(each, 1, marks=pytest.mark.exhaustive) for each in RELEASES)],
)
def test_expressions_that_run_for_long(release: str, one_in: int) -> None:
    """They end by the limit of cost, which is the same in all releases, and take most of the time."""
    cases = [case for case in read_cases(DATA / f"cel-{release}.jsonl.gz") if _runs_for_long(case)]
    assert len(cases) > 10
    _agree(cases[::one_in])


def _agree(cases: Sequence[dict[str, Any]]) -> None:
    devices = read_devices(DATA / "selector-devices.json")
    disagreements = [found for case in cases if (found := compare(case, devices, _is_by_hand(case))) is not None]
    assert not disagreements, "\n".join(map(str, disagreements[:20]))


def _runs_for_long(case: dict[str, Any]) -> bool:
    cost: int = case["expect"].get("maxCost", 0)
    return cost > MAX_EXPRESSION_COST


def _is_by_hand(case: dict[str, Any]) -> bool:
    """Whether a case was written for what it costs, too: its actual costs are compared."""
    return str(case["id"]).startswith("fixed-")


def test_a_wrong_expectation_is_noticed() -> None:
    devices = read_devices(DATA / "cel-devices.json")
    case = next(read_cases(DATA / "cel.jsonl.gz"))
    expect = case["expect"]
    for wrong in (
        {"compileError": "no"},
        expect | {"maxCost": expect["maxCost"] + 1},
        expect | {"results": [not result for result in expect["results"]]},
        expect | {"results": [{"error": "x"} for _ in expect["results"]]},
    ):
        assert compare(case | {"expect": wrong}, devices) is not None


@pytest.mark.parametrize("release", ["1.34", "1.36"])
def test_selectors_of_real_vendors(release: str) -> None:
    environment = Environment.for_release(release, {"DRAConsumableCapacity"})
    for case in _VENDORS["cases"]:
        assert len(case["expr"].encode()) <= MAX_EXPRESSION_BYTES
        ours: dict[str, str] = {}
        cost = None
        try:
            program = compile_expression(environment, case["expr"])
        except CompileError:
            ours = dict.fromkeys(case["want"], "compile error")
        else:
            cost = program.max_cost
            for name in case["want"]:
                try:
                    ours[name] = str(program.evaluate(of_vendor(_VENDORS["devices"][name]))).lower()
                except EvaluationError:
                    ours[name] = "error"
        assert ours == case["want"], case["name"]
        if cost is not None:
            assert cost == case["max_cost"], case["name"]
            assert (cost > _VENDORS["cost_limit"]) == case["rejected_by_api_cost"], case["name"]
