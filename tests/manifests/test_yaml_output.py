"""What is written as YAML is read as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.yaml_output import yaml_text

WORDS = (
    "y",
    "N",
    "yes",
    "off",
    "True",
    "null",
    "~",
    "",
    " ",
    "=",
    "<<",
    "0x1F",
    "0o17",
    "017",
    "08",
    "1e3",
    "1.0e3",
    ".5",
)
"""Texts that one reader of YAML or another takes for something else."""
MORE = (
    "1_000",
    "12:30:45",
    "2026-11-30",
    "-.inf",
    ".NaN",
    "- a",
    "a: b",
    "a #b",
    "#",
    "{{X}}",
    "*a",
    "&a",
    "!a",
    "|",
    "a\nb\n",
)


def read_again(value: object) -> object:
    (document,) = read_documents(yaml_text({"value": value}), "f.yaml")
    return document.object["value"]


@pytest.mark.parametrize("text", [*WORDS, *MORE])
def test_words_that_look_like_other_values(text: str) -> None:
    assert read_again(text) == text
    assert read_again({text: [text, {"a": text}]}) == {text: [text, {"a": text}]}


SCALARS = (
    st.text(st.characters(codec="utf-8", exclude_categories=["C"])) | st.booleans() | st.integers(-9, 9) | st.none()
)


@given(st.recursive(SCALARS, lambda below: st.lists(below) | st.dictionaries(st.sampled_from(WORDS), below)))
def test_any_object(value: object) -> None:
    assert read_again(value) == value
