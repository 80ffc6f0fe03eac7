"""What we ship for CI, run as its runners run it, on a repository with a bad manifest."""

from __future__ import annotations

import json
import shutil
import subprocess
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest
import yaml

from kubectl_dra import __version__
from tests.ci.runner import Action, run_gitlab
from tests.packaging.toolbox import ROOT, checkout

pytestmark = pytest.mark.xdist_group("packaging")
EXAMPLES = ROOT / "examples" / "ci"
ANNOTATION = (
    "::error file=manifests/bad.yaml,line=11,endLine=11,col=13,endColumn=28,title=DRA101 unknown-field::"
    "ResourceClaimTemplate large-gpu: spec.spec.devices.requests[0].exactly.deviceClassNmae: "
    "there is no field 'deviceClassNmae' here; did you mean 'deviceClassName'?"
)
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
    - name: main
      image: example.com/train
      resources:
        limits: {nvidia.com/gpu: 1}
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """The sample repository."""
    return Path(shutil.copytree(EXAMPLES / "sample", tmp_path / "sample"))


@pytest.fixture
def action(sample: Path, offline: dict[str, str], tmp_path: Path) -> Action:
    scratch = tmp_path / "runner"
    scratch.mkdir()
    return Action(ROOT / "action.yml", sample, scratch, offline)


def test_the_action_annotates_and_fails(action: Action, wheel: Path, sample: Path) -> None:
    ran = action.run(install=str(wheel), paths="manifests values.yaml", upload_sarif="true")
    assert ran.code == 1, ran.log
    assert ANNOTATION in ran.log.splitlines()[0]
    assert ran.outputs == {"sarif-file": "kubectl-dra.sarif", "exit-code": "1"}
    assert "### kubectl dra lint" in ran.summary and "error DRA101 unknown-field" in ran.summary
    (upload,) = ran.used
    assert upload["uses"].startswith("github/codeql-action/upload-sarif@")
    report = json.loads((sample / upload["sarif_file"]).read_text())
    (result,) = report["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]
    assert (location["artifactLocation"]["uri"], location["region"]["startLine"]) == ("manifests/bad.yaml", 11)

    (sample / "manifests" / "bad.yaml").unlink()
    clean = action.run(install=str(wheel), args="--kubernetes-version 1.36")
    assert (clean.code, clean.outputs["exit-code"], clean.used) == (0, "0", [])
    assert "no findings in 1 object of 2 files, for Kubernetes 1.36." in clean.log
    assert json.loads((sample / "kubectl-dra.sarif").read_text())["runs"][0]["results"] == []

    broken = action.run(install=str(wheel), paths="no-such-folder", upload_sarif="true")
    assert (broken.code, broken.outputs["exit-code"], broken.used) == (2, "2", [])
    assert "no-such-folder" in broken.log


def test_the_action_fails_where_something_is_to_be_migrated(action: Action, sample: Path) -> None:
    (sample / "manifests" / "train.yaml").write_text(POD)
    # Without "install": this checkout, and what it needs by hash.
    ran = action.run(command="migrate", paths="manifests")
    assert ran.code == 1, ran.log
    assert "::warning file=manifests/train.yaml,line=9,endLine=9,col=18" in ran.log
    assert "### kubectl dra migrate" in ran.summary and "manifests/train.yaml: would change" in ran.summary
    report = json.loads((sample / "kubectl-dra.sarif").read_text())
    assert {result["ruleId"] for result in report["runs"][0]["results"]} >= {"MIG101"}


def test_gitlab(sample: Path, offline: dict[str, str], wheel: Path) -> None:
    ran = run_gitlab(EXAMPLES / "gitlab-ci.yml", "dra-lint", sample, offline, KUBECTL_DRA=str(wheel))
    assert ran.code == 1, ran.log
    assert "manifests/bad.yaml" in ran.log and "DRA101" in ran.log
    cases = Xml.parse(sample / ran.outputs["junit"]).getroot().iter("testcase")
    assert sorted(bool(case.findall("failure")) for case in cases) == [False, True]


def test_any_other(sample: Path, offline: dict[str, str], wheel: Path) -> None:
    command = ["sh", str(EXAMPLES / "generic.sh"), "manifests"]
    environment = {**offline, "KUBECTL_DRA": str(wheel)}
    done = subprocess.run(command, cwd=sample, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "DRA101" in done.stdout
    assert json.loads((sample / "kubectl-dra.sarif").read_text())["runs"][0]["results"]
    assert "DRA101" in (sample / "kubectl-dra.xml").read_text()


@pytest.fixture
def hooks(tmp_path: Path) -> Path:
    """A git repository with this checkout, as pre-commit fetches it."""
    folder = checkout(tmp_path / "hooks")
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")
    git(folder, "tag", f"v{__version__}")
    return folder


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_pre_commit(sample: Path, hooks: Path, tools: Path, offline: dict[str, str], tmp_path: Path) -> None:
    config = yaml.safe_load((EXAMPLES / "pre-commit-config.yaml").read_text())
    (repo,) = config["repos"]
    assert repo["rev"] == f"v{__version__}"
    repo["repo"] = str(hooks)
    assert [hook["id"] for hook in repo["hooks"]] == ["kubectl-dra-lint", "kubectl-dra-migrate"]
    (sample / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    git(sample, "init", "--quiet")
    git(sample, "add", "--all")
    environment = {**offline, "PRE_COMMIT_HOME": str(tmp_path / "home"), "PRE_COMMIT_COLOR": "never"}

    def run() -> tuple[int, str]:
        command = [str(tools / "pre-commit"), "run", "--all-files"]
        done = subprocess.run(command, cwd=sample, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    code, log = run()
    assert code == 1, log
    assert "kubectl dra lint" in log and "bad.yaml" in log and "did you mean 'deviceClassName'?" in log
    (sample / "manifests" / "bad.yaml").unlink()
    git(sample, "add", "--all")
    code, log = run()
    assert code == 0, log
    assert log.count("Passed") == 2, log
    (sample / "manifests" / "pod.yaml").write_text(POD)
    git(sample, "add", "--all")
    code, log = run()
    assert code == 1, log
    assert "kubectl-dra-migrate" in log, log


def test_the_sample_is_repaired_as_its_readme_says(sample: Path) -> None:
    from kubectl_dra.cli.main import run

    assert run(["lint", "--fix", str(sample)]) == 0
    good = (sample / "manifests" / "good.yaml").read_text()
    assert (sample / "manifests" / "bad.yaml").read_text() == good.replace("one-gpu", "large-gpu")
