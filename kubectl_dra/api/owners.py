"""What a pod belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kubectl_dra.api.pods import Pod

_HASHES: Final[Mapping[str, str]] = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}


MAKES_AGAIN: Final = frozenset(
    ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController", "Rollout")
)
"""Kinds that make another pod when one ends."""


class Owner(NamedTuple):
    """The object that a pod's life depends on, in the pod's namespace."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def owner_of(pod: Pod) -> Owner | None:
    """What controls the pod; a Deployment's ReplicaSet is told by the hash in its name. None: nothing does."""
    owner = pod.metadata.controller()
    if owner is None:
        return None
    for label, kind in _HASHES.items():
        hashed = pod.metadata.labels.get(label)
        if owner.kind == "ReplicaSet" and hashed and owner.name.endswith(f"-{hashed}"):
            return Owner(kind, owner.name.removesuffix(f"-{hashed}"))
    return Owner(owner.kind, owner.name)
