"""Autoscalers: where they see a new node otherwise than the scheduler. Clouds: how groups without nodes are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, convert

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.releases import Release, Releases
from kubectl_dra.data.drivers import parsed

FILE: Final = Path(__file__).with_name("autoscalers.yaml")
ALWAYS: Final = "always"
"""What every pod with claims meets."""


class AutoscalerLimit(Struct, frozen=True):
    """Why an autoscaler (``says``) does not see on a new node what the scheduler does: ``why``, a part of a sentence.

    ``when`` is what a pod or node has to have for that. ``until`` is the minor number of the last release of Kubernetes
    1 that has it; None means no last one. ``certain``: it comes to another result; otherwise it may.
    """

    says: str
    when: str
    why: str
    source: str
    until: int | None = None
    certain: bool = False

    def affects(self, release: Release) -> bool:
        """Whether an autoscaler of that release has it."""
        return release in Releases(until=self.until)


class Cloud(Struct, frozen=True):
    """A cloud by the signs of its nodes: ``labels`` or ``annotations`` that one has, a part of its ``kubelet`` version.

    ``zero``: what makes a group without nodes known to its autoscaler.
    """

    title: str
    zero: str
    source: str
    labels: Sequence[str] = ()
    annotations: Sequence[str] = ()
    kubelet: str = ""

    def has(self, node: Node) -> bool:
        """Whether a node is one of its."""
        version = node.status.node_info.kubelet_version
        return (
            any(key in node.labels for key in self.labels)
            or any(key in node.metadata.annotations for key in self.annotations)
            or bool(self.kubelet and self.kubelet in version)
        )


class NodeMaker(Struct, frozen=True):
    """An autoscaler, and what to know of claims there (``message``, a sentence without its full stop).

    An object of ``group`` and ``kind`` says that it does, and so do node labels that a pod asks for (``labels``, a
    pattern for the beginning of their names).
    """

    message: str
    source: str
    group: str = ""
    kind: str = ""
    labels: str = ""


@cache
def _read() -> Any:
    return parsed(FILE.read_text("utf-8"))


@cache
def limits() -> tuple[AutoscalerLimit, ...]:
    """All of them, by autoscaler."""
    return tuple(convert(_read()["limits"], list[AutoscalerLimit]))


@cache
def clouds() -> tuple[Cloud, ...]:
    """The known clouds; the last one stands for any other."""
    return tuple(convert(_read()["clouds"], list[Cloud]))


@cache
def makers() -> tuple[NodeMaker, ...]:
    """Those that objects of their own kinds tell of."""
    return tuple(maker for maker in _makers() if maker.group)


def maker_of_deployments() -> NodeMaker:
    """The one that only its Deployment tells of: cluster-autoscaler."""
    return next(maker for maker in _makers() if not maker.group)


@cache
def _makers() -> tuple[NodeMaker, ...]:
    return tuple(convert(_read()["makers"], list[NodeMaker]))


def cloud_of(nodes: Iterable[Node]) -> Cloud:
    """The cloud in which nodes are."""
    known, last = clouds()[:-1], clouds()[-1]
    return next((cloud for node in nodes for cloud in known if cloud.has(node)), last)
