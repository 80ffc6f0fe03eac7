"""Of other layers nothing is read, and no word is said, where no pod points to them: each kind, and each question."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS, kind_here
from tests.neighbours.test_foundation import OBJECTS, Dra, explained, pod, serve
from tools.api_server import APIServer

WORDS = re.compile(
    r"kueue|volcano|kai\b|yunikorn|karpenter|autoscal|leaderworkerset|jobset|kubevirt|virtual ?machine|computedomain"
    r"|compute-domain|clusterpolic|node ?claim|node ?pool|provisioning|bindrequest|cohort|run\.ai",
    re.IGNORECASE,
)
TEMPLATE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu", "namespace": "ml"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}},
}
SPEC: dict[str, Any] = {
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
    "containers": [{"name": "main", "image": "train", "resources": {"claims": [{"name": "gpu"}]}}],
}
QUESTIONS = ("explain pod/train-0 -n ml --full", "explain -n ml", "explain -A", "explain -f MANIFEST --full")
LAYERED = [kind for kind, row in NEIGHBOUR_KINDS.items() if "." in row.group]


def asked(server: APIServer, dra: Dra, folder: Path, question: str, *objects: dict[str, Any]) -> tuple[Any, list[str]]:
    """The answer about a pod with a claim, and the requests, where the server has these objects besides."""
    serve(server, pod(SPEC), *objects)
    server.routes["/apis/resource.k8s.io/v1/resourceclaimtemplates"] = [TEMPLATE]
    (file := folder / "new.json").write_text(json.dumps({**pod(SPEC), "metadata": {"name": "new", "namespace": "ml"}}))
    words = question.replace("MANIFEST", str(file)).split()
    ran, paths = explained(server, dra, folder, *words)
    return (ran.code, ran.out, ran.err), sorted(paths)


@pytest.mark.parametrize("question", QUESTIONS)
def test_without_them_nothing_is_said(question: str, server: APIServer, dra: Dra, tmp_path: Path) -> None:
    (code, out, err), paths = asked(server, dra, tmp_path, question)
    assert code in (1, 3) and ("train" in out or "new" in out)
    assert not WORDS.search(out + err), WORDS.findall(out + err)
    assert not [path for path in paths if any(f"/{NEIGHBOUR_KINDS[kind].plural}" in path for kind in LAYERED)]


@pytest.mark.parametrize("kind", NEIGHBOUR_KINDS)
def test_where_one_is_served_nothing_more_is_read(kind: str, server: APIServer, dra: Dra, tmp_path: Path) -> None:
    objects = [one for one in OBJECTS if kind_here(one["kind"], one["apiVersion"]) == kind]
    assert objects
    for question in QUESTIONS:
        bare = asked(server, dra, tmp_path, question)
        assert asked(server, dra, tmp_path, question, *objects) == bare, question
