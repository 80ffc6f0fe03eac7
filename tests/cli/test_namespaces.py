"""A namespace that was typed and does not exist is an error of input in each command, and its message guesses."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubectl_dra.cli.main import COMMANDS
from tests.ran import ran
from tools.api_server import kubeconfig
from tools.command_runs import POD, codes
from tools.examples import ROOT
from tools.fuzz.served import Served
from tools.hostile_server import HostileServer

MIXED: Final = ROOT / "examples" / "explain" / "mixed-fleet" / "cluster.yaml"
SAVED: Final = ("--snapshot", str(MIXED))
LIVE_ONLY: Final = {"can", "snapshot"}
WITHOUT: Final = {"lsp", "ui"}
"""An editor is told, and ui needs a terminal: see ``tests/ui``."""
RUNS: Final = (
    ("claims",),
    ("claims", "--alignment"),
    ("claims", "--alignment", "a"),
    ("devices",),
    ("explain",),
    ("explain", "pod/serve-0"),
    ("explain", "deployment/serve"),
    ("explain", "-l", "app=serve"),
    ("explain", "-f", "pod.yaml"),
    ("fit", "-f", "pod.yaml"),
    ("lint", "pod.yaml"),
    ("migrate",),
    ("migrate", "pod.yaml"),
    ("migrate", "plan", "--output-dir", "out"),
    ("share", "--class", "gpu.nvidia.com"),
    ("share", "-f", "pod.yaml"),
    ("taint", "pod/serve-0", "a=b:NoSchedule", "--dry-run=client"),
    ("top", "claims"),
    ("top", "owners"),
    ("untaint", "pod/serve-0", "a-", "--dry-run=client"),
)
SAID: Final = "error: -n: there is no namespace mll; did you mean ml?"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.yaml").write_text(POD)


def test_each_command_that_takes_a_namespace_is_run_here() -> None:
    taking = {name for name in COMMANDS if "--namespace" in ran(name, "--help")[1]}
    assert taking == {words[0] for words in RUNS} | LIVE_ONLY | WITHOUT


@pytest.mark.parametrize("words", RUNS, ids=" ".join)
def test_a_misspelt_namespace_is_no_empty_one(words: Sequence[str]) -> None:
    code, out, errors = ran(*words, "-n", "mll", *SAVED)
    assert (code, out) == (2, "") and errors.splitlines()[-1] == SAID
    assert code in codes(words[0])
    assert "there is no namespace" not in ran(*words, "-n", "ml", *SAVED)[2]


@pytest.mark.parametrize("words", [words for words in RUNS if words[0] not in ("taint", "untaint")], ids=" ".join)
def test_nobody_knows_that_it_is_none_where_namespaces_were_not_read(words: Sequence[str], tmp_path: Path) -> None:
    items = [item for item in _items() if item["kind"] != "Namespace"]
    (tmp_path / "less.yaml").write_text(yaml.safe_dump_all(items))
    assert "there is no namespace" not in ran(*words, "-n", "mll", "--snapshot", "less.yaml")[2]


def test_a_manifest_may_make_its_namespace(tmp_path: Path) -> None:
    (tmp_path / "both.yaml").write_text(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: mll}}\n---\n{POD}")
    assert "there is no namespace" not in ran("explain", "-f", "both.yaml", "-n", "mll", *SAVED)[2]


@pytest.mark.parametrize("words", [words for words in RUNS if "-f" in words], ids=" ".join)
@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
def test_the_namespace_of_a_manifest_must_be_the_one_that_was_typed(words: Sequence[str], kind: str) -> None:
    pod = yaml.safe_load(POD)
    made = (
        pod if kind == "Pod" else {"apiVersion": "apps/v1", "kind": kind, "spec": {"template": {"spec": pod["spec"]}}}
    )
    Path("pod.yaml").write_text(yaml.safe_dump({**made, "metadata": {"name": "a", "namespace": "ml"}}))
    code, out, errors = ran(*words, "-n", "default", *SAVED)
    assert (code, out) == (2, "")
    assert 'the namespace from the provided object "ml" does not match the namespace "default"' in errors
    assert "does not match" not in ran(*words, "-n", "ml", *SAVED)[2] + ran(*words, *SAVED)[2]


@pytest.mark.parametrize(
    "words", [("claims",), ("devices",), ("explain",), ("top", "claims"), ("migrate", "--live")], ids=" ".join
)
def test_a_live_cluster_is_asked_for_its_namespaces(words: Sequence[str], tmp_path: Path) -> None:
    with closing(HostileServer(Served(_items(), -1).misbehave, discovery=False)) as server:
        config = tmp_path / "config"
        config.write_text(yaml.safe_dump(kubeconfig(server.url, {"token": "t"})))
        code, _, errors = ran(*words, "-n", "mll", "--kubeconfig", str(config))
    assert code == 2 and errors.splitlines()[-1] == SAID


def _items() -> list[dict[str, Any]]:
    documents = yaml.load_all(MIXED.read_text("utf-8"), Loader=yaml.CSafeLoader)
    return [item for document in documents for item in document.get("items", [document])]
