"""Pods and claims of a manifest that would be called alike are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fit.worlds import JSON, bare, deployment, files, fitted, job, node, running, said, template
from tests.ran import ran

CLUSTER = [*node("a", 4), *running("web", "a")]


def _pod(name: str, entry: str = "gpu") -> JSON:
    pod = bare(name)
    spec = pod["spec"]
    spec["resourceClaims"][0]["name"] = spec["containers"][0]["resources"]["claims"][0]["name"] = entry
    return pod


def test_workloads_of_one_name_are_each_placed(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, CLUSTER, [template(), deployment(1), job(1), _pod("web-new")])
    assert code == 0
    assert [item["workload"]["kind"] for item in report["items"]] == ["Deployment", "Job", "Pod"]
    names = [placed["pod"]["name"] for item in report["items"] for placed in item["placements"]]
    assert len(set(names)) == 3


def test_the_same_workload_twice_is_a_mistake(tmp_path: Path) -> None:
    code, _, errors = said(tmp_path, CLUSTER, [template(), deployment(1), deployment(1, cpu="1")])
    assert code == 2 and "two different objects are called Deployment default/web: " in errors


def test_a_workload_that_is_there_twice_is_counted_once(tmp_path: Path) -> None:
    unnamed = {"name": "web", "labels": {}}
    again = {**deployment(1), "metadata": unnamed}
    code, report = fitted(tmp_path, node("a", 2), [template(), {**again}, template(), again])
    assert code == 0 and [item["podCounts"]["wanted"] for item in report["items"]] == [1]


def test_a_workload_with_two_numbers_of_replicas_is_a_mistake(tmp_path: Path) -> None:
    code, _, errors = said(tmp_path, CLUSTER, [template(), deployment(3), deployment(2)])
    assert code == 2 and "two different objects are called Deployment default/web: " in errors
    code, _, errors = ran("explain", *files(tmp_path))
    assert code == 2 and "two different objects are called Deployment default/web: " in errors


@pytest.mark.parametrize("named", [{"name": "web"}, {"generateName": "web-"}])
def test_workloads_of_other_namespaces_and_of_generated_names_are_several(tmp_path: Path, named: JSON) -> None:
    space = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "other"}}
    there = "other" if "name" in named else "default"
    of_there = {**template(), "metadata": {"name": "gpu-1", "namespace": there}}
    made = [{**deployment(1), "metadata": {**named, "namespace": each}} for each in ("default", there)]
    _, report = fitted(tmp_path, [*CLUSTER, space], [template(), of_there, *made])
    assert len(report["items"]) == 2


def test_claims_of_two_pods_are_two(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, node("a", 2), [template(), _pod("a", "b-c"), _pod("a-b", "c")])
    claims = [held["claim"]["name"] for placed in report["items"][0]["placements"] for held in placed["devices"]]
    assert code == 0 and sorted(claims) == ["a-b-c", "a-b-c-new"]
