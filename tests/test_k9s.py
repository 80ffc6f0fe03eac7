"""The plugins for k9s: fields that k9s documents, and commands that ask about the object and nothing else."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

FILE: Final = Path(__file__).parents[1] / "examples" / "k9s" / "plugins.yaml"
PLUGINS: Final[dict[str, dict[str, Any]]] = yaml.safe_load(FILE.read_text())["plugins"]
# internal/config/json/schemas/plugins.json of derailed/k9s: types, and what must be there.
TYPES: Final = {
    "shortCut": str, "override": bool, "description": str, "confirm": bool, "dangerous": bool, "scopes": list,
    "command": str, "background": bool, "overwriteOutput": bool, "args": list,
}  # fmt: skip
REQUIRED: Final = {"shortCut", "description", "scopes", "command"}
VARIABLE: Final = re.compile(r"\$(!?[\w|\-]+)")
"""How k9s finds variables in arguments; one that it does not know is an error."""
SELECTED: Final = {"NAME": "a$(touch pwned)", "NAMESPACE": "ml", "CONTEXT": "prod cluster"}


@pytest.mark.parametrize("name", PLUGINS)
def test_the_fields_are_those_of_k9s(name: str) -> None:
    plugin = PLUGINS[name]
    assert REQUIRED <= plugin.keys() <= TYPES.keys()
    assert all(isinstance(value, TYPES[field]) for field, value in plugin.items())
    assert all(isinstance(word, str) for word in plugin["args"])


def test_no_two_have_one_key_on_one_kind() -> None:
    keys = [(scope, plugin["shortCut"]) for plugin in PLUGINS.values() for scope in plugin["scopes"]]
    assert len(keys) == len({*keys}) and ("pods", "Shift-E") in keys


@pytest.mark.parametrize("name", PLUGINS)
def test_the_command_asks_about_the_object(name: str, tmp_path: Path) -> None:
    """Run as k9s runs it, for an object whose name a shell must not read."""
    for program, does in (
        ("kubectl", f'shift; exec {shlex.quote(sys.executable)} -m kubectl_dra "$@"'),
        ("less", "cat"),
    ):
        (tmp_path / program).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / program).chmod(0o755)
    plugin = PLUGINS[name]
    words = [VARIABLE.sub(lambda found: SELECTED[found[1]], word) for word in plugin["args"]]
    (tmp_path / "config").write_text(
        "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: prod cluster, context: {cluster: c}}]\n"
    )
    ran = subprocess.run(
        [plugin["command"], *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBECONFIG": str(tmp_path / "config")},
    )
    assert not (tmp_path / "pwned").exists()
    # It came as far as the cluster of the context, which nobody serves.
    assert "127.0.0.1:1" in ran.stdout and not ran.stderr, ran


def test_the_words_are_a_command_of_ours() -> None:
    from kubectl_dra.cli.completion.words import FLAGS

    for plugin in PLUGINS.values():
        argv = plugin["args"][plugin["args"].index("kubectl") :]
        assert argv[:2] == ["kubectl", "dra"] and argv[2] in FLAGS
        assert all(word in FLAGS[argv[2]] for word in argv if word.startswith("--"))
