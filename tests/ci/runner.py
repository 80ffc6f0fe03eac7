"""Runs a composite action and a GitLab job as their runners do, as far as ours use them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_EXPRESSION = re.compile(r"\$\{\{\s*([^}]+?)\s*\}\}")


class Ran(NamedTuple):
    """How a job ended: exit code, log, job summary, outputs, and the actions of others that would have run."""

    code: int
    log: str
    summary: str
    outputs: dict[str, str]
    used: list[dict[str, Any]]


class Action:
    """A composite action, its inputs given, in a checked-out repository."""

    def __init__(self, path: Path, workspace: Path, scratch: Path, environment: Mapping[str, str]) -> None:
        self._action: dict[str, Any] = yaml.safe_load(path.read_text())
        self._path, self._workspace, self._scratch = path.parent, workspace, scratch
        self._environment = dict(environment)
        self._steps: dict[str, dict[str, str]] = {}
        self._inputs: dict[str, str] = {}

    def run(self, **inputs: str) -> Ran:
        """Runs the steps in order, until one fails."""
        declared = self._action["inputs"]
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert given.keys() <= declared.keys()
        self._inputs = {name: given.get(name, str(entry.get("default", ""))) for name, entry in declared.items()}
        log, code, used = "", 0, []
        summary = self._scratch / "summary"
        summary.touch()
        for step in self._action["runs"]["steps"]:
            if code != 0 or not self._holds(step.get("if", "true")):
                continue
            if "uses" in step:
                used.append({"uses": step["uses"], **{key: self._fill(text) for key, text in step["with"].items()}})
                continue
            assert step["shell"] == "bash"
            code, text = self._step(step, summary)
            log += text
        outputs = {name: self._fill(entry["value"]) for name, entry in self._action["outputs"].items()}
        return Ran(code, log, summary.read_text(), outputs, used)

    def _step(self, step: Mapping[str, Any], summary: Path) -> tuple[int, str]:
        path, output = self._scratch / "path", self._scratch / "output"
        path.write_text("")
        output.write_text("")
        files = {"GITHUB_PATH": path, "GITHUB_OUTPUT": output, "GITHUB_STEP_SUMMARY": summary}
        environment = {
            **self._environment,
            **{name: str(file) for name, file in files.items()},
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self._workspace),
            "RUNNER_TEMP": str(self._scratch),
            **{name: self._fill(str(text)) for name, text in step.get("env", {}).items()},
        }
        assert "${{" not in step["run"], "an expression in a script lets its value run as code"
        script = self._scratch / "step.sh"
        script.write_text(step["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self._workspace,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self._environment["PATH"] = ":".join([*path.read_text().split(), self._environment["PATH"]])
        if "id" in step:
            self._steps[step["id"]] = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done.returncode, done.stdout

    def _fill(self, text: str) -> str:
        return _EXPRESSION.sub(lambda match: self._value(match[1]), text)

    def _holds(self, condition: str) -> bool:
        if condition == "true":
            return True
        for part in condition.split("&&"):
            left, operator, right = re.split(r"\s*([!=]=)\s*", part.strip())
            if (self._value(left) == right.strip("'")) != (operator == "=="):
                return False
        return True

    def _value(self, name: str) -> str:
        match name.split("."):
            case ["inputs", key]:
                return self._inputs[key]
            case ["steps", step, "outputs", key]:
                return self._steps.get(step, {}).get(key, "")
            case ["github", "action_path"]:
                return str(self._path)
        raise ValueError(f"the test's runner does not know {name}")


def run_gitlab(path: Path, job: str, workspace: Path, environment: Mapping[str, str], **variables: str) -> Ran:
    """Runs a job's scripts as one shell script that stops at the first command that fails."""
    described: dict[str, Any] = yaml.safe_load(path.read_text())[job]
    lines = [*described.get("before_script", ()), *described["script"]]
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(lines)],
        cwd=workspace,
        env={**environment, "CI": "true", "GITLAB_CI": "true", **described["variables"], **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Ran(done.returncode, done.stdout, "", described["artifacts"]["reports"], [])
