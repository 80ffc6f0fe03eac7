"""A quota is changed with the workloads that it counts, or not at all, and counts each class that these claim."""

from __future__ import annotations

import re
from itertools import permutations
from typing import Any

import pytest

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.model import MigrationReport
from tests.migrate.runs import back, catalogue, dump, forward, settings
from tests.migrate.test_said_and_written import texts

GPU = "nvidia.com/gpu"
OLD = f"requests.{GPU}"
WHOLE = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"
MIG = "mig.nvidia.com.deviceclass.resource.k8s.io/devices"
SHARED = {"nvidia.com/gpu.sharing-strategy": "mps"}
PARTITION = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}


def quota(namespace: str = "ml", **more: str) -> dict[str, Any]:
    metadata = {"name": "team", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {OLD: "8", **more}}}


def queue() -> dict[str, Any]:
    spec = {"capability": {GPU: "8"}}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec}


def profile() -> dict[str, Any]:
    spec = {"resourceQuotaSpec": {"hard": {OLD: "8"}}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "Profile", "metadata": {"name": "ml"}, "spec": spec}


def workload(
    labels: dict[str, str], *, name: str = "web", namespace: str = "ml", resource: str = GPU, amount: object = 1
) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    container = {"name": "c", "image": "a:1", "resources": {"limits": {resource: amount}}}
    spec = {**({"nodeSelector": labels} if labels else {}), "containers": [container]}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def run(*raws: dict[str, Any], unsafe: bool = False, claims_file: str = "") -> tuple[list[str], MigrationReport]:
    """The keys of the quotas after the run, each object in a file of its own."""
    inputs = [Input(f"{number}.yaml", True, dump(raw).encode()) for number, raw in enumerate(raws)]
    report = migrate(inputs, MigrationJob(settings(), unsafe, claims_file))
    assert not report.defects
    texts = {file.name: file.text.after for file in report.all_files if file.text is not None}
    found = [texts.get(file.name, (file.data or b"").decode()) for file in inputs]
    return [key for text in found for document in read_documents(text, "f") for key in keys(document.object)], report


def keys(raw: Any) -> list[str]:
    spec = raw["spec"]
    return list(spec.get("hard") or spec.get("capability") or spec.get("resourceQuotaSpec", {}).get("hard") or ())


def codes(report: MigrationReport) -> set[str]:
    return {item.code for item in report.items() if item.code.startswith("MIG2")}


@pytest.mark.parametrize("unsafe", [False, True])
@pytest.mark.parametrize(("counting", "old", "new"), [
    (quota(), OLD, WHOLE), (profile(), OLD, WHOLE), (queue(), GPU, "deviceclass/gpu.nvidia.com"),
], ids=["quota", "profile", "queue"])  # fmt: skip
def test_both_or_neither_whatever_comes_first(counting: dict[str, Any], old: str, new: str, unsafe: bool) -> None:
    for raws in permutations((counting, workload(SHARED))):
        found, report = run(*raws, unsafe=unsafe)
        assert found == ([old, new] if unsafe else [old])
        assert ("MIG208" in codes(report)) is not unsafe
        assert bool(report.changed) is unsafe


@pytest.mark.parametrize("claims_file", ["", "claims.yaml"])
def test_with_the_first_claim_of_the_namespace_it_is_changed(claims_file: str) -> None:
    found, _ = run(quota(), workload(SHARED), workload({}, name="other"), claims_file=claims_file)
    assert found == [OLD, WHOLE]


@pytest.mark.parametrize(
    "left",
    [
        workload({}, amount="{{ gpus }}"),
        {**workload({}), "apiVersion": "serving.knative.dev/v1", "kind": "Service"},
        workload({}, namespace=""),
    ],
    ids=["no number", "a kind without claims", "no namespace"],
)
def test_what_is_refused_holds_its_quota(left: dict[str, Any]) -> None:
    waits = left["metadata"].get("namespace") is not None
    found, report = run(quota(), left)
    assert found == ([OLD] if waits else [OLD, WHOLE]) and ("MIG208" in codes(report)) is waits


def test_other_namespaces_and_other_resources_do_not_matter() -> None:
    others = (workload(SHARED, namespace="other"), workload({"a": "b"}, resource="amd.com/gpu", amount="{{ x }}"))
    assert run(quota(), *others)[0] == [OLD, WHOLE]
    assert run(quota(""), *others[:1])[0] == [OLD]


def test_a_class_that_labels_choose_is_counted() -> None:
    found, report = run(quota(), workload(PARTITION))
    assert found == [OLD, WHOLE, MIG]
    (said,) = [item.message for item in report.items("note") if "each class" in item.message]
    assert "gpu.nvidia.com and mig.nvidia.com" in said
    assert run(queue(), workload(PARTITION))[0] == [GPU, "deviceclass/gpu.nvidia.com", "deviceclass/mig.nvidia.com"]


def test_kueue_is_told_of_every_class() -> None:
    flavors = [{"name": "default", "resources": [{"name": GPU, "nominalQuota": 8}]}]
    spec = {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}]}
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec}
    for labels, classes in (({}, "gpu.nvidia.com"), (PARTITION, "gpu.nvidia.com, mig.nvidia.com")):
        (said,) = [item.message for item in run(queue, workload(labels))[1].items("note") if item.code == "MIG205"]
        assert f"deviceClassNames: [{classes}]" in said


def test_a_class_that_another_key_counts_has_the_number_of_that() -> None:
    both = quota(**{"requests.nvidia.com/mig-1g.5gb": "4"})
    found, report = run(both, workload({}, resource="nvidia.com/mig-1g.5gb"))
    assert found == [*both["spec"]["hard"], WHOLE, MIG]
    (file,) = [file for file in report.files if file.name == "0.yaml"]
    assert file.text is not None and f"{MIG}: '4'" in file.text.after.replace('"', "'")


@pytest.mark.parametrize("labels", [{}, PARTITION])
def test_a_second_run_adds_nothing(labels: dict[str, str]) -> None:
    text = "---\n".join(map(dump, (quota(), workload(labels))))
    after = forward(text, unsafe=False)
    assert after != text and forward(after, unsafe=False) == after
    assert read_documents(back(after)[0], "f")[0].object == quota()


def test_on_the_way_back_a_quota_counts_the_claims_that_stay() -> None:
    text = "---\n".join(map(dump, (quota(), workload({}))))
    own = forward(text, unsafe=False).replace(
        "deviceClassName: gpu.nvidia.com", "deviceClassName: gpu.nvidia.com\n          allocationMode: All"
    )
    _, report = back(own)
    assert not report.changed
    assert "MIG515" in {item.code for item in report.items("note")}


# Claims that HAMi's driver serves are counted as such, in a mapping, a quota and a queue.

HAMI = "hami-core-gpu.project-hami.io"


def kueue(*names: str) -> dict[str, Any]:
    spec = {"resourceGroups": [{"coveredResources": list(names), "flavors": []}]}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": spec}


def shares(name: str = "hami") -> dict[str, Any]:
    """A workload of HAMi: it asks for memory of its GPU."""
    raw = workload({}, name=name)
    raw["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = 1024
    return raw


def mapped(report: MigrationReport) -> dict[str, set[str]]:
    """The classes that the notes about Kueue map to a resource."""
    said = [item.message for item in report.items("note") if item.code == "MIG205"]
    found = [re.findall(r"\{name: (\S+), deviceClassNames: \[([^]]*)\]\}", message) for message in said]
    return {name: set(classes.split(", ")) for each in found for name, classes in each}


@pytest.mark.parametrize("unsafe", [False, True])
def test_kueue_is_told_of_the_class_that_the_claims_have(unsafe: bool) -> None:
    assert mapped(run(kueue(GPU), shares(), unsafe=unsafe)[1]) == {GPU: {HAMI}}
    both = run(kueue(GPU), shares(), workload({}), unsafe=unsafe)[1]
    assert mapped(both) == {GPU: {HAMI, "gpu.nvidia.com"}}
    assert mapped(run(kueue(GPU), unsafe=unsafe)[1]) == {GPU: {"gpu.nvidia.com"}}


def test_a_quota_counts_the_class_that_the_claims_have() -> None:
    new = f"{HAMI}.deviceclass.resource.k8s.io/devices"
    assert run(quota(), shares(), unsafe=True)[0] == [OLD, new]
    assert run(queue(), shares(), unsafe=True)[0] == [GPU, f"deviceclass/{HAMI}"]
    for counting, key in ((quota(), new), (queue(), f"deviceclass/{HAMI}")):
        found, report = run(counting, shares())
        assert found == keys(counting)
        assert [key in item.message for item in report.items("note") if item.code == "MIG208"] == [True]


def test_a_quota_of_hami_loses_its_key_with_the_claims() -> None:
    text = "---\n".join(map(dump, (quota(), shares())))
    found, report = back(forward(text))
    assert report.changed and read_documents(found, "f")[0].object == quota()


@pytest.mark.parametrize("unsafe", [False, True], ids=["", "unsafe"])
@pytest.mark.parametrize("text", list(texts()))
def test_a_mapping_names_what_is_written(text: str, unsafe: bool) -> None:
    """Of the resources that pods of a file move, a mapping names the classes of their claims."""
    try:
        report = migrate([Input("f.yaml", True, text.encode())], MigrationJob(settings(), unsafe))
    except InputError:
        return
    written: dict[str, set[str]] = {}
    for item in report.items():
        for moved_request in item.moved:
            written.setdefault(moved_request.resource, set()).add(moved_request.device_class)
    for name, classes in mapped(report).items():
        if name in written:
            vendors = [resource for resource in catalogue().readings(name) if resource.device_class in written[name]]
            own = {resource.device_class for resource in vendors}
            by_label = {each for vendor in vendors for each in catalogue().classes_by_label(vendor)}
            assert written[name] <= classes <= own | by_label
