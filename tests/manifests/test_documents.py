from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import (
    Document,
    NotAnObject,
    Skipped,
    TemplateError,
    each_document,
    read_documents,
)
from kubectl_dra.manifests.source import decode

CLAIM = """\
# a claim
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: "größe-😀"   # comment
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
        selectors: [{cel: {expression: "true"}}]
        empty:
    # a comment at the end
---
kind: Second
text: |
  one
  two

list:
  - a
"""


def _slices(document: Document, path: FieldPath) -> tuple[str, str]:
    """The texts of key and value, cut out by position."""
    key, value = document.key_position(path), document.position(path)
    text = document.source.text
    return text[key.offset : key.end_offset], text[value.offset : value.end_offset]


def test_positions() -> None:
    first, second = read_documents(CLAIM, "f.yaml")
    assert (first.index, first.line, second.index, second.line) == (0, 2, 1, 16)
    assert _slices(first, ("metadata", "name")) == ("name", '"größe-😀"')
    assert first.position(("metadata", "name"))[:4] == (5, 9, 5, 18)
    request: FieldPath = ("spec", "devices", "requests", 0)
    assert _slices(first, (*request, "exactly", "deviceClassName")) == ("deviceClassName", "gpu.example.com")
    assert _slices(first, (*request, "exactly", "selectors", 0, "cel", "expression"))[1] == '"true"'
    assert first.position((*request, "exactly", "selectors"))[:4] == (12, 20, 12, 49)
    # A block ends with its last line, not with the comment behind it.
    block = first.position(request)
    assert (block.line, block.column, block.end_line) == (9, 7, 13)
    assert first.place((*request, "exactly", "selectors")) == "f.yaml:12:9"
    assert _slices(second, ("text",)) == ("text", "|\n  one\n  two")
    assert _slices(second, ("list", 0)) == ("a", "a")
    assert first.position()[:2] == (2, 1)


def test_missing_paths_give_the_nearest_parent() -> None:
    first, _ = read_documents(CLAIM, "f.yaml")
    assert first.key_position(("spec", "devices", "constraints", 3)).line == 7
    assert first.nodes(("spec", "nothing")) is None
    assert first.nodes(("spec", 0)) is None
    assert first.position(("metadata", "name", "x"))[:2] == (5, 9)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_line_ends_byte_order_marks_and_encodings(end: str, bom: str, encoding: str) -> None:
    data = (bom + CLAIM.replace("\n", end)).encode(encoding)
    first, second = read_documents(data, "f.yaml")
    expected, _ = read_documents(CLAIM, "f.yaml")
    assert first.object == expected.object
    assert second.object == {"kind": "Second", "text": "one\ntwo\n", "list": ["a"]}
    assert first.position(("metadata", "name"))[:4] == (5, 9, 5, 18)
    assert second.line == 16
    assert first.source.encode(first.source.text) == data


def test_json_positions() -> None:
    text = '\n{"kind": "A",\n\t"e": "\\ud83d\\ude00", "m": {"x": [1, {"y": null}]}}\n {"kind": "B"}'
    first, second = read_documents(text, "f.json")
    assert first.object["e"] == "😀"
    assert _slices(first, ("m", "x", 1, "y")) == ('"y"', "null")
    assert first.position(("m", "x", 1, "y"))[:2] == (3, 44)
    assert (second.index, second.line) == (1, 4)
    assert _slices(second, ("kind",)) == ('"kind"', '"B"')
    assert second.place(("kind",)) == "f.json:4:3"


@pytest.mark.parametrize("key", ['"a"\n', f'"{"a" * 1100}"', '"%s"' % ("\\u00e9" * 200)])
def test_positions_in_json_whose_keys_yaml_does_not_take(key: str) -> None:
    (document,) = read_documents(f'{{"kind": "A", {key}: {{"b": [1, "c"]}}}}', "f.json")
    assert _slices(document, (json.loads(key), "b", 1)) == ('"c"', '"c"')


def test_flow_yaml_that_begins_like_json() -> None:
    (document,) = read_documents("{a: 1, b: [yes]}", "f")
    assert document.object == {"a": 1, "b": [True]}


def test_position_through_merge_keys_and_aliases() -> None:
    text = "x: &x {a: 1}\nr:\n  <<: *x\n  b: 2\nz: *x\n"
    (document,) = read_documents(text, "f")
    assert _slices(document, ("r", "a")) == ("a", "1")
    assert document.position(("r", "a")).line == 1
    assert document.position(("z", "a")).line == 1
    assert document.key_position(("z",)).line == 5
    # The last one of duplicate keys is the one that counts.
    (twice,) = read_documents("a: 1\na: 2", "f")
    assert twice.position(("a",)).line == 2


def test_documents_without_content_are_left_out() -> None:
    found = read_documents("---\n# only a comment\n---\na: 1\n---\n---\nnull\n---\nb: 2\n...\n", "f")
    assert [document.object for document in found] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("text", ["", "   \n", "# comment\n", "---\n---\n", "\ufeff", "null"])
def test_nothing_in_it(text: str) -> None:
    with pytest.raises(NotAnObject, match=r"f\.yaml: there is nothing in it"):
        read_documents(text, "f.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "f:1:1: a manifest is a mapping, this is a list"),
        ("a: 1\n---\nhello\n", "f:3:1: a manifest is a mapping, this is a scalar"),
        ("[1]", "f:1:1: a manifest is a mapping, this is a list"),
    ],
)
def test_not_an_object(text: str, message: str) -> None:
    with pytest.raises(NotAnObject) as caught:
        read_documents(text, "f")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", "f:3:2: not valid YAML"),
        ("a:\n\tb: 1\n", "f:2:1: not valid YAML: a tab cannot indent here; use spaces"),
        ("a: 1\n b: 2\n", "f:2:3: not valid YAML: mapping values are not allowed"),
        ("a: 'x\n", "f:1:4: not valid YAML"),
        (
            "a: [\n",
            "f:2:1: not valid YAML: did not find expected node content (while parsing a flow node); the",
        ),
        ('{"a": 1,, "b": 2}', "f:1:9: not valid JSON: expecting property name"),
        ('{"a": {"b": "c', "f:1:13: not valid JSON: a string does not end; the text ends here and may be truncated"),
        ('{"a": 1 "b": "c"}', "f:1:9: not valid JSON: expecting ',' delimiter"),
        ("{a: [1,, 2]}", "f:1:8: not valid YAML"),
        ("a: @x\n", "f:1:4: not valid YAML"),
    ],
)
def test_broken_yaml(text: str, place: str) -> None:
    with pytest.raises(InputError) as caught:
        read_documents(text, "f")
    assert str(caught.value).startswith(place)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01\x01\x00", b"\xff\xfe\xfa", b"a: \xff", b"\x00\x01\x02", b"a: \x01"])
def test_binary(data: bytes) -> None:
    with pytest.raises(InputError, match=r"f: not a text file|f:1:[0-9]+: not a text file"):
        read_documents(data, "f")


@pytest.mark.parametrize(
    "text",
    [
        "{{- if .Values.x }}\na: 1\n{{- end }}\n",
        "a: {{ .Values.x }}\n",
        "a: {{ x }}\n",
        "a: x-{{ .Values.x }}\n",
        'a: x-{{ include "name" . }}\n',
        "{% if x %}\na: 1\n{% endif %}\n",
        "a:\n  b: 1\n{{ toYaml .Values.x | indent 2 }}\n",
        "{{ x }}\n",
    ],
)
def test_templates(text: str) -> None:
    with pytest.raises(TemplateError, match=r"f:[0-9]+: this is a template; render it first.*helm template"):
        read_documents(text, "f")


@pytest.mark.parametrize(
    "text",
    [
        "a: '{{ .Values.x }}'\n",
        'a: "{{ .Values.x }}"\n',
        "# {{ .Values.x }}\na: 1\n",
        "a: |\n  {{ .Values.x }}\n",
        "a: job-{{workflow.uid}}\n",
        "a: ${NAME}\n",
    ],
)
def test_finished_manifests_with_braces(text: str) -> None:
    assert read_documents(text, "f")[0].object["a"]


def _paths(value: Any, path: FieldPath = ()) -> list[tuple[FieldPath, Any]]:
    out = [(path, value)]
    if isinstance(value, dict):
        for key, inner in value.items():
            out += _paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            out += _paths(inner, (*path, index))
    return out


_WORDS = st.text(st.sampled_from("ab é😀:#-'\"\n"), max_size=8)
_OBJECTS = st.dictionaries(
    st.text(st.sampled_from("abcé-"), min_size=1, max_size=4),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | _WORDS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xqz", min_size=1), inner, max_size=3),
        max_leaves=10,
    ),
    min_size=1,
    max_size=4,
)


@given(_OBJECTS, st.sampled_from([None, False, True]), st.booleans())
def test_what_a_position_marks_is_the_value(value: dict[str, Any], flow: bool | None, as_json: bool) -> None:
    import yaml

    text = (
        json.dumps(value, indent=1)
        if as_json
        else yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True, indent=3)
    )
    (document,) = read_documents(text, "f")
    assert document.object == value
    for path, expected in _paths(value):
        position = document.position(path)
        assert document.source.place(position.offset) == position[:2]
        if expected is None or (isinstance(expected, dict | list) and not flow and not as_json):
            continue
        piece = text[position.offset : position.end_offset]
        found = json.loads(piece) if as_json else read_documents(f"v: {piece}", "piece")[0].object["v"]
        assert found == expected


def _each(text: str) -> list[tuple[int, int, str]]:
    """Number, line, and what was read or why not."""
    out = []
    for found in each_document(decode(text, "f")):
        if isinstance(found, Skipped):
            out.append((found.number, found.line, str(found.error)))
        else:
            out.append((found.index, found.line, json.dumps(found.object)))
    return sorted(out)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\n---\nb: [\n---\nc: 3\n", [(0, 1, '{"a": 1}'), (1, 2, "f:4:1: not valid YAML"), (2, 5, '{"c": 3}')]),
        ("a: [\n---\nc: 3\n", [(0, 1, "f:2:1: not valid YAML"), (1, 3, '{"c": 3}')]),
        ("# x\n---\nc: 3\n---\n- a\n---\nd: 4\n", [(0, 3, '{"c": 3}'), (1, 5, "f:5:1: a"), (2, 7, '{"d": 4}')]),
        ('{"a": 1}\n{"b": 2}\n{"c": }\n', [(0, 1, '{"a": 1}'), (1, 2, '{"b": 2}'), (2, 3, "f:3:7: not valid JSON")]),
        ("{a: 1}\n{b: 2}\n---\nc: 1\n", [(0, 1, '{"a": 1}'), (1, 2, "f:2:1: not valid YAML"), (2, 4, '{"c": 1}')]),
        ("a: 'x\n---\nb: 1\n", [(0, 1, "f:1:4: not valid YAML"), (1, 3, '{"b": 1}')]),
        ("a: |\n  --- no marker\n--- # marker\nb: {{ x }}\n---\nc: 1\n", [
            (0, 1, '{"a": "--- no marker\\n"}'), (1, 4, "f:4: this is a template"), (2, 6, '{"c": 1}'),
        ]),
        ("a: 1\r\n---\r\nb: [\r\n---\r\nc: 3\r\n", [(0, 1, '{"a": 1}'), (1, 2, "f:4:1: not"), (2, 5, '{"c": 3}')]),
        ("a: 1\n---\nx: " + "[" * 900 + "\n---\nb: 1\n", [(0, 1, '{"a": 1}'), (1, 2, "f: nested"), (2, 5, '{"b": 1}')]),
        ("\n# nothing\n", []),
    ],
)  # fmt: skip
def test_each_document_by_itself(text: str, expected: list[tuple[int, int, str]]) -> None:
    found = _each(text)
    assert [one[:2] for one in found] == [one[:2] for one in expected]
    assert all(one[2].startswith(other[2]) for one, other in zip(found, expected, strict=True)), found


@given(
    st.lists(
        st.sampled_from(["a: 1\n", "b: [1, 2]\n", "", "# c\n", "d: [\n", "\te: 1\n", "- f\n", "g: 'x\n"]), max_size=6
    )
)
def test_good_documents_are_read_where_they_are_whatever_is_beside_them(parts: list[str]) -> None:
    text = "---\n" + "---\n".join(parts)
    found = [one for one in each_document(decode(text, "f")) if isinstance(one, Document)]
    good = [index for index, part in enumerate(parts) if part in ("a: 1\n", "b: [1, 2]\n")]
    assert [one.index for one in found] == good
    for one in found:
        key = next(iter(one.object))
        at = one.key_position((key,))
        assert text[at.offset : at.end_offset] == key == parts[one.index][0]


def test_a_repeated_key_is_noted() -> None:
    first, second = (one for one in each_document(decode("a: 1\na: 2\n---\na: 1\n", "f")) if isinstance(one, Document))
    assert (first.repeated, second.repeated, first.object) == (True, False, {"a": 2})
    assert [one.repeated for one in read_documents('{"a": 1}{"b": {"a": 1, "a": 2}}', "f")] == [False, True]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\n--- {b: 2}\n--- # c\nd: 4\n", "f.yaml:2:1", "only a comment after ---"),
        ("a: 1\n--- !!map\nb: 2\n--- \nd: 4\n", "f.yaml:2:1", "only a comment after ---"),
        ("a: 1\n...\n%YAML 1.1\n---\nb: 2\n---\nd: 4\n", "f.yaml:3:1", "does not read YAML directives"),
    ],
)
def test_what_kubectl_refuses_before_a_document(text: str, place: str, words: str) -> None:
    first, refused, last = each_document(decode(text, "f.yaml"))
    assert isinstance(first, Document) and isinstance(last, Document)
    assert (first.object, last.object) == ({"a": 1}, {"d": 4})
    assert isinstance(refused, Skipped)
    assert str(refused.error).startswith(place) and words in str(refused.error)


def test_percent_signs_and_dashes_inside_of_documents_are_text() -> None:
    text = "a: |\n  %YAML 1.1\n  --- {b: 2}\nb: '%'\n---\n# %TAG\nc: 1\n"
    assert [document.object for document in read_documents(text, "f.yaml")] == [
        {"a": "%YAML 1.1\n--- {b: 2}\n", "b": "%"},
        {"c": 1},
    ]


def test_an_alias_means_the_nearest_anchor_of_its_name() -> None:
    (document,) = read_documents("a: &x 1\nb: *x\nc: &x 2\nd: *x\n", "a.yaml")
    assert document.object == {"a": 1, "b": 1, "c": 2, "d": 2}
