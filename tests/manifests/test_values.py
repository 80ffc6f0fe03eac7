"""The values are those that sigs.k8s.io/yaml 1.6, which kubectl uses, gave for the same texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.values import scalar

_STRINGS = (
    "yEs tRUE nULL 12:30:45 1:30 2001-01-01 2001-12-14t21:59:43.10-05:00 2026-01-01T00:00:00Z 1Gi 500m 1e 0x 0b "
    "0b2 0o8 0xg 1e400 -1e400 1e5.5 _1 . .. -- +. 00x1 1+1 0-1 = 1k v1.2 1.2.3"
)


def _value(text: str, **options: Any) -> Any:
    (document,) = read_documents(text, "f.yaml", **options)
    return document.object


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        ("y Y yes Yes YES true True TRUE on On ON", True),
        ("n N no No NO false False FALSE off Off OFF", False),
        ("~ null Null NULL", None),
        ("010 0o10 0O10 +8 8 0_1_0 0b1000", 8),
        ("0b11 0B11 +0b11 3", 3),
        ("-0b11 -3", -3),
        ("0x1F 0X1f 31", 31),
        ("1_000 1000 1__0_00", 1000),
        ("9223372036854775808", 9223372036854775808),
        ("-9223372036854775808 -0x8000000000000000", -9223372036854775808),
        ("18446744073709551615 0xffffffffffffffff", 18446744073709551615),
        ("18446744073709551616 +18446744073709551615", 18446744073709551616.0),
        ("08 8. 8.0 8e0 80e-1 +8.0", 8.0),
        (".5 +.5 0.5 5e-1 .5_0", 0.5),
        ("1e3 1E3 1e+3", 1000.0),
        ("0 -0 +0 00 000", 0),
    ],
)
def test_plain_scalars(texts: str, value: Any) -> None:
    for text in texts.split():
        found = _value(f"a: {text}")["a"]
        assert found == value, text
        assert type(found) is type(value), text


@pytest.mark.parametrize(
    "text",
    [
        "yEs",
        "tRUE",
        "nULL",
        "12:30:45",
        "1:30",
        "2001-01-01",
        "2001-12-14t21:59:43.10-05:00",
        "2026-01-01T00:00:00Z",
        "1Gi",
        "500m",
        "1e",
        "0x",
        "0b",
        "0b2",
        "0o8",
        "0xg",
        "1e400",
        "-1e400",
        "1e5.5",
        "_1",
        ".",
        "..",
        "--",
        "+.",
        "00x1",
        "1+1",
        "0-1",
        "=",
        "1k",
        "v1.2",
        "1.2.3",
    ],
)
def test_plain_strings(text: str) -> None:
    assert _value(f"a: {text}") == {"a": text}
    assert scalar(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 'yes'", "yes"),
        ('a: "010"', "010"),
        ("a: !!str 010", "010"),
        ("a: !!str", ""),
        ("a: !foo 010", "010"),
        ("a: !foo [010]", [8]),
        ("a: !!int '3'", 3),
        ("a: !!float 3", 3.0),
        ("a: !!binary aGk=", "hi"),
        ("a:", None),
        ("a: ''", ""),
        ("a: |\n  x\n  y\n", "x\ny\n"),
        ("a: >-\n  x\n  y\n", "x y"),
        ("a: x\n  y", "x y"),
        ("a: b\t# comment", "b"),
        ("a:\tb", "b"),
        ("a: b#c", "b#c"),
        ("a: é😀", "é😀"),
    ],
)
def test_other_scalars(text: str, value: Any) -> None:
    assert _value(text) == {"a": value}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("y", "true"),
        ("on", "true"),
        ("off", "false"),
        ("'on'", "on"),
        ("010", "8"),
        ("1.10", "1.1"),
        ("1.0", "1"),
        ("1e3", "1000"),
        ("1e20", "1e+20"),
        ("3.14159265358979", "3.1415927"),
        (".inf", ".inf"),
        ("2001-01-01", "2001-01-01"),
    ],
)
def test_keys_become_strings(text: str, key: str) -> None:
    assert _value(f"{text}: 1") == {key: 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("~: 1", "1:1: a key must be a string, not null"),
        ("? [a]\n: b", "1:3: a key must be a string"),
        ("18446744073709551615: 1", "1:1: a key must be a string; this number is too large"),
        ("a: .inf", "1:4: .inf is not a number in JSON"),
        ("a: .nan", "1:4: .nan is not a number"),
        ("a: !!int yes", "1:4: 'yes' is not a !!int"),
        ("a: !!binary '*'", "1:4: !!binary is not base64"),
        ("a: &a [1, *a]", "1:4: an anchor contains itself"),
        ("y: {<<: 1}", "1:9: a merge key needs a mapping"),
        ("a: *nope", "1:4: not valid YAML: found undefined alias"),
        ('a: "\\ud83d\\ude00"', "not valid YAML"),
    ],
)
def test_no_value(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        _value(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("f.yaml:1:")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("x: &x {a: 1, b: 2}\nr: {<<: *x, b: 3}", {"a": 1, "b": 3}),
        # The merge is applied where it stands.
        ("x: &x {a: 1, b: 2}\nr: {b: 3, <<: *x}", {"a": 1, "b": 2}),
        ("x: &x {a: 1}\nz: &z {a: 2, c: 3}\nr: {<<: [*x, *z]}", {"a": 1, "c": 3}),
        ("r: {'<<': {a: 1}}", {"<<": {"a": 1}}),
        ("x: &x [1]\nr: [*x, *x]", [[1], [1]]),
    ],
)
def test_merge_keys_and_aliases(text: str, result: Any) -> None:
    assert _value(text)["r"] == result


def test_duplicate_keys() -> None:
    assert _value("a: 1\nb: 2\na: 3") == {"a": 3, "b": 2}
    assert _value('{"a": 1, "a": 3}') == {"a": 3}
    with pytest.raises(InputError, match=r'f.yaml:3:1: the key "a" is there twice'):
        _value("a: 1\nb: 2\na: 3", strict=True)
    with pytest.raises(InputError, match='the key "a" is there twice'):
        _value('{"a": 1, "a": 3}', strict=True)


def test_alias_bomb_is_refused_quickly() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    with pytest.raises(InputError, match="aliases expand this document"):
        _value("\n".join(levels))
    assert len(_value("\n".join(levels[:4]))) == 4


def test_deep_nesting_is_refused() -> None:
    for text in ("[" * 100_000, "a: " + "[" * 1000 + "]" * 1000, "- " * 5000, '{"a":' * 100_000):
        with pytest.raises(InputError):
            _value(text)
    assert _value("a: " + "[" * 300 + "]" * 300)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.floats(-1e300, 1e300),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), _JSON, max_size=4))
def test_json_is_read_as_json(value: dict[str, Any]) -> None:
    assert _value(json.dumps(value, ensure_ascii=False)) == value
    assert _value(json.dumps(value)) == value
