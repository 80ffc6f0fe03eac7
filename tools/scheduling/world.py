"""A cluster being made up: nodes, objects, pods that run already, and the pod to schedule."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]

DRIVER: Final = "gpu.example.com"
HOST, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass
class World:
    """A cluster being made up. ``bound`` are pods that run already, ``held`` the devices that each of them holds,
    ``late`` objects that are made after them, ``statuses`` what is written into the status of some of all these,
    ``released`` the claims of running pods that are not reserved for them."""

    prefix: str
    rng: random.Random
    nodes: list[Json] = field(default_factory=list)
    objects: list[Json] = field(default_factory=list)
    bound: list[Json] = field(default_factory=list)
    held: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    free: dict[str, list[str]] = field(default_factory=dict)
    pod: Json = field(default_factory=dict)
    late: list[Json] = field(default_factory=list)
    statuses: list[Json] = field(default_factory=list)
    released: list[str] = field(default_factory=list)

    @property
    def spec(self) -> Json:
        """The spec of the pod to schedule."""
        spec: Json = self.pod["spec"]
        return spec

    @property
    def requests(self) -> Json:
        """What its container requests."""
        requests: Json = self.spec["containers"][0]["resources"].setdefault("requests", {})
        return requests

    def chance(self, share: float) -> bool:
        """True in that share of cases."""
        return self.rng.random() < share

    def names(self) -> list[str]:
        """The nodes' names."""
        return [node["metadata"]["name"] for node in self.nodes]

    def running(self, name: str, node: str, *, other: bool = False, **spec: Any) -> Json:
        """Adds a pod that runs on a node, in the pod's namespace or the ``other`` one."""
        labels = spec.pop("labels", {})
        requests = spec.pop("requests", {"cpu": "100m"})
        space = f"{self.prefix}-b" if other else self.prefix
        container = {"name": "main", "image": "example.com/none", "resources": {"requests": requests}}
        container["ports"] = spec.pop("ports", [])
        made: Json = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": space, "labels": labels},
            "spec": {"containers": [container], "nodeName": node, **spec},
        }
        self.bound.append(made)
        return made

    def hold(self, pod: Json, node: str, count: int) -> None:
        """Gives a running pod some free devices of its node."""
        taken, self.free[node] = self.free[node][:count], self.free[node][count:]
        if taken:
            self.held[pod["metadata"]["name"]] = [(node, device) for device in taken]
            pod["spec"]["resourceClaims"] = [{"name": "g", "resourceClaimName": f"hc-{pod['metadata']['name']}"}]
            pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "g"}]
