"""Where migrated pods would land, against where they could be before."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.api.claims import devices_of
from kubectl_dra.cli.release import assumed
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.landing import compare
from kubectl_dra.migrate.model import LandingComparison
from kubectl_dra.report.color import Painter
from kubectl_dra.report.migrate_text import landing_json, write_comparisons
from tests.cli.conftest import dra as dra
from tests.migrate import cluster as saved
from tests.migrate.cluster import DRIVER, Json, device_class, node, slice_of, snapshot
from tests.migrate.runs import dump, settings
from tests.migrate.test_reverse import PLAIN, labelled

A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}


def compared(text: str, *objects: Json, **job: Any) -> list[LandingComparison]:
    cluster = snapshot([device_class(), *objects])
    report = migrate([Input("f.yaml", True, text.encode())], MigrationJob(settings(), True, **job))
    return compare(report, cluster, assumed(cluster), "ml")


def one(text: str, *objects: Json) -> LandingComparison:
    (found,) = compared(text, *objects)
    return found


def test_nodes_and_devices() -> None:
    found = one(PLAIN, node("old", 2), node("new"), slice_of("new", 4), node("both", 2), slice_of("both", 2))
    assert found.resources == {"nvidia.com/gpu": 2}
    assert (found.before, found.after, found.difference) == (("old", "both"), ("new", "both"), 0)
    assert [(landing.node, [*map(str, devices_of(landing.claims))]) for landing in found.landings] == [
        ("new", [f"{DRIVER}/new/gpu-0", f"{DRIVER}/new/gpu-1"]),
        ("both", [f"{DRIVER}/both/gpu-0", f"{DRIVER}/both/gpu-1"]),
    ]
    assert [lost.nodes for lost in found.lost] == [("old",)] and found.gained == ("new",)
    assert found.verdict is Verdict.SCHEDULABLE


@pytest.mark.parametrize(
    ("nodes", "before", "after"),
    [
        ([node("n", 1)], 0, 0),
        ([node("n", 2)], 1, 0),
        ([node("n", 2), slice_of("n", 1)], 1, 0),
        ([node("n"), slice_of("n", 2)], 0, 1),
        ([node("n", 8), slice_of("n", 8, "mig")], 1, 0),
    ],
)
def test_counts(nodes: Sequence[Json], before: int, after: int) -> None:
    found = one(PLAIN, *nodes)
    assert (len(found.before), len(found.after), found.difference) == (before, after, after - before)


@pytest.mark.parametrize(
    ("nodes", "before"),
    [
        ([node("driver"), slice_of("driver", 2)], ("driver",)),
        ([node("driver"), slice_of("driver", 1)], ()),
        ([node("plugin", 2), node("driver"), slice_of("driver", 2), node("none")], ("plugin", "driver")),
        # Where a device plugin counts, devices do not serve the rest.
        ([node("both", 1), slice_of("both", 2)], ()),
    ],
)
@pytest.mark.parametrize("in_files", [False, True])
def test_before_counts_what_a_class_serves(
    dra: Any, nodes: Sequence[Json], before: Sequence[str], in_files: bool
) -> None:
    """The nodes before are those that ``fit`` finds for the pod as it was."""
    served = device_class()
    served["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    text = f"{dump(served)}---\n{PLAIN}" if in_files else PLAIN
    cluster = [*nodes] if in_files else [served, *nodes]
    report = migrate([Input("f.yaml", True, text.encode())], MigrationJob(settings()))
    seen = snapshot(cluster)
    (found,) = compare(report, seen, assumed(seen), "ml")
    assert found.before == tuple(before)
    Path("f.yaml").write_text(text)
    Path("cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster}))
    fits = json.loads(dra("fit", "-f", "f.yaml", "--snapshot", "cluster.json", "--complete", "-o", "json").out)
    assert (fits["exitCode"] == 0) == bool(before)


def test_the_old_label_and_the_new_selector() -> None:
    text = labelled("nvidia.com/gpu", "nvidia.com/gpu.product", "In", ["NVIDIA-A100-SXM4-80GB"])
    text = text.replace("nvidia.com/gpu: 3", "nvidia.com/gpu: 2")
    cluster = [
        node("a", 2, **A100),
        slice_of("a", 2),
        node("h", 2, **{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}),
        slice_of("h", 2, product="NVIDIA H100 80GB HBM3"),
    ]
    found = one(text, *cluster)
    assert (found.before, found.after, found.lost) == (("a",), ("a",), ())


def test_what_is_in_use_now_is_no_difference() -> None:
    results = [{"request": "x", "driver": DRIVER, "pool": "n", "device": f"gpu-{index}"} for index in range(2)]
    request = {"name": "x", "exactly": {"deviceClassName": DRIVER, "count": 2}}
    claim = saved.dra("ResourceClaim", "held", {"devices": {"requests": [request]}})
    claim["status"] = {"allocation": {"devices": {"results": results}}}
    claim["metadata"]["namespace"] = "ml"
    found = one(PLAIN, node("n", 2), slice_of("n", 2), claim)
    assert (found.before, found.after, found.landings) == (("n",), ("n",), ())
    assert found.verdict is Verdict.UNSCHEDULABLE
    answer = landing_json([found])[0]["answer"]
    assert "held" in answer and "Pod" not in answer


def test_taints_count_on_both_sides() -> None:
    tainted = node("n", 2)
    tainted["spec"] = {"taints": [{"key": "other", "effect": "NoSchedule"}]}
    found = one(PLAIN, tainted, slice_of("n", 2))
    assert (found.before, found.after) == ((), ())


def test_a_missing_class_is_the_reason() -> None:
    cluster = snapshot([node("n", 2), slice_of("n", 2)])
    report = migrate([Input("f.yaml", True, PLAIN.encode())], MigrationJob(settings()))
    (found,) = compare(report, cluster, assumed(cluster), "ml")
    assert found.difference == -1
    reason = landing_json([found])[0]["lost"][0]["reason"]
    assert "gpu.nvidia.com" in reason and "does not exist" in reason


@pytest.mark.parametrize("kind", ["Node", "ResourceSlice", "DeviceClass"])
def test_what_was_not_read_is_no_difference(kind: str) -> None:
    objects = [each for each in (device_class(), node("n", 2), slice_of("n", 2)) if each["kind"] != kind]
    seen = snapshot(objects, expected=[kind])
    report = migrate([Input("f.yaml", True, PLAIN.encode())], MigrationJob(settings()))
    found = compare(report, seen, assumed(seen), "ml")
    told = io.StringIO()
    write_comparisons(Painter(told, "never"), found)
    assert [(comparison.before, comparison.after, comparison.unread) for comparison in found] == [((), (), (kind,))]
    assert f"nodes: not known (not read: {kind})" in told.getvalue()
    assert "0 on as many, 0 on more, 1 not known." in " ".join(told.getvalue().split())


def test_only_what_changes_is_compared() -> None:
    plain = PLAIN.replace("nvidia.com/gpu: 2", "cpu: 2").replace("name: train", "name: plain")
    assert [comparison.object for comparison in compared(f"{PLAIN}---\n{plain}", node("n"), slice_of("n", 2))] == [
        "Pod train"
    ]
    assert compared(plain, node("n")) == []


def test_a_document_that_is_filled_in_later_hides_no_other() -> None:
    found = one(f"{PLAIN}\n---\n{{{{TOKEN}}}}\n", node("new"), slice_of("new", 2))
    assert found.after == ("new",)


def test_pods_that_are_alike_land_alike_and_others_do_not() -> None:
    texts = [PLAIN.replace("train", name) for name in ("a", "b")]
    texts.append(PLAIN.replace("train", "c").replace("gpu: 2", "gpu: 3"))
    texts.append(PLAIN.replace("train", "d") + "  nodeSelector: {kubernetes.io/hostname: m}\n")
    found = compared("---\n".join(texts), node("n", 2), slice_of("n", 2), node("m", 4), slice_of("m", 4))
    assert [(comparison.object, comparison.before, comparison.after) for comparison in found] == [
        ("Pod a", ("n", "m"), ("n", "m")),
        ("Pod b", ("n", "m"), ("n", "m")),
        ("Pod c", ("m",), ("m",)),
        ("Pod d", ("m",), ("m",)),
    ]


def test_new_claims_in_a_file_of_their_own() -> None:
    (found,) = compared(PLAIN, node("n"), slice_of("n", 2), claims_file="new.yaml")
    assert found.after == ("n",)


def test_several_pods_of_one_object() -> None:
    def replica(count: int) -> Json:
        container = {"name": "c", "image": "a", "resources": {"limits": {"nvidia.com/gpu": count}}}
        return {"replicas": 1, "template": {"spec": {"containers": [container]}}}

    replicas = {"pytorchReplicaSpecs": {"Master": replica(1), "Worker": replica(2)}}
    meta = {"name": "t", "namespace": "ml"}
    text = dump({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": meta, "spec": replicas})
    found = compared(text, node("n", 1), slice_of("n", 2))
    assert [(comparison.pod.split(".")[2], len(comparison.before), len(comparison.after)) for comparison in found] == [
        ("Master", 1, 1),
        ("Worker", 0, 1),
    ]


def test_a_pod_that_fits_nowhere_is_said_in_words() -> None:
    told = io.StringIO()
    write_comparisons(Painter(told, "never"), [one(PLAIN, node("a"), slice_of("a", 1))])
    assert "nodes: none before, none after\n    now: cannot be scheduled: " in told.getvalue()
    assert "as many\n" not in told.getvalue()


def workload(kind: str, name: str = "w", version: str = "apps/v1", **spec: Any) -> Json:
    container = {"name": "c", "image": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    body = {"template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}, **spec}
    if version == "apps/v1":
        body["selector"] = {"matchLabels": {"app": name}}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "ml"}, "spec": body}


SCALED = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "w", "namespace": "ml"},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}, "maxReplicas": 9},
}


@pytest.mark.parametrize(
    ("objects", "counts"),
    [
        ([workload("Deployment", replicas=2)], [(2, True)]),
        ([workload("Deployment")], [(1, True)]),
        ([workload("StatefulSet", replicas=0)], [(0, True)]),
        ([workload("Deployment", "a", replicas=2), workload("Deployment", "b", replicas=3)], [(2, True), (3, True)]),
        ([workload("Job", "w", "batch/v1", parallelism=4, completions=8)], [(4, True)]),
        ([workload("Job", "w", "batch/v1", parallelism=4, completions=3)], [(3, True)]),
        ([workload("DaemonSet")], [(1, False)]),
        ([workload("Deployment", replicas=2), SCALED], [(2, False)]),
        ([workload("Deployment", replicas=0), SCALED], [(1, False)]),
    ],
)
def test_how_many_pods_there_are(objects: Sequence[Json], counts: Sequence[tuple[int, bool]]) -> None:
    several = "---\n".join(map(dump, objects))
    listed = dump({"apiVersion": "v1", "kind": "List", "items": [*objects]})
    for text in (several, listed):
        found = compared(text, node("n", 1), slice_of("n", 2))
        assert [(comparison.pods, comparison.counted) for comparison in found] == counts


def test_the_total_counts_pods_and_not_objects() -> None:
    texts = map(dump, (workload("Deployment", "a", replicas=2), workload("DaemonSet", "d")))
    told = io.StringIO()
    write_comparisons(Painter(told, "never"), compared("---\n".join(texts), node("n", 1), slice_of("n", 2)))
    assert "  Deployment ml/a  2 pods, 1 nvidia.com/gpu each\n" in told.getvalue()
    assert "  DaemonSet ml/d  at least 1 pod, 1 nvidia.com/gpu each\n" in told.getvalue()
    assert "\nAt least 3 pods, each looked at by itself: 0 could run on fewer nodes" in told.getvalue()


def test_objects_of_one_name_are_paired_in_order() -> None:
    one_gpu, three = PLAIN.replace("gpu: 2", "gpu: 1"), PLAIN.replace("gpu: 2", "gpu: 3")
    made = [text.replace("name: train", "generateName: train-") for text in (one_gpu, three)]
    found = compared("---\n".join(made), node("n", 3), slice_of("n", 3))
    assert [comparison.resources["nvidia.com/gpu"] for comparison in found] == [1, 3]


def test_a_model_server_of_kserve_is_a_pod_too() -> None:
    model = {"modelFormat": {"name": "vllm"}, "resources": {"limits": {"nvidia.com/gpu": 1}}}
    meta = {"name": "m", "namespace": "ml", "annotations": {"serving.kserve.io/deploymentMode": "Standard"}}
    raw = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": meta}
    text = dump({**raw, "spec": {"predictor": {"model": model}}})
    (found,) = compared(text, node("n", 1), slice_of("n", 1))
    assert (found.before, found.after, found.pods, found.counted) == (("n",), ("n",), 1, False)
