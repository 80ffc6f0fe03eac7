"""Files are replaced whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.files import Rewritten, replace_bytes, replace_file, unified_diff
from kubectl_dra.manifests.source import decode


def rewritten(path: Path, after: str) -> Rewritten:
    source = decode(path.read_bytes(), str(path))
    return Rewritten(str(path), source.text, after, source)


def test_mode_mark_and_line_ends_stay(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\n")
    file.chmod(0o640)
    replace_file(rewritten(file, "a: 2\r\n"))
    assert file.read_bytes() == b"\xef\xbb\xbfa: 2\r\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1\n")
    link = tmp_path / "b.yaml"
    link.symlink_to("a.yaml")
    replace_file(rewritten(link, "a: 2\n"))
    assert link.is_symlink()
    assert (tmp_path / "a.yaml").read_text() == "a: 2\n"


def test_what_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: 1\n")
    change = rewritten(file, "a: 2\n")
    file.write_text("a: 3\n")
    with pytest.raises(InputError, match="it changed meanwhile"):
        replace_file(change)
    assert file.read_text() == "a: 3\n"


def test_a_write_that_fails_leaves_the_old_file_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: 1\n")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        replace_file(rewritten(file, "a: 2\n"))
    assert file.read_text() == "a: 1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    made = tmp_path / "made"
    replace_bytes(made, b"a")
    assert made.stat().st_mode == usual.stat().st_mode


def test_diff_says_where_the_last_newline_is_missing() -> None:
    source = decode("a: 1", "/x/a.yaml")
    assert unified_diff(Rewritten("/x/a.yaml", "a: 1", "a: 2", source)) == (
        "--- a/x/a.yaml\n+++ b/x/a.yaml\n@@ -1 +1 @@\n"
        "-a: 1\n\\ No newline at end of file\n+a: 2\n\\ No newline at end of file\n"
    )
