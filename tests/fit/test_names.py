"""Pods and claims of a manifest that would be called alike are told apart."""

from __future__ import annotations

from pathlib import Path

from tests.fit.worlds import JSON, deployment, fitted, node, pod_spec, running, said, template

CLUSTER = [*node("a", 4), *running("web", "a")]


def _job(name: str) -> JSON:
    spec = {"template": {"spec": pod_spec(restartPolicy="Never")}}
    return {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _pod(name: str, entry: str = "gpu") -> JSON:
    spec = pod_spec()
    spec["resourceClaims"][0]["name"] = spec["containers"][0]["resources"]["claims"][0]["name"] = entry
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def test_workloads_of_one_name_are_each_placed(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, CLUSTER, [template(), deployment(1), _job("web"), _pod("web-new")])
    assert code == 0
    assert [item["workload"]["kind"] for item in report["items"]] == ["Deployment", "Job", "Pod"]
    names = [placed["pod"]["name"] for item in report["items"] for placed in item["placements"]]
    assert len(set(names)) == 3


def test_the_same_workload_twice_is_a_mistake(tmp_path: Path) -> None:
    code, _, errors = said(tmp_path, CLUSTER, [template(), deployment(1), deployment(1, cpu="1")])
    assert code == 2 and "two different objects are called Deployment default/web: " in errors


def test_claims_of_two_pods_are_two(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, node("a", 2), [template(), _pod("a", "b-c"), _pod("a-b", "c")])
    claims = [held["claim"]["name"] for placed in report["items"][0]["placements"] for held in placed["devices"]]
    assert code == 0 and sorted(claims) == ["a-b-c", "a-b-c-new"]
