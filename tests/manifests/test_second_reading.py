"""A second parser reads edited texts: what it must notice, and what is no difference."""

from __future__ import annotations

import pytest

from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.edits import confirmed, read_alike
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.source import Source


@pytest.mark.parametrize(
    "text",
    [
        "a: yes\nb: 012\nc: 1:30\n",
        "a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n",
        "---\na: |\n  # text\n  b\n---\n# nothing\n---\nc: ''\n",
        '{"a": [1, {"b": null}]}\n',
        "a: 1\na: 2\n",
        '{"a": "\\ud83d\\ude00 \\ude00"}',
    ],
)
def test_both_read_the_same(text: str) -> None:
    assert read_alike(text, parse(Source("a.yaml", text)))


@pytest.mark.parametrize("other", ["a: 2\n", "a: [1]\n", "b: 1\n", "a: 1\nb: 1\n", "a: 1\n---\nb: 1\n", "a: '1 '\n"])
def test_another_text_is_noticed(other: str) -> None:
    assert read_alike("a: 1\n", parse(Source("a.yaml", other))) is False


def rewritten(before: str, after: str) -> Rewritten:
    return Rewritten("a.yaml", before, after, Source("a.yaml", before))


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
