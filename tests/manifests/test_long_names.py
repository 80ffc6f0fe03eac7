"""Files whose names leave no room for a longer one beside them."""

from __future__ import annotations

from pathlib import Path

from kubectl_dra.manifests.files import replace_bytes


def test_the_longest_name_is_replaced(tmp_path: Path) -> None:
    for name in ("a" * 255, "ä" * 127):
        replace_bytes(tmp_path / name, b"new")
        assert (tmp_path / name).read_bytes() == b"new"
    assert len(list(tmp_path.iterdir())) == 2
