"""Values of expressions as attributes."""

from __future__ import annotations

import pytest

from kubectl_dra.api.slices import Device
from kubectl_dra.cel import CompileError, Environment, EvaluationError, compile_expression
from kubectl_dra.cel.known_sizes import Size, device_sizes

DEVICE = Device("d", "a", {"model": {"string": "A100"}, "tags": {"strings": ["x", "y"]}}, {"m": {"value": "1Gi"}})
HERE = Environment.for_release("1.37", stored=True)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 1", {"int": 2}),
        ("true", {"bool": True}),
        ('device.attributes["d"].model', {"string": "A100"}),
        ('semver("1.2.3")', {"version": "1.2.3"}),
        ("[1, 2]", {"ints": [1, 2]}),
        ('[semver("1.0.0")]', {"versions": ["1.0.0"]}),
        ('device.attributes["d"].tags', {"strings": ["x", "y"]}),
        ("[].map(x, string(x))", {"strings": []}),
        ('dyn(device.attributes["d"].?model)', {"string": "A100"}),
    ],
)
def test_values(expression: str, expected: dict[str, object]) -> None:
    assert compile_expression(HERE, expression, derived=True).derived(DEVICE) == expected


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("dyn(1.5)", "unsupported CEL return type: float64"),
        ('dyn(device.attributes["d"].?nosuch)', "unsupported CEL return type: <nil>"),
        ('dyn(device.capacity["d"].m)', "unsupported CEL return type: *resource.Quantity"),
        ('[dyn(1), dyn("x")]', "expected list element at index 1 to be int, got string"),
        ("[dyn(1u)]", "unsupported list element type: uint64"),
        ('device.attributes["d"].nosuch', "no such key: nosuch"),
    ],
)
def test_no_value(expression: str, error: str) -> None:
    program = compile_expression(HERE, expression, derived=True)
    with pytest.raises(EvaluationError, match="^" + error.replace("*", r"\*") + "$"):
        program.derived(DEVICE)


def test_types_of_other_values_do_not_compile() -> None:
    with pytest.raises(CompileError, match=r"must evaluate to a primitive scalar .* or a list of these .*, not double"):
        compile_expression(HERE, "1.5", derived=True)
    new = Environment.for_release("1.37")
    with pytest.raises(CompileError, match=r"\(string, integer, boolean, semver\), not list\(int\)"):
        compile_expression(new, "[1]", derived=True)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("device",), Size(0, 0)),
        (("device", "driver"), Size(0, 63)),
        (("device", "allowMultipleAllocations"), Size(0, 1)),
        (("device", "attributes"), Size(0, 32)),
        (("device", "attributes", "@keys"), Size(0, 63)),
        (("device", "attributes", "@values"), Size(0, 32)),
        (("device", "attributes", "@values", "@keys"), Size(0, 32)),
        (("device", "attributes", "@values", "model"), Size(0, 64)),
        (("device", "attributes", "@values", "@values"), Size(0, 64)),
        (("device", "attributes", "@values", "model", "@items"), None),
        (("device", "attributes", "domain"), None),
        (("device", "capacity", "@values"), Size(0, 32)),
        (("device", "capacity", "@values", "memory"), None),
        (("device", "capacity", "@values", "@values"), Size(0, 0)),
        (("other",), None),
        ((), None),
    ],
)
def test_assumed_sizes(path: tuple[str, ...], expected: Size | None) -> None:
    assert device_sizes(path) == expected
