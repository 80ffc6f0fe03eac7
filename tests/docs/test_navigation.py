"""The navigation of the site, without building it."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from kubectl_dra.explain.causes.registry import families
from tests.docs.links import DOCS


@pytest.fixture(scope="module")
def hooks() -> Any:
    """``docs/theme/hooks.py``, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "theme" / "hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_causes_are_grouped_by_stage(hooks: Any) -> None:
    (entry,) = hooks.expanded([{"Causes": "causes/"}], DOCS)
    first, *groups = entry["Causes"]
    assert first == "causes/README.md"
    assert groups == [
        {family.value: [f"causes/{kind.code}.md" for kind in kinds]} for family, kinds in families() if kinds
    ]


@pytest.mark.parametrize("folder", ["causes", "changes", "commands", "rules"])
def test_every_page_is_there_once(hooks: Any, folder: str) -> None:
    (entry,) = hooks.expanded([f"{folder}/"], DOCS)
    pages = [page for each in entry for page in (next(iter(each.values())) if isinstance(each, dict) else [each])]
    assert sorted(pages) == sorted(f"{folder}/{path.name}" for path in (DOCS / folder).glob("*.md"))
