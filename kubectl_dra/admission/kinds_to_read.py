"""Which kinds determine whether the API server accepts a new pod, and what it adds to it."""

from __future__ import annotations

from typing import Final

from kubectl_dra.api.pods import Pod

ABOUT_ANY_POD: Final = ("LimitRange", "ResourceQuota")
"""These may affect any pod of their namespace; the others only pods that name them."""


def kinds_needed(pod: Pod) -> tuple[str, ...]:
    """The kinds to read. A PriorityClass can be the cluster's default, a service account the namespace's."""
    runtime = ("RuntimeClass",) if pod.spec.runtime_class_name else ()
    return (*ABOUT_ANY_POD, "PriorityClass", "ServiceAccount", *runtime)
