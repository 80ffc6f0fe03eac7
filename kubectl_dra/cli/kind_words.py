"""The words for what ``explain`` takes. Completion reads them at each key press, so nothing else is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def _forms(kind: str, *names: str) -> dict[str, str]:
    """The words for a kind: these names and their plurals, as kubectl takes them."""
    return {f"{name}{end}": kind for name in names for end in ("", "s", "es")}


KINDS: Final[Mapping[str, str]] = {
    **_forms("pod", "pod", "po"),
    **_forms("claim", "claim", "resourceclaim", "resourceclaims.resource.k8s.io"),
    **_forms("template", "template", "resourceclaimtemplate", "resourceclaimtemplates.resource.k8s.io"),
    **_forms("node", "node", "no"),
    **_forms("class", "class", "deviceclass", "deviceclasses.resource.k8s.io"),
    **_forms("device", "device", "dev"),
    **_forms("driver", "driver"),
    **_forms("computedomain", "computedomain", "computedomains.resource.nvidia.com"),
}
"""What can be asked about by itself, by the words for it."""
WORKLOADS: Final[Mapping[str, str]] = {
    **_forms("Deployment", "deployment", "deploy", "deployments.apps"),
    **_forms("ReplicaSet", "replicaset", "rs", "replicasets.apps"),
    **_forms("StatefulSet", "statefulset", "sts", "statefulsets.apps"),
    **_forms("DaemonSet", "daemonset", "ds", "daemonsets.apps"),
    **_forms("Job", "job", "jobs.batch", "vcjob", "vj", "jobs.batch.volcano.sh"),
    **_forms("CronJob", "cronjob", "cj", "cronjobs.batch"),
    **_forms("JobSet", "jobset", "js"),
    **_forms("LeaderWorkerSet", "leaderworkerset", "lws"),
    **_forms("Rollout", "rollout", "ro"),
    **_forms("RayCluster", "raycluster"),
    **_forms("PyTorchJob", "pytorchjob"),
    **_forms("VirtualMachine", "vm", "virtualmachine"),
    **_forms("VirtualMachineInstance", "vmi", "virtualmachineinstance"),
}
"""Workloads that are explained through one of their pods, by the words for them."""


def kind_of(word: str) -> str:
    """The value of ``KINDS`` or ``WORKLOADS`` for a word; empty if it is none."""
    return KINDS.get(word.lower()) or WORKLOADS.get(word.lower(), "")
