"""What runs in our workflows and images is named by commit or by hash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.packaging.toolbox import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OURS = "kubectl-dra/kubectl-dra@"


@pytest.mark.parametrize(
    "path", [*WORKFLOWS, ROOT / "action.yml", ROOT / "examples/ci/github.yml"], ids=lambda p: p.name
)
def test_actions_are_pinned_by_commit_and_say_which_release_that_is(path: Path) -> None:
    used = re.findall(r"uses: (\S+)(.*)", path.read_text())
    assert used
    for action, comment in used:
        assert action.startswith(OURS) or re.fullmatch(r"[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}", action), action
        assert action.startswith(OURS) or re.fullmatch(r" # v\d+(\.\d+)*", comment), action


def test_one_commit_of_each_action() -> None:
    found: dict[str, set[str]] = {}
    for path in [*WORKFLOWS, ROOT / "action.yml", ROOT / "examples/ci/github.yml"]:
        for name, commit in re.findall(r"uses: (\S+)@(\S+)", path.read_text()):
            found.setdefault(name, set()).add(commit)
    assert not {name: commits for name, commits in found.items() if len(commits) > 1}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_a_workflow_may_only_read_unless_a_job_says_more(path: Path) -> None:
    assert "\npermissions:\n  contents: read\n" in path.read_text()
    assert "pull_request_target" not in path.read_text()


@pytest.mark.parametrize("name", ["action.yml", "Containerfile", "Makefile", ".github/workflows/release.yml"])
def test_what_is_shipped_is_installed_by_hash(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "--require-hashes" in text
    # Our own package is built with what is installed by hash, not with what pip would fetch for it.
    assert text.count("--no-build-isolation") + text.count("--no-isolation") >= 1 or name == "Makefile"
