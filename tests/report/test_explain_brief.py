"""The answer on fifteen lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.meta import ObjectMeta, OwnerReference
from kubectl_dra.api.pods import Owner, Pod
from kubectl_dra.cli.main import run
from kubectl_dra.explain.holders import ClaimHolder, HolderState
from kubectl_dra.explain.remedies.freeing_claims import Free
from kubectl_dra.report.explain_commands import making, why_not_made
from tools.cases import CASES, run_case
from tools.examples import EXAMPLES, arguments, examples

Shown = Callable[..., list[str]]


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shown:
    """The lines of an example's answer."""

    def of(example: str, *flags: str, columns: int = 100) -> list[str]:
        monkeypatch.chdir(EXAMPLES / example)
        monkeypatch.setenv("COLUMNS", str(columns))
        run([*arguments(EXAMPLES / example), *flags])
        return capsys.readouterr().out.splitlines()

    return of


def test_a_fix_comes_with_the_command_that_makes_or_tries_it(shown: Shown) -> None:
    held = shown("gaudi-too-few")
    assert "    Destructive (in the cluster, not the snapshot): $ kubectl delete pod/eval-hpu-0 -n ml" in held
    missing = shown("mig-profile-missing")
    tried = next(line for line in missing if line.startswith("    $ "))
    assert """profile == "3g.20gb"'""" in tried and "--what-if" in tried


def test_hardware_is_offered_as_one_more_node_of_a_kind_that_there_is(shown: Shown) -> None:
    assert any("one more node like h100-1" in line for line in shown("all-tainted", "--full"))
    for flags in ((), ("--full",)):
        assert not any("dd one more" in line for line in shown("no-device-matches", *flags))


@pytest.mark.parametrize("flag", ["--full", "--devices", "--request=gpu"])
def test_details_that_are_asked_for_are_shown(shown: Shown, flag: str) -> None:
    lines = shown("no-device-matches", flag)
    assert any("devices left after each step" in line for line in lines)


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_only_commands_are_wider_than_the_terminal(shown: Shown, columns: int) -> None:
    for line in shown("no-device-matches", columns=columns):
        assert len(line) <= columns or "kubectl " in line
    assert len(shown("no-device-matches", columns=columns)) <= 18


OTHER_WAYS = [
    ("karpenter-3228", "Add a node with such devices yourself. From Karpenter 1.14 on IGNORE_DRA_REQUESTS=false"),
    ("autoscaler-7724", "Add a node with such devices by hand"),
    ("autoscaler-5692", "Raise the maximum of the group with such devices"),
]


@pytest.mark.parametrize(("thread", "fix"), OTHER_WAYS)
def test_what_brings_a_node_is_told_before_another_pod_is_ended(
    thread: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    (case,) = (case for case in CASES if case.file == thread)
    _, text = run_case(case, tmp_path, "text", full=False)
    lines = text.splitlines()
    ending = "  - End pod default/probe (holds 1 device, priority 0), or wait until it ends; then it fits on n2."
    fixes = [line for line in lines if line.startswith("  - ")]
    assert len(lines) <= 18 and any(line.startswith("  no-scale-up: ") for line in lines), text
    assert fixes[0].startswith(f"  - {fix}"[:60]) and fixes[1] == ending, text


@pytest.mark.parametrize("folder", examples(), ids=lambda folder: folder.name)
@pytest.mark.parametrize("columns", [60, 80, 100])
def test_every_further_cause_that_the_answer_counts_is_named(shown: Shown, folder: Path, columns: int) -> None:
    lines = shown(folder.name, columns=columns)
    counted = re.search(r"and (\d+) further cause", " ".join(" ".join(lines).split()))
    causes = [line for line in lines if re.match(r"  [a-z]+(-[a-z]+)+(:|$)", line)]
    more = [int(found[1]) for line in lines if (found := re.match(r"  and (\d+) more: ", line))]
    assert len(causes[1:]) + sum(more) == (int(counted[1]) if counted else 0)


def test_pods_of_a_job_end_with_it(shown: Shown) -> None:
    said = " ".join(shown("compute-domain-one-per-node"))
    assert "Suspend Job moe, which ends pods ml/moe-0, ml/moe-1, ml/moe-2" in " ".join(said.split())
    assert "$ kubectl patch job/moe -n ml --type=merge" in said


def test_where_no_command_ends_a_pod_it_says_why() -> None:
    owner = OwnerReference(kind="Notebook", name="nb", controller=True, api_version="kubeflow.org/v1")
    pod = Pod(ObjectMeta(name="nb-0", namespace="ml", owners=(owner,)))
    claim = ResourceClaim(ObjectMeta(name="c", namespace="ml"))
    free = Free.of([ClaimHolder(claim, HolderState.RUNNING, (pod,), Owner("Notebook", "nb"))], ())
    assert making([free]) == ()
    said = "No command does it: Notebook nb may replace a deleted pod. The answer without it:"
    assert why_not_made([free]) == said
