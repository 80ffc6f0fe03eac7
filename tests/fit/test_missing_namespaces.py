"""What fits where the namespace of a manifest does not exist: a no, and the answer once it does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.fit.worlds import JSON, deployment, files, fitted, node, said, template
from tests.ran import ran

EXPLAIN = Draft202012Validator(json.loads((Path(__file__).parents[2] / "schemas" / "explain.json").read_text()))

NAMESPACE = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default"}}
CLUSTER = [NAMESPACE, *node("a", 2)]


def _in_ml(made: JSON) -> JSON:
    return {**made, "metadata": {**made["metadata"], "namespace": "ml"}}


MANIFEST = [_in_ml(deployment(3)), _in_ml(template())]


def test_the_namespace_is_supposed_and_the_answer_is_no(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, CLUSTER, MANIFEST)
    assert code == 1 and report["missingNamespaces"] == ["ml"]
    assert len(report["items"][0]["placements"]) == 2
    text = said(tmp_path, CLUSTER, MANIFEST)[1]
    assert "Namespace ml does not exist, so no pod in it is created. With it:" in text
    assert "$ kubectl create namespace ml" in text and "2 of 3 replicas of Deployment ml/web fit." in text


def test_all_pods_fit_only_once_the_namespace_exists(tmp_path: Path) -> None:
    alone = [_in_ml(deployment(2)), _in_ml(template())]
    assert fitted(tmp_path, CLUSTER, alone)[0] == 1
    made = {**NAMESPACE, "metadata": {"name": "ml"}}
    code, report = fitted(tmp_path, CLUSTER, [made, *alone])
    assert code == 0 and report["missingNamespaces"] == []


def test_new_nodes_are_counted_with_the_namespace(tmp_path: Path) -> None:
    code, report = fitted(tmp_path, CLUSTER, MANIFEST, "--with-node", "a")
    assert code == 1 and report["newNodes"]["enough"] and report["newNodes"]["number"] == 1


@pytest.mark.parametrize(("replicas", "counted"), [(2, "Both replicas"), (3, "2 of 3 replicas")])
def test_explain_counts_what_fits_once_the_namespace_exists(replicas: int, counted: str, tmp_path: Path) -> None:
    """As fit does; the pod that is not created is one of the items."""
    said(tmp_path, CLUSTER, [_in_ml(deployment(replicas)), _in_ml(template())])
    words = ("explain", *files(tmp_path))
    code, out, _ = ran(*words, "--kubernetes-version", "1.36")
    lines = out.splitlines()
    assert code == 1 and lines[0] == "Namespace ml does not exist, so no pod in it is created. With it:"
    assert lines[1].endswith("$ kubectl create namespace ml") and lines[2] == f"{counted} of Deployment ml/web fit."
    code, out, _ = ran(*words, "--kubernetes-version", "1.36", "-o", "json")
    found = json.loads(out)
    EXPLAIN.validate(found)
    assert code == 1 and found["missingNamespaces"] == ["ml"]
    items = found.get("items", [found])
    assert [item["causes"][0]["code"] for item in items] == ["pod-refused", "devices-held"][: replicas - 1]
