"""Which kinds determine whether the API server accepts a new pod, and what it adds to it."""

from __future__ import annotations

from typing import Final

from kubectl_dra.api.pods import Pod

ABOUT_ANY_POD: Final = ("Namespace", "LimitRange", "ResourceQuota")
"""These may affect any pod of their namespace; the others only pods that name them, and those without a priority."""


def kinds_needed(pod: Pod) -> tuple[str, ...]:
    """The kinds to read besides what is always read. A PriorityClass can be the cluster's default."""
    runtime = ("RuntimeClass",) if pod.spec.runtime_class_name else ()
    return ("LimitRange", "ResourceQuota", "PriorityClass", "ServiceAccount", *runtime)
