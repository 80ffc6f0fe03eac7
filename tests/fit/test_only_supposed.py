"""Pods that were placed to see what fits, and what they hold, are not told of as if a cluster had them."""

from __future__ import annotations

from pathlib import Path

from tests.fit.test_agrees import supposing
from tests.fit.worlds import HOST, JSON, claim, deployment, held, node, pod_spec, running

LABELS: JSON = {"matchLabels": {"app": "web"}}


def test_the_pod_that_an_anti_affinity_keeps_away_would_be_there(tmp_path: Path) -> None:
    term = {"topologyKey": HOST, "labelSelector": LABELS}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    code, text = supposing(tmp_path, node("n"), [deployment(2, gpus=0, affinity=apart)])
    assert code == 1, text
    assert "would run on n (of Deployment web), placed before it" in text and " runs on n" not in text, text


def test_a_real_pod_that_an_anti_affinity_keeps_away_is_there(tmp_path: Path) -> None:
    term = {"topologyKey": HOST, "labelSelector": LABELS}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    (there,) = running("there", "n")
    there["metadata"]["labels"] = {"app": "web"}
    code, text = supposing(tmp_path, [*node("n"), there], [deployment(1, gpus=0, affinity=apart)])
    assert code == 1 and "there runs on n" in text and "would run" not in text, text


def _sharing() -> JSON:
    made = deployment(3)
    made["spec"]["template"]["spec"] = {
        **pod_spec(cpu="3"),
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}],
    }
    return made


def test_a_claim_would_be_allocated(tmp_path: Path) -> None:
    code, text = supposing(tmp_path, [*node("n", 1), *node("m", 1)], [claim("shared"), _sharing()])
    assert code == 1 and "2 of 3 replicas" in text, text
    assert "claim default/shared would be allocated for node" in text and "is allocated for" not in text, text
    assert "pods web-1 (placed before it)" in text


def test_a_claim_of_a_real_pod_is_allocated(tmp_path: Path) -> None:
    user = running("user", "n", [0])[0]
    user["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    shared = held("shared", "n", [0], "user")
    shared["status"]["allocation"]["allocationTimestamp"] = "2026-11-29T00:00:00Z"
    code, text = supposing(tmp_path, [*node("n", 1), *node("m", 1), user, shared], [_sharing()])
    assert code == 1 and "claim default/shared is allocated for node n" in text, text
    assert "pods user, pods web-0 (placed before it)" in text


def test_a_cause_that_the_answer_names_is_no_further_one(tmp_path: Path) -> None:
    apart = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": LABELS}
    small, large = node("small", cpu="1"), node("large")
    made = deployment(2, gpus=0, cpu="2", topologySpreadConstraints=[apart])
    code, text = supposing(tmp_path, [*small, *large], [made])
    assert code == 1 and "none of the 2 nodes may run the pod: " in text, text
    assert "topology spread: 1 matching pod there" in text and "further cause" not in text, text
    assert "topology-spread-unsatisfied" in text
