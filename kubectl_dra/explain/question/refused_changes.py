"""Changes of a manifest that the API server refuses and that a question depends on."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.meta import title
from kubectl_dra.cluster.snapshot import RefusedChange, Snapshot, stand_in
from kubectl_dra.explain.question.resolve import Question

_KINDS = {"pod": "Pod", "claim": "ResourceClaim"}


def refused_changes(question: Question, snapshot: Snapshot) -> Iterator[RefusedChange]:
    """Of the object itself, of the workload that makes the pod, and of the templates that its claims are made from."""
    templates = [entry.template for entry in question.claims if entry.template]
    makers = list(_makers(question, snapshot))
    for change in snapshot.refused:
        own = (change.kind, change.name)
        itself = question.exists and own == (_KINDS[question.kind], question.name)
        template = change.kind == "ResourceClaimTemplate" and change.name in templates
        if change.namespace == question.namespace and (itself or template or own in makers):
            yield change


def _makers(question: Question, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """The kind and name of the workload of the manifest that makes the pod."""
    stands_for = stand_in(question.pod)
    if stands_for is None:
        return
    for raw in snapshot.workloads:
        if title(raw) == stands_for.workload:
            yield raw["kind"], (raw.get("metadata") or {}).get("name") or ""
