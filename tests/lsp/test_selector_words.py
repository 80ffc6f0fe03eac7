from __future__ import annotations

import pytest

from kubectl_dra.lsp.cursor import Typed, member_at, typed, word_at

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
