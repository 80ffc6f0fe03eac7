"""The words for what ``explain`` takes. Completion reads them at each key press, so nothing else is imported here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final


def _forms(kind: str, *names: str) -> dict[str, str]:
    """The words for a kind: these names and their plurals, as kubectl takes them."""
    return {f"{name}{end}": kind for name in names for end in ("", "s", "es")}


VOLCANO_JOB: Final = "Job.batch.volcano.sh"
"""Volcano's Jobs, which are called as those of Kubernetes: their kind has the group."""
KINDS: Final[Mapping[str, str]] = {
    **_forms("pod", "pod", "po"),
    **_forms("claim", "claim", "resourceclaim"),
    **_forms("template", "template", "resourceclaimtemplate"),
    **_forms("node", "node", "no"),
    **_forms("class", "class", "deviceclass"),
    **_forms("device", "device", "dev"),
    **_forms("driver", "driver"),
    **_forms("computedomain", "computedomain"),
}
"""What can be asked about by itself, by the words for it."""
WORKLOADS: Final[Mapping[str, str]] = {
    **_forms("Deployment", "deployment", "deploy"),
    **_forms("ReplicaSet", "replicaset", "rs"),
    **_forms("StatefulSet", "statefulset", "sts"),
    **_forms("DaemonSet", "daemonset", "ds"),
    **_forms("Job", "job"),
    **_forms(VOLCANO_JOB, "vcjob", "vj"),
    **_forms("CronJob", "cronjob", "cj"),
    **_forms("JobSet", "jobset", "js"),
    **_forms("LeaderWorkerSet", "leaderworkerset", "lws"),
    **_forms("Rollout", "rollout", "ro"),
    **_forms("RayCluster", "raycluster"),
    **_forms("PyTorchJob", "pytorchjob"),
    **_forms("VirtualMachine", "vm", "virtualmachine"),
    **_forms("VirtualMachineInstance", "vmi", "virtualmachineinstance"),
}
"""Workloads that are explained through one of their pods, by the words for them."""


_GROUPS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("claim", "template", "class"), "resource.k8s.io"),
    "computedomain": "resource.nvidia.com",
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"), "apps"),
    **dict.fromkeys(("Job", "CronJob"), "batch"),
    VOLCANO_JOB: "batch.volcano.sh",
    "JobSet": "jobset.x-k8s.io",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io",
    "Rollout": "argoproj.io",
    "RayCluster": "ray.io",
    "PyTorchJob": "kubeflow.org",
    **dict.fromkeys(("VirtualMachine", "VirtualMachineInstance"), "kubevirt.io"),
}
"""The group of each kind that has one."""


def group_of(kind: str) -> str:
    """The group of a value of ``WORKLOADS``; empty for the core one, and for what is none."""
    return _GROUPS.get(kind, "") if kind in WORKLOADS.values() else ""


_VERSION: Final = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?(\.|\Z)")


def kind_of(word: str) -> str:
    """The value of ``KINDS`` or ``WORKLOADS`` for a word; empty if it is none.

    The word may have a group, or a version and a group, as kubectl takes and prints them: TYPE.VERSION.GROUP.
    """
    name, dot, group = word.lower().partition(".")
    kind = KINDS.get(name) or WORKLOADS.get(name, "")
    if not kind or not dot:
        return kind
    group = _VERSION.sub("", group, 1) if _VERSION.match(group) else group
    if kind == "Job" and group == _GROUPS[VOLCANO_JOB]:
        return VOLCANO_JOB
    return kind if group == _GROUPS.get(kind, "") else ""
