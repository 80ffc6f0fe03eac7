"""What fits where the namespace of a manifest does not exist: a no, and the answer once it does."""

from __future__ import annotations

from pathlib import Path

from tests.fit.worlds import JSON, deployment, fitted, node, said, template

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
