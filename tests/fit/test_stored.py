"""``fit`` and ``explain -f`` of a workload that runs: its stored template decides which pods are replaced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.fit.test_rollout import STATEFUL, rolling
from tests.fit.worlds import (
    CLASS,
    JSON,
    REPLICA_SET,
    deployment,
    existing,
    files,
    fitted,
    item,
    job,
    made_claim,
    node,
    pod_spec,
    replica_set,
    said,
    template,
    told,
    write_cluster,
)
from tests.ran import ran, unwrapped
from tests.unread.test_unread import serve
from tools.api_server import APIServer, forbidden

JOB_OWNER: JSON = {"kind": "Job", "name": "web", "uid": "o", "apiVersion": "batch/v1"}


def pods(number: int, owner: JSON = REPLICA_SET, stem: str = "web-7c9d5b8f6-") -> list[JSON]:
    """Pods that hold a device of node a each."""
    names = [f"{stem}{index}" for index in range(number)]
    there = [existing(name, pod_spec(1), "a", owner) for name in names]
    for pod in there:
        pod["metadata"]["labels"] = {"app": "web"}
    return [*there, *(made_claim(name, "a", [index]) for index, name in enumerate(names))]


def full(number: int = 2) -> list[JSON]:
    """A Deployment whose pods hold all devices."""
    web = deployment(number)
    return [*node("a", number), template(1), web, replica_set(web), *pods(number)]


def strict(replicas: int = 2) -> JSON:
    """The Deployment, none of whose pods may be missing."""
    web = deployment(replicas)
    web["spec"]["strategy"] = rolling(1, 0)
    return web


def agreeing(folder: Path, cluster: list[JSON], manifest: list[JSON], *flags: str) -> JSON:
    """What ``fit`` reports, whose exit code is that of ``explain -f``."""
    found = item(folder, cluster, manifest, *flags)
    code, _, _ = said(folder, cluster, manifest, *flags)
    assert bool(ran("explain", *files(folder))[0]) is bool(code)
    return found


def _image(container: JSON, _: JSON) -> None:
    container["image"] = "other"


def _variable(container: JSON, _: JSON) -> None:
    container["env"] = [{"name": "LEVEL", "value": "debug"}]


def _command(container: JSON, _: JSON) -> None:
    container["command"] = ["serve"]


def _annotation(_: JSON, template: JSON) -> None:
    template["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}


def _label(_: JSON, template: JSON) -> None:
    template["metadata"]["labels"] = {**template["metadata"]["labels"], "tier": "gold"}


def _grace(_: JSON, template: JSON) -> None:
    template["spec"]["terminationGracePeriodSeconds"] = 60


CHANGES = [_image, _variable, _command, _annotation, _label, _grace]


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_the_template_starts_a_rollout(tmp_path: Path, change: Any) -> None:
    web = strict()
    made = web["spec"]["template"]
    change(made["spec"]["containers"][0], made)
    found = agreeing(tmp_path, full(), [web])
    assert (found["verdict"], found["rollout"]) == (
        "cannot-be-scheduled",
        {"replacedPods": 2, "leftPods": 2, "maxUnavailable": 1},
    )


@pytest.mark.parametrize("change", CHANGES)
def test_a_stateful_set_replaces_its_pods_as_well(tmp_path: Path, change: Any) -> None:
    stored = {**deployment(2), "kind": "StatefulSet"}
    web = deepcopy(stored)
    made = web["spec"]["template"]
    change(made["spec"]["containers"][0], made)
    found = agreeing(tmp_path, [*node("a", 2), template(1), stored, *pods(2, STATEFUL, "web-")], [web])
    assert (found["verdict"], found["rollout"]["replacedPods"]) == ("can-be-scheduled", 2)


def defaulted(web: JSON) -> JSON:
    """The Deployment as the server has it."""
    web = deepcopy(web)
    spec = web["spec"]["template"]["spec"]
    spec |= {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"}
    spec |= {"terminationGracePeriodSeconds": 30, "securityContext": {}}
    for container in spec["containers"]:
        container |= {"imagePullPolicy": "Always", "terminationMessagePath": "/dev/termination-log"}
        container["terminationMessagePolicy"] = "File"
        container["ports"] = [{"containerPort": 80, "protocol": "TCP"}]
        container["env"] = [{"name": "A", "value": "1"}, {"name": "ADDED", "value": "by a webhook"}]
        container["resources"]["requests"] = container["resources"]["limits"] = {"cpu": "1"}
    web["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "1"}
    return web


@pytest.mark.parametrize("explicit", [False, True])
def test_what_the_server_fills_in_is_no_change(tmp_path: Path, explicit: bool) -> None:
    web = strict()
    container = web["spec"]["template"]["spec"]["containers"][0]
    container |= {"ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}]}
    container["resources"]["limits"] = {"cpu": "1000m"}
    stored = defaulted(deployment(2))
    cluster = [*node("a", 2), template(1), stored, replica_set(stored), *pods(2)]
    if explicit:
        web["spec"]["template"]["spec"] |= {"dnsPolicy": "ClusterFirst", "enableServiceLinks": True}
        container["imagePullPolicy"] = "Always"
    found = agreeing(tmp_path, cluster, [web])
    assert found["podCounts"]["running"] == 2 and "rollout" not in found


def test_what_is_no_longer_written_goes(tmp_path: Path) -> None:
    """Kubectl keeps what was applied last, so that a variable that is not in the manifest any more is removed."""
    before = deployment(2)
    before["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    stored = deepcopy(before)
    noted = "kubectl.kubernetes.io/last-applied-configuration"
    stored["metadata"]["annotations"] = {noted: json.dumps(before)}
    cluster = [*node("a", 2), template(1), stored, replica_set(before), *pods(2)]
    assert agreeing(tmp_path, cluster, [strict()])["rollout"]["leftPods"] == 2
    del stored["metadata"]["annotations"]
    assert "rollout" not in agreeing(tmp_path, cluster, [strict()])


def test_a_template_of_before_has_its_pods_already(tmp_path: Path) -> None:
    """The manifest takes back a rollout that stopped: the pods that run are of its template."""
    web, other = strict(), strict()
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    waiting = existing("web-5d8c6f9b7-z", pod_spec(1), owner={**REPLICA_SET, "name": "web-5d8c6f9b7"})
    sets = [replica_set(web), replica_set(other, "web-5d8c6f9b7")]
    cluster = [*node("a", 2), template(1), other, *sets, *pods(2), waiting, made_claim("web-5d8c6f9b7-z")]
    found = agreeing(tmp_path, cluster, [web])
    assert (found["verdict"], found["podCounts"]["running"]) == ("can-be-scheduled", 2)
    # As it is, its new pod waits.
    found = agreeing(tmp_path, cluster, [other])
    assert (found["verdict"], found["podCounts"]["fit"]) == ("cannot-be-scheduled", 0)
    assert found["stop"]["pod"]["name"] == "web-5d8c6f9b7-z"


@pytest.mark.parametrize("kind", ["Job", "JobSet"])
def test_nobody_can_change_the_image_of_a_job(tmp_path: Path, kind: str) -> None:
    spec = {"parallelism": 2, "template": {"spec": {**pod_spec(1), "restartPolicy": "Never"}}}
    meta = {"name": "web", "namespace": "default"}
    stored: JSON = {"kind": "Job", "apiVersion": "batch/v1", "metadata": meta, "spec": spec}
    there = pods(2, JOB_OWNER, "web-x")
    if kind == "JobSet":
        stored = {"kind": kind, "apiVersion": "jobset.x-k8s.io/v1alpha2", "metadata": meta}
        stored["spec"] = {"replicatedJobs": [{"name": "main", "template": {"spec": spec}}]}
        for pod in there[:2]:
            pod["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-name": "web"}
    cluster = [*node("a", 2), template(1), stored, *there]
    assert agreeing(tmp_path, cluster, [deepcopy(stored)])["podCounts"]["running"] == 2
    wanted = deepcopy(stored)
    where = wanted["spec"] if kind == "Job" else wanted["spec"]["replicatedJobs"][0]["template"]["spec"]
    where["template"]["spec"]["containers"][0]["image"] = "other"
    assert agreeing(tmp_path, cluster, [wanted])["stop"]["cause"] == "change-refused"


# What was not read.


@pytest.mark.parametrize("left_out", [("ReplicaSet",), ("ReplicaSet", "Deployment")])
def test_a_yes_does_not_rest_on_a_template_that_was_not_read(tmp_path: Path, left_out: tuple[str, ...]) -> None:
    cluster = [each for each in full() if each["kind"] not in left_out]
    found = agreeing(tmp_path, cluster, [strict()])
    why = "ReplicaSet default/web-7c9d5b8f6 was not read; if it does, they are replaced, and 0 of 2 pods fit"
    assert found["verdict"] == "undetermined" and why in found["undetermined"][0]
    # With room for one more the rollout comes through.
    code, out, _ = said(tmp_path, [*cluster, *node("b", 1)], [strict()])
    assert code == 0 and "if it does, they are replaced, and as many fit" in unwrapped(out)


def test_the_replica_set_alone_tells_what_is_added(tmp_path: Path) -> None:
    cluster = [each for each in full() if each["kind"] != "Deployment"]
    assert agreeing(tmp_path, cluster, [strict()])["podCounts"]["running"] == 2
    web = strict()
    web["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    assert agreeing(tmp_path, cluster, [web])["rollout"]["leftPods"] == 2


@pytest.fixture
def server() -> Iterator[APIServer]:
    made = APIServer()
    yield made
    made.close()


@pytest.mark.parametrize("command", ["fit", "explain"])
def test_a_live_cluster_is_asked_for_them(tmp_path: Path, server: APIServer, command: str) -> None:
    objects = [CLASS, *full()]
    serve(server, objects, "")
    root = "/apis/apps/v1/namespaces/default"
    for plural, kind in (("deployments", "Deployment"), ("replicasets", "ReplicaSet")):
        server.routes[f"{root}/{plural}"] = [each for each in objects if each["kind"] == kind]
    web = strict()
    web["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    write_cluster(tmp_path / "manifest.json", [web])
    words = (command, "-f", str(tmp_path / "manifest.json"), "--kubeconfig", server.kubeconfig(tmp_path))
    code, out, _ = ran(*words)
    assert code == 1 and "the rollout stops" in unwrapped(out)
    server.routes[f"{root}/replicasets"] = forbidden("replicasets.apps")
    server.routes[f"{root}/deployments"] = forbidden("deployments.apps")
    code, out, _ = ran(*words)
    assert code == 3 and "ReplicaSet default/web-7c9d5b8f6 was not read" in unwrapped(out)


# What the manifest leaves out stays.


@pytest.mark.parametrize("read", [True, False])
def test_replicas_that_are_not_written_stay(tmp_path: Path, read: bool) -> None:
    """Somebody else scales it, so that its manifest says no number."""
    web = deployment(3)
    cluster = [each for each in full(3) if read or each["kind"] != "Deployment"]
    del web["spec"]["replicas"]
    found = agreeing(tmp_path, cluster, [web])
    assert (found["verdict"], found["podCounts"]["running"]) == ("can-be-scheduled", 3)
    assert "too many" not in found["answer"]


def test_a_strategy_that_is_not_written_stays(tmp_path: Path) -> None:
    cluster = [*node("a", 2), template(1), strict(), replica_set(deployment(2)), *pods(2)]
    web = deployment(2)
    web["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    assert agreeing(tmp_path, cluster, [web])["rollout"]["leftPods"] == 2
    cluster[3]["spec"]["strategy"] = {"type": "Recreate"}
    assert agreeing(tmp_path, cluster, [web])["verdict"] == "can-be-scheduled"


@pytest.mark.parametrize("kind", ["DeviceTaintRule", "ResourceQuota"])
def test_new_pods_of_a_rollout_rest_on_what_was_read(tmp_path: Path, kind: str) -> None:
    """Also where pods of the former template hold all devices until they end."""
    web = deployment(2)
    web["spec"]["strategy"] = {"type": "Recreate"}
    web["spec"]["template"]["spec"]["containers"][0]["image"] = "other:2"
    (tmp_path / "web.json").write_text(json.dumps(web))
    where = ("--snapshot", str(tmp_path / "cluster.json"), "--kubernetes-version", "1.36")
    write_cluster(tmp_path / "cluster.json", [CLASS, *full()])
    assert ran("fit", "-f", str(tmp_path / "web.json"), *where)[0] == 0
    write_cluster(tmp_path / "cluster.json", [CLASS, *full()], (kind,))
    code, out, _ = ran("fit", "-f", str(tmp_path / "web.json"), *where)
    assert (code, f"if there is no {kind}" in unwrapped(out)) == (3, True), out


@pytest.mark.parametrize("unread", ["Pod", "ResourceClaim", "Node", "DeviceClass", "ReplicaSet", "ResourceSlice"])
@pytest.mark.parametrize("changed", [True, False])
def test_no_answer_turns_into_its_opposite_without_a_kind(tmp_path: Path, changed: bool, unread: str) -> None:
    """All fit with everything read: the pods run already, or the former ones give way."""
    web = deployment(2)
    web["spec"]["strategy"] = {"type": "Recreate"}
    if changed:
        web["spec"]["template"]["spec"]["containers"][0]["image"] = "other:2"
    (tmp_path / "web.json").write_text(json.dumps(web))
    left = [each for each in [CLASS, *full()] if each["kind"] != unread]
    write_cluster(tmp_path / "cluster.json", left, (unread,))
    where = ("--snapshot", str(tmp_path / "cluster.json"), "--kubernetes-version", "1.36")
    code, out, _ = ran("fit", "-f", str(tmp_path / "web.json"), *where)
    assert code in (0, 3), out


# A workload by its name.


@pytest.mark.parametrize("words", [("deployment/web",), ("deploy", "web")])
def test_a_workload_of_a_snapshot_by_its_name(tmp_path: Path, words: tuple[str, ...]) -> None:
    write_cluster(tmp_path / "cluster.json", [CLASS, *full()], ("Service",))
    where = ("--snapshot", str(tmp_path / "cluster.json"), "--kubernetes-version", "1.36")
    code, out, _ = ran("fit", *words, *where)
    assert code == 0 and out.startswith("Both replicas of Deployment default/web fit; 2 pods of it run already.")
    code, out, _ = ran("fit", *words, *where, "--replicas", "3")
    assert code == 1 and out.startswith("2 of 3 replicas of Deployment default/web fit")
    code, _, errors = ran("fit", "deployment/wbe", *where)
    assert code == 2 and "did you mean web?" in errors
    code, _, errors = ran("fit", *words, *where, "-n", "team-b")
    assert code == 2 and "it is in namespace default: did you mean -n default?" in unwrapped(errors)


@pytest.mark.parametrize(
    "words", [("web",), ("pod/web",), ("deployment/a", "deployment/b"), ("deployment/a", "-f", "x")]
)
def test_what_names_no_workload_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    write_cluster(tmp_path / "cluster.json", [CLASS, *full()])
    assert ran("fit", *words, "--snapshot", str(tmp_path / "cluster.json"))[0] == 2


def test_a_workload_of_a_live_cluster_by_its_name(tmp_path: Path, server: APIServer) -> None:
    objects = [CLASS, *full()]
    serve(server, objects, "")
    root = "/apis/apps/v1/namespaces/default"
    for plural, kind in (("deployments", "Deployment"), ("replicasets", "ReplicaSet")):
        server.routes[f"{root}/{plural}"] = [
            {**each, "spec": {**each["spec"], "replicas": 3}} for each in objects if each["kind"] == kind
        ]
    words = ("fit", "deployment/web", "-n", "default", "--kubeconfig", server.kubeconfig(tmp_path))
    code, out, _ = ran(*words)
    assert code == 1 and out.startswith("2 of 3 replicas of Deployment default/web fit; 2 pods of it run already.")
    server.routes[f"{root}/deployments"] = forbidden("deployments.apps")
    code, _, errors = ran(*words)
    assert code == 3 and "list deployments.apps is forbidden" in unwrapped(errors)


# Fewer replicas, and Jobs that have come some way.


def test_fewer_replicas_free_what_the_others_held(tmp_path: Path) -> None:
    other = deployment(2, "b")
    text = told(tmp_path, full(4), [deployment(2), other])
    assert "2 pods of it run already; 2 pods too many end first (any 2 of 4)." in text
    assert "Both replicas of Deployment default/b fit." in text
    assert "are placed once those that are too many of Deployment default/web have ended" in text


def test_the_pods_that_do_not_run_end_first(tmp_path: Path) -> None:
    """The pod that waits is no replica that is left, and no other ends for it."""
    waiting = existing("web-7c9d5b8f6-9", pod_spec(1), owner=REPLICA_SET)
    cluster = [*full(3), waiting, made_claim("web-7c9d5b8f6-9")]
    found = agreeing(tmp_path, cluster, [strict(3)])
    assert (found["verdict"], found["podCounts"]["running"]) == ("can-be-scheduled", 3)
    found = agreeing(tmp_path, cluster, [strict(4)])
    assert (found["verdict"], found["stop"]["pod"]["name"]) == ("can-be-scheduled-in-part", "web-7c9d5b8f6-9")


def test_which_pods_end_may_decide(tmp_path: Path) -> None:
    """One device of each of two nodes comes free, or both of one."""
    web = deployment(4)
    there = pods(4)
    for index, each in enumerate(there):
        if index % 4 > 1:
            text = "b"
            if each["kind"] == "Pod":
                each["spec"]["nodeName"] = text
            else:
                there[index] = made_claim(there[index - 4]["metadata"]["name"], text, [index % 4 - 2])
    cluster = [*node("a", 2), *node("b", 2), template(1), template(2), web, replica_set(web), *there]
    found = [
        each
        for each in _items(tmp_path, cluster, [deployment(2), deployment(1, "b", gpus=2)])
        if each["workload"]["name"] == "b"
    ]
    assert (found[0]["podCounts"]["fewest"], found[0]["podCounts"]["most"]) == (0, 1)


def _items(folder: Path, cluster: list[JSON], manifest: list[JSON]) -> list[JSON]:
    items: list[JSON] = fitted(folder, cluster, manifest)[1]["items"]
    return items


def test_a_stateful_set_ends_its_highest_numbers(tmp_path: Path) -> None:
    stored = {**deployment(3), "kind": "StatefulSet"}
    cluster = [*node("a", 3), template(1), stored, *pods(3, STATEFUL, "web-")]
    other = deployment(2, "b")
    found = _items(tmp_path, cluster, [{**deepcopy(stored), "spec": {**stored["spec"], "replicas": 1}}, other])
    assert [each["podCounts"]["fit"] for each in found] == [1, 2]
    devices = [device["device"] for placed in found[1]["placements"] for device in placed["devices"]]
    assert devices == ["gpu-1", "gpu-2"]


@pytest.mark.parametrize("by_status", [True, False])
@pytest.mark.parametrize(("parallelism", "succeeded", "wanted"), [(2, 5, 1), (6, 3, 3), (2, 3, 2)])
def test_pods_that_have_succeeded_are_not_made_again(
    tmp_path: Path, by_status: bool, parallelism: int, succeeded: int, wanted: int
) -> None:
    """The Job says how many; or its pods do, as long as they are there."""
    done = [existing(f"web-d{index}", pod_spec(0), "a", JOB_OWNER) for index in range(succeeded)]
    for pod in done:
        pod["status"]["phase"] = "Succeeded"
    stored = [job(2, 6, succeeded=succeeded)] if by_status else done
    cluster = [*node("a", wanted), template(1), *stored, *pods(1, JOB_OWNER, "web-r")]
    found = agreeing(tmp_path, cluster, [job(parallelism, 6)])
    assert (found["verdict"], found["podCounts"]["wanted"], found["podCounts"]["running"]) == (
        "can-be-scheduled",
        wanted,
        1,
    )


@pytest.mark.parametrize("by_name", [True, False])
def test_labels_that_the_server_gave_a_job_are_no_error(tmp_path: Path, by_name: bool) -> None:
    """A stored Job has a selector and labels that no manifest of a new one may have."""
    stored = job(2, 2)
    stored["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": "o"}}
    stored["spec"]["template"]["metadata"] = {"labels": {"controller-uid": "o", "batch.kubernetes.io/job-name": "web"}}
    write_cluster(tmp_path / "cluster.json", [CLASS, *node("a", 2), template(1), stored])
    (tmp_path / "job.json").write_text(json.dumps(stored))
    what = ("job/web",) if by_name else ("-f", str(tmp_path / "job.json"))
    where = ("--snapshot", str(tmp_path / "cluster.json"), "--kubernetes-version", "1.36")
    code, out, errors = ran("fit", *what, *where)
    assert code == 0, (out, errors)
    assert "Both pods of Job default/web fit" in out


@pytest.mark.parametrize("pods_asked", [1, 2])
@pytest.mark.parametrize(("condition", "words"), [("Complete", "is complete"), ("Failed", "has failed")])
def test_a_job_that_is_over_makes_no_pod(tmp_path: Path, condition: str, words: str, pods_asked: int) -> None:
    over = job(2, 2, succeeded=1, conditions=[{"type": condition, "status": "True"}])
    found = agreeing(tmp_path, [*node("a", 0), template(1), over], [job(pods_asked, pods_asked)])
    assert (found["verdict"], found["answer"]) == (
        "can-be-scheduled",
        f"Job default/web {words}, and makes no pod.",
    )
