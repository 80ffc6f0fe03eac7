"""Binding conditions that nobody sets in time: what is said before, meanwhile, after the time-out, and at last.

The scheduler waits 10 minutes by default; this one waits five seconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools.controlplane.client import ApiError, Json
from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.objects import device, request, resource_object
from tools.controlplane.plane import ControlPlane, own_plane
from tools.controlplane.program import Program
from tools.live.command import Answer, Command
from tools.live.referee import Referee
from tools.live.releases import needs
from tools.scheduling.profiles import profile, second_scheduler

NAME = "impatient"
CONFIG: Json = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [profile(NAME, DynamicResources={"bindingTimeout": "5s"})],
}
READY = "example.com/ready"


@pytest.fixture
def plane(control_plane_program: Program, tmp_path: Path) -> Iterator[ControlPlane]:
    if not control_plane_program.built:
        pytest.skip("programs of KUBEBUILDER_ASSETS: their scheduler takes no other configuration")
    with own_plane(control_plane_program, ["--profile=full"], tmp_path) as started:
        needs(started, "DRADeviceBindingConditions")
        with second_scheduler(started, control_plane_program, tmp_path, CONFIG):
            yield started


def test_the_scheduler_gives_up_and_tries_again(plane: ControlPlane, command: Command, tmp_path: Path) -> None:
    cluster = Cluster(plane, "binding")
    referee = Referee(cluster, command, tmp_path)
    config = tmp_path / "scheduler.json"
    config.write_text(json.dumps(CONFIG))
    flags = ["--scheduler-config", str(config)]
    gpu = cluster.device_class()
    cluster.publish(
        [device("gpu-0", bindingConditions=[READY], bindingFailureConditions=["example.com/broken"])],
        pool="pool",
        node=cluster.node(),
    )
    claim = cluster.claim([request(gpu)])
    spec = {**cluster.pod_spec(claims={"gpu": claim}), "schedulerName": NAME}
    before = referee.explain_manifest(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}, flags=flags
    )
    assert before.code == 0 and any(READY in note and "bound only when" in note for note in before.report["notes"])

    cluster.pod(claims={"gpu": claim}, schedulerName=NAME)

    def said(reserved: bool, text: str) -> Answer:
        """What is said while the claim is reserved or not, once the scheduler has got so far."""

        def now() -> Answer | None:
            answer = referee.explain("pod/pod", *flags)
            users = cluster.get("ResourceClaim", claim).get("status", {}).get("reservedFor")
            return answer if bool(users) is reserved and text in answer.text else None

        return wait(now, f"an answer with: {text}", state=lambda: referee.explain("pod/pod", *flags).text)

    for _ in range(2):
        # The second round is after the scheduler took the device back and allocated it again.
        waiting = said(True, "the scheduler waits for")
        assert (waiting.code, waiting.causes) == (1, ["binding-condition-pending"])
        message = referee.condition("pod", "SchedulerError", "device binding timeout", steady=0)
        given_up = said(False, "has given up waiting for")
        assert (given_up.code, given_up.causes) == (1, ["binding-condition-pending"])
        assert message in [word["message"] for word in given_up.report["scheduler"]]

    _while_allocated(cluster, claim, lambda: _ready(cluster, claim))
    scheduled = cluster.scheduled("pod")
    referee.same(before, scheduled)
    referee.holds(referee.explain("pod/pod", *flags), scheduled)


def _while_allocated(cluster: Cluster, claim: str, action: Callable[[], None]) -> None:
    def done() -> bool | None:
        if not cluster.get("ResourceClaim", claim).get("status", {}).get("reservedFor"):
            return None
        try:
            action()
        except ApiError as error:
            # The scheduler was quicker, and took the device back.
            assert error.status in (409, 422), error
            return None
        return True

    wait(done, "the claim to be allocated")


def _ready(cluster: Cluster, claim: str) -> None:
    condition = {"type": READY, "status": "True", "reason": "Ready", "message": ""}
    state: Json = {"driver": cluster.driver, "pool": "pool", "device": "gpu-0"}
    state |= {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    named = resource_object("ResourceClaim", claim)
    named["metadata"]["namespace"] = cluster.namespace
    cluster.api.patch(named, {"status": {"devices": [state]}}, "status")
