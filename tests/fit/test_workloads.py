"""Workloads of all kinds: how many pods they make, what a replica is, and groups that are placed together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.manifests.pod_counts import counts_of
from tests.fit.worlds import (
    CLASS,
    ZONE,
    as_accepted,
    claim,
    fitted,
    item,
    node,
    pod_spec,
    running,
    said,
    template,
    write_cluster,
)
from tests.ran import ran, unwrapped

JSON = dict[str, Any]
POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


def written(kind: str, version: str, spec: JSON) -> JSON:
    return {"kind": kind, "apiVersion": version, "metadata": {"name": "w", "namespace": "default"}, "spec": spec}


JOB: JSON = {"template": POD}


@pytest.mark.parametrize(
    ("workload", "replicas", "each"),
    [
        (written("Deployment", "apps/v1", {"template": POD}), 1, (1,)),
        (written("Deployment", "apps/v1", {"replicas": 0, "template": POD}), 0, (1,)),
        (written("StatefulSet", "apps/v1", {"replicas": 3, "template": POD}), 3, (1,)),
        (written("Job", "batch/v1", JOB), 1, (1,)),
        (written("Job", "batch/v1", {**JOB, "parallelism": 8, "completions": 5}), 5, (1,)),
        (written("Job", "batch/v1", {**JOB, "parallelism": 2, "completions": 5}), 2, (1,)),
        (written("CronJob", "batch/v1", {"jobTemplate": {"spec": {**JOB, "parallelism": 4}}}), 4, (1,)),
        (
            written(
                "JobSet",
                "jobset.x-k8s.io/v1alpha2",
                {
                    "replicatedJobs": [
                        {"name": "driver", "template": {"spec": JOB}},
                        {"name": "workers", "replicas": 2, "template": {"spec": {**JOB, "parallelism": 4}}},
                    ]
                },
            ),
            1,
            (1, 8),
        ),
        (
            written(
                "LeaderWorkerSet",
                "leaderworkerset.x-k8s.io/v1",
                {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": POD}},
            ),
            2,
            (4,),
        ),
        (
            written(
                "LeaderWorkerSet",
                "leaderworkerset.x-k8s.io/v1",
                {"leaderWorkerTemplate": {"size": 4, "leaderTemplate": POD, "workerTemplate": POD}},
            ),
            1,
            (1, 3),
        ),
        (
            written(
                "RayCluster",
                "ray.io/v1",
                {
                    "headGroupSpec": {"template": POD},
                    "workerGroupSpecs": [{"replicas": 3, "numOfHosts": 2, "template": POD}],
                },
            ),
            1,
            (1, 6),
        ),
        (
            written(
                "PyTorchJob",
                "kubeflow.org/v1",
                {"pytorchReplicaSpecs": {"Master": {"template": POD}, "Worker": {"replicas": 3, "template": POD}}},
            ),
            1,
            (1, 3),
        ),
        (
            written(
                "Job",
                "batch.volcano.sh/v1alpha1",
                {"tasks": [{"replicas": 2, "template": POD}, {"name": "x", "template": POD}]},
            ),
            1,
            (2, 1),
        ),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
def test_how_many_pods_there_are(workload: JSON, replicas: int, each: tuple[int, ...]) -> None:
    counts = counts_of(workload)
    assert (counts.replicas, counts.each, counts.known) == (replicas, each, True)


def test_a_kind_whose_numbers_are_not_known(tmp_path: Path) -> None:
    daemons = written("DaemonSet", "apps/v1", {"selector": {}, "template": POD})
    code, report = fitted(tmp_path, node("a"), [daemons])
    assert code == 0
    assert report["notes"] == ["how many pods a DaemonSet makes is not known here: one of each template is placed"]


def test_of_a_daemon_set_with_devices_one_pod_says_little(tmp_path: Path) -> None:
    """It makes one for each node, which are not known: that one of them has a place is no yes."""
    daemons = written("DaemonSet", "apps/v1", {"selector": {}, "template": {"spec": pod_spec(1)}})
    code, report = fitted(tmp_path, [*node("a", 3), *node("b", 2)], [template(), daemons], unseen=("Node",))
    assert code == 0
    cluster = [each for each in (*node("a", 3), *node("b", 2)) if each["kind"] != "Node"]
    code, report = fitted(tmp_path, cluster, [template(), daemons], unseen=("Node",))
    assert code == 3
    assert "a DaemonSet makes a pod for each node that its pods may run on" in json.dumps(report)


def leader_worker_set(replicas: int, size: int) -> JSON:
    template = {"leaderTemplate": {"spec": pod_spec(0)}, "workerTemplate": {"spec": pod_spec(1)}, "size": size}
    spec = {"replicas": replicas, "leaderWorkerTemplate": template}
    return written("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", spec)


def test_groups_count_where_all_of_their_pods_fit(tmp_path: Path) -> None:
    """Five devices are enough for the workers of two groups, and for one of the third."""
    found = item(tmp_path, [*node("a", 3), *node("b", 2)], [template(), leader_worker_set(3, 3)])
    assert found["replicaCounts"] == {"unit": "group", "wanted": 3, "fit": 2, "podsInEach": 3}
    assert found["podCounts"]["fit"] == 8
    assert found["answer"].startswith("2 of 3 groups of LeaderWorkerSet default/w fit (8 of 9 pods)")
    assert found["stop"]["pod"]["name"] == "w-2-2"


def test_as_many_groups_as_fit_are_whole(tmp_path: Path) -> None:
    found = item(tmp_path, [*node("a", 3), *node("b", 2)], [template(), leader_worker_set(1, 3)], "--max")
    assert found["replicaCounts"]["fit"] == 2
    assert found["podCounts"]["fit"] == 6


def job_set(parallelism: int) -> JSON:
    job = {"parallelism": parallelism, "template": {"spec": pod_spec(1)}}
    return written(
        "JobSet",
        "jobset.x-k8s.io/v1alpha2",
        {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": job}}]},
    )


def test_a_job_set_is_one_thing(tmp_path: Path) -> None:
    found = item(tmp_path, node("a", 3), [template(), job_set(2)])
    assert found["answer"] == "JobSet default/w does not fit: 3 of its 4 pods do."
    assert [one["pod"]["name"] for one in found["placements"]] == ["w-w-0-0", "w-w-0-1", "w-w-1-0"]


def gang(members: int, minimum: int, gpus: int = 1, topology: str = "") -> list[JSON]:
    spec: JSON = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    made: list[JSON] = [written("PodGroup", "scheduling.k8s.io/v1alpha2", spec)]
    for number in range(members):
        pod = pod_spec(gpus, schedulingGroup={"podGroupName": "w"})
        made.append({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": f"p{number}"}, "spec": pod})
    return made


def test_a_gang_that_fits(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, [*node("a", 2), *node("b", 2)], [template(), *gang(4, 4)])
    assert code == 0
    assert report["items"][0]["workload"] == {"kind": "PodGroup", "namespace": "default", "name": "w"}
    assert len(report["items"][0]["placements"]) == 4


def test_a_gang_that_does_not_fit_takes_nothing(tmp_path: Path) -> None:
    """Three of four would have a device."""
    code, report = fitted(tmp_path, [*node("a", 2), *node("b", 1)], [template(), *gang(4, 4)])
    (found,) = report["items"]
    assert code == 1
    assert found["podCounts"]["fit"] == 0 and found["placements"] == []
    assert found["answer"] == "PodGroup default/w does not fit: 3 of its 4 pods would, and it needs 4 at once."
    assert found["stop"]["cause"] == "devices-held"


def test_a_gang_of_which_enough_fit(tmp_path: Path) -> None:
    found = item(tmp_path, [*node("a", 2), *node("b", 1)], [template(), *gang(4, 3)])
    assert found["podCounts"]["fit"] == 3
    assert found["answer"] == "3 of the 4 pods of PodGroup default/w fit, and it needs 3 at once."


def test_whom_the_scheduler_ends_for_a_gang_is_undetermined(tmp_path: Path) -> None:
    high = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 1000}
    busy = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "6"}}}]
    pods = gang(2, 2, gpus=0)
    for pod in pods[1:]:
        pod["spec"]["priorityClassName"] = "high"
        pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "4"}
    found = item(tmp_path, [high, *node("a", cpu="8"), *running("low", "a", containers=busy)], pods)
    assert found["verdict"] == "undetermined"
    assert "lower priority" in found["undetermined"][0]


def test_pods_of_another_priority_than_their_group(tmp_path: Path) -> None:
    """The scheduler of 1.37 tries none of the group."""
    high = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 1000}
    pods = gang(1, 1)
    pods[1]["spec"]["priorityClassName"] = "high"
    cluster = [high, *node("a", 2)]
    assert item(tmp_path, cluster, [template(), *pods])["verdict"] == "can-be-scheduled"
    found = item(tmp_path, cluster, [template(), *pods], "--kubernetes-version", "1.37")
    assert (found["verdict"], found["podCounts"]["fit"]) == ("cannot-be-scheduled", 0)
    assert "another priority: pod default/p0 has priority 1000, group w 0" in found["stop"]["reason"]
    assert found["changes"] == []
    pods[0]["spec"]["priorityClassName"] = "high"
    assert item(tmp_path, cluster, [template(), *pods], "--kubernetes-version", "1.37")["verdict"] == "can-be-scheduled"


def test_a_gang_in_one_domain(tmp_path: Path) -> None:
    """Four devices exist, but no zone has more than two."""
    cluster = [*node("a", 2, zone="x"), *node("b", 2, zone="y")]
    found = item(tmp_path, cluster, [template(), *gang(3, 3, topology=ZONE)])
    assert found["podCounts"]["fit"] == 0
    assert found["stop"]["groupTopology"] == ZONE
    assert found["stop"]["reason"] == f"its group has to be within one {ZONE}, and none has room for 3 of its pods"
    assert item(tmp_path, cluster, [template(), *gang(2, 2, topology=ZONE)])["podCounts"]["fit"] == 2


@pytest.mark.parametrize("nodes", [("gone",), ("nowhere",), ("a", "b"), ("a", "gone")])
def test_a_gang_whose_running_pods_share_no_domain(tmp_path: Path, nodes: tuple[str, ...]) -> None:
    """The scheduler ends with an error for such a group, also where the node of a pod is not known."""
    cluster = [*node("a", 2, zone="x"), *node("b", 2, zone="y"), *node("nowhere")]
    for name in nodes:
        cluster += running(f"on-{name}", name, schedulingGroup={"podGroupName": "w"})
    found = item(tmp_path, cluster, [template(), *gang(2, 2, topology=ZONE)])
    assert (found["verdict"], found["podCounts"]["fit"]) == ("undetermined", 0)
    assert found["undetermined"] == ["pods of the group w run in several domains of its topology key, or in none"]


def test_what_a_controller_adds_later_is_undetermined(tmp_path: Path) -> None:
    made = job_set(1)
    made["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    found = item(tmp_path, node("a", 3), [template(), made])
    assert found["verdict"] == "undetermined"
    assert "exclusive-topology" in found["undetermined"][0]


def stateful_set(storage_class: str) -> JSON:
    """A StatefulSet of three with a volume for each pod."""
    claim: JSON = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"] |= {"storageClassName": storage_class, "resources": {"requests": {"storage": "1Gi"}}}
    pods = {"spec": pod_spec(1)}
    spec = {"replicas": 3, "selector": {}, "template": pods, "volumeClaimTemplates": [claim]}
    return written("StatefulSet", "apps/v1", spec)


def storage(name: str, provisioner: str) -> JSON:
    made: JSON = {"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": name}}
    return {**made, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}


def volume(name: str) -> JSON:
    spec: JSON = {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    made: JSON = {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}
    return {**made, "status": {"phase": "Available"}}


def test_volumes_that_are_made_for_each_pod(tmp_path: Path) -> None:
    cluster = [storage("cloud", "disk.example.com"), *node("a", 2)]
    assert item(tmp_path, cluster, [template(), stateful_set("cloud")])["podCounts"]["fit"] == 2


def test_volumes_that_pods_take_from_each_other(tmp_path: Path) -> None:
    """Which of them is bound to the first pod is not followed."""
    cluster = [storage("local", "kubernetes.io/no-provisioner"), volume("v0"), volume("v1"), *node("a", 3)]
    found = item(tmp_path, cluster, [template(), stateful_set("local")])
    assert found["verdict"] == "undetermined"
    assert "volumes are bound together" in found["undetermined"][0]


def test_another_scheduler_is_undetermined(tmp_path: Path) -> None:
    spec = {"selector": {}, "template": {"spec": pod_spec(1, schedulerName="volcano")}}
    code, _ = fitted(tmp_path, node("a", 3), [template(), written("StatefulSet", "apps/v1", spec)])
    assert code == 3


def test_gated_pods_wait(tmp_path: Path) -> None:
    spec = {"selector": {}, "template": {"spec": pod_spec(1, schedulingGates=[{"name": "example.com/later"}])}}
    found = item(tmp_path, node("a", 3), [template(), written("StatefulSet", "apps/v1", spec)])
    assert found["stop"]["cause"] == "scheduling-gated"
    assert found["changes"] == []


def test_a_gang_that_a_change_lets_in(tmp_path: Path) -> None:
    found = item(tmp_path, [*node("a", 2), *node("b", 2)], [template(), *gang(5, 5)])
    (change,) = found["changes"]
    assert (change["kind"], change["morePods"], change["moreReplicas"]) == ("add-node", 5, 1)


def test_bare_pods_are_one_workload(tmp_path: Path) -> None:
    pods = [
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": f"p{number}"}, "spec": pod_spec(1)}
        for number in range(3)
    ]
    found = item(tmp_path, node("a", 2), [template(), *pods])
    assert found["podCounts"]["fit"] == 2
    assert found["stop"]["pod"]["name"] == "p2"


def test_a_stateful_set_names_its_pods(tmp_path: Path) -> None:
    spec = {"replicas": 2, "serviceName": "w", "selector": {}, "template": {"spec": pod_spec(1)}}
    found = item(tmp_path, node("a", 2), [template(), written("StatefulSet", "apps/v1", spec)])
    assert [one["pod"]["name"] for one in found["placements"]] == ["w-0", "w-1"]


def test_workloads_share_the_cluster(tmp_path: Path) -> None:
    spec = {"replicas": 2, "selector": {}, "template": {"spec": pod_spec(1)}}
    first, second = (written("StatefulSet", "apps/v1", spec) | {"metadata": {"name": name}} for name in "ab")
    _, report = fitted(tmp_path, node("a", 3), [template(), first, second])
    assert [one["podCounts"]["fit"] for one in report["items"]] == [2, 1]


@pytest.mark.parametrize("flag", [("--replicas", "2"), ("--max",)])
def test_a_number_is_about_one_workload(tmp_path: Path, flag: tuple[str, ...]) -> None:
    spec = {"selector": {}, "template": {"spec": pod_spec(1)}}
    two = [written("StatefulSet", "apps/v1", spec) | {"metadata": {"name": name}} for name in "ab"]
    code, _, errors = said(tmp_path, node("a", 3), [template(), *two], *flag)
    assert code == 2
    assert errors.startswith("error: --replicas and --max are about one workload; the manifest has 2")


def test_nothing_to_place(tmp_path: Path) -> None:
    code, _, errors = said(tmp_path, node("a", 3), [claim("c")])
    assert code == 2
    assert "nothing to place" in errors


def test_what_cannot_be_seen_is_undetermined(tmp_path: Path) -> None:
    """A group of groups, and a cluster that says nothing of devices."""
    spec = {"selector": {}, "template": {"spec": pod_spec(1)}}
    asked = [template(), written("StatefulSet", "apps/v1", spec)]
    code, report = fitted(tmp_path, node("a"), asked, unseen=("ResourceSlice",))
    assert code == report["exitCode"] == 3
    assert report["items"][0]["verdict"] == "undetermined"
    assert report["items"][0]["undetermined"]


def explained(tmp_path: Path, gpus: int, *flags: str) -> tuple[int, str]:
    """The first line of ``explain -f`` about a StatefulSet of three on one node."""
    spec = {"replicas": 3, "selector": {}, "template": {"spec": pod_spec(1)}}
    manifest, snapshot = tmp_path / "manifest.json", tmp_path / "cluster.json"
    items = [template(), as_accepted(written("StatefulSet", "apps/v1", spec))]
    manifest.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    write_cluster(snapshot, [CLASS, *node("a", gpus)])
    code, out, _ = ran("explain", "-f", str(manifest), "--snapshot", str(snapshot), *flags)
    return code, out.splitlines()[0]


def test_explain_says_how_many_replicas_fit(tmp_path: Path) -> None:
    """The exit code is that of the workload, as ``fit`` has it."""
    assert explained(tmp_path, 2) == (1, "2 of 3 replicas of StatefulSet default/w fit.")
    assert explained(tmp_path, 3) == (0, "All 3 replicas of StatefulSet default/w fit.")


def test_explain_does_not_where_only_a_pod_is_asked_about(tmp_path: Path) -> None:
    assert explained(tmp_path, 2, "--node", "a")[1].startswith("A pod of StatefulSet default/w")


def test_explain_counts_them_with_a_changed_request(tmp_path: Path) -> None:
    """All pods of a workload make the same request."""
    assert explained(tmp_path, 2, "--what-if", "count=1")[1] == "2 of 3 replicas of StatefulSet default/w fit."
    assert explained(tmp_path, 2, "--what-if", "count=3")[1].startswith("None of the 3 replicas")


def test_as_many_pods_of_a_job_as_fit_are_more_than_it_has(tmp_path: Path) -> None:
    """Its completions are said, and nobody is to wait for another consumer where all are its own pods."""
    pods = {"metadata": {"labels": {"app": "tune"}}, "spec": pod_spec(0, restartPolicy="Never")}
    pods["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    pods["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    job = {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "metadata": {"name": "tune", "namespace": "default"},
        "spec": {"completions": 10, "parallelism": 4, "template": pods},
    }
    code, out, _ = said(tmp_path, [*node("n1", 1, pods="12"), *node("n2")], [claim("shared"), job], "--max")
    text = unwrapped(out)
    assert code == 0
    assert text.startswith("At most 12 pods of Job default/tune fit; it has 10 completions, 4 at a time.")
    assert "the other consumer" not in text
    assert "Fix: Make a second claim for some of the pods, or give each pod its own claim by a template" in text


@pytest.mark.parametrize("number", [1, 3])
def test_what_is_suspended_makes_no_pod_yet(tmp_path: Path, number: int) -> None:
    pods = {"template": {"spec": {**pod_spec(1), "restartPolicy": "Never"}}, "parallelism": number}
    job = written("Job", "batch/v1", {**pods, "completions": number, "suspend": True})
    code, out, _ = said(tmp_path, [*node("a", 3), template()], [job])
    assert code == 0 and "; it is suspended, and makes no pod until it is resumed" in unwrapped(out)


def test_of_a_daemon_set_explain_says_where_its_pods_fit(tmp_path: Path) -> None:
    daemons = written("DaemonSet", "apps/v1", {"template": {"spec": pod_spec(1)}})
    cluster = [each for each in (*node("a", 3), template()) if each["kind"] != "Node"]
    code, out, _ = said(tmp_path, cluster, [daemons], unseen=("Node",))
    assert code == 3
    assert f"Next: kubectl dra explain -f {tmp_path / 'manifest.json'} --kubernetes-version 1.36" in out
