"""What makes the scheduler try a pod again, on a control plane on which nothing else happens."""

from __future__ import annotations

from pathlib import Path
from time import sleep

from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.objects import device, request
from tools.controlplane.plane import own_plane
from tools.controlplane.program import Program


def test_a_change_of_the_class_does_and_a_label_does_not(control_plane_program: Program, tmp_path: Path) -> None:
    """The page of waiting-for-retry says so: the plugin that refused the pod listens to classes, not to labels."""
    with own_plane(control_plane_program, ["--profile=full"], tmp_path) as plane:
        cluster = Cluster(plane, "tried")
        gpu = cluster.device_class()
        cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
        cluster.pod(claims={"gpu": cluster.claim([request(gpu, count=2)])})
        cluster.unschedulable("pod")

        def tried_again() -> bool:
            selector = "involvedObject.name=pod,reason=FailedScheduling"
            events = cluster.api.list("v1", "Event", cluster.namespace, fieldSelector=selector)
            return len(events) > 1 or any(event.get("series") for event in events)

        assert not tried_again()
        cluster.api.patch(cluster.get("Pod", "pod", "v1"), {"metadata": {"labels": {"retry": "now"}}})
        sleep(2)
        assert not tried_again()
        cluster.api.patch(cluster.get("DeviceClass", gpu), {"metadata": {"annotations": {"retry": "now"}}})
        wait(tried_again, "another attempt")
