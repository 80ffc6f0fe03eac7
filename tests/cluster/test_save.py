"""Snapshots as they are written: reduced objects, gaps, whole files or none."""

from __future__ import annotations

import io
import json
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.api.pods import ContainerStatus
from kubectl_dra.api.releases import Release
from kubectl_dra.cli.main import run
from kubectl_dra.cluster.anonymize import Anonymizer
from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.save import Recorder, record_files, reduced, said, write_file, write_list
from kubectl_dra.cluster.snapshot import ABSENT, FORBIDDEN, KINDS, Gap
from kubectl_dra.errors import DraError, InputError
from tools.api_server import GROUP, APIServer, forbidden
from tools.fuzz.odd_fields import ODD, fields_by_kind

Json = dict[str, Any]

POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "train",
        "namespace": "ml",
        "uid": "u1",
        "labels": {"app": "train"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "secret": "x"},
        "managedFields": [{"manager": "kubectl"}],
    },
    "spec": {
        "nodeName": "n1",
        "serviceAccountName": "robot",
        "containers": [
            {
                "name": "main",
                "image": "registry/secret:1",
                "command": ["sh", "-c", "secret"],
                "args": ["--token=secret"],
                "env": [{"name": "TOKEN", "value": "secret"}],
                "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
                "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}],
                "volumeMounts": [{"name": "secret", "mountPath": "/"}],
            }
        ],
        "volumes": [
            {"name": "a", "secret": {"secretName": "secret"}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpus"}],
        "tolerations": [{"operator": "Exists"}],
    },
    "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{"image": "registry/secret:1"}]},
}


def test_pods_are_reduced_to_what_decides() -> None:
    out = reduced(POD)
    assert "secret" not in json.dumps(out) and "registry" not in json.dumps(out)
    # Labels are what affinity, spread and budgets of pods go by.
    assert out["metadata"] == {"name": "train", "namespace": "ml", "uid": "u1", "labels": {"app": "train"}}
    spec = out["spec"]
    assert spec["nodeName"] == "n1" and spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["containers"] == [
        {
            "name": "main",
            "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
            "ports": [{"containerPort": 81, "hostPort": 81}],
        }
    ]
    assert spec["volumes"] == [{"name": "b", "persistentVolumeClaim": {"claimName": "data"}}]
    assert out["status"] == {"phase": "Running"}


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "example.com/gpu"]), st.sampled_from(["1", "2"]), max_size=2)
STATUS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["main", "beside"]),
        "state": st.sampled_from(
            [
                {"running": {}},
                {"waiting": {}},
                {"waiting": {"reason": "CreateContainerError", "message": "m"}},
                {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:00:00Z"}},
                {"terminated": {"exitCode": 1}},
            ]
        ),
    },
    optional={"resources": st.fixed_dictionaries({}, optional={"requests": AMOUNTS}), "allocatedResources": AMOUNTS},
)


@given(st.lists(STATUS, max_size=2, unique_by=lambda status: status["name"]), st.booleans())
def test_statuses_of_containers_are_read_as_they_were(
    tmp_path_factory: Any, statuses: list[Json], ending: bool
) -> None:
    """One that runs stays beside one that failed: without it all containers would have ended."""
    path = tmp_path_factory.mktemp("pod") / "pod.json"
    pod = {**POD, "status": {"phase": "Running", "containerStatuses": statuses}}
    if ending:
        pod["metadata"] = {**POD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}

    def read(raw: Json) -> tuple[ContainerStatus, ...]:
        path.write_text(json.dumps(raw))
        return read_snapshot([str(path)]).pods["ml", "train"].status.container_statuses

    assert read(reduced(pod)) == read(pod)


def test_nodes_keep_labels_taints_and_what_is_allocatable() -> None:
    node: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"a": "b"}, "annotations": {"csi": "x"}},
        "spec": {"podCIDR": "10.0.0.0/24", "unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "addresses": [{"address": "10.0.0.1", "type": "InternalIP"}],
            "allocatable": {"cpu": "8"},
            "capacity": {"cpu": "9"},
            "conditions": [{"type": "Ready", "status": "True", "message": "m"}, {"type": "DiskPressure"}],
            "images": [{"names": ["registry/secret"]}],
            "nodeInfo": {"kubeletVersion": "v1.36.2", "machineID": "m"},
        },
    }
    assert reduced(node) == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"a": "b"}},
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.36.2"},
        },
    }


def test_dra_objects_stay_whole_as_they_are_served(tmp_path: Path) -> None:
    claim: Json = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": "c",
            "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu", "mine": "x"},
            "managedFields": [],
        },
        "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}], "newField": 1}},
    }
    recorder = Recorder("team")
    recorder.add(claim, Place("test"))
    assert recorder.items() == [
        {
            "apiVersion": f"{GROUP}/v1beta1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": "c",
                "namespace": "team",
                "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"},
            },
            "spec": claim["spec"],
        }
    ]


def test_the_newer_of_two_states_is_kept() -> None:
    recorder = Recorder()
    for version, node in (("5", "new"), ("4", "old")):
        meta = {**POD["metadata"], "resourceVersion": version}
        recorder.add({**POD, "metadata": meta, "spec": {"nodeName": node}}, Place("test"))
    assert [item["spec"] for item in recorder.items()] == [{"nodeName": "new"}]


@pytest.fixture
def server() -> Any:
    server = APIServer()
    server.routes["/version"] = {"gitVersion": "v1.36.3"}
    dra = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
    server.serve_group(v1=dra)
    for plural in dra:
        server.routes[f"/apis/{GROUP}/v1/{plural}"] = []
    for plural in ("pods", "nodes", "namespaces", "resourcequotas", "events"):
        server.routes[f"/api/v1/{plural}"] = []
    yield server
    server.close()


def _pods(*pods: Json) -> Json:
    items = [{key: pod[key] for key in ("metadata", "spec", "status")} for pod in pods]
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
@pytest.mark.parametrize("large", [False, True])
def test_what_the_cluster_hides_is_hidden_in_the_file(
    server: APIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, large: bool
) -> None:
    server.routes["/api/v1/nodes"] = forbidden("nodes")
    server.routes["/api/v1/pods"] = forbidden("pods")
    server.routes["/api/v1/namespaces/team/pods"] = _pods({**POD, "metadata": {**POD["metadata"], "namespace": "team"}})
    options = ConnectionOptions(kubeconfig=server.kubeconfig(tmp_path))
    live = ApiServer(options).read_snapshot()
    cluster = ApiServer(options)
    recorder = Recorder(cluster.namespace)
    cluster.read_into(recorder)
    items = recorder.items()
    recorded = recorder.build()
    path = tmp_path / f"snapshot{suffix}"
    with path.open("w") as stream:
        write_list(items, said(recorded), stream, yaml=suffix == ".yaml")
    if large:
        monkeypatch.setattr("kubectl_dra.cluster.files.LARGE", 10)
    read = read_snapshot([str(path)])
    assert set(read.gaps) == set(recorded.gaps) == set(live.gaps)
    assert {gap.kind for gap in read.gaps if gap.reason != ABSENT} == {"Node", "Pod", "DeviceTaintRule"}
    assert not read.is_gap("Pod", "team")
    assert (read.release, read.release_source) == (Release(1, 36, 3), "server")
    assert list(read.pods) == [("team", "train")]
    assert {asked.method for asked in server.asked} == {"GET"}
    assert not any("secret" in asked.path for asked in server.asked)
    whole = path.read_text()
    assert "registry" not in whole and "managedFields" not in whole


def test_the_field_is_found_wherever_a_tool_puts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = {"read": list(KINDS), "gaps": [{"kind": "Pod", "reason": "forbidden", "detail": "no"}]}
    whole = {"apiVersion": "v1", "items": [], "kind": "List", "kubectl-dra": head}
    path = tmp_path / "sorted.json"
    for limit in (10_000, 10):
        monkeypatch.setattr("kubectl_dra.cluster.files.LARGE", limit)
        for text in (json.dumps(whole), json.dumps(dict(reversed(whole.items())), indent=2)):
            path.write_text(text)
            assert read_snapshot([str(path)]).unread(KINDS) == (Gap("Pod", FORBIDDEN, detail="no"),)


@pytest.mark.parametrize("wrong", ["text", {"gaps": ["x"]}, {"gaps": 3}, {"serverVersion": "soon"}, {"notes": 4}])
def test_a_field_that_makes_no_sense(tmp_path: Path, wrong: Any) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [], "kubectl-dra": wrong}))
    with pytest.raises(InputError, match=r"wrong\.json:1: kubectl-dra is not what"):
        read_snapshot([str(path)])


def test_json_is_a_list_with_one_object_a_line() -> None:
    stream = io.StringIO()
    write_list([reduced(POD), reduced(POD)], {"read": []}, stream)
    assert len(stream.getvalue().splitlines()) == 4
    assert [item["kind"] for item in json.loads(stream.getvalue())["items"]] == ["Pod", "Pod"]
    stream = io.StringIO()
    write_list([], {}, stream)
    assert json.loads(stream.getvalue())["items"] == []


def test_a_file_is_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out.json"

    def fails(stream: TextIO) -> None:
        stream.write("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match="No space left"):
        write_file(path, fails, force=False)
    assert list(tmp_path.iterdir()) == []
    write_file(path, lambda stream: stream.write("one"), force=False)
    with pytest.raises(InputError, match="--force"):
        write_file(path, lambda stream: stream.write("two"), force=False)
    with pytest.raises(InputError, match="No space left"):
        write_file(path, fails, force=True)
    assert path.read_text() == "one"
    write_file(path, lambda stream: stream.write("two"), force=True)
    assert path.read_text() == "two" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("name", "word"), [("no/such/out.json", "directory"), (".", "is a directory")])
def test_a_place_that_cannot_be_written(tmp_path: Path, name: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        write_file(tmp_path / name, lambda stream: None, force=True)


def test_recording_files_gives_what_reading_them_does(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(POD))
    recorder = record_files([str(tmp_path)])
    items = recorder.items()
    snapshot = recorder.build()
    assert said(snapshot)["read"] == ["Pod"] and "serverVersion" not in said(snapshot)
    path = tmp_path / "b.json"
    with path.open("w") as stream:
        write_list(items, said(snapshot), stream)
    assert set(read_snapshot([str(path)]).gaps) == set(read_snapshot([str(tmp_path / "a.json")]).gaps)


def test_kinds_that_no_snapshot_holds_are_passed_over() -> None:
    recorder = Recorder()
    recorder.add(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}, Place("test")
    )
    recorder.add({"apiVersion": "x/v1", "kind": "Deployment", "metadata": {}, "spec": {}}, Place("test"))
    assert recorder.items() == []


def test_why_a_driver_has_no_pod_is_saved(
    server: APIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its DaemonSet, and the event of its controller."""
    event = {
        "metadata": {"name": "npu.1", "namespace": "drivers", "uid": "e"},
        "involvedObject": {"kind": "DaemonSet", "namespace": "drivers", "name": "npu"},
        "reason": "FailedCreate",
        "type": "Warning",
        "message": "exceeded quota",
    }
    server.routes["/api/v1/events"] = {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": [event]}
    path = tmp_path / "saved.json"
    assert run(["snapshot", "-o", str(path), "--kubeconfig", str(server.kubeconfig(tmp_path))]) == 0
    capsys.readouterr()
    asked = [one.query.get("fieldSelector") for one in server.asked if one.path == "/api/v1/events"]
    assert asked == ["involvedObject.kind=Pod", "involvedObject.kind=ResourceClaim", "reason=FailedCreate"]
    assert [one.message for one in read_snapshot([str(path)]).events_about("DaemonSet", "drivers", "npu")] == [
        "exceeded quota"
    ]


# Objects of any shape in a snapshot that is saved or anonymized: a gap or a sentence, and no defect.


FIELDS = fields_by_kind()


@pytest.mark.parametrize("kind", sorted(FIELDS))
def test_any_field_may_hold_anything(kind: str) -> None:
    for field in FIELDS[kind]:
        for value in ODD:
            recorder = Recorder()
            with suppress(DraError):
                item = json.dumps(field.holding(value)).encode()
                recorder.add_item(item, Place("page", 1, 0), kind, field.item["apiVersion"])
            items = recorder.items()
            with suppress(DraError):
                head = said(recorder.build())
                anonymizer = Anonymizer(items, "seed")
                json.dumps([anonymizer.said(head), *(anonymizer.item(each) for each in items)])


def test_what_cannot_be_written_is_not_kept() -> None:
    recorder = Recorder()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "spec": {"volumes": 5}}
    with pytest.raises(DraError, match="Pod"):
        recorder.add(pod, Place("page", 1, 0))
    assert not recorder.items()


@pytest.mark.parametrize("number", ["1e999", "9" * 100_000])
def test_a_number_that_no_field_has(number: str) -> None:
    item = b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "generation": %s}}' % number.encode()
    with pytest.raises(InputError, match="cannot be read"):
        Recorder().add_item(item, Place("s", 1, 1), "Node", "v1")


@pytest.mark.parametrize(("minimum", "kept"), [(2.0, [2]), (None, [None]), ("all", [])])
def test_an_object_of_another_layer_is_read_as_by_the_other_commands(minimum: object, kept: list[object]) -> None:
    recorder = Recorder()
    about = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    item = {**about, "metadata": {"name": "pg", "namespace": "a"}, "spec": {"minMember": minimum, "queue": "q"}}
    recorder.add(item, Place("page", 1, 0))
    assert [each["spec"].get("minMember") for each in recorder.items()] == kept
    gaps = [gap for gap in said(recorder.build())["gaps"] if gap["kind"] == "PodGroup.scheduling.volcano.sh"]
    assert [(gap["namespace"], gap["reason"]) for gap in gaps] == ([] if kept else [("a", "unreadable")])
