"""What makes room: holders that end, one more node, each tried by placing the pods again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fit.worlds import (
    bare,
    claim,
    deployment,
    files,
    fitted,
    held,
    item,
    job,
    node,
    published,
    running,
    said,
    tainted,
    template,
    told,
    waiting,
    wanting,
)
from tests.ran import ran, unwrapped

JSON = dict[str, Any]


def changes(found: JSON, kind: str) -> list[JSON]:
    return [change for change in found["changes"] if change["kind"] == kind]


def test_a_claim_that_nobody_uses_comes_first(tmp_path: Path) -> None:
    cluster = [*node("a", 3), held("left", "a", [1]), *running("other", "a", [2])]
    found = item(tmp_path, cluster, [template(), deployment(3)])
    assert found["podCounts"]["fit"] == 1
    first, second = changes(found, "release-claims")
    assert first["holders"][0]["claim"] == {"namespace": "default", "name": "left"}
    assert first["holders"][0]["state"] == "unused"
    assert first["holders"][0]["devices"] == [{"driver": "gpu.example.com", "pool": "a", "device": "gpu-1"}]
    assert second["holders"][0]["pods"][0]["name"] == "other"
    assert (first["morePods"], first["moreReplicas"]) == (1, 1)


def test_the_fix_of_the_named_cause_comes_first(tmp_path: Path) -> None:
    """An unused claim is named as what holds the device: to delete it comes before to wait for a pod that ends."""
    going = running("going", "a", [2])
    going[0]["metadata"]["deletionTimestamp"] = "2026-08-22T09:12:00Z"
    cluster = [*node("a", 3), held("left", "a", [1]), *going]
    found = item(tmp_path, cluster, [template(), deployment(3)])
    assert found["stop"]["cause"] == "allocation-orphaned"
    first, *others = found["changes"]
    assert first["holders"][0]["claim"]["name"] == "left"
    assert "going" in str(others)
    _, out, _ = said(tmp_path, cluster, [template(), deployment(3)])
    assert "  - Delete unused claim default/left" in out


def test_what_no_room_ends_has_the_fix_of_its_cause(tmp_path: Path) -> None:
    """A node taint that the pods do not tolerate: more room is no fix, and what explain proves is said."""
    cluster = tainted("a", 2, value="gpu")
    found = item(tmp_path, cluster, [template(), deployment(2)])
    assert found["stop"]["fix"]["text"].startswith("Let the pod tolerate it: spec.template.spec.tolerations of Dep")
    assert found["stop"]["fix"]["text"].endswith("with that in the template both replicas fit.")
    _, out, _ = said(tmp_path, cluster, [template(), deployment(2)])
    assert "  Fix: Let the pod tolerate it" in out


def test_of_holders_alike_who_makes_most_room() -> None:
    """Pods of the same standing hold shares of CPUs: the short answer names the one whose end lets most pods in."""
    examples = Path(__file__).parents[2] / "examples"
    cluster = examples / "explain" / "shared-capacity-fits" / "cluster.yaml"
    manifest = examples / "fit" / "as-many-as-fit" / "manifest.yaml"
    _, out, _ = ran("fit", "-f", str(manifest), "--max", "--snapshot", str(cluster))
    assert "7 more replicas fit" in unwrapped(out)


def test_the_pods_of_the_workload_are_not_ended(tmp_path: Path) -> None:
    found = item(tmp_path, node("a", 2), [template(), deployment(3)])
    assert changes(found, "release-claims") == []


def test_pods_of_the_system_are_not_ended(tmp_path: Path) -> None:
    owner = {"kind": "DaemonSet", "name": "monitor", "apiVersion": "apps/v1"}
    found = item(tmp_path, [*node("a", 1), *running("monitor-1", "a", [0], owner=owner)], [template(), deployment(1)])
    assert changes(found, "release-claims") == []


def test_several_holders_where_one_is_not_enough(tmp_path: Path) -> None:
    """Two devices are needed: each holder has one, a third one on the other node would not help."""
    cluster = [*node("a", 2), *running("x", "a", [0]), *running("y", "a", [1]), *node("b", 1), *running("z", "b", [0])]
    found = item(tmp_path, cluster, [template(2), deployment(1, gpus=2)])
    (both,) = changes(found, "release-claims")
    assert [holder["claim"]["name"] for holder in both["holders"]] == ["x", "y"]


def test_more_pods_fit_with_a_holder_of_many(tmp_path: Path) -> None:
    cluster = [*node("a", 4), *running("large", "a", [0, 1, 2])]
    found = item(tmp_path, cluster, [template(), deployment(6)])
    (change,) = changes(found, "release-claims")
    assert change["morePods"] == 3


@pytest.mark.parametrize("devices", [True, False])
@pytest.mark.parametrize("owned", [True, False])
def test_several_pods_of_a_node_make_room_together(tmp_path: Path, devices: bool, owned: bool) -> None:
    """Each of them leaves too few CPUs, whether they have devices or not, and whoever makes them anew."""
    owner: JSON | None = {"kind": "ReplicaSet", "name": "busy", "apiVersion": "apps/v1"} if owned else None
    others = [
        raw
        for number, name in enumerate(("x", "y"))
        for raw in running(name, "a", [number] if devices else [], owner, containers=wanting("3"))
    ]
    found = item(tmp_path, [*node("a", 4, cpu="8"), *others], [template(), deployment(1, cpu="8")])
    (both,) = changes(found, "release-claims" if devices else "end-pods")
    pods = [pod["name"] for holder in both["holders"] for pod in holder["pods"]] if devices else None
    assert sorted(pods or [pod["name"] for pod in both["pods"]]) == ["x", "y"]
    assert both["morePods"] == 1


def test_pods_without_claims_make_room_too(tmp_path: Path) -> None:
    cluster = [*node("a", 2, cpu="8"), *running("busy", "a", containers=wanting("6"))]
    found = item(tmp_path, cluster, [template(), deployment(2, cpu="3")])
    (change,) = changes(found, "end-pods")
    assert change["pods"] == [{"namespace": "default", "name": "busy", "priority": 0}]
    assert change["morePods"] == 2


def test_one_more_node_of_the_best_kind(tmp_path: Path) -> None:
    """A node with two devices gives two; one without gives nothing and is not named."""
    cluster = [*node("a", 1), *node("b", 2), *node("c")]
    found = item(tmp_path, cluster, [template(), deployment(9)])
    best, other = changes(found, "add-node")
    assert (best["like"], best["alike"], best["morePods"]) == ("b", 1, 2)
    assert (other["like"], other["morePods"]) == ("a", 1)


def test_a_new_node_has_the_pods_of_daemon_sets(tmp_path: Path) -> None:
    owner = {"kind": "DaemonSet", "name": "agent", "apiVersion": "apps/v1"}
    cluster = [*node("a", 2, cpu="8"), *running("agent-1", "a", owner=owner, containers=wanting("6"))]
    found = item(tmp_path, cluster, [template(), deployment(3, cpu="2")])
    assert found["podCounts"]["fit"] == 1
    (change,) = changes(found, "add-node")
    assert change["morePods"] == 1


def test_devices_of_the_fabric_do_not_come_with_a_node(tmp_path: Path) -> None:
    found = item(tmp_path, [*node("a"), published("net", 1, allNodes=True)], [template(), deployment(2)])
    assert changes(found, "add-node") == []


def test_nothing_is_offered_where_all_fit(tmp_path: Path) -> None:
    found = item(tmp_path, [*node("a", 2), *running("other", "a", [0])], [template(), deployment(1)])
    assert (found["changes"], found["changesTried"]) == ([], 0)


def test_a_quota_is_not_mended_by_nodes(tmp_path: Path) -> None:
    hard = {"pods": "1"}
    limit: JSON = {"kind": "ResourceQuota", "apiVersion": "v1", "spec": {"hard": hard}, "status": {"hard": hard}}
    limit["metadata"] = {"name": "q", "namespace": "default"}
    assert item(tmp_path, [limit, *node("a", 4)], [template(), deployment(2)])["changes"] == []


def test_with_max_the_next_replicas_are_tried(tmp_path: Path) -> None:
    cluster = [*node("a", 8), *running("large", "a", [0, 1, 2, 3, 4])]
    found = item(tmp_path, cluster, [template(), deployment(1)], "--max")
    assert found["replicaCounts"]["fit"] == 3
    assert changes(found, "release-claims")[0]["morePods"] == 5
    assert changes(found, "add-node")[0]["morePods"] == 8


@pytest.mark.parametrize(
    ("gpus", "priority", "takes"),
    [(1, 0, True), (9, 0, False), (1, -1, False)],
    ids=("takes it", "fits nowhere", "comes after"),
)
def test_who_waits_may_take_the_room_first(gpus: int, priority: int, takes: bool, tmp_path: Path) -> None:
    """A pod that waits takes what a change frees: that is said at the change, where an attempt shows it; not else."""
    cluster = [*node("a", 1), held("free", "a", [0]), *waiting("other", gpus, priority=priority), template()]
    found = item(tmp_path, cluster, [deployment(1)])
    (freed,) = changes(found, "release-claims")
    assert freed.get("rivals") == ([{"namespace": "default", "name": "other"}] if takes else None)
    (added,) = changes(found, "add-node")
    assert ("rivals" in added) == takes
    text = unwrapped(said(tmp_path, cluster, [deployment(1)], "--full")[1])
    assert ("then it fits; another pod that waits may take it first: default/other" in text) == takes
    assert "may be placed first" not in text


def test_who_waits_and_fits_may_be_placed_first(tmp_path: Path) -> None:
    """Where there is room for a pod that waits, the note counts it; where it fits nowhere, nothing is said."""
    for gpus in (1, 9):
        cluster = [*node("a", 1), *waiting("other", gpus), template()]
        text = unwrapped(said(tmp_path, cluster, [deployment(1)])[1])
        assert ("1 other pod that waits for devices may be placed first" in text) == (gpus == 1)


def test_the_text_has_a_command(tmp_path: Path) -> None:
    cluster = [*node("a", 1), *running("other", "a", [0])]
    _, out, _ = said(tmp_path, cluster, [template(), deployment(1)])
    assert "    Destructive (in the cluster, not the snapshot): $ kubectl delete pod/other -n default\n" in out
    assert "  - Add one more node like a (1 such node exists): then it fits.\n" in out


def test_what_makes_room_for_one_workload_is_placed_with_all(tmp_path: Path) -> None:
    """Both lack devices, and the first workload takes the one that is freed."""
    both = [deployment(2, "first"), deployment(2, "second")]
    cluster = [*node("a", 2), *running("other", "a", [0]), template()]
    _, report = fitted(tmp_path, cluster, both)
    first, second = report["items"]
    assert changes(second, "release-claims") == []
    assert [change["morePods"] for change in changes(first, "release-claims")] == [1]
    for found in (first, second):
        _, after = fitted(tmp_path, cluster, both, "--with-node", "a,count=1")
        (now,) = (each for each in after["items"] if each["workload"] == found["workload"])
        (added,) = changes(found, "add-node")
        assert now["podCounts"]["fit"] == found["podCounts"]["fit"] + added["morePods"]


def test_a_bare_pod_beside_a_workload_is_explained_by_itself(tmp_path: Path) -> None:
    said(tmp_path, [*node("a", 2), template(), template(3)], [deployment(1), bare("train", 3)])
    code, out, _ = ran("explain", *files(tmp_path), "--full")
    assert code == 1
    assert "this pod is looked at by itself" in unwrapped(out.partition("Pod default/train")[2])


def test_only_what_was_proved_is_called_a_fix(tmp_path: Path) -> None:
    """The node of the control plane has no devices, so that to tolerate its taint helps nobody."""
    cluster = [*tainted("cp", key="control"), *node("a", 2, cpu="2"), template(4)]
    _, out, _ = said(tmp_path, cluster, [deployment(2, gpus=4, cpu="9")])
    assert "too-few-on-one-node: " in out and "Fix:" not in out


def test_why_a_pod_cannot_run_where_its_claim_is(tmp_path: Path) -> None:
    """The workload itself holds all devices of that node."""
    web = deployment(4)
    pod = web["spec"]["template"]["spec"]
    pod["resourceClaims"].append({"name": "one", "resourceClaimName": "one"})
    cluster = [*node("a", 3), *node("b", 3), template(1)]
    _, out, _ = said(tmp_path, cluster, [web, claim("one")])
    assert "where the pod cannot run: its claim default/web-2-gpu does not fit there" in unwrapped(out)


@pytest.mark.parametrize("kind", ["Deployment", "Job", "LeaderWorkerSet"])
def test_that_the_workload_itself_holds_the_devices_is_said(tmp_path: Path, kind: str) -> None:
    web = deployment(3)
    if kind == "Job":
        web = job(3)
    if kind == "LeaderWorkerSet":
        web = {**web, "kind": kind, "apiVersion": "leaderworkerset.x-k8s.io/v1"}
        web["spec"] = {"replicas": 3, "leaderWorkerTemplate": {"size": 1, "workerTemplate": web["spec"]["template"]}}
    _, out, _ = said(tmp_path, [*node("a", 2), template(1)], [web])
    assert f'both devices that match request "gpu" are held by other pods of {kind} web' in unwrapped(out)
    text = told(tmp_path, [*node("a", 2), *tainted("b", 1), template(1)], [web])
    assert "devices-held: where it can, both devices" in text and "further cause" not in text


def test_a_node_is_not_proposed_for_devices_of_no_node(tmp_path: Path) -> None:
    shared = [entry for entry in node("a", 2) if entry["kind"] != "ResourceSlice"]
    _, out, _ = said(tmp_path, [*shared, published("a", 2, allNodes=True), template(1)], [deployment(3)])
    assert "Fix: Add such devices" in out


def test_the_same_reasons_are_not_said_twice(tmp_path: Path) -> None:
    web = deployment(3)
    web["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    text = told(tmp_path, [*node("a", 4), *node("b", 4), template(1)], [web])
    assert text.count("host port taken: 80/TCP by default/web-0") == 1 and "further cause" not in text
