"""Whether a workload's controller can replace the pods that run by new ones, while the former keep their devices.

Sources: the rolling updates of the Deployment and StatefulSet controllers (``spec.strategy``, ``spec.updateStrategy``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

from kubectl_dra.command import CommandEffect, CommandLine, deleting, kubectl
from kubectl_dra.fit.workload import WorkloadPods
from kubectl_dra.manifests.workloads import key_of
from kubectl_dra.text import whole_number

MOST_STEPS: Final = 20
"""So many numbers of old pods are tried; a rollout of more steps is not promised."""
_SCALED: Final = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
_DEPLOYMENT: Final = ("apps", "Deployment")


class Replaced(Enum):
    """How the pods that run give way to new ones."""

    BY_ROLLOUT = "by-rollout"
    """The controller does it."""
    ROLLOUT_HANGS = "rollout-hangs"
    """The controller waits for new pods before it ends old ones, and these hold what the new ones need."""
    BY_HAND = "by-hand"
    """They stay as they are until somebody ends them."""


def replaced(workload: WorkloadPods, running: int, beside: Callable[[int], int]) -> Replaced:
    """How so many running pods give way. ``beside``: how many new pods get a node while that many old ones stay."""
    if key_of(workload.raw) == _DEPLOYMENT and _field(workload.raw, "strategy", "type") == "Recreate":
        return Replaced.BY_ROLLOUT
    missing = _may_be_missing(workload)
    if missing is None:
        return Replaced.BY_HAND
    fewest, old = workload.replicas * workload.size - missing, running
    for _ in range(MOST_STEPS):
        if old <= 0:
            return Replaced.BY_ROLLOUT
        # Old pods end as long as enough pods are available without them.
        left = fewest - beside(old)
        if left >= old:
            return Replaced.ROLLOUT_HANGS
        old = left
    return Replaced.ROLLOUT_HANGS


def _may_be_missing(workload: WorkloadPods) -> int | None:
    """How many pods may be unavailable in a rollout; None where the controller replaces none."""
    key, raw = key_of(workload.raw) if workload.raw else ("", ""), workload.raw
    if key == _DEPLOYMENT:
        limits = _field(raw, "strategy", "rollingUpdate")
        limits = limits if isinstance(limits, Mapping) else {}
        missing = _part(limits.get("maxUnavailable", "25%"), workload.replicas, up=False)
        # Where neither more nor fewer pods than wanted may be there, one may be missing.
        return missing or (0 if _part(limits.get("maxSurge", "25%"), workload.replicas, up=True) else 1)
    if key == ("apps", "StatefulSet") and _field(raw, "updateStrategy", "type") != "OnDelete":
        limits = _field(raw, "updateStrategy", "rollingUpdate")
        most = limits.get("maxUnavailable", 1) if isinstance(limits, Mapping) else 1
        return max(1, _part(most, workload.replicas, up=True))
    return None


def _field(raw: Mapping[str, Any], strategy: str, name: str) -> Any:
    found = (raw.get("spec") or {}).get(strategy)
    return found.get(name) if isinstance(found, Mapping) else None


def _part(value: Any, whole: int, *, up: bool) -> int:
    """A number, or a percentage of the replicas."""
    text = str(value)
    number = whole_number(text.removesuffix("%"))
    if number is None:
        return 0
    if not text.endswith("%"):
        return number
    return -(-number * whole // 100) if up else number * whole // 100


def ending(workload: WorkloadPods) -> tuple[CommandLine, ...]:
    """The command that ends the pods that run, so that the manifest can be applied; none for kinds of others."""
    space = workload.namespace
    if workload.raw and workload.kind in _SCALED:
        more, ends = ("--replicas=0",), CommandEffect.DESTROYS
        kind = workload.kind.lower()
        return (kubectl("scale", kind=kind, name=workload.name, namespace=space, more=more, effect=ends),)
    if key_of(workload.raw) == ("batch", "Job"):
        return (deleting("job", workload.name, space),)
    if not workload.raw:
        return tuple(deleting("pod", role.pod.metadata.name, space) for role in workload.roles)
    return ()
