"""What was not read leaves the answer open: neither a refusal nor a place."""

from __future__ import annotations

import pytest

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.outcome import Outcome
from tools.scheduling.small_clusters import (
    JSON,
    ZONE,
    claim,
    namespace,
    node,
    pod,
    state,
    storage_class,
    using,
    volume,
)

NODES = [node("a", "z1", allocatable={"cpu": "4", "memory": "8Gi", "pods": "110"})]
MADE = storage_class("made", provisioner="csi.example.com")
LOCAL = storage_class("local", provisioner="kubernetes.io/no-provisioner")
DRIVER: JSON = {"kind": "CSIDriver", "metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": True}}
CSI_NODE: JSON = {
    "kind": "CSINode",
    "metadata": {"name": "a"},
    "spec": {"drivers": [{"name": "csi.example.com", "nodeID": "a", "allocatable": {"count": 9}}]},
}


@pytest.mark.parametrize(
    ("kind", "objects"),
    [
        ("PersistentVolumeClaim", []),
        ("PersistentVolume", [claim("data", "pv")]),
        ("PersistentVolume", [claim("data", storage_class="local"), LOCAL]),
        ("StorageClass", [claim("data", storage_class="unseen")]),
        ("CSIDriver", [claim("data", storage_class="made"), MADE]),
        ("CSIStorageCapacity", [claim("data", storage_class="made"), MADE, DRIVER]),
        ("CSINode", [claim("data", storage_class="made"), MADE]),
        ("VolumeAttachment", [claim("data", storage_class="made"), MADE, CSI_NODE]),
    ],
)
def test_kinds_that_decide_about_volumes(kind: str, objects: list[JSON]) -> None:
    asked = Pod.from_json(pod("p", **using("data")))
    outcome = Outcome(asked, state([*NODES, *objects], unread=[kind]))
    assert not outcome.fits and outcome.undetermined == ("a",)
    assert Outcome(asked, state([*NODES, *objects])).undetermined == ()


def test_what_was_found_decides_even_where_not_all_was_read() -> None:
    objects = [*NODES, CSI_NODE, claim("data", "pv"), volume("pv", zone="z1")]
    unread = ["PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSIDriver", "CSINode"]
    assert Outcome(Pod.from_json(pod("p", **using("data"))), state(objects, unread=unread)).fits


def far(selector: JSON | None) -> JSON:
    term: JSON = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    if selector is not None:
        term["namespaceSelector"] = selector
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


@pytest.mark.parametrize(("selector", "open_"), [({"matchLabels": {"team": "x"}}, True), ({}, False), (None, False)])
def test_labels_of_namespaces_decide_where_a_term_selects_by_them(selector: JSON | None, open_: bool) -> None:
    cluster = state(NODES, unread=["Namespace"])
    assert bool(Outcome(Pod.from_json(pod("p", **far(selector))), cluster).undetermined) is open_
    existing = pod("x", "a", **far(selector))
    asked = Pod.from_json(pod("p", labels={"app": "web"}, namespace="unseen"))
    assert bool(Outcome(asked, state([*NODES, existing], unread=["Namespace"])).undetermined) is open_
    seen = state([*NODES, existing, namespace("unseen")], unread=["Namespace"])
    assert not Outcome(asked, seen).undetermined
