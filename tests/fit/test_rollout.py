"""``fit`` of a workload whose pods run and were made from a former template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.explain.authored import authored
from tests.fit.worlds import (
    JSON,
    REPLICA_SET,
    claim,
    deployment,
    existing,
    files,
    fitted,
    item,
    made_claim,
    node,
    pod_spec,
    said,
    template,
)
from tests.ran import ran, unwrapped

NAMES = tuple(f"{REPLICA_SET['name']}-{letter}" for letter in "xy")
STATEFUL: JSON = {"kind": "StatefulSet", "name": "web", "uid": "o", "apiVersion": "apps/v1"}


def world(gpus: int, names: tuple[str, ...] = NAMES, owner: JSON = REPLICA_SET) -> list[JSON]:
    """A node, and pods that hold a device each."""
    pods = [existing(name, pod_spec(1), "a", owner) for name in names]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
    claims = [made_claim(name, "a", [number]) for number, name in enumerate(names)]
    return [*node("a", gpus), template(1), template(2), template(9), *pods, *claims]


def changed(replicas: int = 2, gpus: int = 1, strategy: Any = None, **fields: Any) -> JSON:
    """A Deployment whose pods want a cpu now, which those that run do not."""
    web = deployment(replicas, gpus=gpus, cpu="1")
    web["spec"].update(fields, **({"strategy": strategy} if strategy else {}))
    return web


def rolling(surge: Any, unavailable: Any) -> JSON:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def came_of(found: JSON) -> tuple[str, int, int]:
    """The verdict, how many pods fit, and how many of the former template are left."""
    return found["verdict"], found["podCounts"]["fit"], found["rollout"]["leftPods"]


@pytest.mark.parametrize(
    ("gpus", "strategy", "expected"),
    [
        (3, rolling(1, 0), ("can-be-scheduled", 2, 0)),
        (3, None, ("can-be-scheduled", 2, 0)),
        (2, rolling(1, 0), ("cannot-be-scheduled", 0, 2)),
        (2, None, ("cannot-be-scheduled", 0, 2)),
        (2, rolling("50%", "10%"), ("cannot-be-scheduled", 0, 2)),
        (2, rolling(0, 1), ("can-be-scheduled", 2, 0)),
        (2, rolling(0, "10%"), ("can-be-scheduled", 2, 0)),
        (2, rolling("0%", "50%"), ("can-be-scheduled", 2, 0)),
        (2, {"type": "Recreate"}, ("can-be-scheduled", 2, 0)),
    ],
)
def test_new_pods_come_as_the_strategy_says(tmp_path: Path, gpus: int, strategy: Any, expected: Any) -> None:
    found = item(tmp_path, world(gpus), [changed(strategy=strategy)])
    assert came_of(found) == expected
    assert (found["podCounts"]["running"], found["rollout"]["replacedPods"]) == (0, 2)
    assert found["rollout"].get("maxUnavailable") == (None if not expected[2] else 1)


@pytest.mark.parametrize(("replicas", "expected"), [(2, (1, 1)), (3, (2, 1)), (5, (4, 1))])
def test_no_more_pods_are_to_be_unavailable_than_it_takes(
    tmp_path: Path, replicas: int, expected: tuple[int, int]
) -> None:
    """Two pods of the former template hold both devices, and one of them is enough for all that share a claim."""
    web = changed(replicas, strategy=rolling(1, 0))
    web["spec"]["template"]["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    found = item(tmp_path, [*world(2), claim("shared")], [web])
    unavailable, ended = expected
    assert found["rollout"]["maxUnavailable"] == unavailable
    assert f"so that {ended} pod of the former template ends first" in found["stop"]["fix"]["text"]
    web["spec"]["strategy"] = rolling(1, unavailable)
    assert item(tmp_path, [*world(2), claim("shared")], [web])["verdict"] == "can-be-scheduled"
    if unavailable > 1:
        web["spec"]["strategy"] = rolling(1, unavailable - 1)
        assert item(tmp_path, [*world(2), claim("shared")], [web])["verdict"] != "can-be-scheduled"


@pytest.mark.parametrize("unavailable", [0, 2])
def test_sharing_is_no_way_out_of_a_rollout_that_stops(tmp_path: Path, unavailable: int) -> None:
    """Where old pods hold all devices until new ones run, a claim that all share gets none either."""
    _, out, _ = said(tmp_path, world(2), [template(1), changed(3, strategy=rolling(1, unavailable))], "--full")
    assert ("with one claim for all pods" in out) is bool(unavailable)


def test_a_rollout_that_stops_goes_on_with_another_strategy(tmp_path: Path) -> None:
    code, out, _ = said(tmp_path, world(2), [changed()])
    text = unwrapped(out)
    assert code == 1
    assert "fits; the rollout stops, and 2 pods of the former template run on." in text
    fix = "Fix: Set spec.strategy.rollingUpdate.maxUnavailable to 1, so that 1 pod of the former template ends first"
    assert f"{fix}: then both replicas fit." in text


def test_a_rollout_may_stop_after_its_first_pod(tmp_path: Path) -> None:
    """The four devices are enough for the new pods, but not while one of the old ones has one."""
    found = item(tmp_path, world(4), [changed(gpus=2, strategy=rolling(1, 0))])
    assert came_of(found) == ("can-be-scheduled-in-part", 1, 1)
    assert came_of(item(tmp_path, world(4), [changed(gpus=2, strategy={"type": "Recreate"})]))[1] == 2


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_template_that_fits_nowhere_is_no_replica_that_runs(tmp_path: Path, kind: str) -> None:
    names = ("web-0", "web-1") if kind == "StatefulSet" else NAMES
    cluster = world(4, names, STATEFUL if kind == "StatefulSet" else REPLICA_SET)
    web = {**changed(gpus=9), "kind": kind}
    code, report = fitted(tmp_path, cluster, [web])
    assert (code, report["items"][0]["podCounts"]["fit"]) == (1, 0)
    code, out, _ = ran("explain", *files(tmp_path))
    assert code == 1 and "rollout stops" in out


def test_fewer_replicas_make_room_for_new_ones(tmp_path: Path) -> None:
    assert came_of(item(tmp_path, world(2), [changed(1, strategy=rolling(1, 0))])) == ("can-be-scheduled", 1, 0)


def test_what_a_change_brings_is_placed_through_the_rollout(tmp_path: Path) -> None:
    found = item(tmp_path, world(2), [changed()])
    (change,) = found["changes"]
    assert (change["kind"], change["morePods"]) == ("add-node", 2)


@pytest.mark.parametrize(
    ("gpus", "update", "expected"),
    [
        (1, {}, ("can-be-scheduled", 2, 0)),
        (2, {}, ("cannot-be-scheduled", 0, 1)),
        (2, {"rollingUpdate": {"partition": 1}}, ("can-be-scheduled-in-part", 1, 0)),
    ],
)
def test_a_stateful_set_ends_the_highest_first(tmp_path: Path, gpus: int, update: JSON, expected: Any) -> None:
    web = {**changed(gpus=gpus, updateStrategy={"type": "RollingUpdate", **update}), "kind": "StatefulSet"}
    found = item(tmp_path, world(2, ("web-0", "web-1"), STATEFUL), [web])
    assert came_of(found) == expected
    assert found.get("formerPods", 0) == (1 if update else 0)


@pytest.mark.parametrize(
    ("kind", "more"), [("ReplicaSet", {}), ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}})]
)
def test_pods_that_nobody_replaces_run_on(tmp_path: Path, kind: str, more: JSON) -> None:
    names = ("web-0", "web-1") if kind == "StatefulSet" else NAMES
    owner = {**STATEFUL, "kind": kind}
    found = item(tmp_path, world(2, names, owner), [{**changed(**more), "kind": kind}])
    assert (found["podCounts"]["running"], found["formerPods"]) == (2, 2)
    assert "2 pods of it run already, all of a former template" in found["answer"]


def test_how_others_replace_pods_is_not_modelled(tmp_path: Path) -> None:
    owner = {**STATEFUL, "kind": "PyTorchJob", "apiVersion": "kubeflow.org/v1"}
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": changed()["spec"]["template"]}}}
    wanted = {"kind": "PyTorchJob", "apiVersion": "kubeflow.org/v1", "metadata": changed()["metadata"], "spec": spec}
    found = item(tmp_path, world(4, owner=owner), [wanted])
    assert found["verdict"] == "undetermined" and "is of a former template" in found["undetermined"][0]


@pytest.mark.parametrize("replicas", [2, 3])
def test_a_paused_deployment_replaces_no_pod(tmp_path: Path, replicas: int) -> None:
    found = item(tmp_path, world(4), [changed(replicas, paused=True)])
    if replicas > 2:
        assert found["verdict"] == "undetermined" and "it is paused" in found["undetermined"][0]
    else:
        assert found["answer"].endswith("template; it is paused, and replaces no pod until it is resumed.")


@pytest.mark.parametrize("kind", ["Job", "JobSet"])
def test_nobody_can_change_the_template_of_a_job(tmp_path: Path, kind: str) -> None:
    pods = {"template": {"spec": {**pod_spec(2), "restartPolicy": "Never"}}, "parallelism": 2, "completions": 2}
    meta = {"name": "web", "namespace": "default"}
    wanted: JSON = {"kind": "Job", "apiVersion": "batch/v1", "metadata": meta, "spec": pods}
    owner = {**STATEFUL, "kind": "Job", "apiVersion": "batch/v1"}
    cluster = world(8, owner=owner)
    if kind == "JobSet":
        wanted = {"kind": kind, "apiVersion": "jobset.x-k8s.io/v1alpha2", "metadata": meta}
        wanted["spec"] = {"replicatedJobs": [{"name": "main", "template": {"spec": pods}}]}
        for each in cluster:
            if each["kind"] == "Pod":
                each["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-name": "web"}
    code, out, _ = said(tmp_path, cluster, [wanted])
    assert code == 1 and f"{kind} default/web cannot be changed like that" in out
    assert f"change-refused: {kind} default/web exists already" in unwrapped(out)


def test_nobody_can_change_a_selector(tmp_path: Path) -> None:
    cluster = world(4)
    for each in cluster:
        if each["kind"] == "Pod":
            each["metadata"]["labels"] = {"app": "other"}
    code, report = fitted(tmp_path, cluster, [deployment(2)])
    (found,) = report["items"]
    assert (code, found["stop"]["cause"], found["podCounts"]["running"]) == (1, "change-refused", 0)
    assert "spec.selector" in found["stop"]["reason"]


def test_nobody_can_change_a_claim_template(tmp_path: Path) -> None:
    """The pods would be made from the one that is there."""
    other = {**template(2), "metadata": template(1)["metadata"]}
    code, report = fitted(tmp_path, world(4), [other, deployment(3)])
    (found,) = report["items"]
    assert (code, found["stop"]["cause"]) == (1, "change-refused")
    assert "ResourceClaimTemplate default/gpu-1 exists already" in found["stop"]["reason"]
    assert found["stop"]["fix"]["commands"][0]["argv"] == [
        *("kubectl", "delete", "resourceclaimtemplate/gpu-1", "-n", "default"),
    ]
    code, out, _ = ran("explain", *files(tmp_path))
    assert code == 1 and "change-refused" in out


def test_nobody_can_change_a_pod_that_runs(tmp_path: Path) -> None:
    pod = existing("web", pod_spec(1), "a")
    cluster = [*node("a", 4), template(1), template(2), pod, made_claim("web", "a", [0])]
    manifest = authored(pod)
    assert fitted(tmp_path, cluster, [manifest])[0] == 0
    code, report = fitted(tmp_path, cluster, [{**manifest, "spec": pod_spec(2)}])
    (found,) = report["items"]
    assert (code, found["stop"]["cause"], found["podCounts"]["running"]) == (1, "change-refused", 0)
    assert found["answer"] == "Pod default/web cannot be changed like that."


def test_what_others_added_to_a_pod_is_no_other_template(tmp_path: Path) -> None:
    """A webhook adds a container, and Kueue the labels of the nodes that it chose."""
    cluster = world(2)
    for each in cluster:
        if each["kind"] == "Pod":
            each["spec"]["containers"].append({"name": "proxy", "image": "i", "resources": {"requests": {"cpu": "1"}}})
            each["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "a"}
            each["spec"]["tolerations"] = [{"key": "x", "operator": "Exists"}]
    found = item(tmp_path, cluster, [deployment(2)])
    assert found["podCounts"]["running"] == 2 and "rollout" not in found


def test_quotas_do_not_count_pods_that_ended(tmp_path: Path) -> None:
    hard = {"pods": "2", "count/resourceclaims.resource.k8s.io": "2"}
    quota = {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "q", "namespace": "default"}}
    quota |= {"spec": {"hard": hard}, "status": {"hard": hard, "used": hard}}
    found = item(tmp_path, [*world(4), quota], [changed(strategy={"type": "Recreate"})])
    assert came_of(found) == ("can-be-scheduled", 2, 0)
    assert came_of(item(tmp_path, [*world(4), quota], [changed(strategy=rolling(1, 0))]))[1] == 0


@pytest.mark.parametrize("output", ["text", "json", "html"])
def test_explain_says_of_one_pod_what_fit_says(tmp_path: Path, output: str) -> None:
    """The new pod does not fit beside the old one, which ends first."""
    one = world(1, NAMES[:1])
    assert fitted(tmp_path, one, [changed(1, strategy={"type": "Recreate"})])[0] == 0
    code, out, errors = ran("explain", *files(tmp_path), "-o", output)
    said = "can be scheduled" if output == "html" else "the rollout ends 1 pod of the former template"
    assert (code, errors) == (0, "") and said in unwrapped(out)
