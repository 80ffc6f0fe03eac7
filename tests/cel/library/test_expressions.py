"""What functions answer, as Kubernetes 1.36 does: the expressions in ``expressions.yaml``."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cel.library.support import failure, holds

FAMILIES = yaml.safe_load(Path(__file__).with_name("expressions.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("expression", [text for family in FAMILIES.values() for text in family["holds"]])
def test_it_is_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(
    ("expression", "message"), [pair for family in FAMILIES.values() for pair in family.get("fails", {}).items()]
)
def test_it_fails(expression: str, message: str) -> None:
    assert message in failure(expression)
