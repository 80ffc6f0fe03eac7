"""The built site, for the tests that look at it."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the site, built strictly. Skips where the generator is missing."""
    pytest.importorskip("zensical", reason="zensical is not installed: make check")
    from tools.docs.site import build

    folder = tmp_path_factory.mktemp("site") / "built"
    build(folder, tmp_path_factory.mktemp("laid-out"))
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
