"""Visual Studio Code for tests, as code-server of npm has it: once per version, into the cache of the control planes.

    python -m tools.vscode

installs it ahead of a test run (some minutes, half a gigabyte) and prints where it is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.controlplane.program import Unavailable, cache_directory, locked

VERSION = "4.96.4"
"""The last one that runs on Node 20: VS Code 1.96.4."""
NATIVE = {"lib/vscode": ("@vscode/spdlog", "native-watchdog"), ".": ("argon2",)}
"""What is compiled: the server does not start without. The other modules are for terminals and watching folders."""


def find_vscode() -> Path:
    """The script that Node runs as the server.

    Raises:
        Unavailable: it cannot be installed here; says why.
    """
    folder = cache_directory().parent / "vscode" / VERSION
    if not folder.exists():
        with locked(folder.parent / "install.lock"):
            if not folder.exists():
                _install(folder)
    return folder / "out" / "node" / "entry.js"


def _install(folder: Path) -> None:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        raise Unavailable("there is no Node with npm on PATH to run Visual Studio Code with")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="install-") as scratch:
        _run(Path(scratch), "npm", "pack", "--silent", f"code-server@{VERSION}")
        _run(Path(scratch), "tar", "xzf", f"code-server-{VERSION}.tgz")
        package = Path(scratch) / "package"
        for part in (package / each for each in NATIVE):
            # It names one module by its address at GitHub; npm has the same.
            (part / "npm-shrinkwrap.json").unlink(missing_ok=True)
            _run(part, "npm", "install", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund")
        headers = Path(node).resolve().parents[1]
        for where, modules in NATIVE.items():
            _run(package / where, "npm", "rebuild", f"--nodedir={headers}", *modules)
        package.rename(folder)


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(["nice", "-n", "10", *command], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
        raise Unavailable(f"{' '.join(command)} failed: {last[0]}")


if __name__ == "__main__":
    try:
        print(find_vscode())
    except Unavailable as error:
        sys.exit(str(error))
