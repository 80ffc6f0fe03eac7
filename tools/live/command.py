"""`kubectl dra explain` as tests run it, and its answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kubectl_dra.cli.main import run
from tools.live.proved import device_path

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of one run of the command."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> Json:
        """The diagnosis, which is as the schema says."""
        assert self.out, f"exit code {self.code}, no output; stderr: {self.err}"
        report: Json = json.loads(self.out)
        error = jsonschema.exceptions.best_match(_validator().iter_errors(report))
        assert error is None, f"{error.json_path}: {error.message}"
        assert report["exitCode"] == self.code
        return report

    @property
    def causes(self) -> list[str]:
        """The codes of the causes."""
        return [cause["code"] for cause in self.report["causes"]]

    @property
    def text(self) -> str:
        """All that was written."""
        return self.out + self.err

    def placement(self, node: str) -> dict[str, list[str]] | None:
        """What a node would give: per entry of the pod `request: driver/pool/device`; None if it does not fit there."""
        entries = {
            f"{claim['namespace']}/{claim['name']}": claim["entry"]
            for claim in self.report["claims"]
            if "name" in claim
        }
        for placement in self.report["placements"]:
            if placement["node"] == node:
                given: dict[str, list[str]] = {}
                for each in placement.get("devices", ()):
                    given.setdefault(entries[f"{each['claim']['namespace']}/{each['claim']['name']}"], []).append(
                        f"{each['request']}: {device_path(each)}"
                    )
                return given
        return None

    def outcomes(self, prefix: str) -> Counter[str]:
        """How many nodes whose names begin with `prefix` have which outcome."""
        return Counter(
            group["outcome"]
            for group in self.report["nodeGroups"]
            for name in group["nodes"]
            if name.startswith(prefix) and group["outcome"] != "not-eligible"
        )


class Command:
    """Runs `kubectl dra` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Answer:
        self._capsys.readouterr()
        code = run(arguments)
        written = self._capsys.readouterr()
        return Answer(code, written.out, written.err)


def subprocess_run(*arguments: str) -> Answer:
    """Runs `kubectl dra` as kubectl does."""
    ended = subprocess.run(
        [sys.executable, "-m", "kubectl_dra", *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )
    return Answer(ended.returncode, ended.stdout, ended.stderr)


@cache
def _validator() -> jsonschema.protocols.Validator:
    schema = json.loads((ROOT / "schemas/explain.json").read_text())
    return jsonschema.Draft202012Validator(schema)
