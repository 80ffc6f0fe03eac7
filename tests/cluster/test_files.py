from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.api.releases import Release
from kubectl_dra.api.slices import PoolID
from kubectl_dra.cluster import contents, files
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import ABSENT, EVERY_KIND, KINDS, UNSUPPORTED, Gap
from kubectl_dra.errors import InputError
from tests.gaps import gap_reason


def _slice(name: str = "s", version: str = "v1", **spec: Any) -> dict[str, Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": "d", "pool": pool, "nodeName": "n", "devices": [{"name": "gpu"}], **spec},
    }


def _claim(name: str = "c", namespace: str = "", **meta: Any) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, **place, **meta},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "x"}}]}},
    }


def _node(name: str, kubelet: str = "") -> dict[str, Any]:
    status = {"nodeInfo": {"kubeletVersion": kubelet}} if kubelet else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def _list(*items: Any) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def _read(*items: Any) -> Any:
    return read_snapshot(["-"], stdin=_list(*items))


def test_kinds_and_indices() -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "ns"},
        "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "p"},
        "reason": "FailedScheduling",
        "message": "no",
        "count": 3,
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    other = {**event, "metadata": {"name": "f"}, "involvedObject": {"kind": "Node", "name": "n"}}
    newer = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "g", "namespace": "ns"},
        "regarding": {"kind": "Pod", "namespace": "ns", "name": "p"},
        "reason": "Scheduled",
        "note": "yes",
        "eventTime": "2026-01-02T00:00:00Z",
        "series": {"count": 7, "lastObservedTime": "2026-01-03T00:00:00Z"},
    }
    snapshot = _read(
        _slice(),
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "x"}, "spec": {}},
        _claim("c", "ns"),
        _claim("c"),
        {**_claim("t", "ns"), "kind": "ResourceClaimTemplate", "spec": {"spec": {}}},
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": "rule"},
            "spec": {"deviceSelector": {"driver": "d"}, "taint": {"key": "k", "effect": "NoSchedule"}},
        },
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}, "spec": {}},
        _node("n", "v1.35.1"),
        _node("m", "v1.36.2+k3s1"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "labels": {"a": "b"}}},
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "ns"},
            "spec": {"hard": {"x": 1}},
            "status": {"hard": {"x": 2}, "used": {"x": "1"}},
        },
        event,
        other,
        newer,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "p"}, "spec": "anything"},
    )
    assert snapshot.slices[0].pool == PoolID("d", "p")
    assert list(snapshot.classes) == ["x"]
    assert list(snapshot.claims) == [("ns", "c"), ("default", "c")]
    assert list(snapshot.templates) == [("ns", "t")]
    assert list(snapshot.pods) == [("ns", "p")]
    assert list(snapshot.nodes) == ["n", "m"]
    assert snapshot.taint_rules[0].metadata.name == "rule"
    assert snapshot.namespaces["ns"].labels == {"a": "b"}
    assert (snapshot.quotas[0].hard, snapshot.quotas[0].used) == ({"x": "2"}, {"x": "1"})
    first, second = snapshot.events_about("Pod", "ns", "p")
    assert (first.reason, first.count, first.last) == ("FailedScheduling", 3, "2026-01-01T00:00:00Z")
    assert (second.message, second.count, second.last) == ("yes", 7, "2026-01-03T00:00:00Z")
    assert len(snapshot.events) == 2
    assert snapshot.unread(KINDS) == ()
    # A kubelet's version is only a hint at the server's.
    assert snapshot.release == Release(1, 36, 2)
    assert snapshot.release_source == "kubelet of node m; the API server may be newer"
    assert snapshot.sources == ("standard input",)


def test_what_is_not_there_is_a_gap() -> None:
    snapshot = _read(_slice())
    assert [gap.kind for gap in snapshot.gaps] == [kind for kind in EVERY_KIND if kind != "ResourceSlice"]
    assert {gap.reason for gap in snapshot.gaps} == {ABSENT}
    assert snapshot.is_gap("Pod")
    assert not snapshot.is_gap("ResourceSlice")
    assert (snapshot.release, snapshot.release_source) == (None, "")
    # A list of a kind says that there is none.
    empty = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": []}).encode()
    assert not read_snapshot(["-"], stdin=empty).is_gap("Pod")


def test_older_versions_are_converted() -> None:
    device = {"name": "gpu", "basic": {"capacity": {"m": {"value": "1Gi"}}}}
    beta = _slice("b", "v1beta1", nodeName="", allNodes=True, devices=[device])
    alpha = _slice("a", "v1alpha3", devices=[{"name": "gpu", "basic": {"capacity": {"m": "1Gi"}}}])
    snapshot = _read(beta, alpha)
    assert [entry.devices[0].capacity for entry in snapshot.slices] == [{"m": {"value": "1Gi"}}] * 2
    assert snapshot.slices[0].scope.all_nodes


def test_unknown_versions_and_kinds() -> None:
    snapshot = _read(
        _slice("x", "v2"),
        {**_claim(), "apiVersion": "resource.k8s.io/v1alpha2"},
        {"apiVersion": "resource.k8s.io/v1alpha2", "kind": "ResourceClass", "metadata": {"name": "x"}},
        {"apiVersion": "resource.k8s.io/v9", "kind": "Unheard", "metadata": {"name": "x"}},
    )
    place = "standard input:1 (item"
    assert snapshot.missing("ResourceSlice") == Gap(
        "ResourceSlice", UNSUPPORTED, detail=f"resource.k8s.io/v2 at {place} 0)"
    )
    assert gap_reason(snapshot, "ResourceClaim") == f"{UNSUPPORTED}: resource.k8s.io/v1alpha2 at {place} 1)"
    assert len(snapshot.notes) == 1
    assert "ResourceClass no longer affects allocation" in snapshot.notes[0]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (_slice(devices="x"), 'ResourceSlice s: spec.devices must be a list, not "x"'),
        (_slice(devices=[{"name": 5}]), "spec.devices[0].name must be a string, not the number 5"),
        (_slice(devices=["gpu"]), 'spec.devices[0] must be an object, not "gpu"'),
        (_slice(devices=[{"attributes": {"a": 1}}]), "spec.devices[0].attributes.a must be an object"),
        (_slice(devices=[{"attributes": {"a": {"string": 1}}}]), "attributes.a.string must be a string"),
        (_slice(devices=[{"attributes": {"a": {"int": True}}}]), "attributes.a.int must be a whole number"),
        (_slice(devices=[{"capacity": {"m": {"value": "8 GB"}}}]), "capacity.m.value must be a quantity"),
        (_slice(devices=[{"name": "g", "taints": {}}]), "spec.devices[0].taints must be a list"),
        (_slice(devices=[{"name": "g", "consumesCounters": [{"counters": {"c": {"value": "x"}}}]}]), "a quantity"),
        (_slice(pool={"name": "p", "generation": "one"}), "spec.pool.generation must be a whole number"),
        (_slice(sharedCounters=[1]), "spec.sharedCounters[0] must be an object, not the number 1"),
        (_slice(version="v1beta1", devices=[{"basic": []}]), "spec.devices[0].basic must be an object"),
        ({**_slice(), "spec": []}, "spec must be an object, not a list"),
        ({**_slice(), "metadata": "s"}, 'metadata must be an object, not "s"'),
        ({**_claim(), "spec": {"devices": {"requests": {}}}}, "ResourceClaim c: spec.devices.requests must be a list"),
        ({**_claim(), "status": {"allocation": "x"}}, "status.allocation must be an object"),
        ({**_node("n"), "spec": {"taints": "x"}}, "Node n: spec.taints must be a list"),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": 1}}},
            "Pod p: metadata.labels.a must be a string, not the number 1",
        ),
        (
            {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": "x"}},
            "ResourceQuota default/q cannot be understood",
        ),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {}}, "this Node has no metadata.name"),
    ],
)
def test_objects_that_make_no_sense(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        _read(raw)
    assert message in str(caught.value)
    assert str(caught.value).startswith("standard input:1 (item 0): ")


def test_attributes_of_newer_servers_are_taken() -> None:
    device = {"name": "g", "attributes": {"a": {"strings": ["x"]}, "b": {"fromTheFuture": 1}}, "new": 1}
    snapshot = _read(_slice(devices=[device]))
    assert snapshot.slices[0].devices[0].unmodelled == ("new",)


def test_duplicates(tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"

    def read(first: Any, second: Any) -> Any:
        one.write_bytes(_list(first))
        two.write_bytes(_list(second))
        return read_snapshot([str(one), str(two)])

    copy = _claim(resourceVersion="9", managedFields=[{}], uid="u")
    assert len(read(_claim(), copy).claims) == 1
    assert read(_claim(), copy).notes == ()
    assert len(read(_claim(), {**_claim(), "apiVersion": "resource.k8s.io/v1beta2"}).claims) == 1
    assert len(read(_claim(), _claim(namespace="other")).claims) == 2

    old, new = _claim(uid="u", resourceVersion="9"), _claim(uid="u", resourceVersion="10")
    new["status"] = {"reservedFor": [{"resource": "pods", "name": "p", "uid": "x"}]}
    for first, second in ((old, new), (new, old)):
        snapshot = read(first, second)
        assert snapshot.claims["default", "c"].reserved_for[0].name == "p"
        assert "ResourceClaim default/c is there twice" in snapshot.notes[0]

    for first, second in ((old, {**new, "metadata": {"name": "c"}}), (_claim(), {**_claim(), "spec": {}})):
        with pytest.raises(InputError) as caught:
            read(first, second)
        assert str(caught.value) == (
            f"two different objects are called ResourceClaim default/c: {one}:1 (item 0) and {two}:1 (item 0); "
            "leave one of them out"
        )


def test_large_lists_are_read_item_by_item(tmp_path: Path) -> None:
    filler = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b" * 4_000_000}}
    large = tmp_path / "large.json"
    large.write_bytes(_list(filler, filler, _slice(), _claim()))
    snapshot = read_snapshot([str(large)])
    assert (len(snapshot.slices), len(snapshot.claims)) == (1, 1)
    large.write_bytes(_list(filler, filler, _slice(devices="x")))
    with pytest.raises(InputError, match=r"large.json:1 \(item 2\): ResourceSlice s: spec.devices must be a list"):
        read_snapshot([str(tmp_path)])
    large.write_bytes(_list(filler, filler, {"kind": "Pod"}))
    with pytest.raises(InputError, match=r"\(item 2\): this item of the List has no apiVersion and kind"):
        read_snapshot([str(large)])
    large.write_bytes(_list(filler, filler, _slice())[:-3])
    with pytest.raises(InputError, match=r"large.json:1:[0-9]+: not valid JSON"):
        read_snapshot([str(large)])
    nested = {"apiVersion": "v1", "kind": "List", "items": [_slice()]}
    large.write_bytes(_list(filler, filler, nested))
    assert len(read_snapshot([str(large)]).slices) == 1


def test_equal_values_are_shared_but_not_mixed_up() -> None:
    attributes = {"a": {"int": 1}, "b": {"bool": True}, "c": {"string": "1"}, "d": {"version": "1"}}
    capacity = {"m": {"value": "1Gi"}, "n": {"value": "1024Mi"}}
    device = {"name": "gpu", "attributes": attributes, "capacity": capacity}
    taint = {"key": "k", "effect": "NoSchedule"}
    counted = [{"counterSet": "s", "counters": {"c": {"value": "1Gi"}}}]
    second = {**device, "name": "other", "taints": [taint], "consumesCounters": counted}
    snapshot = _read(_slice(devices=[device, second]), _slice("t", devices=[json.loads(json.dumps(second))]))
    first, other = snapshot.slices[0].devices
    (third,) = snapshot.slices[1].devices
    assert json.dumps(first.attributes) == json.dumps(attributes) == json.dumps(third.attributes)
    assert json.dumps(first.capacity) == json.dumps(capacity)
    assert first.attributes["a"] is third.attributes["a"]
    assert str(other.consumes_counters[0].counters["c"]) == "1Gi"
    assert [str(entry) for entry in third.taints] == ["k:NoSchedule"]


def test_generated_names_are_not_duplicates() -> None:
    raw = _claim()
    raw["metadata"] = {"generateName": "c-"}
    snapshot = _read(raw, {**raw, "spec": {}})
    assert list(snapshot.claims) == [("default", "c-00000"), ("default", "c-00001")]
    assert "it is called c-00001 here" in snapshot.notes[1]


def test_packed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(_list(_slice()))
    path = tmp_path / "cluster.json.gz"
    path.write_bytes(packed)
    assert len(read_snapshot([str(path)]).slices) == len(read_snapshot(["-"], stdin=packed).slices) == 1
    for broken in (packed[:-12], packed[:20] + b"\xff" * 40, packed[:3]):
        path.write_bytes(broken)
        with pytest.raises(InputError, match=r"cluster.json.gz: cannot be unpacked by gzip"):
            read_snapshot([str(path)])
    monkeypatch.setattr(contents, "LARGEST_UNPACKED", 10_000)
    path.write_bytes(gzip.compress(b" " * 10_001))
    with pytest.raises(InputError, match="unpacks to more than"):
        read_snapshot([str(path)])


def test_directories(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "bad.yaml").write_text("a: [")
    (tmp_path / ".hidden.yaml").write_text("a: [")
    (tmp_path / "readme.md").write_text("a: [")
    (tmp_path / "values.yaml").write_text("replicas: 1\n")
    (tmp_path / "list.yaml").write_text("- 1\n")
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    (tmp_path / "chart.yml").write_text("{{- if .Values.x }}\nkind: A\n{{- end }}\n")
    (tmp_path / "sub" / "slice.json").write_text(json.dumps(_slice()))
    (tmp_path / "sub" / "more.YAML").write_text("a: 1\n---\n" + json.dumps(_claim()))
    (tmp_path / "loop").symlink_to(tmp_path)
    snapshot = read_snapshot([str(tmp_path)])
    assert len(snapshot.slices) == len(snapshot.claims) == 1
    notes = " ".join(snapshot.notes)
    for name in ("values.yaml:1", "list.yaml:1", "empty.yaml", "chart.yml:1", "more.YAML:1"):
        assert name in notes
    assert len(snapshot.notes) == 5

    (tmp_path / "sub" / "broken.yaml").write_text("a: [")
    with pytest.raises(InputError, match="not valid YAML"):
        read_snapshot([str(tmp_path)])


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file or directory"):
        read_snapshot([str(tmp_path / "none.json")])
    with pytest.raises(InputError, match="no Kubernetes object in any of its"):
        read_snapshot([str(tmp_path)])
    with pytest.raises(InputError, match="no snapshot is named"):
        read_snapshot([])
    with pytest.raises(InputError, match="not a file name"):
        read_snapshot(["a\0b"])
    (tmp_path / "x.yaml").write_text("a: 1")
    with pytest.raises(InputError, match="not a Kubernetes object"):
        read_snapshot([str(tmp_path / "x.yaml")])
    with pytest.raises(InputError, match="standard input: there is nothing in it"):
        read_snapshot(["-"], stdin=b"")


def test_a_kind_that_is_a_field_of_the_wrong_type_everywhere() -> None:
    with pytest.raises(InputError, match="has no apiVersion and kind"):
        _read({"apiVersion": "v1", "kind": ["Pod"]})


def test_inputs_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="/dev/zero: is a device, not a file"):
        read_snapshot(["/dev/zero"])
    monkeypatch.setattr(contents, "PIPE_SECONDS", 0.3)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match=r"pipe: nothing was written into this pipe for 0.3 s"):
        read_snapshot([str(pipe)])
    writer = threading.Thread(target=lambda: pipe.write_bytes(_list(_slice())))
    writer.start()
    assert len(read_snapshot([str(pipe)]).slices) == 1
    writer.join()


def test_blanks_that_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_SUSPECT", 1 << 20)
    path = tmp_path / "blanks.gz"
    path.write_bytes(gzip.compress(b" " * (5 << 20)))
    with pytest.raises(InputError, match="unpacks to more than 300 times its size"):
        read_snapshot([str(path)])
    # Several packed texts, one behind the other, are one text.
    whole = _list(_slice())
    path.write_bytes(gzip.compress(whole[:20]) + gzip.compress(whole[20:]))
    assert len(read_snapshot([str(path)]).slices) == 1


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_large_lists_of_other_encodings(tmp_path: Path, encoding: str) -> None:
    filler = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b" * 2_000_000}}
    path = tmp_path / "large.json"
    path.write_bytes(_list(filler, _slice()).decode().encode(encoding))
    assert len(read_snapshot([str(path)]).slices) == 1


def test_what_was_probably_meant_or_happened_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"only files are read; .* curl -fsSL 'https://x/y\?z' \| kubectl dra \.\.\. -$"
    ):
        read_snapshot(["https://x/y?z"])
    (tmp_path / "cut.yaml").write_text("apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n")
    with pytest.raises(InputError, match="it has no kind; it may be truncated: its items come last"):
        read_snapshot([str(tmp_path / "cut.yaml")])


def test_bytes_in_a_large_list_that_are_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGE", 10)
    node = b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "annotations": {"a": "%s"}}}'
    path = tmp_path / "list.json"
    path.write_bytes(b'{"apiVersion": "v1", "kind": "List", "items": [%s]}' % b", ".join((node % b"x", node % b"\xff")))
    with pytest.raises(InputError, match=r"list.json: not a text file: item 1 of the List is not UTF-8"):
        read_snapshot([str(path)])
