"""What stands at a place of a text, also inside a selector."""

from __future__ import annotations

import pytest

from kubectl_dra.lsp.cursor import Cursor, Typed, cursor_at, member_at, typed, word_at

CLAIM = """apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
        selectors:
        - cel:
            expression: |
              device.driver == "gpu.nvidia.com" &&
              device.attributes["gpu.nvidia.com"].
"""
PATHS = [
    ("kind: Res", 2, ("kind",), True),
    ("name: gpu}", 1, ("metadata", "name"), True),
    ("gpu}", 1, ("metadata", "name"), False),
    ("name: gpu\n", 1, ("spec", "devices", "requests", "name"), True),
    ("deviceClassName", 3, ("spec", "devices", "requests", "exactly", "deviceClassName"), True),
    ("gpu.nvidia.com\n", 3, ("spec", "devices", "requests", "exactly", "deviceClassName"), False),
    ("cel:", 1, ("spec", "devices", "requests", "exactly", "selectors", "cel"), True),
]


def at(text: str, words: str, behind: int = 0) -> Cursor:
    return cursor_at(text, text.index(words) + behind)


@pytest.mark.parametrize(("words", "behind", "path", "on_key"), PATHS)
@pytest.mark.parametrize("broken", [False, True])
def test_the_path_of_a_key_or_value(words: str, behind: int, path: tuple[str, ...], on_key: bool, broken: bool) -> None:
    # A tab makes the document unreadable, so that only the indentation tells.
    text = f"{CLAIM}      \t]\n" if broken and "}" not in words else CLAIM
    found = at(text, words, behind)
    assert (found.kind, found.version) == ("ResourceClaim", "v1")
    assert (found.path, found.on_key) == (path, on_key)


@pytest.mark.parametrize("text", [CLAIM, f"{CLAIM}---\n]: broken\n", CLAIM.replace("kind:", "kind : ")])
def test_a_selector_is_known_by_its_path(text: str) -> None:
    found = at(text, '"].\n', 3)
    assert found.selector is not None and found.path[-2:] == ("cel", "expression")
    assert text[slice(*found.selector)].lstrip().startswith("device.driver")
    assert not text[slice(*found.selector)].startswith("|")


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_a_selector_on_one_line(quote: str) -> None:
    text = f"kind: ResourceClaim\nspec: {{a: 1}}\nx:\n- cel:\n    expression: {quote}device.dri"
    found = cursor_at(text, len(text))
    assert found.selector is not None and text[slice(*found.selector)] == "device.dri"
    closed = cursor_at(f"{text}ver{quote}\n", len(text))
    assert closed.selector is not None and closed.selector.start == found.selector.start


def test_an_empty_line_belongs_where_its_column_is() -> None:
    text = f"{CLAIM}        \n    \n"
    deep, shallow = cursor_at(text, len(CLAIM) + 8), cursor_at(text, len(text) - 1)
    assert deep.path == ("spec", "devices", "requests", "exactly", "")
    assert deep.keys == {"deviceClassName", "selectors"}
    assert shallow.path == ("spec", "devices", "") and "requests" in shallow.keys


def test_a_word_at_the_beginning_of_a_line_may_become_a_key() -> None:
    text = CLAIM.partition("        deviceClassName")[0] + "        dev"
    found = cursor_at(text, len(text))
    assert found.on_key and found.path == ("spec", "devices", "requests", "exactly", "dev")
    assert text[slice(*found.word)] == "dev"


def test_each_document_has_its_own_kind() -> None:
    text = f"{CLAIM}---\nkind: Pod\napiVersion: v1\nspec:\n  con"
    assert cursor_at(text, len(text)).kind == "Pod"
    assert at(text, "deviceClassName").kind == "ResourceClaim"


TYPED = [
    ("", Typed("word", "")),
    ("dev", Typed("word", "dev")),
    ("device.", Typed("field", "")),
    ("device.attr", Typed("field", "attr")),
    ('device.attributes["', Typed("domain", "", "attributes")),
    ("device.capacity['gpu.nv", Typed("domain", "gpu.nv", "capacity")),
    ('device.attributes["gpu.nvidia.com"].', Typed("name", "", "attributes", "gpu.nvidia.com")),
    ('device.attributes["gpu.nvidia.com"].?pro', Typed("name", "pro", "attributes", "gpu.nvidia.com")),
    ('device.attributes["a"].b == "', Typed("value", "", "attributes", "a", "b")),
    ('device.attributes["a"].b in ["x", "y', Typed("value", "y", "attributes", "a", "b")),
    ('device.attributes[\\"a\\"].b', Typed("name", "b", "attributes", "a")),
    ('device.driver == "gpu', Typed("driver", "gpu")),
    ('device.attributes["a"].b.low', Typed("method", "low")),
    ('quantity("1', Typed("quoted", "")),
    ('device.driver == "x" && has', Typed("word", "has")),
]


@pytest.mark.parametrize(("before", "expected"), TYPED)
def test_what_is_typed(before: str, expected: Typed) -> None:
    assert typed(before) == expected


def test_the_attribute_at_a_place() -> None:
    text = 'device.attributes["a"].b == device.capacity["c"].d'
    found = member_at(text, text.index("b =="))
    assert found is not None and (found.map, found.domain, found.name) == ("attributes", "a", "b")
    found = member_at(text, text.index("d", 45))
    assert found is not None and (found.map, found.domain, found.name) == ("capacity", "c", "d")
    assert member_at(text, text.index("==") + 1) is None


def test_the_word_at_a_place() -> None:
    assert word_at("x.matches(y)", 4) == "matches"
    assert word_at("a == b", 3) == ""
