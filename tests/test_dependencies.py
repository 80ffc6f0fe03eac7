"""What the package imports is declared, and what is declared is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.test_layers import FILES, PACKAGE, nodes

MODULES = {
    "PyYAML": "yaml",
    "cel-python": "celpy",
    "google-re2": "re2",
    "prometheus-client": "prometheus_client",
    "ruamel.yaml": "ruamel",
}
"""Packages whose module has another name."""


def imported(path: Path) -> set[str]:
    """The top-level modules that a file imports, anywhere in it."""
    names = {alias.name for node in nodes(path) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes(path) if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names}


EXTRAS = {"lsp": "lsp", "ui": "ui"}
"""The extras, each with the name of the folders and modules that alone need it."""


def named(entries: Sequence[str]) -> set[str]:
    """The modules of declared packages."""
    names = {re.split(r"[<>=!~ ]", entry)[0] for entry in entries}
    return {MODULES.get(name, name) for name in names}


def of_others(files: Iterable[Path]) -> set[str]:
    """The modules of other packages that files import."""
    return {name for path in files for name in imported(path)} - {*sys.stdlib_module_names, PACKAGE.name}


def test_dependencies_are_those_imported() -> None:
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    always = named(project["dependencies"])
    optional = {
        name: {path for path in FILES if part in path.relative_to(PACKAGE).with_suffix("").parts}
        for name, part in EXTRAS.items()
    }
    assert of_others({*FILES}.difference(*optional.values())) == always
    for name, files in optional.items():
        assert of_others(files) - always == named(project["optional-dependencies"][name])
