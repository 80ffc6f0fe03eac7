"""Applying a manifest to objects that exist: what its author wrote changes, all else stays, and some is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.api.releases import Release
from kubectl_dra.cluster.apply import Server, overlay, with_kinds
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.merge import LAST_APPLIED, merged
from kubectl_dra.cluster.snapshot import RefusedChange, Snapshot

JSON = dict[str, Any]
V1 = "resource.k8s.io/v1"


def read(folder: Path, objects: Sequence[JSON], *, manifest: bool = False) -> Snapshot:
    file = folder / ("manifest.json" if manifest else "cluster.json")
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    return read_snapshot([str(file)], workloads=manifest)


def applied(folder: Path, live: Sequence[JSON], manifest: Sequence[JSON], server: Server | None = None) -> Snapshot:
    found = (read(folder, live), read(folder, manifest, manifest=True))
    return overlay(*found) if server is None else overlay(*found, server)


def thing(kind: str, version: str = V1, name: str = "x", **fields: Any) -> JSON:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"kind": kind, "apiVersion": version, "metadata": metadata, **fields}


def requests(**exactly: Any) -> JSON:
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", **exactly}}]}}


@pytest.mark.parametrize(
    ("live", "written", "last", "after"),
    [
        ({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, None, {"a": 1, "b": {"c": 2, "d": 3}}),
        ({"a": 1, "b": 2}, {"a": None}, None, {"b": 2}),
        ({"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 2}, {"a": 1}),
        ({"a": 1, "b": 2}, {"a": 1}, {"a": 1}, {"a": 1, "b": 2}),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1000m"}}, None, {"requests": {"cpu": "1"}}),
        ({"labels": {"n": "1"}}, {"labels": {"n": "1.0"}}, None, {"labels": {"n": "1.0"}}),
        ({"x": [1, 2]}, {"x": [3]}, None, {"x": [3]}),
        ({"x": [{"a": 1, "added": 2}]}, {"x": [{"a": 1}]}, None, {"x": [{"a": 1, "added": 2}]}),
        ({"x": [{"a": 1, "b": 2}]}, {"x": [{"a": 1}]}, {"x": [{"a": 1, "b": 2}]}, {"x": [{"a": 1}]}),
        ({"x": [{"a": 1}]}, {"x": [{"a": 1}, {"a": 2}]}, None, {"x": [{"a": 1}, {"a": 2}]}),
        (
            {"containers": [{"name": "a", "image": "i"}, {"name": "sidecar"}]},
            {"containers": [{"name": "new"}, {"name": "a", "image": "j"}]},
            None,
            {"containers": [{"name": "a", "image": "j"}, {"name": "sidecar"}, {"name": "new"}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
            {"containers": [{"name": "a"}]},
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"name": "a"}, {"name": "c"}]},
        ),
        (
            {"resourceClaims": [{"name": "a", "resourceClaimName": "x"}]},
            {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]},
            None,
            {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]},
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 1}]},
            {"topologySpreadConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 2}]},
            None,
            {"topologySpreadConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 2}]},
        ),
    ],
)
def test_merging(live: JSON, written: JSON, last: JSON | None, after: JSON) -> None:
    assert merged(live, written, last) == after
    assert merged(after, written, written) == after


def test_what_is_written_changes(tmp_path: Path) -> None:
    live = [
        thing("Namespace", "v1", metadata={"labels": {"kubernetes.io/metadata.name": "x", "team": "a"}}),
        thing("Node", "v1", metadata={"labels": {"zone": "a"}}, status={"allocatable": {"cpu": "8"}}),
        thing("DeviceClass", spec={"selectors": [{"cel": {"expression": "true"}}], "extendedResourceName": "e.com/x"}),
        thing(
            "ResourceQuota", "v1", spec={"hard": {"pods": "1"}}, status={"hard": {"pods": "1"}, "used": {"pods": "1"}}
        ),
        thing(
            "DeviceTaintRule",
            "resource.k8s.io/v1beta2",
            spec={
                "deviceSelector": {"driver": "d", "pool": "p"},
                "taint": {"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"},
            },
        ),
        thing("PriorityClass", "scheduling.k8s.io/v1", value=5, globalDefault=False),
    ]
    manifest = [
        thing("Namespace", "v1", metadata={"labels": {"team": "b"}}),
        thing(
            "Node", "v1", metadata={"labels": {"rack": "7"}}, spec={"taints": [{"key": "k", "effect": "NoSchedule"}]}
        ),
        thing("DeviceClass", spec={"selectors": []}),
        thing("ResourceQuota", "v1", spec={"hard": {"pods": "9"}}),
        thing(
            "DeviceTaintRule",
            "resource.k8s.io/v1beta2",
            spec={"deviceSelector": {"device": "gpu-0"}, "taint": {"key": "k", "effect": "NoExecute"}},
        ),
        thing("PriorityClass", "scheduling.k8s.io/v1", value=5, globalDefault=True),
    ]
    after = applied(tmp_path, live, manifest)
    assert after.refused == ()
    assert after.namespaces["x"].labels == {"kubernetes.io/metadata.name": "x", "team": "b"}
    assert after.nodes["x"].labels == {"zone": "a", "rack": "7"}
    assert after.nodes["x"].allocatable == {"cpu": "8"}
    assert [str(taint) for taint in after.nodes["x"].taints] == ["k:NoSchedule"]
    assert after.classes["x"].selectors == ()
    assert after.classes["x"].extended_resource_name == "e.com/x"
    (quota,) = after.quotas
    assert (quota.hard, quota.used) == ({"pods": "9"}, {"pods": "1"})
    (rule,) = after.taint_rules
    assert rule.selector == ("d", "p", "gpu-0")
    # The server takes the time of the change.
    assert (rule.taint.effect, rule.taint.time_added) == ("NoExecute", "")
    assert after.others["PriorityClass"]["", "x"].global_default


def test_what_is_no_longer_written_goes_if_it_was(tmp_path: Path) -> None:
    spec = {"selectors": [{"cel": {"expression": "true"}}], "extendedResourceName": "e.com/x"}
    last = {LAST_APPLIED: json.dumps(thing("DeviceClass", spec=spec, metadata={"labels": {"a": "1"}}))}
    live = [thing("DeviceClass", spec=spec, metadata={"labels": {"a": "1", "b": "2"}, "annotations": last})]
    after = applied(tmp_path, live, [thing("DeviceClass", spec={"selectors": spec["selectors"]})])
    assert after.classes["x"].extended_resource_name == ""
    assert after.classes["x"].metadata.labels == {"b": "2"}


@pytest.mark.parametrize(
    ("live", "written", "fields"),
    [
        (thing("ResourceClaim", spec=requests()), thing("ResourceClaim", spec=requests(count=2)), ("spec",)),
        (
            thing("ResourceClaimTemplate", spec={"spec": requests()}),
            thing("ResourceClaimTemplate", spec={"spec": requests(), "metadata": {"labels": {"a": "b"}}}),
            ("spec",),
        ),
        (
            thing(
                "PersistentVolumeClaim",
                "v1",
                spec={"storageClassName": "a", "volumeName": "v", "resources": {"requests": {"storage": "1Gi"}}},
            ),
            thing(
                "PersistentVolumeClaim",
                "v1",
                spec={"storageClassName": "b", "resources": {"requests": {"storage": "2Gi"}}},
            ),
            ("spec.storageClassName",),
        ),
        (
            thing("StorageClass", "storage.k8s.io/v1", provisioner="p", volumeBindingMode="Immediate"),
            thing("StorageClass", "storage.k8s.io/v1", provisioner="p", volumeBindingMode="WaitForFirstConsumer"),
            ("volumeBindingMode",),
        ),
        (
            thing("PriorityClass", "scheduling.k8s.io/v1", value=1),
            thing("PriorityClass", "scheduling.k8s.io/v1", value=2),
            ("value",),
        ),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
def test_what_nobody_can_change_is_refused(tmp_path: Path, live: JSON, written: JSON, fields: tuple[str, ...]) -> None:
    before, after = applied(tmp_path, [live], []), applied(tmp_path, [live], [written])
    (refused,) = after.refused
    assert (refused.kind, refused.name, refused.fields) == (live["kind"], "x", fields)
    for kind in ("claims", "templates", "others"):
        assert getattr(after, kind) == getattr(before, kind)


@pytest.mark.parametrize(("minor", "refused"), [(36, ("spec.schedulingPolicy.gang",)), (37, ())])
def test_how_many_pods_a_gang_needs_may_change_since_1_37(tmp_path: Path, minor: int, refused: tuple[str, ...]) -> None:
    live, written = (
        thing("PodGroup", "scheduling.k8s.io/v1alpha2", spec={"schedulingPolicy": {"gang": {"minCount": count}}})
        for count in (2, 3)
    )
    after = applied(tmp_path, [live], [written], Server(Release(1, minor)))
    assert tuple(field for change in after.refused for field in change.fields) == refused


def test_equal_specs_are_no_change(tmp_path: Path) -> None:
    tolerations = [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}]
    stored = requests(
        allocationMode="ExactCount", count=1, tolerations=tolerations, capacity={"requests": {"m": "1Gi"}}
    )
    short = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    written = requests(tolerations=short, capacity={"requests": {"m": "1024Mi"}})
    old = {"devices": {"requests": [{"name": "gpu", **written["devices"]["requests"][0]["exactly"]}]}}
    for manifest in (thing("ResourceClaim", spec=written), thing("ResourceClaim", "resource.k8s.io/v1beta1", spec=old)):
        after = applied(tmp_path, [thing("ResourceClaim", spec=stored)], [manifest])
        assert after.refused == ()


def test_fields_that_the_server_drops_are_no_change(tmp_path: Path) -> None:
    written = thing("ResourceClaim", spec=requests(tolerations=[{"key": "k", "operator": "Exists"}]))
    live = [thing("ResourceClaim", spec=requests())]
    off = Server(Release(1, 35), frozenset())
    assert applied(tmp_path, live, [written], off).refused == ()
    on = Server(Release(1, 35), frozenset(("DRADeviceTaints",)))
    assert applied(tmp_path, live, [written], on).refused == (
        RefusedChange("ResourceClaim", "default", "x", ("spec",)),
    )


def pod(**spec: Any) -> JSON:
    return thing("Pod", "v1", spec={"containers": [{"name": "c", "image": "i"}], **spec})


@pytest.mark.parametrize(
    ("live", "written", "fields"),
    [
        (pod(), pod(nodeSelector={"a": "b"}), ("spec.nodeSelector",)),
        (pod(nodeSelector={"a": "b"}), pod(), ()),
        (pod(schedulingGates=[{"name": "g"}]), pod(nodeSelector={"a": "b"}), ()),
        (pod(tolerations=[{"key": "a"}]), pod(tolerations=[{"key": "b"}]), ()),
        (pod(nodeName="n"), pod(), ()),
        (pod(nodeName="n"), pod(nodeName="m"), ("spec.nodeName",)),
        (pod(), pod(containers=[{"name": "c", "image": "j"}]), ()),
        (pod(), pod(containers=[{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]), ("spec.containers",)),
        (pod(), pod(volumes=[{"name": "tmp", "emptyDir": {}}]), ()),
        (
            pod(),
            pod(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]),
            ("spec.volumes",),
        ),
        (pod(), pod(resourceClaims=[{"name": "a", "resourceClaimName": "x"}]), ("spec.resourceClaims",)),
    ],
)
def test_pods(tmp_path: Path, live: JSON, written: JSON, fields: tuple[str, ...]) -> None:
    after = applied(tmp_path, [live], [written])
    assert [change.fields for change in after.refused] == ([fields] if fields else [])
    found = after.pods["default", "x"]
    assert found.node_name == live["spec"].get("nodeName", "")
    if not fields:
        assert {"a", "b"} >= {toleration.key for toleration in found.spec.tolerations}
        assert len(found.spec.tolerations) == len(live["spec"].get("tolerations", ())) * 2


def test_kinds_that_are_read_later(tmp_path: Path) -> None:
    claim: JSON = thing("PersistentVolumeClaim", "v1", spec={"resources": {"requests": {"storage": "1Gi"}}})
    bound = {**claim, "spec": {**claim["spec"], "volumeName": "v"}, "status": {"phase": "Bound"}}
    first = applied(tmp_path, [], [claim, thing("ResourceQuota", "v1", spec={"hard": {"pods": "9"}})])
    quota = thing("ResourceQuota", "v1", spec={"hard": {"pods": "1"}}, status={"used": {"pods": "1"}})
    later = with_kinds(first, read(tmp_path, [bound, quota]), ("PersistentVolumeClaim", "ResourceQuota"))
    found = later.others["PersistentVolumeClaim"]["default", "x"]
    assert (found.spec.volume_name, found.status.phase) == ("v", "Bound")
    (one,) = later.quotas
    assert (one.hard, one.used) == ({"pods": "9"}, {"pods": "1"})


def test_a_workload_of_the_name_of_a_pod_leaves_the_pod(tmp_path: Path) -> None:
    live = {**pod(nodeName="n"), "status": {"phase": "Running"}}
    job = thing("Job", "batch/v1", spec={"template": {"spec": pod()["spec"]}})
    after = applied(tmp_path, [live], [job])
    assert after.pods["default", "x"].node_name == "n"
