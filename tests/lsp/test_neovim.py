from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lsp.test_server import CLAIM

NVIM = shutil.which("nvim")
SCRIPT = Path(__file__).parent / "neovim.lua"


@pytest.mark.skipif(NVIM is None, reason="Neovim is not installed")
def test_a_wrong_attribute_is_underlined_explained_and_fixed(tmp_path: Path) -> None:
    (tmp_path / "claim.yaml").write_text(CLAIM)
    assert NVIM is not None
    ran = subprocess.run(
        [NVIM, "--headless", "--clean", "-c", f"luafile {SCRIPT}"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        env={
            **os.environ,
            "KUBECONFIG": str(tmp_path / "none"),
            "PYTHONPATH": str(SCRIPT.parent.parent.parent),
            "LSP_COMMAND": f"{sys.executable} -m kubectl_dra lsp",
            "LSP_FILE": "claim.yaml",
        },
    )
    told = dict(line.split(": ", 1) for line in (ran.stdout + ran.stderr).splitlines() if ": " in line)
    assert told["underlined"] == 'device.attributes["gpu.nvidia.com"].productname', told
    assert told["explained"].startswith("**DRA601**")
    assert "productName" in told["offered"]
    assert told["fixed"] == 'expression: device.attributes["gpu.nvidia.com"].productName == "NVIDIA A100-SXM4-40GB"'
