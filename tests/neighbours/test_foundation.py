"""Objects of other layers: read where a pod points to them, kept by snapshots, and never asked for otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS, kind_here
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.anonymize import Anonymizer
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.pointed_objects import Pointer, merged
from kubectl_dra.cluster.save import reduced
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.neighbours.decider import Layer, decider
from kubectl_dra.neighbours.kueue import cluster_queue_of, workload_of
from kubectl_dra.neighbours.pointers import pointers
from tests.cli.conftest import Ran
from tests.gaps import gap_reason
from tools.api_server import APIServer, forbidden
from tools.recorder.definitions import definitions

OBJECTS = yaml.safe_load((Path(__file__).parent / "objects.yaml").read_text())
CORE = ("pods", "nodes", "namespaces", "resourcequotas", "events")
DRA = ("resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates")
GATED = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
Dra = Callable[..., Ran]


def pod(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    owners = [{**owner, "uid": "10000000-0000-4000-8000-000000000002"}]
    meta = {"name": "train-0", "namespace": "ml", "uid": "u", "ownerReferences": owners, **metadata}
    body = {"containers": [{"name": "main"}], **(spec or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body, "status": {"phase": "Pending"}}


def snapshot_of(*items: dict[str, Any]) -> Snapshot:
    return read_snapshot(["-"], stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode())


def test_an_object_of_each_kind_is_tried_here() -> None:
    assert {kind_here(one["kind"], one["apiVersion"]) for one in OBJECTS} == NEIGHBOUR_KINDS.keys()


def test_files_hold_them() -> None:
    found = snapshot_of(*OBJECTS)
    assert {kind for kind in NEIGHBOUR_KINDS if found.others.get(kind)} == NEIGHBOUR_KINDS.keys()
    # Kubernetes' own kinds of the same names are others.
    assert "Workload" not in found.others and gap_reason(found, "Workload") == ABSENT


def test_other_config_maps_are_not_read() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "passwords"}, "data": {"a": "b"}}
    assert "ConfigMap" not in snapshot_of(other).others


def test_a_snapshot_keeps_what_is_read_and_no_more() -> None:
    kept = [reduced(one) for one in OBJECTS]
    assert "hidden" not in json.dumps(kept) and "secret.example.org" not in json.dumps(kept)
    assert snapshot_of(*kept).others.keys() == snapshot_of(*OBJECTS).others.keys()


def test_an_anonymized_copy_keeps_what_points_where() -> None:
    named = pod(GATED, labels={"kueue.x-k8s.io/queue-name": "team-a"})
    items = [reduced(one) for one in (*OBJECTS, named)]
    anonymizer = Anonymizer(items, "seed")
    text = json.dumps([anonymizer.item(item) for item in items])
    assert not any(word in text for word in ("team-a", "research", "everyone", "train", "desktop"))
    found = snapshot_of(*json.loads(text))
    (waiting,) = found.pods.values()
    assert workload_of(waiting, found) is not None and cluster_queue_of(waiting, found) is not None


@pytest.mark.parametrize(
    ("spec", "metadata", "layer"),
    [
        ({}, {}, Layer.NONE),
        (GATED, {}, Layer.KUEUE),
        ({"schedulingGates": [{"name": "example.com/a"}, *GATED["schedulingGates"]]}, {}, Layer.KUEUE),
        ({"schedulingGates": [{"name": "example.com/a"}]}, {}, Layer.GATE),
        ({"schedulingGates": [{"name": "scheduling.volcano.sh/queue-allocation-gate"}]}, {}, Layer.VOLCANO),
        ({"schedulerName": "volcano"}, {}, Layer.VOLCANO),
        ({"schedulerName": "kai-scheduler"}, {}, Layer.KAI),
        ({"schedulerName": "mine"}, {}, Layer.OTHER_SCHEDULER),
        ({"schedulingGroup": {"podGroupName": "g"}}, {}, Layer.POD_GROUP),
        ({}, {"labels": {"kueue.x-k8s.io/queue-name": "a"}}, Layer.NONE),
    ],
)
def test_who_decides(spec: dict[str, Any], metadata: dict[str, Any], layer: Layer) -> None:
    assert decider(Pod.from_json(pod(spec, **metadata))).layer is layer


def test_what_a_pod_points_to_grows_with_what_was_read() -> None:
    gated = pod(GATED, labels={"kueue.x-k8s.io/queue-name": "team-a"})
    nothing = snapshot_of(gated)
    (waiting,) = nothing.pods.values()
    uids = "kueue.x-k8s.io/job-uid in (u,10000000-0000-4000-8000-000000000002)"
    kueue = {kind: f"{kind}.kueue.x-k8s.io" for kind in ("Workload", "LocalQueue", "ClusterQueue")}
    first = [Pointer(kueue["Workload"], "ml", "", uids), Pointer(kueue["LocalQueue"], "ml", "team-a")]
    assert pointers([waiting], nothing) == first
    # An admission check is not ready, so that capacity may have been asked for.
    capacity = Pointer("ProvisioningRequest.autoscaling.x-k8s.io", "ml", "", "kueue.x-k8s.io/managed=true")
    assert pointers([waiting], snapshot_of(gated, *OBJECTS)) == [*first, Pointer(kueue["ClusterQueue"]), capacity]
    assert pointers([Pod.from_json(pod())], nothing) == []


def test_one_request_for_each_kind() -> None:
    asked = [Pointer("Job.batch", "a", "x"), Pointer("Job.batch", "a", "y"), Pointer("NodePool.karpenter.sh", "", "p")]
    assert merged(asked) == [Pointer("Job.batch", "a"), Pointer("NodePool.karpenter.sh", "", "p")]
    assert merged([*asked, Pointer("Job.batch", "b", "x")])[0] == Pointer("Job.batch")
    maps = [Pointer("ConfigMap", "kube-system", "a"), Pointer("ConfigMap", "kueue-system", "b")]
    assert merged(maps) == maps


def serve(server: APIServer, *objects: dict[str, Any], hidden: str = "") -> None:
    """A server with aggregated discovery that serves the kinds of these objects."""
    server.routes["/version"] = {"gitVersion": "v1.36.2"}
    groups: dict[str, dict[str, list[dict[str, str]]]] = {
        "resource.k8s.io": {"v1": [{"resource": name} for name in DRA], "v1beta2": [{"resource": "devicetaintrules"}]}
    }
    for version, names in (("v1", DRA), ("v1beta2", ("devicetaintrules",))):
        for name in names:
            server.routes[f"/apis/resource.k8s.io/{version}/{name}"] = []
    for name in CORE:
        for root in ("/api/v1", "/api/v1/namespaces/ml"):
            server.routes[f"{root}/{name}"] = []
    for one in objects:
        group, _, version = one["apiVersion"].rpartition("/")
        if one["kind"] == "Pod":
            listed = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [one]}
            server.routes["/api/v1/pods"] = listed
            continue
        row = NEIGHBOUR_KINDS[kind_here(one["kind"], one["apiVersion"])]
        groups.setdefault(group, {}).setdefault(version, []).append({"resource": row.plural})
        scope = "/namespaces/ml" if row.namespaced else ""
        answer = {"kind": f"{one['kind']}List", "apiVersion": one["apiVersion"], "metadata": {}, "items": [one]}
        for path in (f"/apis/{group}/{version}{scope}/{row.plural}", f"/apis/{group}/{version}/{row.plural}"):
            server.routes[path] = forbidden(f"{row.plural}.{group}") if row.plural == hidden else answer
    server.routes["/apis"] = {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": name},
                "versions": [{"version": version, "resources": each} for version, each in versions.items()],
            }
            for name, versions in groups.items()
        ],
    }


def explained(server: APIServer, dra: Dra, folder: Path, *words: str) -> tuple[Ran, list[str]]:
    """The answer, and what was requested."""
    server.asked.clear()
    ran = dra(*words, "--kubeconfig", server.kubeconfig(folder))
    return ran, server.paths()


KUEUE = [one for one in OBJECTS if one["apiVersion"].startswith("kueue")]


def test_nothing_is_asked_for_an_ordinary_pod(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    serve(server, pod())
    bare, before = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml")
    serve(server, pod(), *KUEUE)
    ran, after = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml")
    assert sorted(after) == sorted(before) and (ran.out, ran.err) == (bare.out, bare.err)
    listed = [f"/apis/resource.k8s.io/v1/{name}" for name in DRA] + ["/apis/resource.k8s.io/v1beta2/devicetaintrules"]
    core = [f"/api/v1/{name}" for name in ("pods", "nodes", "namespaces")]
    own = [f"/api/v1/namespaces/ml/{name}" for name in ("events", "resourcequotas")]
    # Of all namespaces, those that tell where the kubelet does not reach a driver.
    assert sorted(after) == sorted(("/version", "/apis", *listed, *core, "/api/v1/events", *own))


def test_what_a_pod_points_to_is_asked_for_once(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    serve(server, pod(GATED), *KUEUE)
    _, paths = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml")
    root = "/apis/kueue.x-k8s.io/v1beta2"
    assert [path for path in paths if "x-k8s" in path] == [
        f"{root}/namespaces/ml/workloads",
        *sorted((f"{root}/clusterqueues", f"{root}/namespaces/ml/localqueues"), key=paths.index),
    ]


def test_what_is_not_served_is_not_asked_for(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    serve(server, pod(GATED))
    ran, paths = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml", "-o", "json")
    assert not any("x-k8s.io" in path for path in paths)
    assert ran.code == 1


def test_a_snapshot_saves_the_layers_that_there_are(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    serve(server, pod(GATED))
    ran, paths = explained(server, dra, tmp_path, "snapshot", "-o", str(tmp_path / "bare.json"))
    assert not any("x-k8s.io" in path or "jobs" in path for path in paths) and "Workload.kueue" not in ran.err
    serve(server, pod(GATED), *KUEUE, hidden="clusterqueues")
    ran, _ = explained(server, dra, tmp_path, "snapshot", "-o", str(tmp_path / "kueue.json"))
    assert "list clusterqueues.kueue.x-k8s.io is forbidden" in ran.err
    bare, kueue = (read_snapshot([str(tmp_path / name)]) for name in ("bare.json", "kueue.json"))
    assert bare.missing("Workload.kueue.x-k8s.io") is None
    assert list(kueue.others["Workload.kueue.x-k8s.io"]) == [("ml", "job-train-a1b2c")]
    assert kueue.missing("ClusterQueue.kueue.x-k8s.io") is not None


def test_a_suspended_job_is_asked_for_where_it_has_no_pod(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    (job,) = (one for one in OBJECTS if one["kind"] == "Job" and one["apiVersion"] == "batch/v1")
    serve(server, job, *KUEUE)
    ran, paths = explained(server, dra, tmp_path, "explain", "job/train", "-n", "ml")
    assert ran.code == 1 and "Job train has no pod; this is about one as it would make it" in ran.err
    # The Workload of the objects has its quota, and waits for a check.
    assert "waits for Kueue: Workload job-train-a1b2c has its quota" in " ".join(ran.out.split())
    root = "/apis/kueue.x-k8s.io/v1beta2"
    own = [path for path in paths if "batch" in path or "kueue" in path]
    assert own[:2] == ["/apis/batch/v1/namespaces/ml/jobs", f"{root}/namespaces/ml/workloads"]
    assert sorted(own[2:]) == [f"{root}/clusterqueues", f"{root}/namespaces/ml/localqueues"]
    selected = next(one.query for one in server.asked if one.path == own[0])
    assert selected["fieldSelector"] == "metadata.name=train"


def test_what_may_not_be_read_is_said(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    serve(server, pod(GATED), *KUEUE, hidden="workloads")
    ran, _ = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml")
    assert ran.code in (1, 3) and "list workloads.kueue.x-k8s.io is forbidden" in " ".join(ran.out.split())


def test_a_queue_that_was_removed_is_named(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    serve(server, pod(GATED))
    ran, _ = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml")
    assert "the cluster does not serve kueue.x-k8s.io" in " ".join(ran.out.split())


def test_the_example_role_allows_what_is_read() -> None:
    role = yaml.safe_load((Path(__file__).parents[2] / "examples" / "rbac" / "read.yaml").read_text())
    allowed = {(group, name) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]}
    read = snapshot_of(pod(GATED), *OBJECTS)
    named = {"scheduling.k8s.io/group-name": "podgroup-9", "volcano.sh/job-name": "sweep"}
    volcano = pod({"schedulerName": "volcano"}, annotations=named)
    labels = {"leaderworkerset.sigs.k8s.io/name": "serve", "jobset.sigs.k8s.io/jobset-name": "sweep"}
    kai = {"labels": {"kai.scheduler/queue": "team-a", **labels}, "annotations": {"pod-group-name": "pg-train"}}
    waiting = [Pod.from_json(one) for one in (pod(GATED), volcano, pod({"schedulerName": "kai-scheduler"}, **kai))]
    kinds = {pointer.kind for one in waiting for pointer in pointers([one], read)}
    assert len(kinds) == 12
    assert {(NEIGHBOUR_KINDS[kind].group, NEIGHBOUR_KINDS[kind].plural) for kind in (*kinds, "Job.batch")} <= allowed


def test_each_layer_s_own_definition_is_recorded() -> None:
    specs = [definition["spec"] for definition in definitions()]
    recorded = {f"{spec['names']['kind']}.{spec['group']}" for spec in specs}
    assert recorded - {"VirtualMachine.kubevirt.io"} == {
        kind for kind, row in NEIGHBOUR_KINDS.items() if "." in row.group
    }
    for spec in specs:
        row = NEIGHBOUR_KINDS.get(f"{spec['names']['kind']}.{spec['group']}")
        served = {version["name"] for version in spec["versions"] if version["served"]}
        assert row is None or (row.plural == spec["names"]["plural"] and row.versions[0] in served)
        assert row is None or row.namespaced == (spec["scope"] == "Namespaced")
