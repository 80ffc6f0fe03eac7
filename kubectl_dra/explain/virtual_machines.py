"""What is said of a virtual machine of which KubeVirt cannot make the pod."""

from __future__ import annotations

from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.neighbours.no_pod import UnmadeLauncher


def without_pod(launcher: UnmadeLauncher) -> Words:
    """Note that it has no pod, and the API server's reason."""
    text = "VirtualMachineInstance {namespace}/{name} has no pod, because the API server refuses it{often}: {message}"
    often = (
        say(" ({count:,} times since {since})", count=launcher.count, since=launcher.since)
        if launcher.count > 1
        else ""
    )
    return say(text, namespace=launcher.namespace, name=launcher.name, often=often, message=launcher.message)


def remedy(launcher: UnmadeLauncher) -> Words:
    """What helps."""
    if launcher.twice:
        return (
            "KubeVirt before 1.9 lists a claim once for each device that names it (kubevirt#16769). Update it, or give "
            "each device a claim of its own in resourceClaims; kubectl dra lint finds such virtual machines (DRA414)."
        )
    return "Change in the virtual machine what the message names: KubeVirt makes the pod again by itself."
