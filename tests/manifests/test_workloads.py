"""Pod templates wherever workloads keep them."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.manifests.workloads import TEMPLATES, Path, pod_templates

POD: dict[str, Any] = {"spec": {"containers": []}}


def wrapped(path: Path) -> Any:
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
