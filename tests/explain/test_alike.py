"""Whoever is answered together with others is answered as if asked alone."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import Release, default_features
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.overview import pending
from kubectl_dra.explain.pending_alike import waiting
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_claim, about_pod
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.framework import make_cycle
from kubectl_dra.scheduling.scheduler import Scheduler

JSON = dict[str, Any]
EXAMPLES: Final = sorted((Path(__file__).parents[2] / "examples/explain").glob("*/cluster.yaml"))
RELEASE: Final = Release(1, 36)
SETTINGS: Final = Settings(Scheduler(RELEASE, default_features(RELEASE)), with_ways=False)


def _told(found: Diagnosis) -> tuple[object, ...]:
    """The answer, without the pod's own name and claims."""
    return found.verdict, found.fitting, [one.kind.code for one in found.findings], found.message


def _agree(snapshot: Snapshot) -> int:
    """Each pod and claim of the overview has its own answer; how many answers there are."""
    found = pending(snapshot, "", SETTINGS)
    together = {
        (alike.diagnosis.namespace, name): _told(alike.diagnosis) for alike in found.found for name in alike.names
    }
    for entry in waiting(snapshot, SETTINGS):
        question = about_pod(entry, snapshot, exists=True) if isinstance(entry, Pod) else about_claim(entry)
        alone = _told(diagnose(question, snapshot, SETTINGS))
        assert together[question.namespace, f"{question.kind}/{question.name}"] == alone, question.name
    return len(found.found)


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.parent.name for path in EXAMPLES])
def test_each_example(path: Path) -> None:
    _agree(read_snapshot([str(path)]))


def _pod(name: str, labels: JSON, owner: str = "", nominated: str = "", said: str = "") -> list[JSON]:
    claim = f"{name}-gpu"
    meta: JSON = {"name": name, "namespace": "ml", "uid": f"uid-{name}", "labels": {**labels, "pod": name}}
    if owner:
        own = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}
        meta["ownerReferences"] = [own]
    spec = {
        "priority": 5,
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
    }
    status: JSON = {"phase": "Pending"}
    if nominated:
        status["nominatedNodeName"] = nominated
    if said:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}
        status["conditions"] = [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status},
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": claim, "namespace": "ml", "uid": f"uid-{claim}"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
        },
    ]


def _world(*pods: list[JSON]) -> Snapshot:
    """Two nodes with devices; on n1 a pod that shuns others by their label; n2 is full."""
    allocatable = {"cpu": "4", "pods": "110"}
    objects: list[JSON] = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}},
    ]
    for name in ("n1", "n2"):
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d", "nodeName": name, "pool": pool, "devices": [{"name": "a"}, {"name": "b"}]}
        objects += [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}},
            {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec},
        ]
        objects[-2]["metadata"]["labels"] = {"host": name}
    term = {
        "topologyKey": "host",
        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]},
    }
    shuns = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    common: JSON = {"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"}}
    running = {"nodeName": "n1", "affinity": shuns, "containers": [{"name": "main"}]}
    shunning = {"name": "shunning", "namespace": "ml", "uid": "uid-shunning"}
    objects.append({**common, "metadata": shunning, "spec": running})
    full = {"nodeName": "n2", "containers": [{"name": "main", "resources": {"requests": {"cpu": "3500m"}}}]}
    ending = {"name": "full", "namespace": "ml", "uid": "uid-full", "deletionTimestamp": "2026-01-01T00:00:30Z"}
    objects.append({**common, "metadata": ending, "spec": full})
    builder = SnapshotBuilder()
    for index, entry in enumerate([*objects, *(one for pod in pods for one in pod)]):
        builder.add(entry, Place("world", item=index))
    return builder.build(complete=True)


def test_labels_that_others_shun() -> None:
    assert _agree(_world(_pod("a", {"app": "x"}), _pod("b", {"app": "y"}), _pod("c", {"app": "y"}))) == 2


def test_labels_that_nobody_reads_do_not_count() -> None:
    assert _agree(_world(*(_pod(f"p-{number}", {"index": str(number)}) for number in range(20)))) == 1


def test_whatever_tells_pods_apart() -> None:
    """All combinations of what a pod has besides its spec."""
    kinds = product(
        ({"app": "x"}, {"app": "y"}, {}), ("", "web"), ("", "n1", "n2"), ("", "0/2 nodes are available: x.")
    )
    _agree(_world(*(_pod(f"p-{number}", *kind) for number, kind in enumerate(kinds))))


def test_the_devices_are_indexed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups share the cycle, also where the claims of a pod are not there yet, and so do other questions."""
    made: list[Snapshot] = []

    def counted(snapshot: Snapshot, *how: Any) -> Cycle:
        made.append(snapshot)
        return make_cycle(snapshot, *how)

    monkeypatch.setattr("kubectl_dra.scheduling.scheduler.make_cycle", counted)
    unmade = _pod("c", {"app": "x"})[:1]
    unmade[0]["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}
    meta = {"name": "gpu", "namespace": "ml"}
    unmade += [
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": meta, "spec": spec},
    ]
    read = _world(_pod("a", {"app": "x"}), _pod("b", {"app": "y"}), unmade)
    settings = Settings(Scheduler(RELEASE, default_features(RELEASE)), with_ways=False)
    assert len(pending(read, "", settings).found) == 3
    assert made == [read]
    other = Cluster(read).without_events().snapshot
    first, again = settings.scheduler.sees_all(read), settings.scheduler.sees_all(other)
    assert first is not again and again is settings.scheduler.sees_all(other)
    assert len(made) == 1, "a cycle is made when it is asked for"
    assert again.cycle.index is settings.scheduler.cycle(other).index is not first.cycle.index
    assert settings.scheduler.cycle(other) is not again.cycle, "each caller may write into its own"
