"""Workloads that nobody can list, or that have no meaning: an answer or a sentence, in little time and memory."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fit.worlds import deployment, fitted, job, node, said, template

MANY = 2**31 - 1


def job_set(jobs: int, pods: int) -> dict[str, Any]:
    def entry(name: str, replicas: int, parallelism: int) -> dict[str, Any]:
        return {"name": name, "replicas": replicas, "template": {"spec": job(parallelism)["spec"]}}

    spec = {"replicatedJobs": [entry("workers", jobs, pods), entry("driver", 1, 1)]}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "s"}, "spec": spec}


@pytest.mark.parametrize(
    ("workload", "wanted"),
    [(job(MANY), MANY), (deployment(MANY), MANY), (job_set(100_000, 100_000), 10**10 + 1)],
)
def test_counts_are_numbers_and_not_lists(tmp_path: Path, workload: dict[str, Any], wanted: int) -> None:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    code, report = fitted(tmp_path, [*node("a", 2), *node("b", 1)], [template(), workload])
    assert time.process_time() - began < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
    (found,) = report["items"]
    assert (code, found["verdict"]) == (1, "can-be-scheduled-in-part")
    assert (found["podCounts"]["wanted"], found["podCounts"]["fit"]) == (wanted, 3)
    assert found["stop"]["others"] == wanted - 4


def test_a_count_that_no_server_takes_is_refused(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, node("a", 2), [template(), job(10**400)])
    (found,) = report["items"]
    assert (code, found["verdict"], found["stop"]["cause"]) == (1, "cannot-be-scheduled", "object-refused")


def test_a_large_count_is_answered_as_a_small_one(tmp_path: Path) -> None:
    """Where the nodes have no room for more, the number of those that wait is all that differs."""
    cluster = [*node("a", 2), *node("b", 1)]
    (small, large) = (
        fitted(tmp_path, cluster, [template(), deployment(count)])[1]["items"][0] for count in (900, 90_000)
    )
    assert (small["stop"].pop("others"), large["stop"].pop("others")) == (896, 89_996)
    assert (small["podCounts"].pop("wanted"), large["podCounts"].pop("wanted")) == (900, 90_000)
    assert (small["podCounts"], small["placements"], small["stop"]) == (
        large["podCounts"],
        large["placements"],
        large["stop"],
    )


ODD = (5, "x", ["x"], [{"a": 1}])


def odd(path: str, value: Any) -> dict[str, Any]:
    made = deployment(1, gpus=0)
    at: Any = made
    *above, last = path.split(".")
    for step in above:
        at = at.setdefault(step, {})
    at[last] = value
    return made


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    "path",
    [
        "spec.selector",
        "spec.selector.matchLabels",
        "spec.template.metadata",
        "spec.template.metadata.labels",
        "spec.template.metadata.annotations",
        "metadata",
        "metadata.annotations",
    ],
)
def test_what_must_be_an_object(tmp_path: Path, path: str, value: Any) -> None:
    code, out, err = said(tmp_path, node("a"), [odd(path, value)])
    assert (code, out) == (2, "")
    assert f"Deployment: {path} must be an object" in err and "defect" not in err


@pytest.mark.parametrize("path", ["spec.selector.matchExpressions", "spec.selector.matchLabels.app"])
@pytest.mark.parametrize("value", [5, [5], {"a": [1]}])
def test_what_no_selector_has(tmp_path: Path, path: str, value: Any) -> None:
    _, _, err = said(tmp_path, node("a"), [odd(path, value)])
    assert "defect" not in err
