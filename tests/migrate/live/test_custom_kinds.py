"""What migrate writes into custom kinds is accepted by their published definitions.

Those of a few kinds are recorded. ``KUBECTL_DRA_CRDS`` may name a directory with more CustomResourceDefinitions, one in
each file, and ``KUBECTL_DRA_MANIFESTS`` one with more manifests to migrate.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.migrate.live.test_dry_run import CASES, REAL, check, migrated
from tests.migrate.runs import dump
from tests.neighbours.live.published import define, only_served, published
from tools.controlplane.cluster import Cluster
from tools.controlplane.plane import own_plane
from tools.controlplane.program import Program

NOWHERE = "/nowhere"
DEFINITIONS = sorted(Path(os.environ.get("KUBECTL_DRA_CRDS") or NOWHERE).glob("*.yaml"))
MANIFESTS = sorted(Path(os.environ.get("KUBECTL_DRA_MANIFESTS") or NOWHERE).glob("*"))
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def template(count: int, restart: str = "Always") -> Any:
    container = {"name": "main", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": count}}}
    return {"spec": {"restartPolicy": restart, "containers": [container]}}


def of_kind(version: str, kind: str, **spec: Any) -> str:
    return dump({"apiVersion": version, "kind": kind, "metadata": {"name": "w", "namespace": "ml"}, "spec": spec})


OWN = {
    "JobSet": of_kind(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        replicatedJobs=[
            {"name": "leader", "replicas": 1, "template": {"spec": {"template": template(1, "Never")}}},
            {"name": "workers", "replicas": 2, "template": {"spec": {"template": template(8, "Never")}}},
        ],
    ),
    "LeaderWorkerSet": of_kind(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        replicas=2,
        leaderWorkerTemplate={"size": 4, "leaderTemplate": template(1), "workerTemplate": template(8)},
    ),
    "Volcano Job": of_kind(
        "batch.volcano.sh/v1alpha1",
        "Job",
        minAvailable=2,
        tasks=[
            {"name": "ps", "replicas": 1, "template": template(1, "Never")},
            {"name": "worker", "replicas": 4, "template": template(2, "Never")},
        ],
    ),
}
"""Manifests of recorded kinds."""


@pytest.fixture(scope="module")
def server(control_plane_program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server that serves custom kinds, and nobody that acts on them."""
    more = [yaml.load(path.read_text(), LOADER) for path in DEFINITIONS]
    recorded = published()
    more = [raw for raw in more if f"{raw['spec']['names']['kind']}.{raw['spec']['group']}" not in recorded]
    directory = tmp_path_factory.mktemp("custom")
    with own_plane(control_plane_program, ["--profile=full"], directory) as plane, only_served(plane):
        define(plane, more)
        yield Cluster(plane, "custom")


def manifests() -> Iterator[tuple[str, str, str]]:
    """Name, and text before and after."""
    for name, text in OWN.items():
        yield from ((name, before, after) for before, after in migrated(text.encode()))
    for case in CASES:
        yield str(case.get("name", "case")), case["before"], case["after"]
    for path in (*REAL, *MANIFESTS):
        yield from ((path.name, before, after) for before, after in migrated(path.read_bytes()))


def test_definitions_accept_it(server: Cluster) -> None:
    accepted, wrong = {}, []
    for name, before, after in manifests():
        try:
            accepted[name] = check(server, before, after)
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)
    # The workload, and a template for each of its pods.
    assert [accepted[name] for name in OWN] == [3, 3, 3]
