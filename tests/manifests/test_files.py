"""Files are replaced whole or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.files import Rewritten, hunks, replace_bytes, replace_files, unified, unified_diff
from kubectl_dra.manifests.source import decode


def rewritten(path: Path, after: str) -> Rewritten:
    source = decode(path.read_bytes(), str(path))
    return Rewritten(str(path), source.text, after, source)


def test_mode_mark_and_line_ends_stay(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\n")
    file.chmod(0o640)
    replace_files([rewritten(file, "a: 2\r\n")])
    assert file.read_bytes() == b"\xef\xbb\xbfa: 2\r\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1\n")
    link = tmp_path / "b.yaml"
    link.symlink_to("a.yaml")
    assert replace_files([rewritten(link, "a: 2\n")], [str(link)]) == [(str(link), str(tmp_path / "a.yaml"))]
    assert link.is_symlink()
    assert (tmp_path / "a.yaml").read_text() == "a: 2\n"


def test_what_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: 1\n")
    change = rewritten(file, "a: 2\n")
    file.write_text("a: 3\n")
    with pytest.raises(InputError, match="it changed meanwhile"):
        replace_files([change])
    assert file.read_text() == "a: 3\n"


def three(folder: Path) -> list[Rewritten]:
    for name in "abc":
        (folder / f"{name}.yaml").write_text(f"{name}: 1\n")
    return [rewritten(folder / f"{name}.yaml", f"{name}: 2\n") for name in "abc"]


def test_what_changes_while_others_are_made_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody saves a file while the new ones are put beside the old ones."""
    changes = three(tmp_path)
    sync = os.fsync

    def saving(handle: int) -> None:
        (tmp_path / "b.yaml").write_text("b: mine\n")
        sync(handle)

    monkeypatch.setattr(os, "fsync", saving)
    changed = "b.yaml: it changed meanwhile"
    with pytest.raises(InputError, match=changed):
        replace_files([changes[1], changes[0]])
    (tmp_path / "b.yaml").write_text("b: 1\n")
    with pytest.raises(InputError, match=rf"{changed} and is left as it is \(written before: .*a.yaml\)"):
        # Here b is compared before a is made, and changes while c is.
        monkeypatch.setattr(os, "fsync", lambda handle: sync(handle))
        order = [changes[0], changes[1], changes[2]]
        seen: list[int] = []

        def third(handle: int) -> None:
            seen.append(handle)
            if len(seen) == 3:
                (tmp_path / "b.yaml").write_text("b: mine\n")
            sync(handle)

        monkeypatch.setattr(os, "fsync", third)
        replace_files(order)
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert texts == {"a.yaml": "a: 2\n", "b.yaml": "b: mine\n", "c.yaml": "c: 1\n"}


def test_a_new_file_does_not_take_the_place_of_one_that_comes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "new.yaml"
    change = Rewritten(str(new), "", "a: 1\n", decode(b"", str(new)))
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (new.write_text("mine"), sync(handle))[1])
    with pytest.raises(InputError, match="it changed meanwhile"):
        replace_files([change])
    assert new.read_text() == "mine"


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_an_end_in_the_middle_names_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: type[BaseException]
) -> None:
    changes = three(tmp_path)
    replace = Path.replace

    def ends_after_it(self: Path, target: Path) -> Path:
        done = replace(self, target)
        if target.name == "b.yaml":
            raise end
        return done

    monkeypatch.setattr(Path, "replace", ends_after_it)
    with pytest.raises(end) as caught:
        replace_files(changes)
    names = ", ".join(str(tmp_path / name) for name in ("a.yaml", "b.yaml"))
    assert caught.value.__notes__ == [f"written before: {names}, of 3 files"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.yaml", "b.yaml", "c.yaml"]
    assert (tmp_path / "c.yaml").read_text() == "c: 1\n"


def test_a_link_that_nobody_named_is_not_followed(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside.yaml", tmp_path / "in"
    inside.mkdir()
    outside.write_text("a: 1\n")
    link = inside / "a.yaml"
    link.symlink_to(outside)
    with pytest.raises(InputError, match=rf"is a link to {outside}, which is only written if the link itself is named"):
        replace_files([rewritten(link, "a: 2\n")], [str(inside)])
    assert outside.read_text() == "a: 1\n"
    # Its file is replaced itself: nothing is left to do for the link.
    assert replace_files([rewritten(link, "a: 2\n"), rewritten(outside, "a: 2\n")]) == []
    assert outside.read_text() == "a: 2\n" and link.is_symlink()


def test_a_write_that_fails_leaves_the_old_file_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: 1\n")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        replace_files([rewritten(file, "a: 2\n")])
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


# Unified diffs lead from one text to the other, as ``patch`` reads them, and show little else.


LINES = st.lists(st.sampled_from(("a\n", "b\n", "c\n", "d\n", "- a\n", "\n", "x\r\n")), max_size=30)


@given(LINES, LINES)
def test_hunks_make_one_of_the_other(before: list[str], after: list[str]) -> None:
    out: list[str] = []
    at = new_at = 0
    for hunk in hunks(before, after):
        assert before[at : hunk.start] == after[new_at : hunk.new_start]
        out += before[at : hunk.start] + after[hunk.new_start : hunk.new_end]
        at, new_at = hunk.end, hunk.new_end
    assert out + before[at:] == after


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\n", "a\nc\n"),
        ("a\nb", "a\nb\nc"),
        ("a\nb\n", "a\nb"),
        ("", "a\n"),
        ("".join(f"{n}\n" for n in range(50)), "".join(f"{n}\n" for n in range(50) if n not in (3, 4, 30))),
        ("x\n" * 40, "x\n" * 20 + "y\n" + "x\n" * 20),
    ],
)
def test_patch_reads_them(before: str, after: str, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text(before)
    subprocess.run(["patch", "-p1"], input=unified("f", before, after), cwd=tmp_path, text=True, check=True)
    assert (file.read_text() if file.exists() else "") == after


def test_a_line_that_is_there_often_is_not_shown_as_changed() -> None:
    container = "- name: c{}\n  limits:\n    memory: 1Gi\n    gpu: 1\n    rdma: 1\n"
    before = "".join(container.format(number) for number in range(100))
    after = before.replace("    gpu: 1\n", "")
    shown = unified("f", before, after).splitlines()
    assert [line for line in shown[2:] if line[0] in "+-"] == ["-    gpu: 1"] * 100


def test_nothing_is_shown_of_equal_texts() -> None:
    assert unified("f", "a\n", "a\n") == ""
