"""Sections of pages are written where they stand, or somebody hears of it."""

from __future__ import annotations

import pytest

from kubectl_dra.data.code_pages import replaced


def test_a_section_is_written_wherever_it_stands() -> None:
    text = "# A: b\n\n## Fix\n\nold\n\n## More\n\nx\n\n## Last\n"
    assert replaced(text, "Fix", "new") == "# A: b\n\n## Fix\n\nnew\n\n## More\n\nx\n\n## Last\n"
    assert replaced(text, "Last", "new").endswith("## Last\n\nnew\n")
    with pytest.raises(ValueError, match="no section 'Fixes'"):
        replaced(text, "Fixes", "new")
