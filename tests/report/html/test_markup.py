"""The escaping writer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.report.html.page import Markup, join, tag, text
from tests.report.html.support import Document

HOSTILE = st.text(alphabet=st.one_of(st.sampled_from("<>&\"'/=`!-;scriptx "), st.characters()), max_size=40)
VISIBLE = HOSTILE.filter(lambda value: text(value).find("\\u") < 0 and "\r" not in value)


@given(HOSTILE, HOSTILE)
def test_text_and_attributes_never_become_markup(inside: str, attribute: str) -> None:
    document = Document(tag("p", inside, title=attribute))
    assert [element.name for element in document.elements] == ["p"]
    assert list(document.elements[0].attributes) == ["title"]


@given(VISIBLE, VISIBLE)
def test_what_is_visible_is_shown_as_it_is(inside: str, attribute: str) -> None:
    (element,) = Document(tag("p", inside, title=attribute)).elements
    assert "".join(element.text) == inside
    assert element.attributes["title"] == attribute


def test_what_cannot_be_seen_is_written_out() -> None:
    assert text("gpu\u202e0\x00\ud800\u200b") == "gpu\\u202e0\\u0000\\ud800\\u200b"
    assert text("a\nb\té😀") == "a\nb\té😀"
    tag("p", "\ud800").encode()


def test_markup_is_not_escaped_twice() -> None:
    inner = tag("b", "<")
    assert tag("p", inner, "<") == "<p><b>&lt;</b>&lt;</p>"
    assert join([inner, "&"], ", ") == "<b>&lt;</b>, &amp;"
    assert text(Markup("<br>")) == "<br>"


def test_attributes() -> None:
    written = tag("input", name="n", class_="c", data_k=3, hidden=True, id=None, disabled=False, aria_label="")
    assert written == '<input name="n" class="c" data-k="3" hidden aria-label="">'
