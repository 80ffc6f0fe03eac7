"""Running the command line in process."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest

from kubectl_dra.cli.main import run

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "explain"


def cluster_of(name: str) -> str:
    """The cluster of an example."""
    return str(EXAMPLES / name / "cluster.yaml")


def write_list(path: Path, items: Sequence[Any], **said: Any) -> str:
    """A file with objects, as kubectl lists them, and what it says of them; its path."""
    head = {"kubectl-dra": said} if said else {}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", **head, "items": items}))
    return str(path)


class Ran(NamedTuple):
    """What a command gave: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def flat(self) -> str:
        """The output on one line."""
        return " ".join(self.out.split())

    @property
    def json(self) -> Any:
        """The output of ``-o json``."""
        return json.loads(self.out)

    def valid(self, schema: str) -> Any:
        """The output of ``-o json``, which is as a file of ``schemas`` says."""
        found = self.json
        jsonschema.Draft202012Validator(json.loads((ROOT / "schemas" / f"{schema}.json").read_text())).validate(found)
        return found


Dra = Callable[..., Ran]


@pytest.fixture
def dra(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dra:
    """Runs ``kubectl dra`` with words, in an empty folder and without a kubeconfig of the machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-kubeconfig"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    def call(*words: str) -> Ran:
        code = run(list(words))
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err + captured.out
        assert "a defect of kubectl-dra" not in captured.err
        return Ran(code, captured.out, captured.err)

    return call
