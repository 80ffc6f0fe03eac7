"""The steps that explain names in states of real nodes, and how somebody takes them.

Each entry brings a node into one of the recorded states (`tools/recorder/nodes`), and says what explain has to name,
what is then done, and what has to come of it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import NamedTuple

from tools.controlplane.client import ApiError
from tools.recorder.nodes.binding import IMPATIENT, READY, set_condition
from tools.recorder.nodes.stage import DRIVER, NAMESPACE, Stage, names

Do = Callable[[Stage], object]


class Step(NamedTuple):
    """`named` is a part of the answer's first fix; empty where a note names it, then `note`."""

    named: str
    do: Do
    ends: Do
    note: str = ""
    often: bool = False
    """Whether it is done on every run: it takes less than a quarter of a minute."""


def starts(stage: Stage) -> None:
    """The pod runs, and explain has nothing to say about it."""
    _soon(stage, lambda: stage.get_pod()["status"]["phase"] == "Running", "train to be Running")


def is_gone(stage: Stage) -> None:
    """The pod's end."""

    def gone() -> bool:
        return all(each["metadata"]["name"] != "train" for each in stage.api.list("v1", "Pod", NAMESPACE))

    _soon(stage, gone, "the end of train")


def _soon(stage: Stage, check: Callable[[], bool], what: str) -> None:
    """Wait, and have the kubelet look at the pod meanwhile: else it does so every 10 to 15 s."""
    looked = 0.0

    def answer() -> bool:
        nonlocal looked
        if time.monotonic() - looked > 1:
            with contextlib.suppress(ApiError):
                stage.nudge()
            looked = time.monotonic()
        return check()

    stage.until(answer, what, 90)


def _prepares(stage: Stage) -> None:
    stage.drivers["gpu-1"].prepare()


def _unprepares(stage: Stage) -> None:
    stage.drivers["gpu-1"].unprepare()


def _starts_driver(stage: Stage) -> None:
    stage.drivers["gpu-1"].start()


def _restarts_driver(stage: Stage) -> None:
    driver = stage.drivers["gpu-1"]
    driver.crash()
    driver.prepare()
    driver.start()


def _repairs_driver(stage: Stage) -> None:
    stage.made[0].end_containers({})
    stage.drivers["gpu-1"].start()


def _installs_driver(stage: Stage) -> None:
    stage.daemon_set()
    stage.drivers["gpu-1"] = stage.made[0].driver(DRIVER)
    stage.drivers["gpu-1"].publish(names(["gpu-0"]))


def _publishes(stage: Stage) -> None:
    stage.drivers["gpu-1"].publish(names(["gpu-0", "gpu-1"]))


def _placed_anew(**spec: object) -> Do:
    """Delete the pod and create it again, without nodeName."""

    def do(stage: Stage) -> None:
        claim = stage.get_pod()["spec"]["resourceClaims"][0].get("resourceClaimName", "")
        stage.delete()
        stage.gone()
        stage.pod(claim=claim, **spec)  # type: ignore[arg-type]

    return do


def _placed_on_new_devices(stage: Stage) -> None:
    # It objects to devices that it does not have, and to none of its own.
    stage.made[0].drivers[-1].prepare()
    _placed_anew()(stage)


def _node_ready(stage: Stage) -> None:
    stage.made[0].wait_ready()
    _is_ready(stage)


def _deleted_by_force(stage: Stage) -> None:
    stage.delete(grace_seconds=0)


def _brings_node_back(stage: Stage) -> None:
    node = next(made for made in stage.made if made.name == "gpu-1")
    node.start_runtime()
    node.start()
    stage.drivers["gpu-1"].start()
    node.wait_ready()


def _starts_kubelet(stage: Stage) -> None:
    stage.made[0].start()


def _becomes_healthy(stage: Stage) -> None:
    for name in ("gpu-0", "gpu-1"):
        stage.drivers["gpu-1"].health(name, "Healthy")


def _is_healthy(stage: Stage) -> None:
    stage.until(lambda: "Unhealthy" not in str(stage.get_pod()["status"]["containerStatuses"]), "the health")


def _container_lives(stage: Stage) -> None:
    stage.made[0].end_containers({})


def _is_ready(stage: Stage) -> None:
    def ready() -> bool:
        return any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in stage.get_pod()["status"]["conditions"]
        )

    stage.until(ready, "the pod to be ready", 90)


def _finalizer_goes(stage: Stage) -> None:
    stage.api.patch({"apiVersion": "v1", "kind": "Pod", **stage.get_pod()}, {"metadata": {"finalizers": None}})


def _slices_are_back(stage: Stage) -> None:
    stage.slices("gpu-1", 1)


def _attaches(stage: Stage) -> None:
    # The recording ends the scheduler after its first attempt, so that this stays; it tries again by itself.
    stage.scheduler(IMPATIENT, 600)

    def allocated() -> bool:
        return bool(stage.get_claim(stage.claim_of()).get("status", {}).get("reservedFor"))

    stage.until(allocated, "the next attempt", 120)
    set_condition(stage, READY)


def _mends_plugin(stage: Stage) -> None:
    stage.made[0].plugin("example.com/nic")
    _placed_anew()(stage)


_LOG = "The driver's error says what to mend"
_REGISTERS = "it registers in another directory than the kubelet's, or the kubelet refused its version"
_AWAY = "Start driver gpu.example.com on node gpu-1: no pod was recognized as the driver's there"
_AGAIN = "The pod never runs again: delete it, and create it again"
_BY_HAND = "Delete the pod and create it again without"
_GIVE_BACK = "Read the log of driver gpu.example.com on node gpu-1"
STEPS: dict[str, Step] = {
    "prepare-error": Step(_LOG, _prepares, starts, often=True),
    "disk-full": Step("Free space on the node's disk", _prepares, starts, often=True),
    "prepare-times-out": Step("Restarting the driver's pod ends a call that hangs", _restarts_driver, starts),
    "wrong-registry": Step(_REGISTERS, _restarts_driver, starts, often=True),
    "wrong-version": Step(_REGISTERS, _restarts_driver, starts, often=True),
    "driver-gone-before-start": Step(_AWAY, _starts_driver, starts, often=True),
    "driver-gone-and-wiped-before-start": Step(_AWAY, _starts_driver, starts),
    "driver-crashed": Step("restart the pod", _starts_driver, starts, often=True),
    "driver-crash-loops": Step("Repair driver gpu.example.com on node gpu-1", _repairs_driver, starts),
    "comes-back-with-other-names": Step("Delete pod ml/train", _placed_on_new_devices, starts, often=True),
    "bound-by-hand-without-allocation": Step(
        "Delete the pod and create it again without", _placed_anew(), starts, often=True
    ),
    "force-deleted-before": Step(
        "its unprepare succeeds the kubelet goes on by itself", _unprepares, starts, often=True
    ),
    "kubelet-stopped": Step("Look at the kubelet of node gpu-1", _starts_kubelet, starts),
    "node-not-ready-before-start": Step("the kubelet then starts the pod", _starts_kubelet, starts),
    "container-crashes": Step("Read the log of container main", _container_lives, _is_ready, often=True),
    "rejected-for-cpu": Step(_AGAIN, _placed_anew(), starts, often=True),
    "rejected-for-its-node": Step(_AGAIN, _placed_anew(), starts, often=True),
    "rejected-by-device-plugin": Step("Read the log of the device plugin", _mends_plugin, starts, often=True),
    "slices-wiped-while-running": Step("", _starts_driver, _slices_are_back, note="it is away"),
    "unhealthy": Step("Repair or reset the device", _becomes_healthy, _is_healthy, often=True),
    "tainted-before": Step("removes it when the reason is over", _publishes, starts, often=True),
    "claim-deallocated": Step("Delete the pod", _placed_anew(), starts),
    "claim-force-deleted": Step("Delete the pod", lambda stage: stage.delete(), is_gone),
    "runtime-down-while-running": Step(
        "Bring node gpu-1 and its kubelet back", lambda stage: stage.made[0].start_runtime(), _node_ready
    ),
    "node-lost-while-running": Step("Bring node gpu-1 and its kubelet back", _brings_node_back, _is_ready),
    "node-lost-and-pod-evicted": Step("Bring node gpu-1 back", _brings_node_back, is_gone),
    "node-gone": Step("delete the pod by force", _deleted_by_force, is_gone, often=True),
    "driver-gone-before-end": Step("", _starts_driver, is_gone, often=True),
    "slices-wiped-before-end": Step("Start driver gpu.example.com on node gpu-1", _starts_driver, is_gone),
    "unprepare-error": Step(_GIVE_BACK, _unprepares, is_gone),
    "unprepare-hangs": Step(_GIVE_BACK, _unprepares, is_gone),
    "evicted-and-unprepare-hangs": Step(_GIVE_BACK, _unprepares, is_gone),
    "waits-for-a-terminating-pod": Step(
        "start driver gpu.example.com on node gpu-1", _starts_driver, starts, often=True
    ),
    "finalizer-keeps": Step("has to remove a.example/b", _finalizer_goes, is_gone),
    "driver-crash-loops-and-next-waits": Step("Repair driver gpu.example.com on node gpu-1", _repairs_driver, starts),
    "no-driver": Step("Install or repair the driver", _installs_driver, starts),
    "publishes-nothing": Step("its log says why it publishes nothing", _publishes, starts),
    "node-lost-and-next-waits": Step("Get gpu-1 ready again", _brings_node_back, starts),
    "binding-fails": Step("", _attaches, starts, often=True),
    "binding-times-out": Step("", _attaches, starts, often=True),
}
"""By the id of the state."""
