"""Pods are looked at wherever a kind has them, and findings are where the text has them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kubectl_dra.manifests.workloads import SPECS, TEMPLATES
from tests.lint.support import report

SPEC: dict[str, Any] = {
    "containers": [{"name": "a", "image": "registry.example.com/a:1"}],
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
}
PLACES = [
    *((key, (*path, "spec")) for key, paths in TEMPLATES.items() for path in paths),
    *((key, path) for key, paths in SPECS.items() for path in paths),
]


def workload(group: str, kind: str, path: tuple[str, ...]) -> dict[str, Any]:
    inner: Any = SPEC
    for step in reversed(path):
        inner = [inner] if step == "*" else {step: inner}
    version = f"{group}/v1" if group else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "train"}, **inner}


@pytest.mark.parametrize(("key", "path"), PLACES, ids=lambda value: ".".join(value))
def test_a_claim_without_use_is_found_where_it_stands(key: tuple[str, str], path: tuple[str, ...]) -> None:
    raw = workload(*key, path)
    text = yaml.safe_dump(raw, sort_keys=False)
    found = report(text, "DRA401")
    (one,) = found.findings
    written = ".".join("0" if step == "*" else step for step in path).replace(".0", "[0]")
    assert one.field == f"{written}.resourceClaims[0].name"
    assert one.object == f"{key[1]} train"
    lines = text.splitlines()
    assert lines[one.line - 1].strip() == "- name: gpu" and one.excerpt == lines[one.line - 1]


def test_what_a_controller_takes_out_or_fills_in_is_no_finding() -> None:
    text = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: flowers}
spec:
  predictor:
    tensorflow:
      storageUri: gs://models/flowers
      resources: {claims: [{name: gpu}]}
    resourceClaims:
    - {name: gpu, resourceClaimTemplateName: one-gpu}
---
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
metadata: {name: llm}
spec:
  template:
    containers:
    - {name: main, resources: {claims: [{name: gpu}]}}
    resourceClaims:
    - {name: gpu, resourceClaimTemplateName: one-gpu}
"""
    assert [found.code for found in report(text, "DRA").findings] == []
    other = text.replace("claims: [{name: gpu}]", "claims: [{name: gpus}]")
    found = report(other, "DRA401").findings
    assert [one.line for one in found] == [10, 20]


def test_fixes_in_a_pod_spec_of_another_name_change_that_spec() -> None:
    from kubectl_dra.lint.fixes import fix_text
    from kubectl_dra.manifests.source import decode

    text = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: bert}
spec:
  predictor:
    nodeName: node-1
    containers:
    - {name: a, image: registry.example.com/a:1, resources: {claims: [{name: gpu}]}}
    resourceClaims:
    - {name: gpu, resourceClaimTemplateName: one-gpu}
"""
    (one,) = report(text, "DRA405").findings
    assert (one.line, one.field) == (6, "spec.predictor.nodeName")
    after = fix_text(decode(text, "f.yaml"), [one], ("safe", "unsafe"), lambda name, data: ()).text.after
    assert after != text and "nodeName" not in after
    changed = yaml.safe_load(after)["spec"]["predictor"]
    assert changed["resourceClaims"] == yaml.safe_load(text)["spec"]["predictor"]["resourceClaims"]
