"""What a person made, of which a pod or a claim is a part."""

from __future__ import annotations

from typing import NamedTuple

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.pods import Pod

_HASH = "pod-template-hash"


class OwnerName(NamedTuple):
    """An object by kind and name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def owner_of_pod(pod: Pod) -> OwnerName | None:
    """The controller of a pod; for a ReplicaSet that a Deployment made, the Deployment.

    A Deployment calls its ReplicaSets NAME-HASH and labels their pods with the hash (kubernetes:
    pkg/controller/deployment/sync.go), so its name is known without reading ReplicaSets.
    """
    owner = _controller(pod.metadata)
    template = pod.metadata.labels.get(_HASH, "")
    if owner is not None and owner.kind == "ReplicaSet" and template and owner.name.endswith(f"-{template}"):
        return OwnerName("Deployment", owner.name.removesuffix(f"-{template}"))
    return owner


def owner_of_claim(metadata: ObjectMeta, pods: list[Pod]) -> OwnerName | None:
    """The controller of the pods that use a claim, else the claim's own unless that is a pod."""
    for pod in pods:
        if (owner := owner_of_pod(pod)) is not None:
            return owner
    owner = _controller(metadata)
    return None if owner is None or owner.kind == "Pod" else owner


def _controller(metadata: ObjectMeta) -> OwnerName | None:
    owner = metadata.controller()
    return OwnerName(owner.kind, owner.name) if owner is not None else None
