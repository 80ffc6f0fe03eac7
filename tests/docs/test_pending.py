"""docs/pending.md: from its start every cause can be reached, by links."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kubectl_dra.explain.cause_kinds import CauseKind
from kubectl_dra.explain.causes.registry import all_kinds
from tools.docs.links import DOCS, slug

PAGE = (DOCS / "pending.md").read_text(encoding="utf-8")


def sections() -> dict[str, str]:
    """Anchor of each heading to what stands below it, up to the next one."""
    parts = re.split(r"^#+ (.+)$", PAGE, flags=re.MULTILINE)[1:]
    return {slug(title): text for title, text in zip(parts[::2], parts[1::2], strict=True)}


def reached(start: str) -> Iterator[str]:
    """The links to other pages in the sections that can be reached from one."""
    waiting, seen = [start], {start}
    below = sections()
    while waiting:
        text = below[waiting.pop()]
        for target in re.findall(r"\]\(([^)]+)\)", text):
            if not target.startswith("#"):
                yield target
            elif target[1:] not in seen:
                seen.add(target[1:])
                waiting.append(target[1:])


@pytest.mark.parametrize("kind", all_kinds(), ids=[kind.code for kind in all_kinds()])
def test_every_cause_is_reached(kind: CauseKind) -> None:
    assert f"causes/{kind.code}.md" in set(reached("my-pod-is-pending"))


def test_every_leaf_is_a_cause_once() -> None:
    leaves = [target for target in reached("my-pod-is-pending") if target != "causes/README.md"]
    assert sorted(leaves) == sorted(f"causes/{kind.code}.md" for kind in all_kinds())


def test_a_section_that_nothing_leads_to_is_noticed() -> None:
    from_one_branch = set(reached("an-error"))
    assert "causes/class-missing.md" in from_one_branch
    assert "causes/devices-held.md" not in from_one_branch
