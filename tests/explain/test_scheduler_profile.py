"""What the scheduler's configuration changes about an answer, and which node it then takes."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cli.main import run as command
from tests.ran import ran

JSON = dict[str, Any]
FITS = Path(__file__).parent.parent.parent / "examples" / "explain" / "fits"
FULL, ROOMY = "ip-10-0-43-156.us-west-2.compute.internal", "ip-10-0-44-169.us-west-2.compute.internal"


def explained(
    tmp_path: Path, *profiles: JSON, scheduler: str = "", labels: str = "", count: int = 2, **fields: Any
) -> tuple[int, JSON]:
    """The exit code and the answer about the pod of an example that fits on two nodes."""
    config = tmp_path / "scheduler.json"
    about = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**about, "profiles": list(profiles), **fields}))
    before, kind, text = (FITS / "manifest.yaml").read_text().partition("kind: Pod\n")
    if scheduler:
        text = text.replace("\nspec:\n", f"\nspec:\n  schedulerName: {scheduler}\n", 1)
    if labels:
        text = text.replace("metadata:\n", f"metadata:\n  labels: {labels}\n", 1)
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(before.replace("count: 2", f"count: {count}") + kind + text)
    words = ["explain", "-f", str(manifest), "--snapshot", str(FITS / "cluster.yaml"), "-o", "json"]
    given = ["--scheduler-config", str(config)] if profiles or fields else []
    code, out, _ = ran(*words, *given)
    return code, json.loads(out)


def test_the_node_that_wins(tmp_path: Path) -> None:
    code, found = explained(tmp_path)
    assert (code, found["winners"]) == (0, [ROOMY])


def test_another_profile_has_another_winner(tmp_path: Path) -> None:
    only_packing = {
        "schedulerName": "packing",
        "plugins": {"score": {"enabled": [{"name": "NodeResourcesFit"}], "disabled": [{"name": "*"}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
    }
    code, found = explained(tmp_path, only_packing, scheduler="packing")
    assert (code, found["winners"]) == (0, [FULL])
    assert any(note.startswith("scheduled by profile packing of ") for note in found["notes"])
    nothing = {"plugins": {"score": {"disabled": [{"name": "*"}]}}}
    assert explained(tmp_path, nothing)[1]["winners"] == [FULL, ROOMY]


def test_a_scheduler_without_a_profile(tmp_path: Path) -> None:
    code, found = explained(tmp_path, {"schedulerName": "a"}, {"schedulerName": "b"}, scheduler="volcano")
    assert code == 3
    assert "the pod asks for scheduler volcano, which has no profile in" in found["answer"]
    assert "winners" not in found and found["placements"]


@pytest.mark.parametrize(
    ("profile", "fields", "named"),
    [
        ({"plugins": {"filter": {"enabled": [{"name": "Mine"}]}}}, {}, "Mine of profile default-scheduler may refuse"),
        ({}, {"extenders": [{"urlPrefix": "http://x", "filterVerb": "f"}]}, "http://x of profile default-scheduler"),
        (
            {"plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}},
            {},
            "runs without DynamicResources: it places the pod, and nobody allocates its claims",
        ),
    ],
)
def test_what_may_refuse_and_is_not_modelled(profile: JSON, fields: JSON, named: str, tmp_path: Path) -> None:
    code, found = explained(tmp_path, profile, **fields)
    assert code == 3 and named in found["answer"]


def test_no_fix_is_proved_for_rules_that_are_not_known(tmp_path: Path) -> None:
    mine = {"plugins": {"filter": {"enabled": [{"name": "Mine"}]}}}
    proved = [explained(tmp_path, count=9), explained(tmp_path, {}, count=9)]
    for code, found in (*proved, explained(tmp_path, mine, count=9), explained(tmp_path, scheduler="kai", count=9)):
        known = (code, found) in proved
        fixes = [cause["fix"] for cause in found["causes"]]
        assert code == 1 and any("proof" in fix or "whatIf" in fix for fix in fixes) == known
        assert any(note.startswith("no fix was proved: the scheduler") for note in found["notes"]) != known
        assert known or not found.get("fixes")


def test_what_may_only_choose_is_a_note(tmp_path: Path) -> None:
    code, found = explained(tmp_path, {"plugins": {"score": {"enabled": [{"name": "Cost"}]}}})
    assert code == 0 and "winners" not in found
    assert "which of the 2 nodes the scheduler takes depends on Cost, not known here" in found["notes"]


def test_services_that_nobody_read(tmp_path: Path) -> None:
    code, found = explained(tmp_path, labels="{app: x}")
    assert code == 0 and "winners" not in found
    assert "which of the 2 nodes the scheduler takes depends on Services, which were not read" in found["notes"]


def test_filters_that_are_off_are_noted(tmp_path: Path) -> None:
    plugins = {"multiPoint": {"disabled": [{"name": "NodePorts"}]}, "filter": {"disabled": [{"name": "NodeAffinity"}]}}
    _, found = explained(tmp_path, {"plugins": plugins})
    assert "off in profile default-scheduler: NodePorts, NodeAffinity (filter)" in found["notes"]


@pytest.mark.parametrize(("timeout", "noted"), [("2s", True), ("10s", False), ("0s", False)])
def test_another_time_limit_of_searches_is_noted(timeout: str, noted: bool, tmp_path: Path) -> None:
    told = [{"name": "DynamicResources", "args": {"filterTimeout": timeout}}]
    _, found = explained(tmp_path, {"pluginConfig": told})
    assert (f"the profile's filterTimeout is {timeout}; searches are judged by 10s here" in found["notes"]) is noted


def test_everything_that_waits_by_its_own_profile(tmp_path: Path) -> None:
    """With --all each pod is answered for by its own profile."""
    config = tmp_path / "scheduler.json"
    about = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**about, "profiles": [{"schedulerName": "other"}]}))
    where = ["--snapshot", str(FITS.parent / "all-held" / "cluster.yaml"), "--scheduler-config", str(config)]
    code, out, _ = ran("explain", "-A", "-o", "json", *where)
    item, _ending = json.loads(out)["items"]
    assert code == 3
    assert "asks for scheduler default-scheduler, which has no profile" in item["answer"]


def test_one_sentence_for_a_bad_configuration(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("kind: Pod\napiVersion: v1\n")
    err = io.StringIO()
    with redirect_stderr(err):
        code = command(["explain", "pod/p", "--snapshot", str(FITS / "cluster.yaml"), "--scheduler-config", str(bad)])
    assert (code, err.getvalue()) == (2, f"error: {bad}: is Pod, not a KubeSchedulerConfiguration\n")
