"""docs/maintenance.md, command by command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.taint.live.team import Kubelet
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import device, request
from tools.docs import console
from tools.live.command import ROOT, Answer, Command

PAGE = (ROOT / "docs" / "maintenance.md").read_text()


class Story:
    """The cluster of the page, under names that no other test uses."""

    def __init__(self, cluster: Cluster, command: Command) -> None:
        self.cluster = cluster
        self._command = command
        node, gpu = cluster.node("gpu-node-1"), cluster.device_class("gpu")
        self._names = {"gpu-node-1": node, "gpu.example.com": cluster.driver, "vision": cluster.namespace}
        devices = [device("gpu-0", {"uuid": "GPU-4f1c"}), device("gpu-1", {"uuid": "GPU-a07b"})]
        cluster.publish(devices, pool="gpus", node=node)
        cluster.pod("train-1", claims={"gpu": cluster.claim([request(gpu)], "train-1")})
        assert cluster.scheduled("train-1").devices("gpu") == ["gpus/gpu-0"]
        self._gpu = gpu
        self._connection = ("--kubeconfig", str(cluster.plane.kubeconfig), "--context", "admin")

    def run(self, line: str) -> Answer:
        """Runs a command of the page."""
        words = shlex.split(self.translated(line).removeprefix("kubectl dra "))
        return self._command(*words, *self._connection)

    def translated(self, text: str) -> str:
        """Text of the page with the names of this test."""
        return re.sub("|".join(map(re.escape, self._names)), lambda match: self._names[match[0]], text)

    def matches(self, expected: str, printed: str) -> bool:
        """Whether the output is as the page says; its reader has a kubeconfig and needs no flags for the connection."""
        return console.matches(self.translated(expected), printed.replace(f" {shlex.join(self._connection)}", ""))

    def wait_for_two(self) -> None:
        """A pod that needs both GPUs."""
        claim = self.cluster.claim([request(self._gpu, count=2)], "train-2")
        self.cluster.pod("train-2", claims={"gpu": claim})
        self.cluster.unschedulable("train-2")


@pytest.fixture
def story(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Iterator[Story]:
    yield Story(cluster, Command(capsys))


def test_the_page(story: Story, kubelet: Kubelet) -> None:
    blocks = list(console.blocks(PAGE))
    assert len(blocks) == 8 and {block.where for block in blocks} == {console.CLUSTER}
    kubelet.start()
    for block in blocks:
        ((line, expected),) = block.steps
        if line.startswith("kubectl dra explain"):
            story.wait_for_two()
        answer = story.run(line)
        assert story.matches(expected, answer.out), f"{line}\n{answer.out}\n{answer.err}\nexpected:\n{expected}"
        assert answer.code == block.code, answer.text
        if "--wait=1m" in line:
            assert sorted(story.cluster.scheduled("train-2").devices("gpu")) == ["gpus/gpu-0", "gpus/gpu-1"]


def test_the_matcher_sees_differences(story: Story) -> None:
    assert story.matches("vision/train-1 … stays\n", f"{story.cluster.namespace}/train-1   -   stays\n")
    assert not story.matches("vision/train-1 … stays\n", f"{story.cluster.namespace}/train-1   -   goes\n")
    assert not story.matches("one line\n", "one line\nand another\n")


def test_what_waiting_says_is_said_on_the_page() -> None:
    """The table of what keeps a device has the words of the command, as far as they are not names and numbers."""
    table = PAGE.partition("## When it does not end")[2].partition("##")[0]
    quoted = re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)
    # A text that is written over two lines is one.
    sources = [(ROOT / "kubectl_dra" / path).read_text() for path in ("taint/wait_until_drained.py", "cli/untaint.py")]
    source = re.sub(r'"\s+f?"', "", "".join(sources))
    for text in quoted:
        for part in re.split(r"\b(?:NoSchedule|300|30 s|G|F|N)\b|, ", text):
            assert part.strip() in source, text
    assert len(quoted) == 8
