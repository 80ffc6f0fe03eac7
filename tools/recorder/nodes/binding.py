"""States of pods that are placed and not bound yet: their devices have binding conditions."""

from __future__ import annotations

import time
from subprocess import Popen
from typing import Any

from tools.controlplane.client import Json
from tools.controlplane.node import end
from tools.controlplane.objects import RESOURCE_API
from tools.recorder.nodes.healthy import States
from tools.recorder.nodes.stage import DRIVER, Stage, Truth

READY = "fabric.example.com/attached"
BROKEN = "fabric.example.com/attach-failed"
IMPATIENT = "impatient"
_CONDITIONS: Json = {"bindingConditions": [READY], "bindingFailureConditions": [BROKEN]}
_CONTROLLER = f"driver/gpu-1/{DRIVER}"


def waits(stage: Stage) -> Truth:
    _allocated(stage)
    return Truth("the device is being attached since seconds; the pod is bound when that is done", "binding")


def passes(stage: Stage) -> Truth:
    _allocated(stage)
    set_condition(stage, READY)
    stage.running()
    return Truth("the device was attached, and the pod runs", "running")


def fails(stage: Stage) -> Truth:
    scheduler = stage.scheduler(IMPATIENT, 600)
    _allocated(stage, schedulerName=IMPATIENT)
    set_condition(stage, BROKEN, "no free port in switch 3")
    _given_up(stage, scheduler)
    return Truth(
        "the device could not be attached: no free port in switch 3",
        "binding",
        _CONTROLLER,
        "repair what attaches the device",
    )


def times_out(stage: Stage) -> Truth:
    scheduler = stage.scheduler(IMPATIENT, 5)
    _allocated(stage, schedulerName=IMPATIENT)
    _given_up(stage, scheduler)
    return Truth(
        "nobody attaches the device, and the scheduler gave up waiting after 5 s",
        "binding",
        _CONTROLLER,
        "start what attaches the device",
    )


def _allocated(stage: Stage, **spec: Any) -> None:
    stage.node_with_driver(device_fields=_CONDITIONS)
    stage.pod(**spec)
    stage.until(lambda: stage.get_pod()["status"].get("resourceClaimStatuses"), "the claim")
    stage.until(lambda: stage.get_claim(stage.claim_of()).get("status", {}).get("reservedFor"), "the reservation")
    time.sleep(0.5)


def _given_up(stage: Stage, scheduler: Popen[bytes]) -> None:
    """Wait until the scheduler has taken the reservation back, and end it: it would try again within a second."""

    def said() -> bool:
        conditions = stage.get_pod()["status"].get("conditions", [])
        failed = any(condition.get("reason") == "SchedulerError" for condition in conditions)
        return failed and not stage.get_claim(stage.claim_of())["status"].get("reservedFor")

    stage.until(said, "the end of the attempt")
    end(scheduler)


def set_condition(stage: Stage, condition: str, message: str = "") -> None:
    """Say in the status of the pod's claim that a condition of its device is True, as its controller does."""
    claim = stage.get_claim(stage.claim_of())
    result = claim["status"]["allocation"]["devices"]["results"][0]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    said = {"type": condition, "status": "True", "reason": "Attach", "message": message, "lastTransitionTime": now}
    device = {key: result[key] for key in ("driver", "pool", "device")}
    whole = {"apiVersion": RESOURCE_API, "kind": "ResourceClaim", **claim}
    stage.api.patch(whole, {"status": {"devices": [{**device, "conditions": [said]}]}}, "status")


STATES: States = {
    "binding-waits": waits,
    "binding-passes": passes,
    "binding-fails": fails,
    "binding-times-out": times_out,
}
