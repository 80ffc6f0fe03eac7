"""A claim, or its template, that the manifest of a pod has in another namespace than the pod."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fit.test_agrees import supposing
from tests.fit.worlds import JSON, claim, node, pod_spec, template

SPACE: JSON = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "ml"}}


def _pod(entry: JSON) -> JSON:
    spec = {**pod_spec(), "resourceClaims": [{"name": "gpu", **entry}]}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "mine", "namespace": "ml"}, "spec": spec}


@pytest.mark.parametrize(
    ("made", "entry"),
    [
        (template(), {"resourceClaimTemplateName": "gpu-1"}),
        (claim("gpu-1"), {"resourceClaimName": "gpu-1"}),
    ],
    ids=["template", "claim"],
)
def test_it_is_the_manifest_that_is_corrected(tmp_path: Path, made: JSON, entry: JSON) -> None:
    # Whoever writes a manifest gives no uid.
    made = {**made, "metadata": {name: value for name, value in made["metadata"].items() if name != "uid"}}
    code, text = supposing(tmp_path, [*node("n", 1), SPACE], [made, _pod(entry)])
    assert code == 1
    assert f"Write metadata.namespace: ml into {made['kind']} gpu-1 of the manifest." in text, text
    assert "the manifest has one of that name in namespace default" in text and "kubectl get resource" not in text


def test_one_of_the_cluster_is_looked_at_there(tmp_path: Path) -> None:
    entry = {"resourceClaimTemplateName": "gpu-1"}
    code, text = supposing(tmp_path, [*node("n", 1), SPACE, template()], [_pod(entry)])
    assert code == 1 and "kubectl get resourceclaimtemplate/gpu-1 -n default" in text, text
