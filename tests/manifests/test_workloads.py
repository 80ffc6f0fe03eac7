"""Pod templates wherever workloads keep them."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.manifests.workloads import TEMPLATES, TemplatePath, containers, pod_specs, pod_templates

POD: dict[str, Any] = {"spec": {"containers": []}}


def wrapped(path: TemplatePath) -> Any:
    """An object with one pod template at a path of the table."""
    value: Any = POD
    for step in reversed(path):
        value = [value] if step == "*" else {step: value}
    return value


@pytest.mark.parametrize("group_kind", TEMPLATES, ids="/".join)
def test_every_entry_of_the_table_finds_its_template(group_kind: tuple[str, str]) -> None:
    group, kind = group_kind
    for path in TEMPLATES[group_kind]:
        workload = {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, **wrapped(path)}
        assert [template.content for template in pod_templates(workload)] == [POD]


def test_maps_and_lists_and_odd_shapes() -> None:
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "spec": {"pytorchReplicaSpecs": {"Master": {"template": POD}, "Worker": {"template": POD}, "Odd": None}},
    }
    paths = [template.path for template in pod_templates(job)]
    assert paths == [("spec", "pytorchReplicaSpecs", name, "template") for name in ("Master", "Worker")]
    assert not list(pod_templates({"apiVersion": "v1", "kind": "ConfigMap"}))
    assert not list(pod_templates({"apiVersion": "apps/v1", "kind": "Deployment", "spec": []}))


def test_pod_specs_of_pods_templates_and_kinds_with_specs_alone() -> None:
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}
    assert [(spec.path, spec.metadata_path, spec.complete) for spec in pod_specs(pod)] == [
        (("spec",), ("metadata",), True)
    ]
    template = {"apiVersion": "v1", "kind": "PodTemplate", "template": {"metadata": {"labels": {}}, "spec": {}}}
    found = list(pod_specs(template))
    assert [spec.path for spec in found] == [("template", "spec")]
    assert found[0].metadata == {"labels": {}}
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"annotations": {"a": "b"}},
        "spec": {"predictor": {"model": {"resources": {}}, "workerSpec": {"containers": [{"name": "w"}]}}},
    }
    found = list(pod_specs(service))
    assert [spec.path for spec in found] == [("spec", "predictor"), ("spec", "predictor", "workerSpec")]
    assert not any(spec.complete for spec in found)
    assert [container.path for spec in found for container in containers(spec)] == [
        ("spec", "predictor", "model"),
        ("spec", "predictor", "workerSpec", "containers", 0),
    ]


def test_containers_of_a_pod_in_the_order_in_which_they_start() -> None:
    spec = {
        "containers": [{"name": "main"}, {}, None],
        "initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "first"}],
    }
    pod = next(pod_specs({"apiVersion": "v1", "kind": "Pod", "spec": spec}))
    assert [(one.name, one.init, one.sidecar) for one in containers(pod)] == [
        ("side", True, True),
        ("first", True, False),
        ("main", False, False),
        ("container-1", False, False),
    ]


def test_values_of_the_chart_app_template() -> None:
    values: dict[str, Any] = {"controllers": {"a": {"containers": {"app": {}}}, "b": {"pod": {"x": 1}}, "c": None}}
    release = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "spec": {"values": values}}
    found = list(pod_specs(release))
    assert [spec.path for spec in found] == [("spec", "values", "controllers", "a", "pod")]
    assert [container.path for container in containers(found[0])] == [
        ("spec", "values", "controllers", "a", "containers", "app")
    ]
    # Defaults of the pods would be replaced by what is added to one of them.
    values["defaultPodOptions"] = {"tolerations": []}
    assert not list(pod_specs(release))
