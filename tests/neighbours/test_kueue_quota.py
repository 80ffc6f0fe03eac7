"""The quota that a Workload of Kueue lacks, what is read for it and when, and what an anonymized copy keeps of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from kubectl_dra.cluster.anonymize import Anonymizer
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.kueue_settings import configuration_in
from kubectl_dra.cluster.save import reduced
from kubectl_dra.cluster.snapshot import ABSENT, Gap, Snapshot
from kubectl_dra.neighbours.kueue import cluster_queue_of, workload_of
from kubectl_dra.neighbours.kueue_controller import configuration
from kubectl_dra.neighbours.kueue_quota import FlavorQuota, flavor_quotas, mapped_classes, short
from tests.cli.conftest import Ran
from tests.neighbours.test_foundation import GATED, OBJECTS, explained, pod, serve, snapshot_of
from tools.api_server import APIServer, forbidden

JSON = dict[str, Any]
V1BETA2 = "kueue.x-k8s.io/v1beta2"
SETTINGS_PATH = "/api/v1/namespaces/kueue-system/configmaps"
KUEUE = [one for one in OBJECTS if one["apiVersion"].startswith("kueue")]
(SETTINGS,) = (one for one in OBJECTS if one["metadata"]["name"] == "kueue-manager-config")
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu", "namespace": "ml"},
    "spec": {
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 3}}]}
        }
    },
}


def groups(nominal: str, **limits: str) -> list[JSON]:
    resource = {"name": "gpus", "nominalQuota": nominal, **limits}
    return [{"coveredResources": ["gpus"], "flavors": [{"name": "h100", "resources": [resource]}]}]


def queue(name: str, nominal: str, held: str = "0", cohort: str = "all", **limits: str) -> JSON:
    status = {"flavorsReservation": [{"name": "h100", "resources": [{"name": "gpus", "total": held, "borrowed": "0"}]}]}
    spec = {"resourceGroups": groups(nominal, **limits), **({"cohortName": cohort} if cohort else {})}
    return {"apiVersion": V1BETA2, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec, "status": status}


def cohort(name: str, parent: str = "", nominal: str = "0", **limits: str) -> JSON:
    spec = {"resourceGroups": groups(nominal, **limits), **({"parentName": parent} if parent else {})}
    return {"apiVersion": V1BETA2, "kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def workload(wanted: str = "", **spec: Any) -> JSON:
    (one,) = (one for one in KUEUE if one["kind"] == "Workload")
    pods = [{**one["spec"]["podSets"][0], "count": 2}]
    status = {"resourceRequests": [{"name": "main", "resources": {"gpus": wanted}}]} if wanted else {}
    return {**one, "spec": {**one["spec"], "podSets": pods, **spec}, "status": status}


def quota(*objects: JSON, wanted: str = "4", gaps: tuple[Gap, ...] = ()) -> FlavorQuota:
    """That of the first of the objects."""
    (local,) = (one for one in KUEUE if one["kind"] == "LocalQueue")
    local = {**local, "spec": {"clusterQueue": objects[0]["metadata"]["name"]}}
    read = whole(pod(GATED), local, workload(wanted), *objects)
    read = replace(read, gaps=gaps)
    (only,) = flavor_quotas(*own(read), read)
    return only


def whole(*objects: JSON) -> Snapshot:
    return replace(snapshot_of(*objects), gaps=())


def own(read: Snapshot) -> tuple[Any, Any]:
    (waiting,) = read.pods.values()
    return workload_of(waiting, read), cluster_queue_of(waiting, read)


@pytest.mark.parametrize(
    ("objects", "free", "most"),
    [
        ([queue("a", "9", "3", "")], 6, 9),
        # Everything that the others do not use can be borrowed.
        ([queue("a", "9", "9"), queue("b", "12", "4")], 8, 21),
        # What they use beyond their own is missing here.
        ([queue("a", "9", "2"), queue("b", "12", "15")], 4, 21),
        ([queue("a", "9", "9", borrowingLimit="1"), queue("b", "12", "4")], 1, 10),
        ([queue("a", "9", "9"), queue("b", "12", "4", lendingLimit="1")], 1, 10),
        # What it does not lend is there for it, whatever the others hold.
        ([queue("a", "9", "2", lendingLimit="3"), queue("b", "12", "15")], 4, 21),
        ([queue("a", "9", "9"), cohort("all", nominal="5")], 5, 14),
        ([queue("a", "9", "9"), queue("b", "12", "0", "far"), cohort("all", "top"), cohort("far", "top")], 12, 21),
        (
            [
                queue("a", "9", "9"),
                queue("b", "12", "0", "far"),
                cohort("all", "top", borrowingLimit="2"),
                cohort("far", "top"),
            ],
            2,
            11,
        ),
        # Kueue admits less than nothing where quota was taken away.
        ([queue("a", "2", "3", "")], -1, 2),
    ],
)
def test_what_a_queue_can_take(objects: list[JSON], free: int, most: int) -> None:
    """The sums of ``resource_node.go`` and of Kueue's page about cohorts, by hand."""
    found = quota(*objects)
    assert (str(found.free), str(found.most)) == (str(free), str(most))
    assert str(found.missing) == str(max(4 - free, 0)) and found.never == (most < 4)


def test_cohorts_in_a_circle_say_nothing() -> None:
    found = quota(queue("a", "9"), cohort("all", "top"), cohort("top", "all"))
    assert (found.free, found.most, found.missing, found.never) == (None, None, None, False)


@pytest.mark.parametrize("kind", ["Cohort.kueue.x-k8s.io", "ClusterQueue.kueue.x-k8s.io"])
def test_nothing_is_short_where_its_cohort_was_not_read(kind: str) -> None:
    found = quota(queue("a", "2", "2"), gaps=(Gap(kind, ABSENT),))
    assert found.free is None and short([found]) == ()
    # It has no cohort.
    assert short([quota(queue("a", "2", "2", ""), gaps=(Gap(kind, ABSENT),))])


def test_what_is_no_amount_says_nothing() -> None:
    read = whole(
        pod(GATED), queue("research", "many"), workload("4"), *(one for one in KUEUE if one["kind"] == "LocalQueue")
    )
    (waiting,) = read.pods.values()
    # The ClusterQueue was not read, then.
    assert cluster_queue_of(waiting, read) is None


def test_devices_count_as_what_the_configuration_maps_them_to() -> None:
    local = [one for one in KUEUE if one["kind"] == "LocalQueue"]
    read = whole(pod(GATED), queue("research", "9", "9", ""), workload(), SETTINGS, TEMPLATE, *local)
    (found,) = flavor_quotas(*own(read), read)
    assert str(found.wanted) == "6" and str(found.missing) == "6"
    (mapped,) = mapped_classes(*own(read), read)
    assert mapped == ("gpu.example.com", "gpus", True)
    for hidden in (SETTINGS, TEMPLATE):
        rest = [one for one in (SETTINGS, TEMPLATE) if one is not hidden]
        read = whole(pod(GATED), queue("research", "9", "9", ""), workload(), *rest, *local)
        assert [flavor_quota.wanted for flavor_quota in flavor_quotas(*own(read), read)] == [None] and mapped_classes(
            *own(read), read
        ) == ()


@pytest.mark.parametrize(
    "text",
    ["", "[", "a: &a [*a]", "apiVersion: config.kueue.x-k8s.io/v1beta2\nresources: 3", "config.kueue.x-k8s.io/: {"],
)
def test_another_form_is_no_configuration(text: str) -> None:
    assert configuration_in(text) is None


def test_an_anonymized_copy_keeps_what_is_mapped_and_no_more() -> None:
    secret = {**SETTINGS["data"], "other": "password"}
    items = [reduced(one) for one in (*KUEUE, {**SETTINGS, "data": secret}, TEMPLATE, pod(GATED))]
    items = json.loads(json.dumps(items).replace("gpu.example.com", "quux.acme.corp").replace("gpus", "acmecards"))
    anonymizer = Anonymizer(items, "seed")
    text = json.dumps([anonymizer.item(item) for item in items])
    for word in ("quux", "acme", "everyone", "manageJobs", "password", "kueue-system"):
        assert word not in text, word
    read = snapshot_of(*json.loads(text))
    known = configuration(read)
    assert known is not None and len(known[1].resources.device_class_mappings) == 2
    assert [bool(entry.sources) for entry in known[1].resources.device_class_mappings] == [False, True]
    (mapped,) = mapped_classes(*own(read), read)
    assert mapped.resource and mapped.covered and mapped.name


Dra = Callable[..., Ran]


def test_the_configuration_and_the_cohort_are_asked_for_once(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    waiting = [one for one in KUEUE if one["kind"] != "Workload"]
    serve(server, pod(GATED), *waiting, workload())
    server.routes["/apis/resource.k8s.io/v1/resourceclaimtemplates"] = [TEMPLATE]
    server.routes[SETTINGS_PATH] = [SETTINGS]
    ran, paths = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml")
    assert paths.count(SETTINGS_PATH) == 1 and paths.count(f"/apis/{V1BETA2}/cohorts") == 1
    named = next(one.query for one in server.asked if one.path == SETTINGS_PATH)
    assert named["fieldSelector"] == "metadata.name=kueue-manager-config"
    assert "the Workload asks for 6" in " ".join(ran.out.split())
    # One that has its quota needs neither.
    serve(server, pod(GATED), *KUEUE)
    _, paths = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml")
    assert SETTINGS_PATH not in paths and f"/apis/{V1BETA2}/cohorts" not in paths


@pytest.mark.parametrize(
    ("hidden", "word"), [("cohorts", "Cohorts"), ("clusterqueues", "ClusterQueues"), ("configmaps", "ConfigMaps")]
)
def test_what_may_not_be_read_is_not_denied(
    hidden: str, word: str, server: APIServer, dra: Dra, tmp_path: Path
) -> None:
    waiting = [one for one in KUEUE if one["kind"] != "Workload"]
    serve(server, pod(GATED), *waiting, workload(), hidden=hidden)
    server.routes["/apis/resource.k8s.io/v1/resourceclaimtemplates"] = [TEMPLATE]
    server.routes[SETTINGS_PATH] = forbidden("configmaps") if hidden == "configmaps" else [SETTINGS]
    ran, _ = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml", "--full")
    said = " ".join(ran.out.split())
    assert ran.code == 1 and "is in LocalQueue team-a, and has no quota yet" in said
    assert " missing" not in said and "none names it" not in said
    assert f"{word} read: no (forbidden)" in said.replace(" · ", " ")


def test_a_snapshot_keeps_the_configuration(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    serve(server, pod(GATED), *KUEUE)
    server.routes[SETTINGS_PATH] = [SETTINGS]
    explained(server, dra, tmp_path, "snapshot", "-o", str(tmp_path / "kueue.json"))
    assert configuration(read_snapshot([str(tmp_path / "kueue.json")])) is not None


def test_the_role_names_the_configuration() -> None:
    role = yaml.safe_load((Path(__file__).parents[2] / "examples" / "rbac" / "read.yaml").read_text())
    (rule,) = (rule for rule in role["rules"] if rule["resources"] == ["configmaps"])
    assert SETTINGS["metadata"]["name"] in rule["resourceNames"]
