"""Edits change only what they must, and read as intended by both parsers, or are refused."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.manifests.changes import (
    Append,
    Change,
    Clear,
    Delete,
    EditRefused,
    Enclose,
    Rename,
    Set,
    Splice,
    Unwrap,
    Wrap,
    changed,
)
from kubectl_dra.manifests.documents import parse, read_documents
from kubectl_dra.manifests.edits import confirmed, edited, edits_of, read_alike, smallest, verified
from kubectl_dra.manifests.files import Rewritten, replace_bytes
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.style import json_text
from tests.manifests.reversing import reversed_edits


def made(text: str, *changes: Change) -> str:
    documents = read_documents(text.encode(), "f.yaml")
    edits = edits_of(documents[0], changes)
    return verified(documents, edits, {0: changed(documents[0].object, changes)})


def rewritten(before: str, after: str) -> Rewritten:
    return Rewritten("a.yaml", before, after, Source("a.yaml", before))


@pytest.mark.parametrize(
    ("text", "change", "after"),
    [
        ("a: 1 # one\nb: 2\n", Set(("a",), 3), "a: 3 # one\nb: 2\n"),
        ("a: 'x'\n", Set(("a",), "it's"), "a: 'it''s'\n"),
        ('a: "x"\n', Set(("a",), "y"), 'a: "y"\n'),
        ("a: x\n", Set(("a",), "yes"), "a: 'yes'\n"),
        ("a:\nb: 1\n", Set(("a",), True), "a: true\nb: 1\n"),
        ("a:\n  b: 1 # one\n# end\n", Set(("a", "c"), [{"d": 1, "e": "f"}]), "a:\n  b: 1 # one\n  c:\n  - d: 1\n    e: f\n# end\n"),  # noqa: E501
        ("a: {b: 1}\n", Set(("a", "c"), "x y"), "a: {b: 1, c: 'x y'}\n"),
        ('{"a": {"b": 1}}', Set(("a", "c"), {"d": None}), '{"a": {"b": 1, "c": {"d": null}}}'),
        ("a:\r\n  b: 1\r\n", Set(("a", "c"), 2), "a:\r\n  b: 1\r\n  c: 2\r\n"),
        ("a:\n  b: 1", Set(("a", "c"), 2), "a:\n  b: 1\n  c: 2"),
        ("a:\n  b: 1\nc: 2\n", Set(("a",), {"x": [1]}), "a:\n  x:\n  - 1\nc: 2\n"),
        ("a: 1\n# about b\nb:\n  c: 1\nd: 2\n", Delete(("b",)), "a: 1\n# about b\nd: 2\n"),
        ("a: 1\n\nb: 2", Delete(("b",)), "a: 1"),
        ("a: 1\n\nb: 2 # two", Delete(("b",)), "a: 1\n\n# two"),
        ("l:\n- a: 1\n  b: 2\n", Delete(("l", 0, "a")), "l:\n- b: 2\n"),
        ("l:\n- a\n- b # two\n- c\n", Delete(("l", 1)), "l:\n- a\n# two\n- c\n"),
        ("l:\n- a\n- b # two\n- c\n", Delete(("l", 1), ("# more",)), "l:\n- a\n# two\n# more\n- c\n"),
        ("# l\nl:\n- a\n# b\n- b\n# c\nc: 1\n", Clear(("l",), ("# more",)), "# l\n# b\n# more\nl: []\n# c\nc: 1\n"),
        ("l: [a, b] # two\n", Clear(("l",)), "l: [] # two\n"),
        ("l: [a, b, c]\n", Delete(("l", 2)), "l: [a, b]\n"),
        ("{a: 1, b: 2}\n", Delete(("a",)), "{b: 2}\n"),
        ('"a": 1\n', Rename(("a",), "b"), '"b": 1\n'),
        ("x:\n  a: 1 # one\n", Rename(("x", "a"), "b"), "x:\n  b: 1 # one\n"),
        ("n: 1\na: |\n  t\n   u\nb: 2\n", Wrap((), "w", ("a", "b")), "n: 1\nw:\n  a: |\n    t\n     u\n  b: 2\n"),
        ("a: 1\nn: 2\nb: 3 # three\n", Wrap((), "w", ("a", "b")), "w:\n  a: 1\n  b: 3 # three\nn: 2\n"),
        ("l:\n- a: 1\n\n  # two\n  b: 2\n", Wrap(("l", 0), "w", ("a", "b")), "l:\n- w:\n    a: 1\n\n    # two\n    b: 2\n"),  # noqa: E501
        ("a:\n    b: 1\n    c: [2]\nd: 3\n", Unwrap(("a",)), "b: 1\nc: [2]\nd: 3\n"),
        ("a: {b: 1, c: 2}\nd: 3\n", Unwrap(("a",)), "b: 1\nc: 2\nd: 3\n"),
        ("{n: 1, a: {b: 1, c: 2,}, d: 3}\n", Unwrap(("a",)), "{n: 1, b: 1, c: 2, d: 3}\n"),
        ('{\n  "n": 1,\n  "a": {\n    "b": 1,\n    "c": 2\n  }\n}', Unwrap(("a",)), '{\n  "n": 1,\n  "b": 1,\n  "c": 2\n}'),  # noqa: E501
        ('{\n  "n": 1,\n  "b": 1,\n  "c": 2\n}', Wrap((), "a", ("b", "c")), '{\n  "n": 1,\n  "a": {\n    "b": 1,\n    "c": 2\n  }\n}'),  # noqa: E501
        ("{b: 1, n: 2, c: 3}\n", Wrap((), "a", ("b", "c")), "{a: {b: 1, c: 3}, n: 2}\n"),
        ("a:\n    b: 1\n    n: 2\n", Wrap(("a",), "w", ("b",)), "a:\n    w:\n        b: 1\n    n: 2\n"),
        ("m: 40Gi # big\n", Enclose(("m",), "value"), "m:\n  value: 40Gi # big\n"),
        ("{m: '40Gi', n: 1}\n", Enclose(("m",), "value"), "{m: {value: '40Gi'}, n: 1}\n"),
        ("l:\n  - a\nb: 1\n", Append(("l",), {"x": 1, "w": ["z"]}), "l:\n  - a\n  - x: 1\n    w:\n      - z\nb: 1\n"),
        ("l: []\n", Append(("l",), 1), "l:\n- 1\n"),
        ("a: {} # none\nb: 1\n", Set(("a", "c"), 2), "a: # none\n  c: 2\nb: 1\n"),
        ("a:\n  b: 1 # one\n  c: 2\n", Set(("a",), {"b": 1, "c": 3}), "a:\n  b: 1 # one\n  c: 3\n"),
        ("l:\n- a # one\n- b\n", Set(("l",), ["a", "b", "c"]), "l:\n- a # one\n- b\n- c\n"),
        ("l:\n- a # one\n- b\n", Set(("l",), ["a"]), "l:\n- a # one\n"),
        ("a:\n  - x: y\nb: 1", Set(("c",), ["d"]), "a:\n  - x: y\nb: 1\nc:\n  - d"),
        ('a: "x"\nb: "y"\n', Set(("c",), "z"), 'a: "x"\nb: "y"\nc: "z"\n'),
        ("e: a = b\n", Splice(("e",), 2, 3, "=="), "e: a == b\n"),
        ("e: a\n", Splice(("e",), 1, 1, ": b"), "e: 'a: b'\n"),
        ("e: >-\n  a\n  = b\n", Splice(("e",), 2, 3, "=="), "e: >-\n  a\n  == b\n"),
        ("e: |\n  a == b ||  \n    c >\n      d\n", Splice(("e",), 0, 23, "(g && a == b) ||  \n  (h && c >\n    d)"), "e: |\n  (g && a == b) ||  \n    (h && c >\n      d)\n"),  # noqa: E501
        ("e: |\r\n  a ==\r\n  b", Splice(("e",), 0, 6, "(g && a ==\nb)"), "e: |\r\n  (g && a ==\r\n  b)"),
        ("a: |\n  t\n", Splice(("a",), 0, 1, "t\nu"), "a: |\n  t\n  u\n"),
        ('e: "a ==\\nb"\n', Splice(("e",), 0, 6, "(g && a ==\nb)"), 'e: "(g && a ==\\nb)"\n'),
    ],
)  # fmt: skip
def test_changes(text: str, change: Change, after: str) -> None:
    assert made(text, change) == after


def test_tabs_of_json_are_kept() -> None:
    text = '{\n\t"l": [\n\t\t{"a": 1}\n\t]\n}\n'
    after = '{\n\t"l": [\n\t\t{"a": 1},\n\t\t{\n\t\t\t"b": [\n\t\t\t\t2\n\t\t\t]\n\t\t}\n\t]\n}\n'
    assert made(text, Append(("l",), {"b": [2]})) == after


def test_entries_that_move_up_keep_their_comments() -> None:
    text = "l:\n- name: a\n  source: # old\n    b: 1 # one\n"
    changes = (Set(("l", 0, "b"), 1), Delete(("l", 0, "source")))
    assert made(text, *changes) == "l:\n- name: a\n  # old\n  b: 1 # one\n"


@pytest.mark.parametrize(
    ("text", "changes", "after"),
    [
        ("r:\n  l:\n    x: 1 # one\n", (Delete(("r", "l")), Set(("r", "c"), [1])), "r:\n  # one\n  c:\n  - 1\n"),
        ("r:\r\n  l: 1", (Delete(("r", "l")), Set(("r", "c"), 2)), "r:\r\n  c: 2"),
        ("r:\r\n\r\n  l: 1", (Delete(("r", "l")), Set(("r", "c"), 2)), "r:\r\n\r\n  c: 2"),
        ("r:\n  l: 1", (Delete(("r", "l")), Set(("r", "c"), 2), Set(("s",), 3)), "r:\n  c: 2\ns: 3"),
        ("l:\n- a: 1 # one\n  b: 2\n", (Delete(("l", 0, "a")),), "l:\n- # one\n  b: 2\n"),
        ("l:\n- a: 1\n  b: 2\n  c: 3\n", (Delete(("l", 0, "a")), Delete(("l", 0, "b"))), "l:\n- c: 3\n"),
        ("{a: 1, b: 2, c: 3}\n", (Delete(("b",)), Delete(("c",)), Set(("d",), 4)), "{a: 1, d: 4}\n"),
        ("{a: 1}\n", (Delete(("a",)), Set(("b",), 2)), "{b: 2}\n"),
        (
            "d:\n- n: a\n  basic:\n    capacity:\n      m: 1Gi # m\n",
            (Unwrap(("d", 0, "basic")), Enclose(("d", 0, "basic", "capacity", "m"), "value")),
            "d:\n- n: a\n  capacity:\n    m:\n      value: 1Gi # m\n",
        ),
        (
            "a:\n  b: 1\n  c: 2\nd:\n  e: 3",
            (Delete(("a", "c")), Set(("a", "x"), 1), Delete(("d",))),
            "a:\n  b: 1\n  x: 1",
        ),
        ("a:\n  b: 1\n  c: 2\nd: # x\n  e: 3", (Delete(("a", "c")), Delete(("d",))), "a:\n  b: 1\n# x"),
        ("a:\r\n  b: 1\r\n  c: 2\r\nd: 3", (Delete(("a", "c")), Delete(("d",))), "a:\r\n  b: 1"),
        ("a: &x\n  b: 1\nc: *x\n", (Set(("a", "b"), 2), Set(("c", "b"), 2)), "a: &x\n  b: 2\nc: *x\n"),
    ],
)
def test_changes_that_go_together(text: str, changes: tuple[Change, ...], after: str) -> None:
    assert made(text, *changes) == after
    documents = read_documents(text, "f.yaml")
    edits = edits_of(documents[0], changes)
    assert edited(after, reversed_edits(edits, text)) == text


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("a: &x {b: 1}\nc: *x\n", Set(("a", "b"), 2)),
        ("a: &x 1\nc: *x\n", Set(("a",), 2)),
        ("l:\n- &x {b: 1}\n- *x\n", Set(("l", 1, "b"), 2)),
        ("x: &x {b: 1, c: 2}\na:\n  b: 3\n  <<: *x\n", Delete(("a", "c"))),
        ("a: &x {b: 1}\nc: *x\n", Delete(("a",))),
        ("a: {b: 1}\n", Delete(("a", "b"))),
        ("a: |\n  t\n", Set(("a",), "u")),
        ("a: >\n  t\n", Splice(("a",), 0, 1, "t\nu")),
        ("a: 1\n", Set(("b", "c"), 2)),
        ("a: 1\nb: 2\n", Rename(("a",), "b")),
        ("a: 1\nw: 2\n", Wrap((), "w", ("a",))),
    ],
)
def test_doubt_is_refused(text: str, change: Change) -> None:
    with pytest.raises(EditRefused):
        made(text, change)


# What an alias or a merge key brings: changed where it is written if all places become alike, else on its own.
SHARED = "a: &x\n  b: 1\n  c: {d: 1}\n"


@pytest.mark.parametrize(
    ("text", "changes", "after"),
    [
        ("a: &x {b: 1}\nc: *x\n", [Set(("c", "b"), 2)], "a: &x {b: 1}\nc:\n  b: 2\n"),
        ("a: &x 1\nc: *x # two\n", [Set(("c",), 2)], "a: &x 1\nc: 2 # two\n"),
        ("a: &x {b: 1}\nc: {d: *x}\n", [Set(("c", "d", "b"), 2)], "a: &x {b: 1}\nc: {d: {b: 2}}\n"),
        ("x: &x {b: 1}\na:\n  <<: *x\n", [Set(("a", "b"), 2)], "x: &x {b: 1}\na:\n  <<: *x\n  b: 2\n"),
        (f"{SHARED}e: {{<<: *x}}\n", [Delete(("e", "b"))], f"{SHARED}e: {{c: {{d: 1}}}}\n"),
        (
            f"{SHARED}e:\n  <<: *x\n  f: 1\n",
            [Delete(("e", "b"))],
            f"{SHARED}e:\n  f: 1\n  c:\n    d: 1\n",
        ),
        (
            f"{SHARED}e:\n  <<: *x\n  f: 1\n",
            [Set(("e", "c", "d"), 2)],
            f"{SHARED}e:\n  <<: *x\n  f: 1\n  c:\n    d: 2\n",
        ),
        (
            f"{SHARED}e:\n  <<: *x\n  f: 1\n",
            [Delete(("e", "b")), Delete(("a", "b"))],
            "a: &x\n  c: {d: 1}\ne:\n  <<: *x\n  f: 1\n",
        ),
        (
            f"{SHARED}e:\n  <<: *x\n  b: 2\n",
            [Set(("e", "g"), 1), Set(("a", "g"), 1)],
            f"{SHARED}  g: 1\ne:\n  <<: *x\n  b: 2\n",
        ),
        ("a:\n  <<: {b: 1, c: 2}\n", [Delete(("a", "b"))], "a:\n  c: 2\n"),
        (
            "x: &x {b: 1}\ny: &y {c: 2}\na:\n  <<: [*x, *y]\n  d: 3\n",
            [Delete(("a", "b"))],
            "x: &x {b: 1}\ny: &y {c: 2}\na:\n  d: 3\n  c: 2\n",
        ),
        (
            "l:\n- 1\n- &x {b: 1, c: 2}\ne:\n  <<: *x\n",
            [Delete(("l", 0)), Delete(("l", 1, "b")), Delete(("e", "b"))],
            "l:\n- &x {c: 2}\ne:\n  <<: *x\n",
        ),
    ],
)
def test_what_is_shared(text: str, changes: list[Change], after: str) -> None:
    assert made(text, *changes) == after
    assert confirmed(rewritten(text, after))


ANCHORED = st.sampled_from(
    (
        SHARED,
        f"{SHARED}e: *x\n",
        f"{SHARED}e:\n  <<: *x\n  b: 2\n",
        f"{SHARED}e:\n  - <<: *x\n    f: 1\n  - *x\n",
        "a: &x {b: 1, c: &y {d: 1}}\ne: {<<: *x, g: *y}\nh:\n  <<: [*y, *x]\n",
        "x-a: &x\n  b: &y {b: 1}\na:\n  <<: *x\n  c: *y\ne:\n  c: *y\n  <<: *x\n",
    )
)
STEPS = st.lists(st.sampled_from(("a", "b", "c", "d", "e", "g", "h", 0, 1)), min_size=1, max_size=4).map(tuple)


@given(ANCHORED, st.lists(st.builds(Set, STEPS, st.integers(2, 3)) | st.builds(Delete, STEPS), min_size=1, max_size=4))
def test_shared_parts_become_what_is_meant_or_stay(text: str, changes: list[Change]) -> None:
    try:
        after = made(text, *changes)
    except (EditRefused, KeyError, IndexError, TypeError):
        return
    assert confirmed(rewritten(text, after))


def test_changes_in_a_long_list_with_anchors_take_time_in_proportion() -> None:
    text = "x: &x {z: 1}\nl:\n" + "".join(f"- {{m: {index}, <<: *x}}\n" for index in range(3_000))
    changes = [Set(("l", index, "m"), 0) for index in range(3_000)]
    start = process_time()
    assert made(text, *changes).count("m: 0") == 3_000
    assert process_time() - start < 20


NAMES = st.sampled_from(("a", "b", "c", "d-e", "on", "1"))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4), VALUES, st.sampled_from((None, True, False)), st.data())
def test_a_set_value_is_read_again_and_the_rest_stays(raw: dict[str, Any], value: Any, flow: Any, data: Any) -> None:
    import yaml

    text = yaml.safe_dump(raw, default_flow_style=flow, sort_keys=False, allow_unicode=True)
    documents = read_documents(text, "f.yaml")
    key = data.draw(NAMES)
    change = Set((key,), value)
    try:
        edits = edits_of(documents[0], [change])
        after = verified(documents, edits, {0: changed(documents[0].object, [change])})
    except EditRefused:
        return
    assert read_documents(after, "f.yaml")[0].object == {**documents[0].object, key: value}
    assert edited(text, edits) == after


def test_the_smallest_changes_of_a_long_list_take_time_in_proportion() -> None:
    raw = {"items": [{"limits": {"gpu": 1}, "name": str(index)} for index in range(20_000)]}
    changes: list[Change] = []
    for index in range(20_000):
        changes += [Delete(("items", index, "limits")), Set(("items", index, "claims"), [{"name": "gpu"}])]
    start = process_time()
    assert len(smallest(raw, changes)) == 40_000
    assert process_time() - start < 10


# A second parser reads edited texts: what it must notice, and what is no difference.


@pytest.mark.parametrize(
    "text",
    [
        "a: yes\nb: 012\nc: 1:30\n",
        "a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n",
        "a: w\nbw: web-1.w/x # w\n'c d': [e f, 'g''h',\n  i\n  j]\n",
        "a: | # so it is\n  b c\n\n  d\ne: >-\n  f\n  g\n",
        'a: |2\n   b\nc: "\\x41"\nd: !!str 1\n',
        "null\n---\na: null\n---\n~\n---\nb: c\n",
        "---\na: |\n  # text\n  b\n---\n# nothing\n---\nc: ''\n",
        '{"a": [1, {"b": null}]}\n',
        "a: 1\na: 2\n",
        '{"a": "\\ud83d\\ude00 \\ude00"}',
    ],
)
def test_both_read_the_same(text: str) -> None:
    assert read_alike(text, parse(Source("a.yaml", text)))


@pytest.mark.parametrize(
    "other", ["a: 2\n", "a: [1]\n", "b: 1\n", "a: 1\nb: 1\n", "a: 1\n---\nb: 1\n", "a: '1 '\n", "a: 11\n", "a: 1-1\n"]
)
def test_another_text_is_noticed(other: str) -> None:
    assert read_alike("a: 1\n", parse(Source("a.yaml", other))) is False


@pytest.mark.parametrize(("text", "other"), [("a: b c\n", "a: c b\n"), ("a: b # c\n", "a: c # b\n")])
def test_words_in_another_order_are_noticed(text: str, other: str) -> None:
    assert read_alike(text, parse(Source("a.yaml", other))) is False


def test_documents_with_other_words_in_the_same_places_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from ruamel.yaml import YAML

    read: list[str] = []
    compose = YAML.compose_all

    def counted(self: YAML, text: str) -> Any:
        read.append(text)
        return compose(self, text)

    monkeypatch.setattr(YAML, "compose_all", counted)
    text = "".join(f"---\nname: web-{number}\nitems: [a, {number}]\n" for number in range(50))
    assert read_alike(text, parse(Source("a.yaml", text)))
    assert len(read) == 2


def test_what_cannot_be_read_after_edits_is_not_confirmed() -> None:
    assert confirmed(rewritten("a: 1\n", "a: 2\n"))
    assert not confirmed(rewritten("a: 1\n", "a: [2\n"))
    assert confirmed(rewritten("a: 1\n", ""))


@pytest.mark.parametrize(
    "after", ['{"a": 1.50}', '{"a": "\\ud83d\\ude00 😀"}\n', '{"a": [true, null, "", -0]}', '{"a": 1}\n{"b": 2}\n']
)
def test_json_is_read_by_the_json_module(after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_dra.manifests.edits.read_alike", None)
    assert confirmed(rewritten('{"a": 2}', after))


def test_json_of_another_value_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    other = parse(Source("a.yaml", '{"a": [1, {"b": "2"}]}'))
    monkeypatch.setattr("kubectl_dra.manifests.edits.parse", lambda _: other)
    assert confirmed(rewritten("{}", '{"a": [1, {"b": "2"}]}'))
    for text in ('{"a": [1, {"b": "3"}]}', '{"a": [1, {"c": "2"}]}', '{"a": [1]}', '{"a": {}}', '{"a": [[], 1]}'):
        assert not confirmed(rewritten("{}", text))


# Lines of literal blocks: what is replaced, and what is left to people.


LINES = st.lists(st.sampled_from(["- a", "  b: 1", "c", "", "# d", "e:"]), min_size=1, max_size=8)


def replaced(text: str, new: str) -> str:
    """The text with another block at patches[0].patch."""
    (document,) = parse(Source("k.yaml", text))
    change = Set(("patches", 0, "patch"), new)
    wanted = {**document.object, "patches": [{"patch": new}, *document.object["patches"][1:]]}
    return verified((document,), edits_of(document, [change]), {0: wanted})


def written(lines: list[str], header: str, newline: str) -> str:
    block = newline.join(f"    {line}" if line else "" for line in lines)
    return newline.join(("kind: X", "apiVersion: v1", "patches:", f"- patch: {header}", block, "- patch: z", ""))


@given(LINES, LINES, st.sampled_from(["|", "|-"]), st.sampled_from(["\n", "\r\n"]))
def test_only_lines_that_differ_are_written(old: list[str], new: list[str], header: str, newline: str) -> None:
    """Whatever is written reads as wanted, and lines that both have keep what stands around them."""
    text = written(["x: first", *old, "x: last"], header, newline)
    end = "" if header == "|-" else "\n"
    wanted = "\n".join(["x: first", *new, "x: last"]) + end
    found = replaced(text, wanted)
    assert yaml.safe_load(found)["patches"] == [{"patch": wanted}, {"patch": "z"}]
    assert found == written(["x: first", *new, "x: last"], header, newline)


def test_the_last_line_can_go() -> None:
    assert replaced(written(["a", "b"], "|-", "\n"), "a") == written(["a"], "|-", "\n")
    assert replaced("kind: X\napiVersion: v1\npatches:\n- patch: |-\n    a\n    b", "a").endswith("    a")


@pytest.mark.parametrize(("header", "new"), [(">-", "b"), ("|", "b"), ("|-", ""), ("|-", "a\n")])
def test_what_is_uncertain_is_left(header: str, new: str) -> None:
    with pytest.raises(EditRefused):
        replaced(written(["a"], header, "\n"), new)


# Files whose names leave no room for a longer one beside them.


def test_the_longest_name_is_replaced(tmp_path: Path) -> None:
    for name in ("a" * 255, "ä" * 127):
        replace_bytes(tmp_path / name, b"new")
        assert (tmp_path / name).read_bytes() == b"new"
    assert len(list(tmp_path.iterdir())) == 2


# Values as they are written into manifests.


@pytest.mark.parametrize("code", [0x1B, *range(0x7F, 0xA1), 0xE9, 0x2028, 0x2029, 0xFEFF, 0x1F600])
def test_json_and_yaml_read_the_same(code: int) -> None:
    value = {"name": f"a{chr(code)}b"}
    assert json.loads(json_text(value)) == yaml.safe_load(json_text(value)) == value
