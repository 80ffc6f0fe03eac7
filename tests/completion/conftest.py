from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.controlplane.fixtures import (  # noqa: F401
    api_cluster,
    cluster,
    control_plane,
    control_plane_directory,
    control_plane_program,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory with kubectl-dra, and with kubectl_complete-dra as it is under completions/."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "kubectl-dra"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n" + ENTRY)
    program.chmod(0o755)
    (folder / "kubectl_complete-dra").symlink_to(ROOT / "completions" / "kubectl_complete-dra")
    return folder


ENTRY = """from kubectl_dra.__main__ import main
main()
"""


@pytest.fixture
def environment(programs: Path, tmp_path: Path) -> dict[str, str]:
    """Variables under which a shell finds them, and no kubeconfig or settings of this machine."""
    home = tmp_path / "home"
    home.mkdir()
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "KUBECONFIG": str(home / "none"),
        "XDG_CONFIG_HOME": str(home),
        "XDG_DATA_HOME": str(home),
    }
