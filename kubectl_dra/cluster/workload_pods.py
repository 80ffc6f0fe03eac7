"""The pods that a workload would make, from its templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_dra.api.meta import EMPTY, title
from kubectl_dra.cluster.snapshot import MADE_BY
from kubectl_dra.manifests.workloads import pod_templates


def pods_of(workload: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A pod for each template of a workload, named after the workload and, if there are several, the template."""
    meta = workload.get("metadata") or EMPTY
    found = list(pod_templates(workload))
    shared = set.intersection(*(set(template.path) for template in found)) if found else set()
    for template in found:
        parts = [str(meta.get("name") or meta.get("generateName") or "pod").rstrip("-")]
        if len(found) > 1:
            parts += [str(step).removesuffix("Template").lower() for step in template.path if step not in shared]
        made = template.content.get("metadata") or EMPTY
        metadata: dict[str, Any] = {
            "name": "-".join(parts),
            "labels": made.get("labels") or {},
            "annotations": {**(made.get("annotations") or {}), MADE_BY: title(workload)},
        }
        if meta.get("namespace"):
            metadata["namespace"] = meta["namespace"]
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.content["spec"]}
