"""Findings are exactly where they are written, in every style of YAML and in JSON."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.lint.locate import position_of, token_range, written_path
from kubectl_dra.manifests.documents import Document, read_documents
from kubectl_dra.manifests.places import source_offsets
from tests.lint.support import findings


def document(text: str) -> Document:
    (found,) = read_documents(text.encode(), "f.yaml")
    return found


def marked(text: str, word: str) -> str:
    """The source of a word of the value at ``e``."""
    found = document(text)
    at = found.object["e"].index(word)
    position = position_of(found, ("e",), (at, at + len(word)))
    return found.source.text[position.offset : position.end_offset]


@pytest.mark.parametrize(
    "text",
    [
        "e: a b WORD c\n",
        "e: a\n  b\n\n  WORD c\nz: 1\n",
        "e: 'it''s a WORD'\n",
        "e: 'it''s\n   a\n\n\n   WORD'\n",
        'e: "\\u00e9 \\"q\\" \\x41 WORD"\n',
        'e: "a\\\n   b \\\n   WORD\n   c"\n',
        "e: |\n  a\n\n    b\n  WORD\nz: 1\n",
        "e: |2-\n    a\n  WORD",
        "e: |+\n  a\n  WORD\n\n\nz: 1\n",
        "e: >\n  a\n  b\n\n  WORD\n",
        "e: >- # a comment\n  a\n    more\n\n    more\n  b\n  WORD\n\n\nz: 1\n",
        "e: >\n\n\n  a WORD\n",
        "\ufeffe: >\r\n  a 😀\r\n  WORD\r\nz: 1\r\n",
        "x: &a |\n  😀\n  WORD\ne: *a\n",
        "e: !!str &z a WORD\n",
        "{e: a WORD, z: 1}\n",
        '{"e": "\\ud83d\\ude00 \\/ \\n WORD"}',
        '{"z": 1,\n "e": "😀 WORD"}',
    ],
)
def test_word_in_every_style(text: str) -> None:
    assert marked(text, "WORD") == "WORD"


def test_escapes_are_marked_whole() -> None:
    assert marked('e: "a \\"b\\""\n', '"b"') == '\\"b\\"'
    assert marked('{"e": "a\\ud83d\\ude00b"}', "😀") == "\\ud83d\\ude00"
    assert marked("e: 'a''b'\n", "'") == "''"


def test_the_end_of_a_text() -> None:
    found = document("e: 'abc'\n")
    position = position_of(found, ("e",), (3, 3))
    assert (position.line, position.column, position.end_column) == (1, 8, 8)


def test_what_yaml_changed_otherwise_is_marked_whole() -> None:
    found = document("e: !!binary aGVsbG8=\n")
    position = position_of(found, ("e",), (1, 2))
    assert found.source.text[position.offset : position.end_offset] == "!!binary aGVsbG8="


TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")) | st.sampled_from("\n :#'\"\\{[-é😀"), max_size=40
)


@given(TEXTS, st.sampled_from(("'", '"', "|", ">", None)))
def test_every_character_is_found(value: str, style: Any) -> None:
    text = yaml.safe_dump({"k": {"e": value}}, default_style=style, allow_unicode=True, width=12)
    found = document(text)
    node = found.nodes(("k", "e"))
    assert node is not None
    read = found.object["k"]["e"]
    if not isinstance(read, str):
        return
    offsets = source_offsets(text, node.value, read)
    assert offsets is not None
    assert all(start <= end for start, end in offsets)
    assert all(one[1] <= other[0] for one, other in pairwise(offsets))
    for character, (start, end) in zip(read, offsets, strict=True):
        # One character of source is itself, or a line end that was folded.
        assert end - start != 1 or text[start] == character or (character == " " and text[start] == "\n")


@given(TEXTS)
def test_every_character_of_json_is_found(value: str) -> None:
    text = json.dumps({"e": value})
    found = document(text)
    node = found.nodes(("e",))
    assert node is not None
    offsets = source_offsets(text, node.value, value)
    assert offsets is not None
    assert "".join(json.loads(f'"{text[start:end]}"') for start, end in offsets) == value


def test_mappings_are_marked_by_their_key_and_items_by_their_first_line() -> None:
    found = document("a:\n  b:\n  - c: 1\n    d: 2\n")
    source = found.source.text

    def shown(*path: str | int) -> str:
        position = position_of(found, path)
        return source[position.offset : position.end_offset]

    assert shown("a") == "a"
    assert shown("a", "b", 0) == "c: 1"
    assert shown("a", "b", 0, "missing") == "c: 1"
    assert shown("a", "missing", "below") == "a"
    assert shown("a", "b", 0, "d") == "2"


def test_paths_of_v1_in_older_versions() -> None:
    claim = {"apiVersion": "resource.k8s.io/v1beta1", "spec": {"devices": {"requests": [{"name": "a", "count": 1}]}}}
    assert written_path(claim, ("spec", "devices", "requests", 0, "exactly", "count"))[-2:] == (0, "count")
    assert written_path(claim, ("spec", "devices", "requests", 0, "count"))[-2:] == (0, "count")
    device = {"name": "a", "basic": {"capacity": {"memory": "1Gi"}}}
    old = {"apiVersion": "resource.k8s.io/v1alpha3", "spec": {"devices": [device]}}
    path = ("spec", "devices", 0, "capacity", "memory", "value")
    assert written_path(old, path) == ("spec", "devices", 0, "basic", "capacity", "memory")
    new = {"apiVersion": "resource.k8s.io/v1", "spec": {"devices": [{"capacity": {"memory": {"value": "1Gi"}}}]}}
    assert written_path(new, path) == path


def test_tokens() -> None:
    text = "device.driver == 'a b'"
    assert [token_range(text, at) for at in (0, 6, 14, 17, 22, 99)] == [
        (0, 6),
        (6, 7),
        (14, 16),
        (17, 22),
        (22, 22),
        (22, 22),
    ]


@pytest.mark.parametrize("style", ["|", "|-", ">", ">-", "|+"])
def test_the_end_of_an_expression_is_on_its_last_line(style: str) -> None:
    text = (
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a}\nspec:\n  selectors:\n  - cel:\n"
        f"      expression: {style}\n        device.driver == 'a'\n        && (device.driver == 'b'\n\n"
        "  extendedResourceName: example.com/gpu\n"
    )
    (found,) = findings(text, "DRA112")
    assert (found.line, found.column) == (9, 33)
