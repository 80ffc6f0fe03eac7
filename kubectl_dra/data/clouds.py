"""Autoscalers: where they see a new node otherwise than the scheduler. Clouds: how groups without nodes are known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from msgspec import Struct, convert

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.releases import Release, Releases
from kubectl_dra.data.drivers import table

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


class Autoscalers(Struct, frozen=True):
    """What is known of autoscalers and clouds. The last cloud stands for any other.

    Objects of their own kinds tell of the ``makers``, and only its Deployment of cluster-autoscaler.
    """

    limits: tuple[AutoscalerLimit, ...]
    clouds: tuple[Cloud, ...]
    makers: tuple[NodeMaker, ...]
    of_deployments: NodeMaker


@cache
def autoscalers() -> Autoscalers:
    """What the file says."""
    return convert(table("autoscalers.yaml"), Autoscalers)


def cloud_of(nodes: Iterable[Node]) -> Cloud:
    """The cloud in which nodes are."""
    *known, last = autoscalers().clouds
    return next((cloud for node in nodes for cloud in known if cloud.has(node)), last)


# Machine types of clouds: which devices a node of one has.


class MachineType(Struct, frozen=True):
    """The devices of a node: how many, and of which product, as its driver publishes it.

    ``cpu`` and ``memory`` are all that it has; pods get less. They are 0 and empty where they are not known. ``labels``
    are those by which its cloud tells its devices from others of the same product.
    """

    product: str
    devices: int
    cpu: int = 0
    memory: str = ""
    labels: Mapping[str, str] = {}

    @property
    def room(self) -> dict[str, str]:
        """What is known of its resources, as a node has them."""
        return {"cpu": str(self.cpu), "memory": self.memory} if self.cpu and self.memory else {}


class CloudMachines(Struct, frozen=True):
    """Machine types of a cloud, with the pages and lists (``sources``) that say what they have.

    ``labels`` is how labels begin that only its Kubernetes service gives nodes, where labels tell of devices.
    """

    sources: tuple[str, ...]
    machines: Mapping[str, MachineType]
    labels: str = ""


@cache
def machine_types() -> Mapping[str, MachineType]:
    """All of them by name."""
    return {name: machine for group in machine_groups() for name, machine in group.machines.items()}


def cloud_of_label(key: str) -> Collection[str] | None:
    """The machine types of the cloud that alone gives nodes such a label; None if that is no cloud's label."""
    groups = [group for group in machine_groups() if group.labels and key.startswith(group.labels)]
    return {name for group in groups for name in group.machines} if groups else None


@cache
def machine_groups() -> tuple[CloudMachines, ...]:
    """All of them by cloud."""
    return convert(table("machine_types.yaml"), tuple[CloudMachines, ...])
