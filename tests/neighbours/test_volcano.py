"""Volcano's Jobs, groups and queues of a live cluster: what is asked for, and what is answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.neighbours.test_foundation import OBJECTS, Dra, explained, pod, serve
from tools.api_server import APIServer, forbidden

JSON = dict[str, Any]
GROUPS = "/apis/scheduling.volcano.sh/v1beta1"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/ml/jobs"
(JOB,) = (one for one in OBJECTS if one["kind"] == "Job" and "volcano" in one["apiVersion"])
SWEEP = {**JOB, "metadata": {**JOB["metadata"], "uid": "uid-sweep"}}


def group(name: str, phase: str, space: str = "ml", **spec: Any) -> JSON:
    body = {"minMember": 1, "queue": "research", **spec}
    version, meta = "scheduling.volcano.sh/v1beta1", {"name": name, "namespace": space}
    return {"apiVersion": version, "kind": "PodGroup", "metadata": meta, "spec": body, "status": {"phase": phase}}


def queue(name: str, most: str, parent: str = "", state: str = "Open") -> JSON:
    spec = {"capability": {"cpu": most}, "parent": parent}
    version, status = "scheduling.volcano.sh/v1beta1", {"state": state, "allocated": {}}
    return {"apiVersion": version, "kind": "Queue", "metadata": {"name": name}, "spec": spec, "status": status}


def listed(*objects: JSON) -> JSON:
    first = objects[0]
    head = {"kind": f"{first['kind']}List", "apiVersion": first["apiVersion"], "metadata": {}}
    return {**head, "items": list(objects)}


WAITING = pod(
    {"schedulerName": "volcano"},
    annotations={
        "scheduling.k8s.io/group-name": "pg",
        "volcano.sh/job-name": "sweep",
        "volcano.sh/task-spec": "driver",
    },
)


def served(server: APIServer, phase: str, *others: JSON, queues: tuple[JSON, ...] = ()) -> None:
    own, where = group("pg", phase, minResources={"cpu": "2"}), queues or (queue("research", "4"),)
    serve(server, WAITING, SWEEP, own, *where)
    server.routes[f"{GROUPS}/namespaces/ml/podgroups"] = listed(own)
    server.routes[f"{GROUPS}/podgroups"] = listed(own, *others)
    server.routes[f"{GROUPS}/queues"] = listed(*where)


def of_volcano(paths: list[str]) -> list[str]:
    return [path for path in paths if "volcano" in path]


def test_a_group_that_was_let_in_points_to_its_queue_and_its_job(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    served(server, "Inqueue")
    ran, paths = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml", "--full")
    asked = of_volcano(paths)
    assert sorted(asked) == sorted((f"{GROUPS}/namespaces/ml/podgroups", JOBS, f"{GROUPS}/queues"))
    later = "Job sweep makes pods of task worker only when task driver is ready (dependsOn)"
    assert later in " ".join(ran.out.split())


def test_what_takes_the_quota_of_a_group_is_read_of_all_namespaces(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    served(server, "Pending", group("big", "Inqueue", "prod"), group("far", "Inqueue", "prod", queue="other"))
    ran, paths = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml", "--full")
    asked = of_volcano(paths)
    both = [f"{GROUPS}/namespaces/ml/podgroups", f"{GROUPS}/podgroups"]
    assert [path for path in asked if path.endswith("podgroups")] == both and len(asked) == len(set(asked)) == 4
    assert "let in, and waiting for nodes: prod/big " in " ".join(ran.out.split())


def test_who_may_not_list_all_groups_still_has_the_own_one(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    served(server, "Pending")
    server.routes[f"{GROUPS}/podgroups"] = forbidden("podgroups")
    ran, _ = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml")
    assert ran.code == 1 and "queue research of Volcano has not admitted its PodGroup pg" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("above", "said"),
    [
        (queue("company", "1"), "2 cpu are needed, and the queue may use 1 (queue company above it)"),
        (queue("company", "8", state="Closed"), "queue company above it is Closed"),
        (queue("company", "8", parent="research"), ""),
    ],
)
def test_what_is_above_a_queue_counts(above: JSON, said: str, server: APIServer, dra: Dra, tmp_path: Path) -> None:
    served(server, "Pending", queues=(queue("research", "4", parent="company"), above))
    ran, _ = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml")
    told = " ".join(ran.out.split())
    assert said in told and ("is never admitted by its queue" in told) == bool(said)


@pytest.mark.parametrize("words", ["job/sweep", "vcjob/sweep"])
def test_a_job_without_pods_is_asked_for_and_its_group(words: str, server: APIServer, dra: Dra, tmp_path: Path) -> None:
    own = group("sweep-uid-sweep", "Pending")
    serve(server, SWEEP, own, queue("research", "4"))
    ran, paths = explained(server, dra, tmp_path, "explain", words, "-n", "ml")
    assert ran.code == 1 and "Job sweep has no pod; this is about one as it would make it" in ran.err
    assert "has not admitted its PodGroup sweep-uid-sweep yet" in " ".join(ran.out.split())
    assert of_volcano(paths).count(JOBS) == 1
    selected = [one.query["fieldSelector"] for one in server.asked if one.path.endswith("ml/podgroups")]
    assert selected == ["metadata.name=sweep-uid-sweep"]


def test_a_cluster_without_volcano_is_asked_for_no_job_of_its(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    serve(server, *(one for one in OBJECTS if one["apiVersion"] == "batch/v1"))
    ran, paths = explained(server, dra, tmp_path, "explain", "job/other", "-n", "ml")
    assert (
        ran.code == 2
        and "/apis/batch/v1/namespaces/ml/jobs" in paths
        and not of_volcano(paths)
        and "olcano" not in (ran.out + ran.err).replace(str(tmp_path), "")
    )
