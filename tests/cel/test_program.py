"""The public interface: environments, programs, traces, terms, evaluation of many devices."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kubectl_dra.cel as cel
from kubectl_dra.cel import CompileError, Environment, EvaluationError, compile_expression
from kubectl_dra.cel.columns import DeviceTable
from tests.cel.support import DEVICE, Device, compiled, expanded


def test_everything_named_is_there() -> None:
    for name in cel.__all__:
        assert getattr(cel, name) is not None
    with pytest.raises(AttributeError):
        _ = cel.nosuch


def test_environments_are_shared() -> None:
    assert Environment.for_release("1.36") is Environment.for_release("v1.36.2", {"DRAConsumableCapacity", "Other"})
    assert Environment.for_release("1.36") is not Environment.for_release("1.36", stored=True)
    for wrong in ("", "2.0", "1.x", "latest"):
        with pytest.raises(ValueError, match="release"):
            Environment.for_release(wrong)


def compiles(text: str, release: str, gates: set[str] | None = None, stored: bool = False) -> bool:
    try:
        compile_expression(Environment.for_release(release, gates, stored), text)
    except CompileError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "new_since", "stored_since"),
    [
        ("semver('1.0.0') == semver('1.0.0')", "1.31", "1.31"),
        ("[1].all(i, v, true)", "1.33", "1.32"),
        ("semver('v1', true) == semver('1.0.0')", "1.34", "1.33"),
        ("[1].sort() == [1]", "1.35", "1.34"),
    ],
)
def test_functions_arrive_in_stored_expressions_first(text: str, new_since: str, stored_since: str) -> None:
    releases = [f"1.{minor}" for minor in range(31, 38)]
    assert next(r for r in releases if compiles(text, r)) == new_since
    assert next(r for r in releases if compiles(text, r, stored=True)) == stored_since


def test_feature_gates() -> None:
    multiple = "device.allowMultipleAllocations"
    assert compiles(multiple, "1.36")
    assert not compiles(multiple, "1.36", set())
    assert compiles(multiple, "1.36", set(), stored=True)
    assert not compiles(multiple, "1.33", stored=True)
    includes = "[1].includes(1)"
    assert not compiles(includes, "1.36")
    assert compiles(includes, "1.36", {"DRAListTypeAttributes"})
    assert compiles(includes, "1.36", stored=True)
    assert not compiles(includes, "1.35", {"DRAListTypeAttributes"}, stored=True)


def test_a_program_describes_itself() -> None:
    program = compiled("A.model == 'a100'")
    assert str(program.output_type) == "bool"
    assert program.max_cost == 5
    assert program.expression == expanded("A.model == 'a100'")
    assert program.columns is not None
    assert [(c.kind, c.domain, c.id) for c in program.columns] == [("attribute", "dra.example.com", "model")]
    assert compiled("device.attributes.exists(d, true)").columns is None


def test_many_devices_are_evaluated_like_one() -> None:
    devices = [
        Device(attributes={"index": {"int": index % 3}} if index % 5 else {}, driver=f"d{index % 2}")
        for index in range(50)
    ]
    program = compiled("device.attributes[device.driver].index > 0")
    found = program.evaluate_devices(devices)
    assert len(found) == 50
    for device, ours in zip(devices, found, strict=True):
        try:
            assert program.evaluate(device) is ours
        except EvaluationError as error:
            assert isinstance(ours, EvaluationError)
            assert str(ours) == str(error)
    table = DeviceTable(devices)
    assert list(map(str, program.evaluate_devices(table))) == list(map(str, found))


def test_quantities_changed_by_one_evaluation_are_fresh_in_the_next() -> None:
    program = compiled("C.big.add(quantity('1')).compareTo(quantity('1649267441665')) == 0")
    assert program.evaluate_devices([DEVICE, DEVICE]) == [True, True]
    assert program.evaluate(DEVICE)
    table = DeviceTable([DEVICE])
    assert program.evaluate_devices(table) == program.evaluate_devices(table) == [True]


def test_terms() -> None:
    text = "device.driver == 'x' && (A.index > 5 || A.healthy) && A.model == 'a100' && true"
    terms = compiled(text).terms()
    assert [term.expression for term in terms] == [
        expanded(part) for part in ("device.driver == 'x'", "A.index > 5 || A.healthy", "A.model == 'a100'", "true")
    ]
    assert [term.evaluate(DEVICE) for term in terms] == [False, True, True, True]
    assert [term.max_cost for term in terms] == [3, 9, 5, 0]
    whole = compiled("A.healthy")
    assert whole.terms() == (whole,)


def test_terms_below_a_binding_keep_it() -> None:
    terms = compiled("cel.bind(a, A.nosuch, true && a == 1 && A.model == 'b')").terms()
    assert [term.expression for term in terms] == [expanded(t) for t in ("true", "a == 1", "A.model == 'b'")]
    assert terms[0].evaluate(DEVICE) is True
    with pytest.raises(EvaluationError, match="no such key: nosuch"):
        terms[1].evaluate(DEVICE)
    assert terms[2].evaluate(DEVICE) is False


def test_trace_shows_every_part() -> None:
    program = compiled("A.index > 5 || [1, 2].exists(x, x == A.index) || A.nosuch == 1")
    trace = program.trace(DEVICE)
    found = {entry.text: entry.outcomes for entry in trace}
    assert trace[0].text == program.expression
    assert isinstance(trace[0].error, EvaluationError)
    assert found[expanded("A.index > 5")] == (False,)
    assert found[expanded("A.index")] == (3, 3)
    assert found[expanded("x == A.index")] == (False, False)
    assert found["[1, 2]"] == ([1, 2],)
    assert found[expanded("[1, 2].exists(x, x == A.index)")] == (False,)
    assert found[expanded("A.nosuch == 1")][0].message == "no such key: nosuch"
    assert found["device.driver" if "device.driver" in found else "device.attributes"]
    for entry in trace:
        assert program.ast.source[entry.start : entry.end] == entry.text


def test_trace_leaves_skipped_parts_empty() -> None:
    trace = compiled("device.driver == 'x' && A.model == 'y'").trace(DEVICE)
    found = {entry.text: entry for entry in trace}
    assert found[expanded("A.model == 'y'")].outcomes == ()
    assert found[expanded("A.model == 'y'")].evaluations == 0
    assert found["device.driver == 'x'"].value is False


def test_trace_of_has_conditional_and_bind() -> None:
    text = "cel.bind(m, A.model, has(A.nosuch) ? m == 'x' : m.startsWith('a'))"
    found = {entry.text: entry.outcomes for entry in compiled(text).trace(DEVICE)}
    assert found[expanded("has(A.nosuch)")] == (False,)
    assert found["m.startsWith('a')"] == (True,)
    assert found["m == 'x'"] == ()
    assert found[expanded("A.model")] == ("a100",)


def test_import_is_cheap() -> None:
    code = (
        "import sys; import kubectl_dra.cel.program, kubectl_dra.cel.environment;"
        "print([m for m in ('celpy', 're2', 'rich', 'typer', 'kubernetes', 'jsonschema', 'difflib', 'yaml')"
        " if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
