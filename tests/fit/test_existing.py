"""``fit`` of what runs already: each pod counts once, and those that exist keep what they have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.explain.authored import authored
from tests.fit.worlds import (
    JSON,
    REPLICA_SET,
    bare,
    claim,
    deployment,
    existing,
    fitted,
    held,
    item,
    job,
    made_claim,
    node,
    pod_spec,
    published,
    replica_set,
    running,
    said,
    template,
)
from tests.ran import unwrapped


def pods_that_fit(found: JSON) -> tuple[int, int]:
    return found["podCounts"]["fit"], found["podCounts"]["running"]


def test_a_claim_in_the_file_keeps_its_devices(tmp_path: Path) -> None:
    spec = pod_spec(0, cpu="4")
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    web = deployment(4)
    web["spec"]["template"]["spec"] = spec
    pods = [existing(name, spec, "a") for name in ("web-abc-1", "web-abc-2")]
    for pod in pods:
        del pod["status"]["resourceClaimStatuses"]
    cluster = [*node("a", 1), *node("b", 1), held("shared", "a", [0], "web-abc-1"), *pods]
    found = item(tmp_path, cluster, [web, authored(claim("shared"))])
    # The third would have to run where the claim is allocated, and there is no cpu left.
    assert (found["verdict"], pods_that_fit(found)) == ("can-be-scheduled-in-part", (2, 2))


def test_a_pod_that_waits_keeps_the_devices_of_its_claim(tmp_path: Path) -> None:
    waiting = [existing("web-abc-1", pod_spec(1)), made_claim("web-abc-1", "b", [0])]
    found = item(tmp_path, [*node("a", 1), *node("b", 1), template(), *waiting], [deployment(2)])
    placed = {placed_pod["pod"]["name"]: placed_pod["node"] for placed_pod in found["placements"]}
    assert placed == {"web-abc-1": "b", "web-1": "a"}


def test_a_pod_that_waits_is_made_anew_where_the_file_changes_it(tmp_path: Path) -> None:
    waiting = [existing("web-abc-1", pod_spec(3)), claim("web-abc-1-gpu-x7k2p", 3)]
    found = item(tmp_path, [*node("a", 2), template(), template(3), *waiting], [deployment(1)])
    assert (found["verdict"], [placed_pod["pod"]["name"] for placed_pod in found["placements"]]) == (
        "can-be-scheduled",
        ["web-0"],
    )


def test_a_stateful_set_fills_its_gap(tmp_path: Path) -> None:
    owner = {"kind": "StatefulSet", "name": "web", "uid": "o", "apiVersion": "apps/v1"}
    stateful = {**deployment(3), "kind": "StatefulSet"}
    there = [
        each
        for number, name in enumerate(("web-0", "web-2"))
        for each in (existing(name, pod_spec(1), "a", owner), made_claim(name, "a", [number]))
    ]
    found = item(tmp_path, [*node("a", 3), template(), *there], [stateful])
    assert ([placed_pod["pod"]["name"] for placed_pod in found["placements"]], pods_that_fit(found)) == (
        ["web-1"],
        (3, 2),
    )


def test_a_bare_pod_that_runs_fits(tmp_path: Path) -> None:
    cluster = [*node("a", 1), *running("train", "a", [0])]
    found = item(tmp_path, cluster, [authored(cluster[2])])
    assert (found["verdict"], pods_that_fit(found)) == ("can-be-scheduled", (1, 1))


def after_applying(web: JSON, found: JSON, gpus: int) -> list[JSON]:
    """The pods of the workload and their claims as they are once all was applied: those without room wait."""
    objects: list[JSON] = [replica_set(web)]
    spec = web["spec"]["template"]["spec"]
    placed_pods = {placed_pod["pod"]["name"]: placed_pod for placed_pod in found["placements"]}
    names = [
        *placed_pods,
        *(f"web-waits-{number}" for number in range(found["podCounts"]["wanted"] - len(placed_pods))),
    ]
    for name in names:
        placed_pod: Any = placed_pods.get(name)
        objects.append(existing(name, spec, placed_pod["node"] if placed_pod else ""))
        if gpus:
            numbers = (
                [int(device["device"].removeprefix("gpu-")) for device in placed_pod["devices"]] if placed_pod else []
            )
            objects.append(made_claim(name, placed_pod["node"] if placed_pod else "", numbers, gpus))
    return objects


@pytest.mark.parametrize("seed", range(30))
def test_what_was_applied_counts_once(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    gpus = random.choice((0, 1, 2))
    web = deployment(random.randint(2, 6), gpus=gpus, cpu=random.choice(("", "1", "3")))
    cluster = [template(1), template(2)]
    for name in "abc"[: random.randint(1, 3)]:
        cluster += node(name, random.randint(0, 3), cpu=random.choice(("2", "4", "8")))
    code, report = fitted(tmp_path, cluster, [web])
    (before,) = report["items"]
    applied = after_applying(web, before, gpus)
    more = [authored(each) for each in (*cluster, *applied) if random.random() < 0.5]
    # What is given beside the workload is there already; bare pods in it would be workloads of their own.
    more = [each for each in more if each["kind"] not in ("Pod", "ReplicaSet")]
    again, report = fitted(tmp_path, [*cluster, *applied], [web, *json.loads(json.dumps(more))])
    (after,) = report["items"]
    assert (again, after["verdict"], after["podCounts"]["fit"]) == (code, before["verdict"], before["podCounts"]["fit"])
    assert after["podCounts"]["running"] == before["podCounts"]["fit"]
    assert after["placements"] == []


def test_other_pods_that_wait_for_an_extended_resource_alone_are_counted(tmp_path: Path) -> None:
    gpu_class = {
        "kind": "DeviceClass",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": "served"},
        "spec": {"extendedResourceName": "example.com/gpu"},
    }
    waiting: JSON = {"containers": [{"name": "c", "resources": {"limits": {"example.com/gpu": "1"}}}]}
    others = [existing("other-abc-1", waiting, owner={**REPLICA_SET, "name": "other-abc"})]
    own = [existing("web-abc-1", pod_spec(1)), made_claim("web-abc-1")]
    _, found = fitted(tmp_path, [*node("a", 2), gpu_class, template(), *others, *own], [deployment(2)])
    assert found["otherPodsWaiting"] == 1


def two_run_and_one_waits(names: Sequence[str], owner: JSON = REPLICA_SET) -> list[JSON]:
    """A node of two devices, which the first two of these pods hold."""
    first, second, third = names
    pods = [existing(first, pod_spec(1), "a", owner), existing(second, pod_spec(1), "a", owner)]
    waiting = [existing(third, pod_spec(1), owner=owner), made_claim(third)]
    claims = [made_claim(first, "a", [0]), made_claim(second, "a", [1])]
    for pod in (*pods, waiting[0]):
        pod["metadata"]["labels"] = {"app": "web", "pod-template-hash": "7c9d5b8f6"}
    return [*node("a", 2), template(), *pods, *claims, *waiting]


REPLICAS = tuple(f"{REPLICA_SET['name']}-{letter}" for letter in "xyz")


@pytest.mark.parametrize("cpu", ["", "1"], ids=["as it is", "another template"])
@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "Job"])
@pytest.mark.parametrize("flags", [(), ("--max",), ("--replicas", "4")])
def test_no_pod_of_the_workload_is_ended_to_make_room(
    tmp_path: Path, kind: str, cpu: str, flags: tuple[str, ...]
) -> None:
    names, owner = REPLICAS, REPLICA_SET
    web = deployment(3, cpu=cpu)
    if kind != "Deployment":
        web["kind"] = kind
        names, owner = ("web-0", "web-1", "web-2"), {**REPLICA_SET, "kind": kind, "name": "web"}
    if kind == "Job":
        web = {**web, "apiVersion": "batch/v1"}
        web["spec"] = {"parallelism": 3, "template": web["spec"]["template"]}
        owner = {**owner, "apiVersion": "batch/v1"}
    cluster = two_run_and_one_waits(names, owner)
    found = item(tmp_path, cluster, [web], *flags)
    if cpu and kind == "Job":
        assert (found["stop"]["cause"], found["changes"]) == ("change-refused", [])
        return
    # A rollout replaces those of another template; a ReplicaSet keeps them.
    assert pods_that_fit(found)[1] == (2 if not cpu or kind == "ReplicaSet" else 0)
    assert {change["kind"] for change in found["changes"]} == {"add-node"}
    beside = [*node("b", 1), *running("other", "b", [0])]
    found = item(tmp_path, [*cluster, *beside], [web], *flags)
    freed = [change for change in found["changes"] if change["kind"] == "release-claims"]
    assert [holder["pods"][0]["name"] for change in freed for holder in change["holders"]] == ["other"]


def test_that_only_its_own_pods_are_in_the_way_is_said(tmp_path: Path) -> None:
    shared = [entry for entry in two_run_and_one_waits(REPLICAS) if entry["kind"] != "ResourceSlice"]
    _, out, _ = said(tmp_path, [*shared, published("a", 2, allNodes=True)], [deployment(3)])
    assert "The one change that was tried does not make room by itself (its own pods are left out" in unwrapped(out)


def test_no_room_is_looked_for_where_a_template_is_missing(tmp_path: Path) -> None:
    cluster = [entry for entry in two_run_and_one_waits(REPLICAS) if entry["kind"] != "ResourceClaimTemplate"]
    _, out, _ = said(tmp_path, [*cluster, *running("other", "a", [0])], [deployment(3, name="new")])
    assert "template-missing" in out and "makes room" not in out


def test_explaining_a_new_replica_ends_none_of_the_old(tmp_path: Path) -> None:
    cluster = two_run_and_one_waits(REPLICAS)
    _, out, _ = said(tmp_path, cluster, [deployment(3, cpu="1")], "--explain")
    assert "devices-held" in out and "End pod" not in out and "--replicas=" not in out
    # The explanation follows, so no command is named that shows it.
    assert "Next: " not in out.partition("Why")[0]


def test_two_causes_of_a_replica_are_both_named(tmp_path: Path) -> None:
    _, out, _ = said(tmp_path, two_run_and_one_waits(REPLICAS), [deployment(3, cpu="1000")])
    assert "no-eligible-node: " in out and "devices-held: " in out


def test_where_an_object_is_missing_no_change_is_said_to_make_no_room(tmp_path: Path) -> None:
    _, out, _ = said(tmp_path, two_run_and_one_waits(REPLICAS), [deployment(3, "api", gpus=9)])
    assert "template-missing: " in out and "were tried" not in out


def test_the_sorts_of_changes_that_were_tried_are_named(tmp_path: Path) -> None:
    shared = [entry for entry in two_run_and_one_waits(REPLICAS) if entry["kind"] != "ResourceSlice"]
    _, out, _ = said(tmp_path, [*shared, published("a", 2, allNodes=True)], [deployment(3)])
    assert ": one more node like those there are." in unwrapped(out)


def names_of(found: JSON) -> list[str]:
    return [placed_pod["pod"]["name"] for placed_pod in found["placements"]]


@pytest.mark.parametrize("workload", [deployment(3), job(3, 3)], ids=["Deployment", "Job"])
def test_a_pod_that_is_made_takes_the_place_of_no_other(tmp_path: Path, workload: JSON) -> None:
    """Others run as web-1 and as web: the devices of both are theirs."""
    cluster = [*node("a", 4), template(), *running("web-1", "a", [0, 1]), *running("web", "a", [2])]
    found = item(tmp_path, cluster, [workload])
    assert (found["podCounts"]["fit"], found["podCounts"]["running"]) == (1, 0)
    cluster[0]["status"]["allocatable"]["pods"] = "3"
    assert item(tmp_path, [*cluster, *node("b", 4)], [workload])["podCounts"]["fit"] == 3
    assert names_of(item(tmp_path, [*cluster, *node("b", 4)], [workload])) == ["web-0", "web-new-1", "web-2"]


def test_pods_of_two_workloads_have_two_names(tmp_path: Path) -> None:
    _, report = fitted(tmp_path, [*node("a", 3), template()], [deployment(2), bare("web-1", 2), template(2)])
    of_deployment, of_pod = report["items"]
    assert (names_of(of_deployment), of_pod["verdict"]) == (["web-0", "web-new-1"], "cannot-be-scheduled")


def test_a_claim_that_is_made_takes_the_place_of_no_other(tmp_path: Path) -> None:
    """A claim of somebody else has the name, and a device."""
    cluster = [*node("a", 2), template(), held("web-0-gpu", "a", [0])]
    found = item(tmp_path, cluster, [deployment(2)])
    assert found["podCounts"]["fit"] == 1
    (placed_pod,) = found["placements"]
    (device,) = placed_pod["devices"]
    assert (device["claim"], device["device"]) == ({"namespace": "default", "name": "web-0-gpu-new"}, "gpu-1")


def test_a_name_that_a_stateful_set_needs_is_not_free(tmp_path: Path) -> None:
    stateful = {**deployment(2), "kind": "StatefulSet"}
    found = item(tmp_path, [*node("a", 4), template(), *running("web-1", "a", [0, 1])], [stateful])
    why = "pod default/web-1 exists and is none of StatefulSet default/web, which would give that name to a pod of its"
    assert (found["verdict"], found["undetermined"]) == ("undetermined", [f"{why} own"])
