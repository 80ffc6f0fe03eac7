"""`explain --watch` beside a scheduler at work: it sees the allocation, a deleted pod, and an eviction."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.taint.live.faults import Front
from tools.controlplane.cluster import wait
from tools.controlplane.objects import device, request
from tools.live.command import ROOT
from tools.live.referee import Referee

SECONDS = 60


class Watching:
    """A `kubectl dra explain --watch` that runs, and what it has written so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.lines: list[str] = []
        assert process.stdout is not None
        self._reader = threading.Thread(target=self.lines.extend, args=(process.stdout,), daemon=True)
        self._reader.start()

    def until(self, text: str) -> None:
        """Waits until the text is written."""
        wait(lambda: True if text in self.text else None, f'"{text}"', SECONDS, lambda: self.text)

    def ended(self) -> int:
        """The exit code, once it ends by itself."""
        code = self._process.wait(SECONDS)
        self._reader.join(SECONDS)
        return code

    @property
    def text(self) -> str:
        """Both outputs in one, lines joined."""
        return " ".join("".join(self.lines).split())


@contextmanager
def watching(referee: Referee, what: str, kubeconfig: str = "") -> Iterator[Watching]:
    connection = ["--kubeconfig", kubeconfig or str(referee.cluster.plane.kubeconfig), "-n", referee.cluster.namespace]
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "kubectl_dra", "explain", what, "--watch", *connection],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    )
    try:
        yield Watching(process)
    finally:
        process.kill()
        process.wait()


def test_sees_the_allocation_and_ends(referee: Referee) -> None:
    cluster = referee.cluster
    gpu, node = cluster.device_class(), cluster.node()
    cluster.pod(claims={"gpu": cluster.claim([request(gpu)])})
    with watching(referee, "pod/pod") as watch:
        watch.until(f"Pod {cluster.namespace}/pod cannot be scheduled")
        cluster.publish([device("gpu-0")], pool="pool", node=node)
        cluster.scheduled("pod")
        assert watch.ended() == 0
        assert f"Pod {cluster.namespace}/pod is allocated on node {node}" in watch.text


def test_ends_when_the_pod_is_deleted(referee: Referee) -> None:
    cluster = referee.cluster
    cluster.pod(claims={"gpu": cluster.claim([request(cluster.device_class())])})
    with watching(referee, "pod/pod") as watch:
        watch.until("cannot be scheduled")
        cluster.api.delete(cluster.get("Pod", "pod", "v1"), grace_seconds=0)
        assert watch.ended() == 2
        assert f"error: Pod {cluster.namespace}/pod was deleted while it was watched" in watch.text


def test_outlives_a_server_that_does_not_answer(referee: Referee, tmp_path: Path) -> None:
    cluster = referee.cluster
    gpu, node = cluster.device_class(), cluster.node()
    cluster.pod(claims={"gpu": cluster.claim([request(gpu)])})
    away = threading.Event()
    front = Front(cluster.plane, lambda asked: 503 if away.is_set() else None)
    with closing(front), watching(referee, "pod/pod", front.kubeconfig(tmp_path)) as watch:
        watch.until("cannot be scheduled")
        away.set()
        watch.until("(503): fault 503; asking again")
        away.clear()
        cluster.publish([device("gpu-0")], pool="pool", node=node)
        assert watch.ended() == 0


def test_says_that_the_pod_is_evicted(referee: Referee) -> None:
    cluster = referee.cluster
    gpu, node = cluster.device_class(), cluster.node()
    cluster.publish([device("gpu-0")], pool="pool", node=node)
    cluster.pod(claims={"gpu": cluster.claim([request(gpu)])}, terminationGracePeriodSeconds=600)
    cluster.scheduled("pod")
    taint = {"key": "example.com/broken", "effect": "NoExecute"}
    cluster.publish([device("gpu-0", taints=[taint])], pool="pool", node=node, generation=2)

    def evicted() -> bool | None:
        conditions = cluster.get("Pod", "pod", "v1")["status"].get("conditions", ())
        return True if any(entry["type"] == "DisruptionTarget" for entry in conditions) else None

    wait(evicted, "the eviction", SECONDS)
    answer = referee.explain("pod/pod")
    assert (answer.code, answer.causes) == (1, ["evicted-by-taint"])
    assert answer.report["answer"].startswith(
        f"Pod {cluster.namespace}/pod is being evicted because of a device taint: device {cluster.driver}/pool/gpu-0 "
        "has taint example.com/broken:NoExecute (driver)"
    )
