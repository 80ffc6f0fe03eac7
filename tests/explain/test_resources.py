"""What pods request of a node, and whether it has enough left, as the scheduler's NodeResourcesFit counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pod_resources import pod_requests
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.releases import Release
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.node_reasons import PodLimitReached, ResourceShort, reason_of
from kubectl_dra.explain.phrase import Words
from kubectl_dra.scheduling.node_resources import NodeResourcesFit
from kubectl_dra.scheduling.scheduler import Scheduler

JSON = dict[str, Any]


def container(
    name: str = "main", *, always: bool = False, limits: JSON | None = None, more: JSON | None = None, **requests: str
) -> JSON:
    out: JSON = {"name": name, "resources": {"requests": {**requests, **(more or {})}}}
    if limits:
        out["resources"]["limits"] = limits
    if always:
        out["restartPolicy"] = "Always"
    return out


def pod(*containers: JSON, init: tuple[JSON, ...] = (), node: str = "", phase: str = "", **spec: Any) -> Pod:
    body = {"containers": list(containers), "initContainers": list(init), "nodeName": node, **spec}
    return Pod.from_json({"metadata": {"name": "p", "namespace": "n"}, "spec": body, "status": {"phase": phase}})


def node(**allocatable: str) -> Node:
    return Node.from_json(
        {"metadata": {"name": "n1"}, "status": {"allocatable": {"pods": "110", **allocatable} if allocatable else {}}}
    )


def short(name: str, needed: str, left: str, total: str) -> ResourceShort:
    return ResourceShort(name, Quantity.parse(needed), Quantity.parse(left), Quantity.parse(total))


def shortage(others: list[Pod], asking: Pod, subject: Node) -> Words | None:
    """Why the node does not take the pod beside other pods."""
    pods = {("n", str(number)): other for number, other in enumerate(others)}
    state = Scheduler(Release(1, 36), frozenset()).sees(Cluster(Snapshot(nodes={subject.name: subject}, pods=pods)))
    rejection = NodeResourcesFit(asking, state).filter(state.nodes[subject.name])
    return reason_of(rejection) if rejection else None


def cpu(subject: Pod) -> str:
    return str(pod_requests(subject).get("cpu", 0))


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(pod(container(cpu="1"), container(cpu="500m")), "1500m", id="containers add up"),
        pytest.param(pod(container(cpu="1"), init=(container(cpu="3"),)), "3", id="a larger init container counts"),
        pytest.param(pod(container(cpu="4"), init=(container(cpu="3"),)), "4", id="a smaller one does not"),
        pytest.param(
            pod(container(cpu="1"), init=(container(cpu="2"), container(cpu="3"))), "3", id="init: one after another"
        ),
        pytest.param(pod(container(cpu="1"), init=(container(cpu="2", always=True),)), "3", id="a sidecar adds up"),
        pytest.param(
            pod(container(cpu="1"), init=(container(cpu="2", always=True), container(cpu="3"))),
            "5",
            id="an init container beside the sidecar before it",
        ),
        pytest.param(
            pod(container(cpu="1"), init=(container(cpu="3"), container(cpu="2", always=True))),
            "3",
            id="an init container before the sidecar starts",
        ),
        pytest.param(pod(container(cpu="1"), overhead={"cpu": "250m"}), "1250m", id="overhead"),
        pytest.param(pod(container(limits={"cpu": "2"})), "2", id="a limit stands for a missing request"),
        pytest.param(pod(container(limits={"cpu": "2"}, cpu="1")), "1", id="a request goes before its limit"),
        pytest.param(pod(container()), "0", id="nothing"),
    ],
)
def test_requests_of_a_pod(subject: Pod, expected: str) -> None:
    assert cpu(subject) == expected


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 9)), max_size=6))
def test_the_peak_is_that_of_a_simulated_start(parts: list[tuple[bool, bool, int]]) -> None:
    """Containers are started one after the other: init containers end, sidecars and regular ones stay."""
    init = [(always, amount) for is_init, always, amount in parts if is_init]
    regular = [amount for is_init, _, amount in parts if not is_init]
    running = peak = 0
    for always, amount in init:
        peak = max(peak, running + amount)
        running += amount if always else 0
    peak = max(peak, running + sum(regular))
    subject = pod(
        *(container(cpu=str(amount)) for amount in regular),
        init=tuple(container(cpu=str(amount), always=always) for always, amount in init),
    )
    assert cpu(subject) == str(peak)


def test_enough_is_left_up_to_the_last_unit() -> None:
    others = [pod(container(cpu="3"), node="n1")]
    assert shortage(others, pod(container(cpu="1")), node(cpu="4")) is None
    assert shortage(others, pod(container(cpu="1001m")), node(cpu="4")) == short("cpu", "1001m", "1", "4")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_takes_nothing(phase: str) -> None:
    others = [pod(container(cpu="4"), node="n1", phase=phase)]
    assert shortage(others, pod(container(cpu="4")), node(cpu="4")) is None


def test_pods_of_other_nodes_and_pending_pods_take_nothing() -> None:
    others = [pod(container(cpu="4"), node="n2"), pod(container(cpu="4"))]
    assert shortage(others, pod(container(cpu="4")), node(cpu="4")) is None


def test_the_number_of_pods_is_limited() -> None:
    others = [pod(node="n1"), pod(node="n1")]
    assert shortage(others, pod(), node(pods="3")) is None
    assert shortage(others, pod(), node(pods="2")) == PodLimitReached()


def test_a_resource_that_the_node_does_not_offer() -> None:
    wanted = pod(container(more={"example.com/gpu": "1"}))
    others: list[Pod] = []
    expected = short("example.com/gpu", "1", "0", "0")
    assert shortage(others, wanted, node(cpu="4")) == expected


def test_zero_of_a_resource_needs_nothing() -> None:
    assert shortage([], pod(container(more={"example.com/gpu": "0"})), node(cpu="1")) is None


def test_a_node_that_does_not_report_what_it_has_is_taken_to_have_enough() -> None:
    assert shortage([], pod(container(cpu="4")), node()) is None
