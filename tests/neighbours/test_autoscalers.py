"""Objects of autoscalers: read only where an event on the pod is theirs, and understood whatever they hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cluster.anonymize import Anonymizer
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.pointed_objects import Pointer
from kubectl_dra.cluster.save import reduced
from kubectl_dra.data.messages import KnownMessage, all_understood, known_messages
from kubectl_dra.neighbours.autoscalers import groups, node_claim_of, scale_signs
from kubectl_dra.neighbours.pointers import pointers
from tests.cli.conftest import Ran
from tests.neighbours.test_foundation import OBJECTS, explained, pod, serve, snapshot_of
from tools.api_server import APIServer

Dra = Callable[..., Ran]
KARPENTER = [one for one in OBJECTS if one["apiVersion"].startswith("karpenter")]
STATUS = [one for one in OBJECTS if one["metadata"]["name"] == "cluster-autoscaler-status"]
NOMINATED = ("karpenter", "Nominated", "Pod should schedule on: nodeclaim/gpu-x7k2p")
REFUSED = ("karpenter", "FailedScheduling", "Failed to schedule pod, no nodepools found")
SCHEDULER = ("default-scheduler", "FailedScheduling", "0/3 nodes are available: 3 cannot allocate all claims.")
TRIGGERED = ("cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{gpu-group 0->1 (max: 5)}]")
NOT_TRIGGERED = ("cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 cannot allocate all claims")


def event(component: str, reason: str, message: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"train-0.{reason}", "namespace": "ml"},
        "involvedObject": {"kind": "Pod", "namespace": "ml", "name": "train-0", "uid": "u"},
        "reason": reason,
        "message": message,
        "lastTimestamp": "2026-11-20T09:00:00Z",
        "reportingComponent": component,
    }


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (NOMINATED, [Pointer("NodeClaim.karpenter.sh", name="gpu-x7k2p")]),
        (REFUSED, [Pointer("NodePool.karpenter.sh")]),
        (TRIGGERED, [Pointer("ConfigMap", "kube-system", "cluster-autoscaler-status")]),
        (NOT_TRIGGERED, [Pointer("ConfigMap", "kube-system", "cluster-autoscaler-status")]),
        (SCHEDULER, []),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_only_what_an_event_is_about_is_read(said: tuple[str, str, str], wanted: list[Pointer]) -> None:
    read = snapshot_of(pod(), event(*said))
    assert pointers(read.pods.values(), read) == wanted


def test_who_wrote_an_event_decides() -> None:
    read = snapshot_of(pod(), event(*SCHEDULER))
    assert list(scale_signs(next(iter(read.pods.values())), read)) == []


def with_event(server: APIServer, *said: str, hidden: str = "") -> None:
    serve(server, pod(), *KARPENTER, *STATUS, hidden=hidden)
    listed = {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": [event(*said)]}
    server.routes["/api/v1/namespaces/ml/events"] = listed
    maps = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": STATUS}
    server.routes["/api/v1/namespaces/kube-system/configmaps"] = maps


def test_live_one_request_more_where_there_is_a_sign(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    words = ("explain", "pod/train-0", "-n", "ml")
    with_event(server, *SCHEDULER)
    _, plain = explained(server, dra, tmp_path, *words)
    assert not any("karpenter" in path or "configmaps" in path for path in plain)
    for said, path in (
        (NOMINATED, "/apis/karpenter.sh/v1/nodeclaims"),
        (REFUSED, "/apis/karpenter.sh/v1/nodepools"),
        (NOT_TRIGGERED, "/api/v1/namespaces/kube-system/configmaps"),
    ):
        with_event(server, *said)
        _, paths = explained(server, dra, tmp_path, *words)
        assert sorted(paths) == sorted([*plain, path])


def test_the_status_tells_of_each_group() -> None:
    (group,) = groups(snapshot_of(*STATUS))
    assert (group.name, group.scale_up.backoff_info.error_code) == ("gpu-group", "OutOfResource")
    assert group.health.node_counts.registered.unready.resource_unready == 1


@pytest.mark.parametrize(
    "status",
    ["Cluster-autoscaler status at 2024:\n  Health: Healthy", "[1, 2]", "{", "nodeGroups: x", "a: &a [*a]", "", "\x00"],
)
def test_a_status_of_another_form_says_nothing(status: str) -> None:
    (made,) = STATUS
    assert groups(snapshot_of({**made, "data": {"status": status}})) == ()


def test_an_anonymized_copy_answers_alike() -> None:
    """The NodeClaim that an event names is called alike in both."""
    items = [reduced(one) for one in (*KARPENTER, pod(), event(*NOMINATED))]
    anonymizer = Anonymizer(items, "seed")
    found = snapshot_of(*[anonymizer.item(item) for item in items])
    (waiting,) = found.pods.values()
    (sign,) = scale_signs(waiting, found)
    assert sign.node_claim != "gpu-x7k2p"
    claim = node_claim_of(sign, found)
    step = claim.unmet() if claim is not None else None
    assert step is not None and step.reason == "ResourceNotRegistered"


def test_a_snapshot_keeps_them(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    with_event(server, *NOT_TRIGGERED)
    listed = {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": [event(*NOT_TRIGGERED)]}
    server.routes["/api/v1/events"] = listed
    explained(server, dra, tmp_path, "snapshot", "-o", str(tmp_path / "c.json"))
    read = read_snapshot([str(tmp_path / "c.json")])
    assert list(read.others["NodeClaim.karpenter.sh"]) == [("", "gpu-x7k2p")]
    assert [group.name for group in groups(read)] == ["gpu-group"]


@pytest.mark.parametrize("entry", [entry for entry in known_messages() if entry.scale], ids=lambda entry: entry.example)
def test_an_anonymized_message_is_still_understood(entry: KnownMessage) -> None:
    items = [reduced(one) for one in (*KARPENTER, pod(), event(entry.says[0], "Nominated", entry.example))]
    told = Anonymizer(items, "seed").item(items[-1])["message"]
    assert entry in [known.entry for known in all_understood(told, entry.says[0])]
