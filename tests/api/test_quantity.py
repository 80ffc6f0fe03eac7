"""Quantities against what Kubernetes 1.36 answers, and against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.api.quantity import Quantity, QuantityError, nanos_of

CANONICAL = [
    ("0", "0"),
    ("1024Mi", "1Gi"),
    ("1025Mi", "1025Mi"),
    ("1.5Gi", "1536Mi"),
    ("0.1Gi", "107374182400m"),
    ("512", "512"),
    ("1500m", "1500m"),
    ("1.5", "1500m"),
    ("0.5", "500m"),
    ("2000", "2k"),
    ("1e3", "1e3"),
    ("12e6", "12e6"),
    ("1e4", "10e3"),
    ("0.3Ki", "307200m"),
    ("1000Ki", "1000Ki"),
    ("8Ei", "9223372036854775807"),
    ("0.1n", "1n"),
    ("-1.5n", "-2n"),
    ("0.5e-9", "1e-9"),
    # Forms that upstream already takes for canonical keep their spelling.
    ("+1", "+1"),
    ("1.500", "1.500"),
    ("1E3", "1E3"),
    # Odd, but accepted.
    ("-", "0"),
    (".", "0"),
    ("1.G", "1.G"),
    ("1000E", "1"),
    ("1e99999999999", "10e1215752190"),
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "quantities must match"),
        ("1..2", "quantities must match"),
        (" 1", "quantities must match"),
        ("1 Gi", "quantities must match"),
        ("GiB", "quantities must match"),
        ("200K", "unable to parse quantity's suffix"),
        ("1i", "unable to parse quantity's suffix"),
        ("1e", "unable to parse quantity's suffix"),
        ("Ei", "unable to parse numeric part"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(QuantityError, match=message):
        Quantity.parse(text)


@pytest.mark.parametrize(
    ("value", "canonical"),
    [(5, "5"), (1000, "1k"), (0.5, "500m"), (1000.0, "1k"), (1e-7, "100e-9"), (1e21, "1e+21"), (-2, "-2")],
)
def test_numbers_are_read_as_json_writes_them(value: float, canonical: str) -> None:
    assert str(Quantity.parse(value)) == canonical


def test_json_values() -> None:
    assert Quantity.from_json(None) == Quantity.parse("0")
    assert str(Quantity.from_json(" 1Gi\u00a0")) == "1Gi"
    # In JSON a line's end is an escape, which the API does not take for a blank.
    wrongs: list[object] = ["1Gi\n", "\t1Gi", True, [], {"value": "1"}, float("nan")]
    for wrong in wrongs:
        with pytest.raises(QuantityError):
            Quantity.from_json(wrong)


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("50k", 50_000),
        ("1Gi", 2**30),
        ("9223372036854775807", None),
        ("1500m", None),
        ("1000m", None),
        ("1.5Gi", None),
        ("9999999999999999999G", None),
        ("0", 0),
    ],
)
def test_as_int64_is_none_for_whatever_kubernetes_keeps_as_a_decimal(text: str, integer: int | None) -> None:
    quantity = Quantity.parse(text)
    assert quantity.as_int64() == integer
    assert quantity.is_integer() is (integer is not None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1500m", 2),
        ("-1500m", -2),
        ("1", 1),
        ("0.1Gi", 107374183),
        ("1000E", 0),
        ("-0.1Gi", -107374181),
        ("3n", 1),
    ],
)
def test_value_rounds_up_as_upstream_does(text: str, value: int) -> None:
    assert Quantity.parse(text).value() == value


@pytest.mark.parametrize(
    ("left", "operation", "right", "result"),
    [
        ("1Gi", "add", "1Gi", "2Gi"),
        ("1Gi", "add", "1", "1073741825"),
        ("1G", "add", "1Gi", "2073741824"),
        ("0", "add", "1Gi", "1Gi"),
        ("0", "sub", "1Ki", "-1Ki"),
        ("1e3", "add", "500", "1500"),
        ("1e3", "add", "1e3", "2e3"),
        ("500m", "add", "500m", "1"),
        ("8E", "add", "8E", "16E"),
        ("1Gi", "sub", "1Gi", "0"),
    ],
)
def test_sums_keep_the_format_of_the_left(left: str, operation: str, right: str, result: str) -> None:
    calculate = getattr(Quantity.parse(left), operation)
    assert str(calculate(Quantity.parse(right))) == result


def test_products_and_negation() -> None:
    assert str(Quantity.parse("10Gi") * 3) == "30Gi"
    assert str(Quantity.parse("500m") * 3) == "1500m"
    assert str(Quantity.parse("1Gi") * 0) == "0"
    assert (Quantity.parse("8E") * 1000).wide
    assert str(-Quantity.parse("1Gi")) == "-1Gi"
    assert [Quantity.parse(text).sign() for text in ("-1n", "0", "1n")] == [-1, 0, 1]


def test_sums_are_marked_as_computed() -> None:
    one = Quantity.parse("1")
    assert not one.computed
    assert (one + one).computed and (one - 1).computed
    assert one + one == Quantity.parse("2")


def test_whole_numbers_print_with_binary_suffixes() -> None:
    assert str(Quantity.of(3 * 2**30)) == "3Gi"
    assert str(Quantity.of(1000)) == "1k"
    assert str(Quantity.of(2000, "DecimalSI")) == "2k"


def test_enormous_exponents_are_cheap() -> None:
    huge = Quantity.parse("1e2000000000")
    assert huge > Quantity.parse("9E")
    assert huge.approximate_float() == float("inf")
    with pytest.raises(QuantityError):
        huge.add(Quantity.parse("1"))
    assert str(Quantity.parse("9" * 5000 + "k")) == "9" * 5000 + "k"


NUMBERS = st.from_regex(r"[+-]?[0-9]{1,12}(\.[0-9]{0,12})?", fullmatch=True)
SUFFIXES = st.sampled_from(
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2", "e+1"]
)
TEXTS = st.builds(str.__add__, NUMBERS, SUFFIXES)
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def exact(text: str) -> Fraction:
    """The value by plain arithmetic: rounded to nanos away from zero, binary ones capped."""
    number = text.rstrip("numkKMGTPEi") if text[-1] in "numkKMGTPEi" else text
    suffix = text[len(number) :]
    if suffix.endswith("i"):
        value = Fraction(number) * 1024 ** ("KMGTPE".index(suffix[0]) + 1)
    else:
        value = Fraction(number) * Fraction(10) ** _POWERS[suffix]
    nanos = abs(value) * 10**9
    rounded = Fraction(-(-nanos.numerator // nanos.denominator), 10**9)
    if suffix.endswith("i"):
        rounded = min(rounded, Fraction(2**63 - 1)) if rounded > 2**63 - 1 else rounded
    return -rounded if value < 0 else rounded


@given(TEXTS)
def test_the_value_is_exact(text: str) -> None:
    assert Fraction(Quantity.parse(text).nanos, 10**9) == exact(text)


@given(TEXTS.filter(lambda text: abs(exact(text)) < 10**21))
def test_the_text_reads_back_as_the_same_quantity(text: str) -> None:
    quantity = Quantity.parse(text)
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert hash(again) == hash(quantity)


@given(TEXTS, TEXTS)
def test_order_agrees_with_fractions(left: str, right: str) -> None:
    a, b = Quantity.parse(left), Quantity.parse(right)
    x, y = exact(left), exact(right)
    assert a.compare(b) == (x > y) - (x < y)
    assert (a < b, a <= b, a == b, a >= b, a > b) == (x < y, x <= y, x == y, x >= y, x > y)


@given(TEXTS, TEXTS)
def test_sums_agree_with_fractions(left: str, right: str) -> None:
    a, b = Quantity.parse(left), Quantity.parse(right)
    assert Fraction((a + b).nanos, 10**9) == exact(left) + exact(right)
    assert Fraction((a - b).nanos, 10**9) == exact(left) - exact(right)


@given(st.from_regex(r"[+-]?[0-9]{0,17}(\.[0-9]{0,3})?(Ki|Mi|Gi|Ti|Pi|Ei|m|k|e3)?", fullmatch=True))
def test_nano_units_are_those_of_the_quantity(text: str) -> None:
    try:
        expected = Quantity.parse(text).nanos
    except QuantityError:
        with pytest.raises(QuantityError):
            nanos_of(text)
    else:
        assert nanos_of(text) == expected


def test_nothing_beyond_64_bits_is_narrow() -> None:
    """A sum with it is exact, as with the big decimals that Kubernetes holds it in: it does not wrap around."""
    half, many = Quantity(536_870_912 * 10**9, -9, "BinarySI"), Quantity(17_179_869_184 * 10**9, -9, "BinarySI")
    assert many.wide and not half.wide
    assert str(half + many) == str(many + half) == "16896Mi"
