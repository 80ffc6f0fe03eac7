"""Who writes files: few modules, each of which replaces a file as a whole, and only what may be replaced."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import kubectl_dra

WRITERS: Final = {
    "manifests/files.py": "replaces a file as a whole, unless it changed meanwhile",
    "cluster/save.py": "as above; an existing file only with --force",
    "cluster/credentials.py": "a private temporary file, for ssl",
    "migrate/kustomize/outcome.py": "a temporary copy, to be built",
    "manifests/charts.py": "a temporary copy of a chart, to be rendered",
    "migrate/charts/run.py": "the temporary folder of that copy",
    "migrate/charts/workshop.py": "a temporary copy of a chart, to be changed",
    "safe_output.py": "/dev/null, in place of a closed stream",
}
CALLS: Final = re.compile(
    r"(?<!\bformatter)\.write_(?:text|bytes)\(|open\([^)\n]*[\"'](?:[wax]b?\+?|[wax]t)[\"']|\bos\.(?:replace|rename|link|symlink|open)\("
    r"|\bshutil\.(?:copy|move|rmtree)|fdopen\(.*\"wb?\"|tempfile\.|\.touch\("
)
PIPES: Final = {"cluster/contents.py", "lint/engine.py", "lsp/server.py"}
"""Who opens pipes, devices and streams that are there already. Of files nothing else writes."""
USERS: Final = {"cli/migrate/files.py", "cli/lint/fixing.py", "lint/accepted.py", "lint/fixes.py"}
"""Who has files replaced: what a flag asks to be written."""


def _matching(pattern: re.Pattern[str]) -> set[str]:
    package = Path(kubectl_dra.__file__).parent
    return {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    }


def test_few_modules_write_files() -> None:
    found = _matching(CALLS)
    assert found == {*WRITERS, *PIPES}


def test_who_has_files_replaced() -> None:
    assert _matching(re.compile(r"import .*\breplace_(?:bytes|files)\b")) <= USERS
