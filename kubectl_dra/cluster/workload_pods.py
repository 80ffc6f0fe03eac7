"""The pods that a workload would make, from its templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubectl_dra.api.meta import EMPTY, title
from kubectl_dra.cluster.snapshot import MADE_BY
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.workloads import pod_templates


def pods_of(workload: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A pod for each template of a workload, named after the workload and, if there are several, the template.

    Raises:
        InputError: what it is named, selected or labelled by has another type than an object.
    """
    found = list(pod_templates(workload))
    if found:
        _check("", workload, "metadata", ("labels", "annotations"))
        _check("spec.", workload.get("spec"), "selector", ("matchLabels",))
    for template in found:
        _check("".join(f"{step}." for step in template.path), template.content, "metadata", ("labels", "annotations"))
    meta = workload.get("metadata") or EMPTY
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


def _check(path: str, holder: Any, field: str, below: Sequence[str]) -> None:
    """Raises InputError where the field, or one below it, is there and is not an object."""
    value = holder.get(field) if isinstance(holder, Mapping) else None
    if not isinstance(value, Mapping | None):
        raise InputError(f"{path}{field} must be an object")
    for name in below if value else ():
        if not isinstance((value or EMPTY).get(name), Mapping | None):
            raise InputError(f"{path}{field}.{name} must be an object")
