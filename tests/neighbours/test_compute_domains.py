"""``explain computedomain/NAME``, and pods that wait for their domain: each link of the chain, one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra

Dra = Callable[..., Ran]
Json = dict[str, Any]
UID = "bb555a3a-a499-4c91-97a7-f07965c600ea"
LABEL = "resource.nvidia.com/computeDomain"
API = "resource.k8s.io/v1"


def domain(*nodes: Json, status: str = "NotReady", wanted: int = 0) -> Json:
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "imex", "namespace": "ml", "uid": UID},
        "spec": {"numNodes": wanted, "channel": {"resourceClaimTemplate": {"name": "channel"}}},
        "status": {"status": status, "nodes": list(nodes)},
    }


def template() -> Json:
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig", "domainID": UID}
    config = [{"requests": ["channel"], "opaque": {"driver": "compute-domain.nvidia.com", "parameters": parameters}}]
    request = {"name": "channel", "exactly": {"deviceClassName": "compute-domain-default-channel.nvidia.com"}}
    spec = {"devices": {"requests": [request], "config": config}}
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "channel", "namespace": "ml"},
        "spec": {"spec": spec},
    }


def node(name: str, label: str = "", **spec: Any) -> Json:
    labels = {LABEL: label} if label else {}
    status = {
        "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def worker(name: str, on: str) -> list[Json]:
    """A pod of the workload that has its node and waits there, with its claim."""
    result = {"request": "channel", "driver": "compute-domain.nvidia.com", "pool": on, "device": "channel-0"}
    user = {"resource": "pods", "name": name, "uid": name}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
    claim = {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": f"{name}-ch", "namespace": "ml", "ownerReferences": [owner]},
        "spec": template()["spec"]["spec"],
        "status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]},
    }
    spec = {"containers": [{"name": "c"}], "resourceClaims": [{"name": "ch", "resourceClaimTemplateName": "channel"}]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "uid": name},
        "spec": {**spec, **({"nodeName": on} if on else {})},
        "status": {"phase": "Pending", "resourceClaimStatuses": [{"name": "ch", "resourceClaimName": f"{name}-ch"}]},
    }
    return [pod, claim] if on else [pod]


def daemon(on: str, waiting: str = "") -> Json:
    state: Json = {"waiting": {"reason": waiting, "message": "back-off pulling"}} if waiting else {"running": {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"computedomain-daemon-{on}",
            "namespace": "nvidia",
            "uid": f"d-{on}",
            "labels": {LABEL: UID},
        },
        "spec": {"nodeName": on, "containers": [{"name": "compute-domain-daemon"}]},
        "status": {
            "phase": "Pending" if waiting else "Running",
            "containerStatuses": [{"name": "compute-domain-daemon", "state": state}],
        },
    }


def clique(**statuses: str) -> Json:
    daemons = [{"nodeName": name, "cliqueID": "d1.1", "index": 0, "status": each} for name, each in statuses.items()]
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomainClique",
        "metadata": {"name": f"{UID}.d1.1", "namespace": "nvidia"},
        "daemons": daemons,
    }


@pytest.fixture
def explain(dra: Dra, tmp_path: Path) -> Callable[..., Ran]:
    def run(target: str, *objects: Json, namespace: str = "ml", unread: str = "", output: str = "text") -> Ran:
        kinds = ["ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "DeviceTaintRule", "Pod"]
        kinds += ["Node", "Namespace", "ResourceQuota", "Event"]
        kinds += ["ComputeDomain.resource.nvidia.com", "ComputeDomainClique.resource.nvidia.com"]
        told = {"schemaVersion": "1", "serverVersion": "v1.36.2", "read": [kind for kind in kinds if kind != unread]}
        whole = {"apiVersion": "v1", "kind": "List", "kubectl-dra": told, "items": list(objects)}
        (path := tmp_path / "cluster.yaml").write_text(yaml.safe_dump(whole))
        return dra("explain", target, "-n", namespace, "--snapshot", str(path), "-o", output)

    return run


def said(ran: Ran, stream: str = "out") -> str:
    return " ".join(getattr(ran, stream).split())


NAME = "computedomain/imex"


def test_before_a_pod_uses_it_it_is_normal(explain: Callable[..., Ran]) -> None:
    ran = explain(NAME, domain(), template(), node("n1"))
    assert ran.code == 0
    assert "is NotReady: that is normal, because no pod uses its template channel yet" in said(ran)


def test_no_template_means_no_controller(explain: Callable[..., Ran]) -> None:
    ran = explain(NAME, domain(), node("n1"))
    assert ran.code == 1 and "there is no ResourceClaimTemplate channel, which the driver's controller makes" in said(
        ran
    )


@pytest.mark.parametrize(
    ("objects", "answer", "following"),
    [
        ([node("n2")], "node n2 has no label resource.nvidia.com/computeDomain=", "kubectl dra explain node/n2"),
        ([node("n2", "other")], "node n2 is labelled for another domain", "kubectl dra explain node/n2"),
        (
            [node("n2", UID, taints=[{"key": "gb200", "effect": "NoSchedule"}])],
            f"DaemonSet computedomain-daemon-{UID} has no pod on node n2 (taints there: gb200:NoSchedule)",
            "kubectl dra explain node/n2",
        ),
        (
            [node("n2", UID), daemon("n2", "ImagePullBackOff")],
            "daemon nvidia/computedomain-daemon-n2 on node n2 does not run: ImagePullBackOff: back-off pulling",
            "kubectl dra explain pod/computedomain-daemon-n2 -n nvidia",
        ),
        (
            [node("n2", UID), daemon("n2")],
            "daemon nvidia/computedomain-daemon-n2 on node n2 runs, but does not report that it is ready",
            "kubectl logs pod/computedomain-daemon-n2 -n nvidia",
        ),
    ],
)
def test_the_first_missing_link_is_named(
    explain: Callable[..., Ran], objects: list[Json], answer: str, following: str
) -> None:
    ready = [node("n1", UID), daemon("n1"), clique(n1="Ready"), *worker("w-0", "n1")]
    everything = [domain(), template(), *ready, *objects, *worker("w-1", "n2")]
    ran = explain(NAME, *everything)
    assert ran.code == 1 and answer in said(ran) and following in said(ran)
    rows = [line.split() for line in ran.out.splitlines() if line.lstrip().startswith(("n1", "n2"))]
    assert [row[0] for row in rows] == ["n2", "n1"] and rows[1][1] == "ready"
    assert len(ran.out.splitlines()) <= 16
    # The pod on that node says the same.
    pod = explain("pod/w-1", *everything)
    assert "compute-domain-not-ready" in pod.out and answer in said(pod)
    assert "compute-domain-not-ready" not in explain("pod/w-0", *everything).out


def test_a_plugin_that_is_not_registered_comes_first(explain: Callable[..., Ran]) -> None:
    """dra-driver-nvidia-gpu#814: the workload's pods are placed, and no daemon comes."""
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "w-1.1", "namespace": "ml"},
        "involvedObject": {"kind": "Pod", "namespace": "ml", "name": "w-1", "uid": "w-1"},
        "reason": "FailedPrepareDynamicResources",
        "message": "prepare dynamic resources: DRA driver compute-domain.nvidia.com is not registered",
        "lastTimestamp": "2026-09-20T09:58:00Z",
    }
    ran = explain("pod/w-1", domain(), template(), node("n2"), *worker("w-1", "n2"), event)
    assert ran.code == 1 and "does not know the driver" in said(ran).partition("driver-not-registered")[0]


def test_ready(explain: Callable[..., Ran]) -> None:
    one = {"name": "n1", "cliqueID": "d1.1", "index": 0, "status": "Ready"}
    ran = explain(NAME, domain(one, status="Ready"), template(), node("n1", UID), daemon("n1"), *worker("w-0", "n1"))
    assert ran.code == 0 and "ComputeDomain ml/imex is Ready on 1 node" in said(ran)


def test_nodes_of_two_partitions_and_of_none(explain: Callable[..., Ran]) -> None:
    nodes = [{"name": f"n{n}", "cliqueID": each, "status": "Ready"} for n, each in enumerate(("d1.1", "d1.2", ""))]
    ran = explain(NAME, domain(*nodes, wanted=4), template(), *(node(f"n{n}", UID) for n in range(3)))
    assert "in 2 NVLink partitions" in said(ran) and "no NVLink fabric" in said(ran)
    assert "it wants 4 nodes (spec.numNodes), and 3 have joined" in said(ran)


def test_what_was_not_read_is_not_judged(explain: Callable[..., Ran]) -> None:
    ran = explain(NAME, domain(), template(), node("n1"), unread="Pod")
    assert ran.code == 3 and "undetermined: Pods were not read" in said(ran)
    none = explain(NAME, node("n1"), unread="ComputeDomain.resource.nvidia.com")
    assert none.code == 3
    absent = explain("computedomain/imxe", domain(), template(), node("n1"))
    assert absent.code == 2 and "no ComputeDomain imxe in namespace ml; did you mean imex?" in absent.err


def test_json_says_the_same(explain: Callable[..., Ran]) -> None:
    schema = json.loads((Path(__file__).parents[2] / "schemas" / "explain.json").read_text())
    objects = (domain(wanted=2), template(), node("n1", UID), node("n2"), *worker("w-1", "n1"), *worker("w-2", "n2"))
    ran = explain(NAME, *objects, daemon("n1", "ImagePullBackOff"), output="json")
    answer = json.loads(ran.out)
    jsonschema.validate(answer, schema)
    text = said(explain(NAME, *objects, daemon("n1", "ImagePullBackOff")))
    assert (ran.code, answer["exitCode"]) == (1, 1) and answer["answer"] in text and answer["fix"]["text"] in text
    nodes = {each["node"]: (each["missingLink"], [pod["name"] for pod in each["pods"]]) for each in answer["items"]}
    assert nodes == {"n1": ("daemon_runs", ["w-1"]), "n2": ("label", ["w-2"])}
    assert answer["next"]["argv"][:4] == ["kubectl", "dra", "explain", "node/n2"]
    unseen = explain(NAME, domain(), node("n1"), unread="Pod", output="json")
    jsonschema.validate(json.loads(unseen.out), schema)
    assert unseen.code == json.loads(unseen.out)["exitCode"]
    page = explain(NAME, *objects, output="html")
    assert page.code == 2 and "prints text, json or yaml, not html" in page.err


def test_another_namespace_has_it(explain: Callable[..., Ran]) -> None:
    ran = explain(NAME, domain(), template(), node("n1"), namespace="web")
    assert ran.code == 2 and "there is one in namespace ml (use -n ml)" in said(ran, "err")


def test_that_it_is_gone_is_said_only_where_domains_were_read(explain: Callable[..., Ran]) -> None:
    objects = template(), node("n2"), *worker("w-1", "n2")
    assert "no longer exists" in said(explain("pod/w-1", *objects))
    ran = explain("pod/w-1", *objects, unread="ComputeDomain.resource.nvidia.com")
    assert "compute-domain-not-ready" not in ran.out and "no longer exists" not in said(ran)
