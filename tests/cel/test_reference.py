"""docs/cel.md: complete, up to date, and every example true."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_dra.api.releases import Release
from kubectl_dra.cel import library
from kubectl_dra.cel.macros import macros_for
from tests.cel.library.support import compiled, holds
from tools.docs import cel_reference as reference

PAGE = Path(__file__).parents[2] / "docs" / "cel.md"


@pytest.mark.parametrize("example", sorted(set(reference.examples())))
def test_examples_are_true(example: str) -> None:
    assert holds(example)


def test_the_page_is_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference.render(), "run: python -m tools.docs.cel_reference docs/cel.md"


def test_every_macro_is_documented() -> None:
    documented = {macro.key for macro in reference.MACROS}
    assert documented == set(macros_for(Release(1, 37), stored=True))


def test_only_helpers_of_macros_have_no_example() -> None:
    references = {function.name: library.reference(function.name, function.library) for function in library.families()}
    silent = {name for name, reference in references.items() if not reference.examples}
    assert silent == {"@not_strictly_false", "@sortByAssociatedKeys", "cel.@mapInsert"}
    assert all(reference.documentation for reference in references.values())


def test_costs_on_the_page_are_the_estimates() -> None:
    program = compiled('"a100".startsWith("a")')
    assert f'`"a100-80gb".startsWith("a100")` (cost: {program.max_cost})' in reference.render()
