"""Commands about nodes and ways of sharing say no "no" where what decides was not read."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
import yaml

from kubectl_dra.cli.main import run

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("hidden", "words", "said"),
    [
        ("Node", "explain pod/serve-0 -n ml --with-node like=h100-1", "whether there is a Node h100-1 is unknown"),
        ("ResourceClaim", "share --class gpu.nvidia.com --pods 2", "whether all of them can run is undetermined"),
    ],
)
def test_what_was_not_read_is_not_denied(tmp_path: Path, hidden: str, words: str, said: str) -> None:
    cluster = yaml.safe_load((ROOT / "examples/explain/mixed-fleet/cluster.yaml").read_text("utf-8"))
    items = [item for item in cluster["items"] if item["kind"] != hidden]
    file = tmp_path / "half.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}), "utf-8")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run([*words.split(), "--snapshot", str(file)])
    assert code == 3
    assert said in " ".join(out.getvalue().split())
