"""What the page about accepting findings shows is read so."""

from __future__ import annotations

import re
from pathlib import Path

from kubectl_dra.lint.config import codes, load
from kubectl_dra.lint.rules import BY_CODE

PAGE = Path(__file__).parents[2] / "docs" / "accepting.md"


def test_the_settings_of_the_page_are_all_that_there_are(tmp_path: Path) -> None:
    (shown,) = (text for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL) if "failOn" in text)
    (tmp_path / "a.yaml").write_text(shown)
    read = load(tmp_path / "a.yaml")
    assert read.release == "1.36" and read.gates == ("DRADeviceTaints=true",) and read.fail_on == "error"
    assert codes(read.ignore, "") == ("DRA404", "DRA212") and read.select and read.per_file and read.exclude


def test_the_comments_of_the_page_name_rules() -> None:
    shown = [code for text in re.findall(r"ignore\[([^\]]*)\]", PAGE.read_text()) for code in text.split(",")]
    assert shown and set(shown) <= set(BY_CODE)
