"""What a term of a selector asks for, in words."""

from __future__ import annotations

import pytest

from kubectl_dra.cel import Environment, compile_expression
from kubectl_dra.explain.funnel.selector_terms import plain
from kubectl_dra.report.phrases import written

A = 'device.attributes["d.io"]'
C = 'device.capacity["d.io"]'


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (f'{A}.model == "H100"', "model H100"),
        (f'"H100" == {A}.model', "model H100"),
        (f'{A}.model != "T4"', "a model other than T4"),
        (f'{A}.model in ["A", "B", "C"]', "model A, B or C"),
        (f'!({A}.model in ["A", "B"])', "a model other than A or B"),
        (f"{A}.index >= 4", "index of at least 4"),
        (f"4 > {A}.index", "index below 4"),
        (f'{C}.memory.compareTo(quantity("80Gi")) >= 0', "memory of at least 80Gi"),
        (f'0 > {C}.memory.compareTo(quantity("80Gi"))', "memory below 80Gi"),
        (f'{C}.memory.isGreaterThan(quantity("1Gi"))', "memory above 1Gi"),
        (f'{A}.version.isLessThan(semver("2.0.0"))', "version below 2.0.0"),
        (f'{A}.model.startsWith("NVIDIA")', "a model that starts with NVIDIA"),
        (f'{A}.model.matches("^A1.*")', "a model that matches ^A1.*"),
        (f"{A}.rdma", "rdma true"),
        (f"!{A}.rdma", "rdma false"),
        (f"has({A}.numa)", "attribute numa"),
        (f"!has({A}.numa)", "no attribute numa"),
        (f'{A}.model == "A" || {A}.index == 1', "model A or index 1"),
        ('device.driver == "d.io"', "driver d.io"),
    ],
)
def test_common_comparisons_have_words(expression: str, words: str) -> None:
    assert written(asked(expression)) == words


@pytest.mark.parametrize(
    "expression",
    [
        f'{A}.model.lowerAscii() == "h100"',
        f"{A}.?model.orValue('x') == 'x'",
        f"{A}.index + 1 == 4",
        f"{A}.model == {A}.other",
        f'{A}.model in ["1", "2", "3", "4", "5"]',
        f"cel.bind(m, {A}, m.index == 1)",
        f'{A}.model == "A" || {A}.index + 1 == 1',
        "device.attributes.exists(d, true)",
    ],
)
def test_what_words_would_not_say_exactly_has_none(expression: str) -> None:
    assert asked(expression) is None


def asked(expression: str) -> object:
    return plain(compile_expression(Environment.for_release("1.36"), expression))
