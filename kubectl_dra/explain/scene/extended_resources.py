"""The extended resources that a pod asks for."""

from __future__ import annotations

from kubectl_dra.allocation.extended import amount_of, eligible_name
from kubectl_dra.api.pods import Pod


def resources_of(pod: Pod) -> list[str]:
    """Their names, in order."""
    return sorted(
        {
            name
            for container in pod.containers
            for name, value in container.requests.items()
            if eligible_name(name) and amount_of(value)
        }
    )
