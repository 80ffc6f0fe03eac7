"""The built site, for the tests that look at it."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.links import ROOT

_BUILD_SECONDS = 300


def _mkdocs() -> str | None:
    """The program that `make docs` installed, or one on the PATH."""
    ours = ROOT / "build" / "docs-venv" / "bin" / "mkdocs"
    return str(ours) if ours.exists() else shutil.which("mkdocs")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the site, built strictly. Skips where MkDocs is missing, unless REQUIRE_DOCS=1."""
    program = _mkdocs()
    if program is None:
        reason = "MkDocs is not installed: make docs"
        if os.environ.get("REQUIRE_DOCS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [program, "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the site is served, without a slash at the end."""
    handler = functools.partial(_Silent, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
