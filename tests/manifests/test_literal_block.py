"""Lines of literal blocks: what is replaced, and what is left to people."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.manifests.changes import EditRefused, Set
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.edits import edits_of, verified
from kubectl_dra.manifests.source import Source

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
