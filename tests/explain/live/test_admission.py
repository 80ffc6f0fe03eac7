"""Pods that do not exist yet: what the API server adds to them, and why it would refuse them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.explain.live.test_access import CLUSTER_WIDE, NAMESPACED, grant
from tools.controlplane.client import ApiError, Json
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import device, request
from tools.live.referee import Referee


@pytest.fixture
def ready(referee: Referee) -> Referee:
    """A node with a device, and a claim for it."""
    cluster = referee.cluster
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    cluster.claim([request(gpu)])
    return referee


def manifest(cluster: Cluster, **spec: Any) -> Json:
    """A pod that uses the claim."""
    made = cluster.pod_spec(claims={"gpu": "claim"})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "new", "namespace": cluster.namespace},
        "spec": {**made, **spec},
    }


def limit_range(cluster: Cluster) -> Json:
    limits = [{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}}]
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "bounds"}, "spec": {"limits": limits}}


def too_much(cluster: Cluster) -> Json:
    cluster.create(limit_range(cluster))
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}
    pod = manifest(cluster)
    pod["spec"]["containers"][0].setdefault("resources", {}).update(resources)
    return pod


def no_priority_class(cluster: Cluster) -> Json:
    return manifest(cluster, priorityClassName=cluster.name("absent"))


def no_runtime_class(cluster: Cluster) -> Json:
    return manifest(cluster, runtimeClassName=cluster.name("absent"))


def over_quota(cluster: Cluster) -> Json:
    cluster.quota({"pods": "0"})
    return manifest(cluster)


@pytest.mark.parametrize("made", [too_much, no_priority_class, no_runtime_class, over_quota])
def test_a_refused_pod(ready: Referee, made: Callable[[Cluster], Json]) -> None:
    """The answer has the server's own words."""
    pod = made(ready.cluster)
    answer = ready.explain_manifest(pod)
    with pytest.raises(ApiError) as refused:
        ready.cluster.create(pod)
    assert answer.code == 1 and answer.causes == ["pod-refused"], answer.text
    words = answer.report["causes"][0]["text"].removeprefix("the API server refuses to create the pod: ")
    assert words in str(refused.value)


def test_a_runtime_class_chooses_nodes(ready: Referee) -> None:
    cluster = ready.cluster
    name = cluster.name("sandbox")
    cluster.create(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": name},
            "handler": "sandbox",
            "scheduling": {"nodeSelector": {"sandbox": "yes"}},
        }
    )
    answer = ready.explain_manifest(manifest(cluster, runtimeClassName=name))
    assert answer.code == 1 and "nodeSelector sandbox=yes does not match" in answer.text, answer.text


def test_what_is_not_allowed_to_be_read(ready: Referee) -> None:
    """Undetermined, with the kinds that could decide and what permits to read them."""
    cluster = ready.cluster
    grant(cluster, everywhere=[*NAMESPACED, *CLUSTER_WIDE, "namespaces", "resourcequotas"])
    user = ("--as", cluster.namespace)
    plain = ready.explain_manifest(manifest(cluster), flags=user)
    assert plain.code == 3, plain.text
    assert "list limitranges is forbidden" in plain.text and "examples/rbac/read.yaml" in plain.text
    named = ready.explain_manifest(
        manifest(cluster, priorityClassName="system-node-critical", runtimeClassName="any"), flags=user
    )
    assert named.code == 3, named.text
    assert "whether RuntimeClass any exists" in named.text
    assert "whether PriorityClass" not in named.text
