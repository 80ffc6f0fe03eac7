"""The fix of the first pod that does not fit is made in a template: how many replicas fit then is counted anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fit.worlds import CLASS, JSON, deployment, item, node, running, template

CLUSTER = [CLASS, *node("n1", 4, cpu="8"), *node("n2", 2, cpu="6")]


@pytest.mark.parametrize("cpu", ["7", "9", "12"])
@pytest.mark.parametrize("replicas", [2, 3, 5])
def test_a_smaller_request_in_the_template_is_counted_as_written(tmp_path: Path, cpu: str, replicas: int) -> None:
    (found, manifest) = _asked(tmp_path, [deployment(replicas, cpu=cpu), template(1)])
    fix = found["stop"]["fix"]
    lower = re.search(r"Lower cpu from \S+ to (\S+) in spec.template", fix["text"])
    assert lower is not None, fix
    manifest[0]["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = lower[1]
    again, _ = _asked(tmp_path, manifest)
    assert fix["fitting"] == again["replicaCounts"]["fit"] > 0, (fix, again["answer"])


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("count", [5, 6])
def test_a_smaller_count_in_the_claim_template_is_counted_as_written(tmp_path: Path, count: int, replicas: int) -> None:
    found, manifest = _asked(tmp_path, [deployment(replicas, gpus=count), template(count)])
    fix = found["stop"]["fix"]
    lower = re.search(r"[Ll]ower count to (\d+)", fix["text"])
    assert lower is not None, fix
    manifest[1]["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = int(lower[1])
    again, _ = _asked(tmp_path, manifest)
    assert fix["fitting"] == again["replicaCounts"]["fit"] > 0, (fix, again["answer"])


def test_one_pod_is_proved_by_itself(tmp_path: Path) -> None:
    found, _ = _asked(tmp_path, [deployment(1, cpu="9"), template(1)])
    assert "fitting" not in found["stop"]["fix"]
    assert "then it fits on" in found["stop"]["fix"]["text"]


def test_a_smaller_limit_in_the_template_is_counted_where_a_pod_would_have_to_end(tmp_path: Path) -> None:
    served = {**CLASS, "metadata": {"name": "served"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    web = deployment(3, gpus=0)
    container = web["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"example.com/gpu": 2}}
    cluster = [*CLUSTER, served, *running("other", "n1", [0])]
    found = item(tmp_path, cluster, [web])
    assert found["replicaCounts"]["fit"] == 2 and found["changes"]
    assert found["stop"]["fix"] == {
        "text": "Lower the limit of example.com/gpu in container c to 1; with that in the template all 3 replicas fit.",
        "fitting": 3,
    }
    container["resources"]["limits"]["example.com/gpu"] = 1
    assert item(tmp_path, cluster, [web])["replicaCounts"]["fit"] == 3


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize(("count", "replicas", "largest"), [(3, 3, 2), (3, 4, 1), (4, 2, 2), (4, 6, 1)])
def test_no_larger_count_would_do(tmp_path: Path, count: int, replicas: int, largest: int, extended: bool) -> None:
    """Of the nodes one has four devices, the other two."""
    web, cluster = deployment(replicas, gpus=0 if extended else count), list(CLUSTER)
    if extended:
        cluster.append({**CLASS, "metadata": {"name": "served"}, "spec": {"extendedResourceName": "example.com/gpu"}})
        container = web["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"limits": {"example.com/gpu": count}}
    text = item(tmp_path, cluster, [web, template(count)])["stop"]["fix"]["text"]
    every = "both" if replicas == 2 else f"all {replicas}"
    assert re.search(rf"to {largest}; with that in the template {every} replicas fit", text), text


def _asked(folder: Path, manifest: list[JSON]) -> tuple[JSON, list[JSON]]:
    return item(folder, CLUSTER, manifest), manifest
